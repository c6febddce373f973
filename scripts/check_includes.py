#!/usr/bin/env python3
"""Checks that every folder of src/ includes only from itself, `support` and the folders above it in processing order.

    scripts/check_includes.py              check src/, include/ and tools/
    scripts/check_includes.py --self-test  check that the check itself finds what it must

include/napkin/ is the public API: src/api/ implements it, and it includes nothing but itself and the standard library; its headers for C
include C's.
"""

import pathlib
import re
import sys
import tempfile

# The order in which an input passes through the house; design: docs/architecture.md.
ORDER = ["support", "algebra", "report", "diagram", "differentiate", "syntax", "machine", "derive", "tile", "schedule", "lower", "cost", "plan", "emit", "run", "check", "steps", "study", "draw", "export", "api"]
PUBLIC_HEADERS_IN = {"run", "api"}
# Folders inside of which each folder is a backend: nothing beside it in the same folder of src/ includes from it.
BACKENDS_IN = {"emit"}
# Folders from which a folder includes nothing, though they come before it: emitters read the kernel program alone.
HIDDEN_FROM = {"emit": {"schedule", "cost", "plan"}}
C_HEADERS = {"stddef.h", "stdint.h"}
SUFFIXES = {".cpp", ".hpp", ".h", ".cuh", ".cu"}
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The folder of src/ that a path relative to src/ is in, or None for a file that lies in src/ itself."""
    return path.parts[0] if len(path.parts) > 1 else None


def backend_of(path):
    """The folder emit/cpu of the path emit/cpu/prelude.hpp, or None for a file that belongs to no backend."""
    return path.parts[1] if len(path.parts) > 2 and path.parts[0] in BACKENDS_IN else None


def included_path(source, file, quoted, target):
    """The path relative to src/ of an included file of this repository, or None for one of a library's."""
    if quoted:
        neighbour = (file.parent / target).resolve()
        if neighbour.is_file() and source.resolve() in neighbour.parents:
            return neighbour.relative_to(source.resolve())
    path = pathlib.PurePosixPath(target)
    if path.parts and path.parts[0] in ORDER and (source / path.parts[0]).is_dir():
        return path
    return None


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def includes_of(file):
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def check(root):
    """Every broken rule, as a line `file:line: rule`."""
    source = root / "src"
    errors = []
    for file in files_below(source):
        relative = file.relative_to(source)
        room = room_of(relative)
        where = file.relative_to(root)
        if room is not None and room not in ORDER:
            errors.append(f"{where}:1: src/{room}/ has no place in the order; scripts/check_includes.py lists the folders")
            continue
        for number, quoted, target in includes_of(file):
            if target.startswith("napkin/"):
                if room is not None and room not in PUBLIC_HEADERS_IN:
                    errors.append(f"{where}:{number}: only src/run and src/api may include the public API, <{target}>")
                continue
            path = included_path(source, file, quoted, target)
            if path is None or room is None:
                continue
            other, backend = room_of(path), backend_of(path)
            if other == room and backend is not None and backend != backend_of(relative):
                errors.append(f"{where}:{number}: src/{other}/{backend} is a backend, from which only itself in src/{other} includes")
            if other in HIDDEN_FROM.get(room, set()):
                errors.append(f"{where}:{number}: src/{room} reads src/lower, and may not include {target}")
            if other == "api" and room != "api":
                errors.append(f"{where}:{number}: nothing in src/ includes from src/api")
            elif other is not None and other != "support" and ORDER.index(other) > ORDER.index(room):
                errors.append(f"{where}:{number}: src/{room} comes before src/{other} and may not include {target}")
    for file in files_below(root / "include"):
        for number, quoted, target in includes_of(file):
            where = file.relative_to(root)
            if file.suffix == ".h" and not quoted and target in C_HEADERS:
                continue
            # Standard headers have no folder and no ending.
            if not target.startswith("napkin/") and (quoted or "/" in target or "." in target):
                errors.append(f"{where}:{number}: a public header includes only <napkin/...> and the standard library, not {target}")
    return errors


def self_test():
    """Each sample file breaks one rule or none; what check() says must be just that."""
    samples = {
        "src/algebra/size.hpp": ("#include <vector>\n", None),
        "src/algebra/size.cpp": ('#include "algebra/size.hpp"\n#include "support/result.hpp"\n', None),
        "src/support/result.hpp": ("#pragma once\n", None),
        "src/plan/plan.cpp": ('#include "algebra/size.hpp"\n', None),
        "src/tile/choice.cpp": ('// fine\n#  include "plan/plan.hpp"\n', "src/tile/choice.cpp:2: src/tile comes before src/plan"),
        "src/tile/relative.cpp": ('#include "../plan/plan.hpp"\n', "src/tile/relative.cpp:1: src/tile comes before src/plan"),
        "src/tile/angle.cpp": ("#include <plan/plan.hpp>\n", "src/tile/angle.cpp:1: src/tile comes before src/plan"),
        "src/support/up.cpp": ('#include "algebra/size.hpp"\n', "src/support/up.cpp:1: src/support comes before src/algebra"),
        "src/plan/plan.hpp": ("#pragma once\n", None),
        "src/tile/api.cpp": ("#include <napkin/napkin.hpp>\n", "src/tile/api.cpp:1: only src/run and src/api"),
        "src/run/run.cpp": ("#include <napkin/napkin.hpp>\n", None),
        "src/api/napkin.cpp": ("#include <napkin/napkin.hpp>\n#include \"run/run.hpp\"\n", None),
        "src/draw/svg.cpp": ('#include "api/napkin.hpp"\n', "src/draw/svg.cpp:1: nothing in src/ includes from src/api"),
        "src/emit/cpu/emit.hpp": ('#include "emit/writer.hpp"\n#include "emit/cpu/text.hpp"\n', None),
        "src/emit/writer.hpp": ('#include "emit/cpu/emit.hpp"\n', "src/emit/writer.hpp:1: src/emit/cpu is a backend"),
        "src/emit/cuda/emit.cpp": ('#include "emit/cpu/emit.hpp"\n', "src/emit/cuda/emit.cpp:1: src/emit/cpu is a backend"),
        "src/run/kernel.cpp": ('#include "emit/cpu/emit.hpp"\n', None),
        "src/emit/searcher.cpp": ('#include "schedule/fragments.hpp"\n', "src/emit/searcher.cpp:1: src/emit reads src/lower"),
        "src/schedule/fragments.hpp": ("#pragma once\n", None),
        "src/utils/misc.cpp": ("\n", "src/utils/misc.cpp:1: src/utils/ has no place"),
        "include/napkin/napkin.hpp": ("#include <string>\n#include <napkin/plan.hpp>\n", None),
        "include/napkin/napkin.h": ("#include <stdint.h>\n", None),
        "include/napkin/bad.h": ("#include <cuda.h>\n", "include/napkin/bad.h:1: a public header includes only"),
        "include/napkin/c.hpp": ("#include <stdint.h>\n", "include/napkin/c.hpp:1: a public header includes only"),
        "include/napkin/bad.hpp": ("#include <fmt/core.h>\n", "include/napkin/bad.hpp:1: a public header includes only"),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in samples.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        errors = check(root)
    expected = [start for _, start in samples.values() if start]
    wrong = [start for start in expected if sum(error.startswith(start) for error in errors) != 1]
    if wrong or len(errors) != len(expected):
        print("check_includes.py: self-test failed", *wrong, "found:", *errors, sep="\n    ", file=sys.stderr)
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    errors = check(pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(errors), file=sys.stderr, end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
