#!/usr/bin/env python3
"""Comments are plain English: checks those of the sources, or of the files that are named.

A sentence has at most 30 words and does not begin with "Of"; a line with a comment has at most 120 columns; no comment uses a word
that docs/glossary.md replaces. --self-test checks the check. --wrap breaks the comments of the files that are named at 120 columns,
and moves one that does not fit behind its line above it.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["src", "include", "tools", "tests", "bench", "scripts", "cmake", "lib", "python"]
SLASHES = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc"}
HASHES = {".cmake", ".nk", ".py", ".sh"}
WIDTH, WORDS = 120, 30

# From tile down, the field's words alone.
DOWN = ("src/tile", "src/schedule", "src/lower", "src/plan", "src/emit")
# What a comment does not say, what it says instead, and the folders where it does not say it.
COINED = [
    (r"matrix units?", "tensor core", ("src",)),
    (r"matrix atoms?", "mma", ("src",)),
    (r"(?:memory|cache) of all", "global memory, L2", ("src",)),
    (r"the special unit", "the special function unit (SFU)", ("src",)),
    (r"looked up", "gathered", DOWN),
    (r"chunks?", "K block, KV block", DOWN),
    (r"(?<!in )(?<!in its )turns?(?! (?:into|to|out|off|on)\b)", "mainloop iteration, ping-pong", DOWN),
    (r"owe[ds]?", "deferred release", DOWN),
    (r"refill(?:s|ed|ing)?", "producer acquire", DOWN),
    (r"(?:re)?dealt|dealing", "the tile scheduler: static, dynamic, stream-K", DOWN),
    (r"boxes of (?:stores?|outputs?|results?)", "epilogue staging tiles", DOWN),
    (r"lagging|lazy maxim(?:um|a)", "conditional rescaling", DOWN),
    (r"by hand", "override", DOWN),
    (r"mended|needless", "redundant-barrier elimination", DOWN),
    (r"misfits?", "mismatch", ("src",)),
    (r"merging cores", "L2 request coalescing width", ("src",)),
]


def comment_start(line, slashes):
    """Column where the comment of a line starts, outside of strings; None without one."""
    quote, i = "", 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif slashes and line.startswith("//", i) or not slashes and c == "#" and line[:i + 1].split()[-1] == "#":
            return i
        # A ' behind a digit or a letter parts digits in C++, and is an apostrophe in a shell's text.
        elif c == '"' or c == "'" and not (i and line[i - 1].isalnum()):
            quote = c
        i += 1
    return None


def comments(text, slashes):
    """Paragraphs of comments: (number of the first line, [(line, column of the comment's mark, its text)])."""
    paragraph, raw, block = [], None, False
    for number, line in enumerate(text.split("\n"), 1):
        if slashes and raw is None and (opened := re.search(r'R"(\w*)\(', line)):
            raw = ")" + opened[1] + '"'
            if raw in line[opened.end():]:
                raw = None
            column = None
        elif raw is not None:
            if raw in line:
                raw = None
            column = None
        else:
            column = None if not slashes and line.startswith("#!") else comment_start(line, slashes)
        if column is None:
            if paragraph:
                yield paragraph
            paragraph = []
            continue
        mark = re.match(r"///<|///|//|#+", line[column:])[0]
        words = line[column + len(mark):]
        own = not line[:column].strip()
        aligned = bool(paragraph) and paragraph[-1][1] == column
        # A comment behind code goes on in lines of their own below it; a list's entry and a formula stand by
        # themselves.
        goes_on = aligned and own and not re.match(r"\s*(?:[-*|]|\\\w| {3,}\S|$|NOLINT|clang-format|@\w|[=─-]{3})", words) and \
            (mark == paragraph[-1][2] or paragraph[-1][2] == "///<") and re.match(r" {0,2}[^\s|]", paragraph[-1][3])
        if paragraph and not goes_on:
            yield paragraph
            paragraph = []
        paragraph.append((number, column, mark, words, own))
    if paragraph:
        yield paragraph


def sentences(words):
    words = re.sub(r"`[^`]*`", "`Code`", words)
    words = re.sub(r"\b(e\.g|i\.e|cf|vs|Fig|Eq|Sec|et al|approx|p|pp)\.", r"\1", words)
    return re.split(r"(?<=[.!?:;])[)\"”’]?\s+(?=[\"“(`]?[A-Z])|(?<=[.!?])\s*$", words)


def faults(name, text):
    """(line, message) of each fault in the comments of a file."""
    suffix = pathlib.PurePath(name).suffix
    slashes = suffix in SLASHES
    found = []
    lines = text.split("\n")
    for paragraph in comments(text, slashes):
        first = paragraph[0][0]
        words = " ".join(part[3].strip() for part in paragraph)
        for part in paragraph:
            if len(lines[part[0] - 1]) > WIDTH and "://" not in part[3]:
                found.append((part[0], f"{len(lines[part[0] - 1])} columns, where a comment has {WIDTH}"))
        for sentence in sentences(words):
            said = [word for word in sentence.split() if re.search(r"\w", word)]
            if said and said[0] == "Of":
                found.append((first, f'a sentence begins with "Of": {" ".join(said[:6])} …'))
            if len(said) > WORDS:
                found.append((first, f'a sentence of {len(said)} words: {" ".join(said[:6])} …'))
        plain = re.sub(r"`[^`]*`", "", words)
        for pattern, instead, folders in COINED:
            if any(name.startswith(folder + "/") for folder in folders) and \
                    (match := re.search(rf"\b(?:{pattern})\b", plain, re.IGNORECASE)):
                found.append((first, f'"{match[0]}": say {instead} (docs/glossary.md)'))
    return found


def wrap(name, text):
    """The text with its comments broken at WIDTH columns."""
    slashes = pathlib.PurePath(name).suffix in SLASHES
    lines = text.split("\n")
    out, done = [], 0
    for paragraph in comments(text, slashes):
        numbers = [part[0] for part in paragraph]
        if max(len(lines[n - 1]) for n in numbers) <= WIDTH or re.match(r"\s{3}|\s*\|", paragraph[0][3]):
            continue
        out += lines[done:numbers[0] - 1]
        done = numbers[-1]
        _, column, mark, first, own = paragraph[0]
        words = " ".join(part[3].strip() for part in paragraph)
        indent, code = " " * column, []
        if not own:
            head = lines[numbers[0] - 1][:column].rstrip()
            indent = re.match(r"\s*", head)[0]
            mark = "///" if mark == "///<" else mark
            code = [head]
        lead = re.match(r"\s*(?:[-*] )?", first)[0] or " "
        out += textwrap.wrap(words.strip() if lead.isspace() else words.strip()[2:], WIDTH,
                             initial_indent=indent + mark + lead, subsequent_indent=indent + mark + " " * len(lead),
                             break_long_words=False, break_on_hyphens=False)
        out += code
    return "\n".join(out + lines[done:])


def files(names):
    if names:
        return [pathlib.Path(name).resolve() for name in names]
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SLASHES | HASHES]
    return sorted(path for path in found if path.is_file() and not {"golden", "cases", "corpus"} & set(path.parts))


def self_test():
    good = [
        "// Often it is so. Number of exponentials of a row that one thread evaluates.",
        'auto a = "// Of all";  // plain',
        "int a = 1'000;  ///< in words",
        "auto b = R\"(\n// Of text\n)\";",
        "// A" + " a" * 29 + ".\n// B" + " b" * 29 + ".",
    ]
    bad = [
        "// Of two blocks that each have a part of a group: what it takes them.",
        "// A sentence. Of warps the last that says so.",
        "int a;  ///< Of a row",
        "// " + " ".join(["word"] * 20) + "\n// " + " ".join(["word"] * 11) + ".",
        "// " + "w" * 118,
        "// The matrix unit.",
        "// It is owed.",
    ]
    hashes = ["# Of a row", "    # Of a row", "a = 1  # Of a row"]
    plain = ["echo $#Of", 'a = "# Of"']
    wrong = [text for text in hashes if not faults("scripts/a.sh", text)]
    wrong += [text for text in plain if faults("scripts/a.sh", text)]
    wrong += [text for text in good if faults("src/emit/a.cpp", text)]
    wrong += [text for text in bad if not faults("src/emit/a.cpp", text)]
    wide = "int a;  ///< " + "word " * 40 + "\nint b;\n// " + "text " * 40 + "\n// more"
    again = wrap("src/a.cpp", wide)
    if max(map(len, again.split("\n"))) > WIDTH or re.sub(r"[\s/<]", "", wide[6:]).replace("intb;", "") != \
            re.sub(r"[\s/]", "", again).replace("inta;intb;", ""):
        wrong.append(again)
    for text in wrong:
        print("check_prose.py: self-test: " + text, file=sys.stderr)
    return not wrong


def main(arguments):
    if arguments[:1] == ["--self-test"]:
        return 0 if self_test() else 1
    if arguments[:1] == ["--wrap"]:
        for path in files(arguments[1:]):
            path.write_text(wrap(path.name, path.read_text()))
        return 0
    bad = False
    for path in files(arguments):
        name = path.relative_to(ROOT).as_posix()
        for line, message in faults(name, path.read_text()):
            print(f"{name}:{line}: {message}", file=sys.stderr)
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
