#!/usr/bin/env python3
"""Is the form that napkin plans the fastest by its own figures? And how long does planning take?

    python3 bench/forms.py [--machine h200] [--output bench/results/NAME.json] [FILE...]

Each program (default: all examples) is planned cold as it is, with --no-fuse, and with --stream of each of its axes. A row names the program,
its predicted time, the fastest other form and its time, and the seconds of planning. A form that is faster by more than 2% is marked.
"""
import argparse
import concurrent.futures
import ctypes.util
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import records

# A library that is not NVRTC: plans are then not compiled, whose time is the assembler's.
NO_ASSEMBLER = ctypes.util.find_library("m")
# A plan by itself is worth another form from here on (the model's own accuracy).
BEATEN = 1.02


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


def axes_of(file):
    text = re.sub(r"#.*", "", pathlib.Path(file).read_text())
    return sorted({name for inside in re.findall(r"sum\(([^)]*)\)|max\(([^)]*)\)|softmax\(([^)]*)\)", text) for part in inside
                   for name in re.findall(r"[a-z_]\w*", part)})


def row_of(file, machine):
    chosen, took = predicted(file, machine, [])
    if chosen is None:
        return {"program": pathlib.Path(file).stem, "refused": True}
    others = {"--no-fuse": ["--no-fuse"], **{f"--stream {axis}": ["--stream", axis] for axis in axes_of(file)}}
    times = {name: predicted(file, machine, options)[0] for name, options in others.items()}
    times = {name: seconds for name, seconds in times.items() if seconds}
    best = min(times, key=times.get) if times else None
    return {"program": pathlib.Path(file).stem, "us": chosen * 1e6, "other": best, "other_us": times[best] * 1e6 if best else None,
            "is_beaten": bool(best) and chosen > BEATEN * times[best], "planning_s": took}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output")
    options = parser.parse_args()
    files = options.files or sorted(str(file) for file in (records.ROOT / "examples").glob("*.nk"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
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
