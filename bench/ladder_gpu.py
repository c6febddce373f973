#!/usr/bin/env python3
"""One matmul by the schedules of examples/schedules on the GPU at hand, from the naive one on: what each is predicted and measured to take.

    python3 bench/ladder_gpu.py [--seconds 0.2] [--output bench/results/NAME.json]

The last line is the schedule that napkin chooses, beside the peer that `napkin run` finds (cuBLASLt).
"""
import pathlib
import sys

import gpu
import records

SCHEDULES = pathlib.Path(__file__).parent.parent / "examples" / "schedules"


def main():
    options = gpu.parser(__doc__).parse_args()
    results, device, before = [], "", None
    print(f"{'':20}{'predicted':>14}{'measured':>14}{'ratio':>8}{'TFLOP/s':>10}{'gain':>8}")
    for schedule in [*sorted(SCHEDULES.glob("[0-9]*.schedule")), None]:
        command = [str(SCHEDULES / "matmul.nk"), "--machine", "gpu", "--seconds", str(options.seconds)]
        document = records.run_kernel(command + (["--schedule", str(schedule)] if schedule else []))
        device, seconds, predicted = document["device"], document["seconds"], document["predicted_seconds"]
        flop = 2
        for size in document["sizes"].values():
            flop *= size
        entry = {"schedule": schedule.stem if schedule else "chosen", "predicted_seconds": predicted, "seconds": seconds,
                 "ratio": seconds / predicted, "rate": flop / seconds / 1e12}
        results.append(entry)
        gain = f"{before / seconds:7.2f}×" if before else ""
        print(f"{entry['schedule']:20}{predicted * 1e6:11.1f} µs{seconds * 1e6:11.1f} µs{entry['ratio']:8.2f}{entry['rate']:10.1f}{gain}", flush=True)
        before = seconds
    gpu.write(options, "napkin.ladder-gpu/1", device, results=results)


if __name__ == "__main__":
    sys.exit(main())
