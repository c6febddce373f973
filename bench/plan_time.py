#!/usr/bin/env python3
"""From text to plan: how long every example takes, with nothing kept from an earlier run.

    python3 bench/plan_time.py [--rounds 5] [--vector-bytes 32] [--output bench/results/NAME.json]

Planned is for this computer, as `napkin machines measure` left it or as it is estimated. Each time is the least of the rounds', of the passes from
the text to the plan (`napkin plan --time-passes`), without the start of the process. The last line has the median and the longest.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import records

PASSES = ["parse", "machine", "derive", "choose", "size", "plan"]


def passes_of(example, machine, cache):
    """Seconds of the passes of one process whose cache is empty."""
    with tempfile.TemporaryDirectory(dir=cache) as empty:
        done = subprocess.run([records.NAPKIN, "plan", example, "--machine", machine, "--time-passes"], capture_output=True, text=True,
                              env={**os.environ, "NAPKIN_CACHE_DIR": empty})
    if done.returncode:
        sys.exit(f"{example}\n{done.stderr}")
    times = dict(re.findall(r"^(\w+) +([0-9.]+) ms", done.stderr, re.MULTILINE))
    return {name: float(times[name]) * 1e-3 for name in PASSES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vector-bytes", type=int, help="of the kernels' vectors (default: as the machine has)")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()

    name = f"host-{options.vector_bytes * 8}" if options.vector_bytes else "host"
    results = []
    with tempfile.TemporaryDirectory() as folder:
        machine = pathlib.Path(folder) / "machine.toml"
        machine.write_text(records.output_of(records.NAPKIN, "machines", "show", name, "--toml") + "\n")
        device = records.run_napkin(name, command="machines")["description"]
        for example in sorted((records.ROOT / "examples").glob("*.nk")):
            rounds = [passes_of(example, machine, folder) for _ in range(options.rounds)]
            least = min(rounds, key=lambda passes: sum(passes.values()))
            results.append({"example": example.stem, "seconds": sum(least.values()), "passes": least})
            print(f"{example.stem:20}{sum(least.values()) * 1e3:9.2f} ms", flush=True)
    seconds = [entry["seconds"] for entry in results]
    longest = max(results, key=lambda entry: entry["seconds"])
    print(f"{records.median(seconds) * 1e3:.2f} ms in the median, {longest['seconds'] * 1e3:.2f} ms at most ({longest['example']})")
    if options.output:
        records.write(options.output, {**records.head("napkin.plan_time/1", device), "rounds": options.rounds,
                                       "vector_bytes": options.vector_bytes, "median_seconds": records.median(seconds),
                                       "most_seconds": longest["seconds"], "longest": longest["example"], "results": results})


if __name__ == "__main__":
    main()
