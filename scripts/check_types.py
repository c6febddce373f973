#!/usr/bin/env python3
"""Checks that no two files of src/ define a type of one name in one namespace.

    scripts/check_types.py              check src/
    scripts/check_types.py --self-test  check that the check itself finds what it must

C++ wants one definition in the whole program. No compiler looks across files: templates over both types are joined by the linker, and one of them then
runs with the other's size. Namespaces without a name are each file's own.
"""
import pathlib
import re
import sys
import tempfile

NAMESPACE = re.compile(r"namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|enum(?:\s+class)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)\b(?!::)[^;(]*$")
# What the structure of a line is not in: comments and literals.
IGNORED = re.compile(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'")


def types_of(text):
    """(line, name with its namespaces) of each type that is defined where a namespace with a name is open and nothing else."""
    open_scopes = []  # of each brace: a namespace's name, "" for one without a name, None for anything else
    for number, line in enumerate(text.splitlines(), 1):
        code = IGNORED.sub(" ", line)
        match = TYPE.match(code.split("{")[0].strip()) if "{" in code else None
        if match and all(open_scopes):
            yield number, "::".join([*open_scopes, match[1]])
        named = NAMESPACE.search(code)
        for brace in re.findall(r"[{}]", code):
            if brace == "}":
                if open_scopes:
                    open_scopes.pop()
            else:
                open_scopes.append(named[1] if named else None)
                named = None


def check(source):
    """Every type that a second file defines, as a line `file:line: rule`."""
    first, errors = {}, []
    for file in sorted(source.rglob("*.?pp")):
        for number, name in types_of(file.read_text(encoding="utf-8")):
            where = f"{file.relative_to(source.parent)}:{number}"
            if name in first:
                errors.append(f"{where}: {name} is defined in {first[name]} too: name one of them otherwise, or keep it in a namespace without a name")
            else:
                first[name] = where
    return errors


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "src"
        source.mkdir()
        (source / "a.hpp").write_text("namespace n {\nstruct Cost {\n    struct Part { int x; };\n};\nstruct Part;\nenum class Kind : char { a };\n}  // namespace n\n")
        apart = "namespace n::inner {\nstruct Cost {};\n}\nnamespace n {\nnamespace {\nstruct Cost {};\n}\nclass Part { const char* brace = \"{\"; };\n}\n"
        (source / "b.cpp").write_text(apart)
        if check(source):
            sys.exit("check_types.py: self-test: refused what is apart: " + "\n".join(check(source)))
        for text in ("namespace n {\nstruct Cost : Base {\n};\n}\n", "namespace n {\nenum class Kind { b };\n}\n", "namespace n {\nnamespace {\nstruct Own {};\n}\n// {\nclass Cost final {\n};\n}\n"):
            (source / "c.cpp").write_text(text)
            if len(check(source)) != 1:
                sys.exit(f"check_types.py: self-test: let through:\n{text}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        found = check(pathlib.Path(__file__).resolve().parent.parent / "src")
        print("\n".join(found), file=sys.stderr) if found else None
        sys.exit(bool(found))
