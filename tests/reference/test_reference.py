#!/usr/bin/env python3
"""Compares kernels and the compiler's own definition with a second evaluator (evaluate.py), which was written from docs/language.md alone.

    test_reference.py RUNNER SOURCE_DIR FOLDER [--shard K/N] [--only WORD] [--random FROM:TO]

Texts are the examples, the library, tests/reference/texts, tests/property/spellings and random programs. Every definition in them is a case, at
small sizes. Exit code 0: all agree.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
except ImportError:  # another Python than Debian's, for which scripts/setup.sh installs NumPy
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    raise

from evaluate import Evaluation, Stored, Value, names_in
from language import LanguageError, parse
from numbers_of_types import EXACT, INTEGERS, REALS, rounded

MOST_POINTS = 60_000  # of an equation, so that a text takes milliseconds
STORED = {"i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8, "bool": np.bool_}
LEAST = {"f64": 2.0**-1022, "f32": 2.0**-126, "tf32": 2.0**-126, "f16": 2.0**-24, "bf16": 2.0**-126, "e4m3": 2.0**-9, "e5m2": 2.0**-16}

# sizes x = L[b], or q = F[b] .. F[b + 1]
LENGTHS_ARE_DATA = re.compile(r"^\s*sizes\b.*=\s*\w+\[", re.MULTILINE)


class Case:
    """One definition of a text with sizes, inputs and the results that the second evaluator gives."""

    def __init__(self, name, text, definitions, outer, diagram, library, seed):
        self.name, self.text, self.diagram = name, text, diagram
        self.definition = definitions[diagram]
        for array in self.definition.arguments + self.definition.results:
            array.type = array.type or "f32"  # in the main diagram
        self.definition.sizes = relevant(self.definition, self.definition.sizes + outer)
        self.definitions, self.library = definitions, library
        self.random = random.Random(f"{name} {diagram} {seed}")
        self.error = None
        for attempt in range(60):
            try:
                self.draw(attempt)
                return
            except LanguageError as error:
                self.error = self.error or error
        raise LanguageError(f"no sizes and inputs are found for it: {self.error}")

    def draw(self, attempt):
        definition = self.definition
        # Sizes that the text gives as numbers are drawn anew, and kept in the last attempts.
        fixed = {name for name, tree in definition.sizes if tree[0] == "number"} if attempt < 40 else set()
        made = {name for name, _ in definition.sizes} - fixed
        groups = {}
        for name, tree in definition.sizes:
            groups.setdefault(id(tree), []).append(name)
        self.sizes = {}
        for names in groups.values():
            if names[0] in fixed:
                self.sizes.update(dict.fromkeys(names, self.extent()))
        for array in definition.arguments:
            for axis in array.axes:
                if axis not in made and axis not in self.sizes:
                    self.sizes[axis] = self.extent()
        callees = {*self.definitions, *self.library, "einsum", "rearrange", "reduce"}
        for name in sorted(axes_in(definition) - made - set(self.sizes)):
            # An axis that indexes a dimension gets that one's size, others are free.
            if attempt % 2 == 1 or name in {a for r in definition.results for a in r.axes if not indexes(definition, a, callees)}:
                if not indexes(definition, name, callees):
                    self.sizes[name] = self.extent()
        largest = attempt % 3  # integers may be indices
        self.inputs = {}
        frame_sizes = self.with_made_sizes()
        for array in definition.arguments:
            if array.default is None:
                shape = [frame_sizes[axis] for axis in array.axes]
                if np.prod(shape, initial=1) > 100_000:
                    raise LanguageError("too large")
                self.inputs[array.name] = (array.type or "f32", self.values(array.type or "f32", shape, largest, frame_sizes))
        self.results = {}
        for mode in ("exact", "plain", "unrounded"):
            evaluation = Evaluation(self.definitions, self.library, mode)
            given = [None if a.default is not None else self.stored(a) for a in definition.arguments]
            with np.errstate(all="ignore"):
                stored = evaluation.run(definition, given, self.sizes)
            for result, array in zip(definition.results, stored):
                self.results.setdefault(result.name, (result.type or "f32", {}))[1][mode] = array.value
                if array.woven:
                    raise LanguageError(f"{result.name} depends on axes that it does not have")

    def with_made_sizes(self):
        """Sizes that are made of others are worked out as a frame does it."""
        from evaluate import Frame
        frame = Frame(Evaluation(self.definitions, self.library, "exact"), self.definition, dict(self.sizes))
        for array in self.definition.arguments:
            for axis in array.axes:
                frame.size(axis)
        for name, _ in self.definition.sizes:
            if frame.size(name) < 1:
                raise LanguageError(f"{name} has no values")
        points = 1
        for extent in frame.sizes.values():
            points *= max(extent, 1)
        if points > MOST_POINTS * 50:
            raise LanguageError("too large")
        return frame.sizes

    def extent(self):
        return self.random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 11])

    def values(self, type, shape, largest, sizes):
        draw = np.random.default_rng(self.random.getrandbits(32))
        if type in INTEGERS:
            bound = {0: 40, 1: max(min(sizes.values(), default=1), 1), 2: 1}[largest]
            return np.clip(draw.integers(-bound if largest == 0 else 0, bound, shape), *INTEGERS[type])
        if self.random.random() < 0.5:
            return rounded(draw.integers(-24, 25, shape) / 8.0, type).astype(float)
        return rounded(draw.standard_normal(shape), type).astype(float)

    def stored(self, array):
        type, data = self.inputs[array.name]
        if type in INTEGERS:
            return Stored((), Value((), np.asarray(data, np.int64), type), len(array.axes))
        return Stored((), Value((), np.asarray(data, EXACT), "real", type), len(array.axes))

    # ---- files
    def job(self, folder):
        files = {}
        for name, (type, data) in self.inputs.items():
            files[name] = str(folder / f"{name}.npy")
            np.save(files[name], np.asarray(data, STORED[type]) if type in INTEGERS else bits(type, data))
        return {"name": self.name, "text": self.text, "diagram": self.diagram, "sizes": self.sizes, "inputs": files,
                "results": {name: str(folder / f"{name}.out") for name in self.results}}

    def difference(self, job, of):
        for name, (type, values) in self.results.items():
            path = f"{job['results'][name]}.{of}.npy"
            if not os.path.exists(path):
                continue
            found = np.load(path)
            if type in INTEGERS:
                wanted = values["exact"].data
                wrong = np.argwhere((found != wanted) & (found != values["plain"].data))
                tolerance = np.zeros(wanted.shape)
            else:
                found = numbers(type if of == "kernel" else "f64", found).astype(EXACT)
                wanted = rounded(values["exact"].data.astype(EXACT), type)
                tolerance = self.tolerance(type, wanted, values)
                with np.errstate(all="ignore"):
                    near = np.abs(found - wanted) <= tolerance
                    if of != "kernel":
                        near |= np.abs(found - values["exact"].data) <= tolerance
                same = near | (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | np.isnan(tolerance)
                if of != "kernel":
                    same |= ~np.isfinite(wanted) & ~(np.abs(found) <= REALS[type][2])
                wrong = np.argwhere(~np.broadcast_to(same, wanted.shape))
            if len(wrong):
                place = tuple(wrong[0])
                return (f"{of} of {name}{list(map(int, place))} is {found[place]}, not {wanted[place]} (± {float(np.broadcast_to(tolerance, wanted.shape)[place]):.2g}); "
                        f"{len(wrong)} of {wanted.size} values differ")
        return None

    @staticmethod
    def tolerance(type, wanted, values):
        """What rounding may make of it: judged by evaluations in the types that the text asks for, and without its casts."""
        with np.errstate(all="ignore"):
            exact = values["exact"].data.astype(EXACT)
            noise = EXACT(0)
            open_ = np.zeros(wanted.shape, bool)
            for mode in ("plain", "unrounded"):
                other = values[mode].data.astype(EXACT)
                apart = np.abs(other - exact)
                finite = np.isfinite(apart)
                noise = max(noise, np.max(apart[finite], initial=0))
                open_ |= ~finite & (np.isfinite(other) != np.isfinite(exact))
            largest = np.max(np.abs(exact[np.isfinite(exact)]), initial=0)
            unit = EXACT(2.0) ** (1 - REALS[type][0])
            single = EXACT(2.0) ** -20 if type != "f64" else EXACT(2.0) ** -44
            result = 2 * unit * np.abs(wanted) + 64 * noise + single * largest + 2 * LEAST[type]
            return np.where(open_, np.nan, result)


def bits(type, data):
    """The bytes of an input's file, in the formats that run/npy.hpp names."""
    if type in ("f64", "f32", "tf32", "f16"):
        return np.asarray(data, {"f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16}[type])
    if type == "bf16":
        return (np.asarray(data, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    codes = numbers(type, np.arange(256, dtype=np.uint8))
    order = {float(v): code for code, v in reversed(list(enumerate(codes))) if np.isfinite(v)}
    return np.vectorize(lambda v: order[float(v)], otypes=[np.uint8])(np.asarray(data, float))


def numbers(type, stored):
    """The numbers in a file."""
    if type in ("f64", "f32", "tf32", "f16"):
        return stored
    if type == "bf16":
        # NumPy makes numbers of what it computes from arrays without axes, which views of another type are not made of.
        wide = np.left_shift(np.atleast_1d(stored).view(np.uint16), 16, dtype=np.uint32)
        return wide.view(np.float32).reshape(np.shape(stored))
    code = stored.view(np.uint8).astype(int)
    digits, least, _, has_infinity = REALS[type]
    mantissa_bits = digits - 1
    mantissa, exponent = code & ((1 << mantissa_bits) - 1), (code & 127) >> mantissa_bits
    value = np.where(exponent == 0, np.ldexp(mantissa.astype(float), least - mantissa_bits),
                     np.ldexp((mantissa + (1 << mantissa_bits)).astype(float), least - mantissa_bits + np.maximum(exponent, 1) - 1))
    if has_infinity:
        top = (1 << (7 - mantissa_bits)) - 1
        value = np.where(exponent == top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where(code & 127 == 127, np.nan, value)
    return np.where(code & 128, -value, value)


def relevant(definition, sizes):
    """Of the sizes of a text those that the definition has an axis for, or that these are made of."""
    names = {axis for array in definition.arguments + definition.results for axis in array.axes}
    names |= {t for e in definition.equations for target in e.targets for t in target.axes}
    for equation in definition.equations:
        names |= names_in(equation.body) | axes_in(definition)
    names -= {array.name for array in definition.arguments}
    kept = {}
    for _ in sizes:
        for name, tree in sizes:
            if name in names:
                kept.setdefault(name, tree)
                names = names | names_in(tree)
    return list(kept.items())


def axes_in(definition):
    """Names of axes: on the left, under reductions and calls, in index expressions."""
    names = {axis for r in definition.results for axis in r.axes}

    def visit(tree):
        if not isinstance(tree, tuple):
            return
        if tree[0] in ("reduce", "apply"):
            names.update(tree[2])
        for part in tree[1:]:
            for one in part if isinstance(part, list) else [part]:
                visit(one)
    for equation in definition.equations:
        for target in equation.targets:
            names.update(target.axes)
        visit(equation.body)
    return names


def indexes(definition, axis, callees):
    """Whether some array is read with the axis itself in another axis' place, so that the axis has that dimension's size."""
    axes = {array.name: array.axes for array in definition.arguments}
    axes.update({t.name: t.axes for e in definition.equations for t in e.targets})

    def visit(tree):
        if not isinstance(tree, tuple):
            return False
        if tree[0] == "read" and any(index == ("name", axis) and own != axis for index, own in zip(tree[2], axes.get(tree[1], []))):
            return True
        return any(visit(one) for part in tree[1:] for one in (part if isinstance(part, list) else [part]))
    return any(visit(e.body) for e in definition.equations) or any(
        e.body[0] == "call" and e.body[1] in callees and axis in t.axes for e in definition.equations for t in e.targets)


def texts(source, runner, seeds):
    """(name, text) of all texts."""
    for pattern in ("examples/*.nk", "lib/std.nk", "tests/reference/texts/*.nk", "tests/reference/cases/*.nk", "tests/property/spellings/*.nk"):
        for path in sorted(source.glob(pattern)):
            yield str(path.relative_to(source)), path.read_text()
    made = subprocess.run([runner, "--random", seeds], capture_output=True, text=True, check=True).stdout
    for number, text in enumerate(json.loads(made)):
        yield f"random {seeds.split(':')[0]}+{number}", text


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("runner")
    arguments.add_argument("source", type=Path)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--shard", default="0/1")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--random", default="0:60")
    arguments.add_argument("--seed", default="0")
    options = arguments.parse_args()
    shard, shards = map(int, options.shard.split("/"))
    library, _ = parse((options.source / "lib/std.nk").read_text())
    cases, failures = [], []
    number = 0
    for name, text in texts(options.source, options.runner, options.random):
        if options.only not in name + text:
            continue
        if LENGTHS_ARE_DATA.search(text):
            print(f"{name}: left out, since its lengths are data, which tests/unit/test_jagged.cpp evaluates one sequence at a time")
            continue
        try:
            definitions = list(parse(text)[0])
        except LanguageError as error:
            failures.append(f"{name}: {error}")
            continue
        for diagram in definitions:
            number += 1
            if number % shards != shard:
                continue
            parsed, outer = parse(text)
            try:
                cases.append(Case(name, text, parsed, outer, diagram, library, options.seed))
            except Exception as error:
                failures.append(f"{name}: {diagram}: the second evaluator: {type(error).__name__}: {error}")
    jobs = []
    for i, case in enumerate(cases):
        folder = options.folder / f"{shard}" / f"{i}"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.npy"):
            old.unlink()
        jobs.append(case.job(folder))
    list_of_jobs = options.folder / f"jobs{shard}.json"
    list_of_jobs.parent.mkdir(parents=True, exist_ok=True)
    list_of_jobs.write_text(json.dumps(jobs))
    ran = subprocess.run([options.runner, str(list_of_jobs)], capture_output=True, text=True)
    if ran.returncode:
        print(ran.stdout[-2000:], ran.stderr[-4000:])
        return 1
    agreed = 0
    for case, job, line in zip(cases, jobs, ran.stdout.splitlines(), strict=True):
        error = json.loads(line)["error"].split("\n")[0]
        difference = error or case.difference(job, "definition") or case.difference(job, "kernel")
        if difference:
            failures.append(f"{case.name}: {case.diagram} with {case.sizes}: {difference}")
        agreed += not difference
    for failure in failures:
        print(failure)
    print(f"{agreed} of {agreed + len(failures)} agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
