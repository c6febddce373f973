#!/usr/bin/env python3
"""Every example on the GPU at hand: predicted and measured time, and whether its numbers are right.

    python3 bench/gpu_examples.py [--seconds 0.2] [--output bench/results/NAME.json]

Times are medians by events with the GPU's caches flushed before each. With torch at hand, a large copy, its softmax of the same rows and its
matrix product of the same sizes in f32 (TF32 off) are timed in the same way, in the same process, as what the figures are to be held against.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import records


def napkin(example, options):
    command = [records.NAPKIN, "run", example, "--machine", "gpu", "--seconds", str(options.seconds), "--no-validate", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    # 70: the numbers are not what the definition says; the document says which.
    if done.returncode not in (0, 70):
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def peers():
    try:
        import torch
    except ImportError:
        return None
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def seconds(work, rounds=30):
        work()
        times = []
        for _ in range(rounds):
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return records.median(times)

    torch.backends.cuda.matmul.allow_tf32 = False
    large = torch.randn(1 << 28, device="cuda")
    rows = torch.randn(4096, 4096, device="cuda")
    a, b = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    copy = torch.empty_like(large)
    of_copy = seconds(lambda: copy.copy_(large))
    return {"torch": torch.__version__, "copy_bytes_per_s": 2 * large.numel() * 4 / of_copy,
            "softmax_4096x4096_seconds": seconds(lambda: torch.softmax(rows, 1)),
            "matmul_1024_f32_seconds": seconds(lambda: a @ b)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.2, help="about how long each measures")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    results, device = [], ""
    for example in sorted((records.ROOT / "examples").glob("*.nk")):
        document = napkin(example, options)
        device = document["device"]
        entry = {"example": example.stem, "sizes": document["sizes"], "predicted_seconds": document["predicted_seconds"],
                 "seconds": document["seconds"], "ratio": document["seconds"] / document["predicted_seconds"],
                 "good": all(check["judgement"] == "good" for check in document["checks"])}
        results.append(entry)
        print(f"{example.stem:22}{entry['predicted_seconds'] * 1e6:11.1f} µs{entry['seconds'] * 1e6:11.1f} µs{entry['ratio']:7.2f}  "
              f"{'good' if entry['good'] else 'BAD'}", flush=True)
    off = [max(entry["ratio"], 1 / entry["ratio"]) for entry in results]
    beside = peers()
    print(f"{sum(entry['good'] for entry in results)} of {len(results)} right; off by {records.median(off):.2f}× in the median; peers {beside}")
    if options.output:
        records.write(options.output, {**records.head("napkin.gpu-examples/1", device), "median_off": records.median(off),
                                       "peers": beside, "results": results})
    return 0 if all(entry["good"] for entry in results) else 1


if __name__ == "__main__":
    sys.exit(main())
