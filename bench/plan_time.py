#!/usr/bin/env python3
"""From text to plan: how long every example takes, with nothing kept from an earlier run.

    python3 bench/plan_time.py [--machine h200] [--rounds 5] [--vector-bytes 32] [--output bench/results/NAME.json]

Planned is for the machine, or else for this computer, as `napkin machines measure` left it or as it is estimated.
Each time is the least of the rounds', of the passes from the text to the plan (`napkin plan --time-passes`), without
the start of the process. Beside it stand the seconds of processors of the whole process. No kernel is compiled. The
last line has the median and the longest, and how many take longer than allowed.
"""
import argparse
import ctypes.util
import os
import pathlib
import re
import subprocess
import tempfile

import records

PASSES = ["parse", "machine", "derive", "choose", "size", "plan"]
# Seconds of one processor that a plan may take.
ALLOWED = 0.2
# A library that is not NVRTC: plans are then not compiled, whose time is the assembler's.
NO_ASSEMBLER = ctypes.util.find_library("m")


def passes_of(example, machine, cache):
    """Seconds of the passes of a process whose cache is empty, and those of processors; None where there is no plan."""
    with tempfile.TemporaryDirectory(dir=cache) as empty, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([records.NAPKIN, "plan", example, "--machine", machine, "--time-passes"],
                                   stdout=subprocess.DEVNULL, stderr=said,
                                   env={**os.environ, "NAPKIN_CACHE_DIR": empty, "NAPKIN_NVRTC": NO_ASSEMBLER})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        times = dict(re.findall(r"^(\w+) +([0-9.]+) ms", said.read(), re.MULTILINE))
    if process.returncode:
        return None
    return {name: float(times[name]) * 1e-3 for name in PASSES}, used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="in place of this computer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vector-bytes", type=int, help="of the kernels' vectors (default: as the machine has)")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()

    name = options.machine or (f"host-{options.vector_bytes * 8}" if options.vector_bytes else "host")
    folders = ["examples", "tests/reference/cases"]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        machine = pathlib.Path(folder) / "machine.toml"
        machine.write_text(records.output_of(records.NAPKIN, "machines", "show", name, "--toml") + "\n")
        device = records.run_napkin(name, command="machines")["description"]
        for text in [text for texts in folders for text in sorted((records.ROOT / texts).glob("*.nk"))]:
            rounds = [planned for _ in range(options.rounds) if (planned := passes_of(text, machine, folder))]
            if not rounds:
                print(f"{text.stem:28}no plan")
                continue
            least = min((passes for passes, _ in rounds), key=lambda passes: sum(passes.values()))
            processors = min(used for _, used in rounds)
            taken = sum(least.values())
            results.append({"example": text.stem, "seconds": taken, "processor_seconds": processors, "passes": least})
            print(f"{text.stem:28}{taken * 1e3:9.2f} ms{processors * 1e3:9.1f} ms of processors", flush=True)
    seconds = [entry["seconds"] for entry in results]
    longest = max(results, key=lambda entry: entry["processor_seconds"])
    most = longest["processor_seconds"]
    longer = sum(entry["processor_seconds"] > ALLOWED for entry in results)
    print(f"{records.median(seconds) * 1e3:.2f} ms in the median, {most * 1e3:.1f} ms of processors at most "
          f"({longest['example']}); {longer} of {len(results)} take more than {ALLOWED} s of them")
    if options.output:
        record = {**records.head("napkin.plan_time/2", device), "rounds": options.rounds,
                  "vector_bytes": options.vector_bytes, "median_seconds": records.median(seconds),
                  "most_processor_seconds": most, "longest": longest["example"], "longer_than_allowed": longer,
                  "results": results}
        records.write(options.output, record)


if __name__ == "__main__":
    main()
