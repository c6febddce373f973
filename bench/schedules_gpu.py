#!/usr/bin/env python3
"""One attention by many schedules on the GPU at hand: what the simulator predicts of each beside what is measured, and the one that napkin chooses.

    python3 bench/schedules_gpu.py [--seconds 0.2] [--output bench/results/NAME.json]

The schedules differ in the warps that compute, the length of chunks and whether products run a turn ahead: what the figures of warpgroups in
src/schedule/simulate_blocks.cpp are fitted to.
"""
import sys
import tempfile

import gpu
import records

AHEAD = "".join(f"slot {name} order 2, stage_offset 1\n" for name in ("P_M_old", "P_M", "guarded", "delta", "weight", "P_Z_acc"))
AHEAD = "slot S order 0, stage_offset 1\n" + AHEAD + "slot O_acc order 1\n"
# Warps, chunk, ahead; those of d = 128 with more take more registers than there are.
SCHEDULES = {128: [(12, 128, 0), (8, 128, 0), (8, 128, 1), (12, 64, 1), (8, 64, 1)],
             64: [(8, 64, 0), (8, 64, 1), (12, 64, 0), (12, 64, 1), (16, 64, 0), (8, 128, 0), (8, 128, 1), (12, 128, 0)]}


def main():
    options = gpu.parser(__doc__).parse_args()
    results, device = [], ""
    for d, schedules in SCHEDULES.items():
        sizes = gpu.sizes_of({"h": 16, "q": 16384, "x": 16384, "k": d, "d": d})
        for schedule in [None, *schedules]:
            command = ["-", "--machine", "gpu", "--seconds", str(options.seconds), *sizes]
            if schedule:
                warps, chunk, ahead = schedule
                file = tempfile.NamedTemporaryFile("w", suffix=".schedule")
                file.write(f"warps {warps}\nrole copies 4\nstream x = {chunk}\n" + (AHEAD if ahead else ""))
                file.flush()
                command += ["--schedule", file.name]
            document = records.run_kernel(command, text=gpu.DIAGRAMS["attention"])
            device = document["device"]
            entry = {"d": d, **(dict(zip(("warps", "chunk", "ahead"), schedule)) if schedule else {"chosen": True}),
                     "predicted_seconds": document["predicted_seconds"], "seconds": document["seconds"],
                     "ratio": document["seconds"] / document["predicted_seconds"]}
            results.append(entry)
            name = "chosen" if schedule is None else f"{schedule[0]} warps, chunks of {schedule[1]}{', ahead' if schedule[2] else ''}"
            print(f"d = {d:3}  {name:32}{entry['predicted_seconds'] * 1e3:8.3f} ms{entry['seconds'] * 1e3:8.3f} ms{entry['ratio']:7.3f}", flush=True)
    gpu.write(options, "napkin.schedules-gpu/1", device, results=results)


if __name__ == "__main__":
    sys.exit(main())
