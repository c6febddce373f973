#!/usr/bin/env python3
"""Is the form that napkin plans the fastest by its own figures? And how long does planning take?

    python3 bench/forms.py [--machine h200] [--random N] [--output bench/results/NAME.json] [FILE...]

Each program (default: all examples) is planned cold as it is, with --no-fuse, and with --stream of each of its axes. A row names the program,
its predicted time, the fastest other form and its time, and the seconds of planning. A form that is faster by more than 2% is marked.
"""
import argparse
import concurrent.futures
import ctypes.util
import json
import math
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

import records

# A library that is not NVRTC: plans are then not compiled, whose time is the assembler's.
NO_ASSEMBLER = ctypes.util.find_library("m")
# A plan by itself is worth another form from here on (the model's own accuracy).
BEATEN = 1.02

CAMPAIGN = records.ROOT / "build/release/tests/campaign"
# Lengths of axes of random programs: short and long, powers of two and others.
LENGTHS = (1, 7, 16, 33, 64, 128, 256, 500, 1024, 4096)
# In an array of theirs: 256 MiB of f32.
MOST_VALUES = 1 << 26


def predicted(file, machine, options):
    """The predicted seconds of all kernels, and the seconds of planning; nothing where napkin refuses."""
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, NAPKIN_CACHE_DIR=cache, NAPKIN_NVRTC=NO_ASSEMBLER)
        start = time.perf_counter()
        done = subprocess.run([records.NAPKIN, "plan", file, "--machine", machine, "--json", *options], capture_output=True, text=True,
                              env=environment)
        took = time.perf_counter() - start
    if done.returncode != 0:
        return None, took
    return sum(kernel["predicted"]["seconds"] for kernel in json.loads(done.stdout)["kernels"]), took


def axes_of_inputs(text):
    return {name for inside in re.findall(r"\[([^\]]*)\]", text.split("->")[0]) for name in re.findall(r"[a-zA-Z_]\w*", inside)}


def axes_of(text):
    """The axes of the inputs, and those that are reduced."""
    text = re.sub(r"#.*", "", text)
    reduced = re.findall(r"\b[a-z]\w*\(([a-zA-Z_][\w, ]*)\) ", text)
    return sorted(axes_of_inputs(text) | {name for inside in reduced for name in inside.split(", ")})


def random_programs(seeds, folder):
    """Programs of the campaign, whose axes get lengths that are drawn by their seed; one for each seed that can be written."""
    subprocess.run([CAMPAIGN, "write", f"1:{seeds + 1}", "--folder", folder], check=True, capture_output=True)
    files = sorted(pathlib.Path(folder).glob("*.nk"), key=lambda file: int(file.stem))
    for file in files:
        drawn = random.Random(int(file.stem))
        text = file.read_text().rstrip()
        given = set(re.findall(r"(\w+) =", text.partition("\nsizes ")[2]))
        sizes = {name: drawn.choice(LENGTHS) for name in sorted(axes_of_inputs(text) - given)}
        arrays = [set(re.findall(r"\w+", inside)) & set(sizes) for inside in re.findall(r"\w\[([^\]]*)\]", text)]
        while any(math.prod(sizes[name] for name in axes) > MOST_VALUES for axes in arrays):
            name = drawn.choice(sorted(sizes))
            sizes[name] = max(1, sizes[name] // 4)
        if sizes:
            file.write_text(f"{text}\nsizes {', '.join(f'{name} = {length}' for name, length in sizes.items())}\n")
    return [str(file) for file in files]


def row_of(file, machine):
    chosen, took = predicted(file, machine, [])
    if chosen is None:
        return {"program": pathlib.Path(file).stem, "refused": True}
    others = {"--no-fuse": ["--no-fuse"], **{f"--stream {axis}": ["--stream", axis] for axis in axes_of(pathlib.Path(file).read_text())}}
    times = {name: predicted(file, machine, options)[0] for name, options in others.items()}
    times = {name: seconds for name, seconds in times.items() if seconds}
    best = min(times, key=times.get) if times else None
    return {"program": pathlib.Path(file).stem, "us": chosen * 1e6, "other": best, "other_us": times[best] * 1e6 if best else None,
            "is_beaten": bool(best) and chosen > BEATEN * times[best], "planning_s": took}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many random programs in place of the examples")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        examples = sorted(str(file) for file in (records.ROOT / "examples").glob("*.nk"))
        files = options.files or (random_programs(options.random, folder) if options.random else examples)
        rows = list(pool.map(lambda file: row_of(file, options.machine), files))
    for row in rows:
        if row.get("refused"):
            print(f"{row['program']:28} refused")
        else:
            print(f"{row['program']:28} {row['us']:12.1f} µs  {row['other'] or '-':16} {row['other_us'] or 0:12.1f} µs  "
                  f"{row['planning_s']:6.2f} s{'  BEATEN' if row['is_beaten'] else ''}")
    planned = [row for row in rows if not row.get("refused")]
    beaten = [row["program"] for row in planned if row["is_beaten"]]
    times = sorted(row["planning_s"] for row in planned)
    print(f"{len(planned)} programs on {options.machine}: {len(beaten)} are beaten by another form; planning takes {times[len(times) // 2]:.2f} s "
          f"in the median and {times[-1]:.2f} s at most")
    if options.output:
        records.write(pathlib.Path(options.output), {**records.head("napkin.forms/1", options.machine), "rows": rows})


if __name__ == "__main__":
    main()
