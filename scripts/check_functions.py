#!/usr/bin/env python3
"""Functions and classes stay readable: finds those of the sources, or of the files that are named, that are too long.

A function's body holds at most 100 lines, and a class's braces hold at most 300. ALLOWED names what still breaks that; what no longer
does is an error in it, so that the list can only become shorter. --self-test checks the check.
"""
import bisect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["src", "tools", "include"]
SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
LIMITS = {"function": 100, "class": 300}

# (file, name) of what is still longer.
ALLOWED = set()

# What is no code: comments, strings, characters, and lines of the preprocessor. A ' behind a digit parts digits.
NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\bR\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*\#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"(?:^|[\s>])(?:class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*|\[\[.*?\]\]\s*)*([\w:]+(?:<[^{]*>)?)[^()=]*$", re.DOTALL)
OPERATOR = re.compile(r"(?:\b\w+::)*\boperator\s*(?:\(\s*\)|[^\s\w(]+|[\w: ]+)")


def without_templates(head):
    """A declaration's head without `template <...>`, whose defaults may hold a `=`."""
    while match := re.search(r"\btemplate\s*<", head):
        depth, end = 1, match.end()
        while depth and end < len(head):
            depth += {"<": 1, ">": -1}.get(head[end], 0)
            end += 1
        head = head[:match.start()] + head[end:]
    return head.strip()


def kind_of(head, outer):
    """(kind, name) of what a brace behind this head opens, inside of a brace of the kind `outer`."""
    head = without_templates(head)
    if re.search(r"\b(?:namespace|extern)\b[^()=]*$", head):
        return "namespace", ""
    if not re.search(r"\benum\b", head) and (match := CLASS.search(head)):
        return "class", match[1]
    operator = OPERATOR.search(head)
    call = head.find("(", operator.end() if operator else 0)
    if outer == "function" or call < 0 or not operator and "=" in head[:call]:
        return "block", ""
    # A member that a constructor begins with a brace stands right before it.
    if re.search(r"\)[\w\s]*:(?!:).*[\w>]$", head, re.DOTALL):
        return "block", ""
    name = operator[0] if operator else (re.search(r"[\w:~]+\s*$", head[:call]) or [""])[0].strip()
    return ("function", name) if name else ("block", "")


def bodies(text):
    """(line, kind, name, lines that the braces hold) of each function and class."""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    ends = [match.start() for match in re.finditer("\n", code)]
    open_braces = [("namespace", "", "", 0, 0)]
    head, parentheses, start = "", 0, 0
    for match in re.finditer(r"[{}();]", code):
        mark, at = match[0], match.start()
        head += code[start:at]
        start = at + 1
        outer = open_braces[-1][0]
        if mark == "{":
            kind, name = kind_of(head, outer) if not parentheses or outer == "function" else ("block", "")
            open_braces.append((kind, name, head, parentheses, at))
            head, parentheses = "", 0
        elif mark == "}":
            kind, name, before, parentheses, opened = open_braces.pop()
            if kind in LIMITS:
                first, last = bisect.bisect_left(ends, opened), bisect.bisect_left(ends, at)
                yield first + 1, kind, name, max(0, last - first - 1)
            head = before + "{}" if kind == "block" and open_braces[-1][0] != "function" else ""
        elif mark == ";":
            head = "" if not parentheses else head + mark
        else:
            parentheses += 1 if mark == "(" else -1
            head += mark


def files(names):
    if names:
        return [pathlib.Path(name).resolve() for name in names]
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)


def faults(sources, allowed):
    """A message for each fault of [(name of the file, its text)], and for each of those allowed that has none."""
    found, left = [], set(allowed)
    for file, text in sources:
        for line, kind, name, lines in bodies(text):
            if lines <= LIMITS[kind]:
                continue
            if (file, name) not in allowed:
                found.append(f"{file}:{line}: {name} has {lines} lines, where {LIMITS[kind]} are allowed")
            left.discard((file, name))
    here = {file for file, _ in sources}
    found += [f"{file}:1: {name} is no longer too long: take it out of ALLOWED in scripts/check_functions.py"
              for file, name in sorted(left) if file in here or not (ROOT / file).exists()]
    return found


def self_test():
    def of(head, count, tail=""):
        return head + " {\n" + "    a();\n" * count + "}" + tail + "\n"

    short = [of("void f(int a = {}, int b = 1'000)", 100), of("class A : B<int>", 300, ";"), of("namespace a", 400),
             of("enum class E", 400, ";"), of("std::vector<int> table =", 400, ";"), of('extern "C"', 400),
             of("struct A", 290, ";") + of("void A::f()", 90), "// {\n" * 9 + of("void f()", 9) + 'auto a = R"(' + "{\n" * 400 + ')";\n']
    long = {"f": of("void f(int a = {}, char b = '{')", 101),
            "A::f": "namespace a {\n" + of("template <int a = 1>\nauto A::f() const -> int", 101) + "}\n",
            "A::A": of("A::A(int a)\n    : B{a}, a_{a}, b_(a)", 101), "A::operator()": of("int A::operator()(int a) const", 101),
            "A::operator==": of("bool A::operator==(const A& a) const", 101), "~A": "struct A {\n" + of("~A()", 101) + "};\n",
            "A": of("template <class T>\nclass [[nodiscard]] A final : public B", 301, ";"), "g": "#if a\n" + of("void g()", 101) + "#endif\n",
            "Inner": of("struct Outer", 1, ";") + "namespace {\n" + of("union Inner", 301, ";") + "}\n"}
    wrong = [text for text in short if faults([("a.cpp", text)], set())]
    for name, text in long.items():
        said = faults([("a.cpp", text)], set())
        if len(said) != 1 or f": {name} has " not in said[0] or faults([("a.cpp", text)], {("a.cpp", name)}):
            wrong.append(text)
    if not faults([("a.cpp", short[0])], {("a.cpp", "f")}):
        wrong.append("an entry that is not needed")
    for text in wrong:
        print("check_functions.py: self-test: " + text, file=sys.stderr)
    return not wrong


def main(arguments):
    if arguments[:1] == ["--self-test"]:
        return 0 if self_test() else 1
    found = faults([(path.relative_to(ROOT).as_posix(), path.read_text()) for path in files(arguments)], ALLOWED)
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
