#!/usr/bin/env python3
"""Every example on the GPU at hand: predicted and measured time, and whether its numbers are right.

    python3 bench/gpu_examples.py [--seconds 0.2] [--baseline] [--output bench/results/NAME.json]

Times are medians by events with the GPU's caches flushed before each. With torch at hand, a large copy, its softmax of the same rows and its
matrix product of the same sizes in f32 (TF32 off) are timed in the same way, in the same process, as what the figures are to be held against.
"""
import sys

import gpu
import records

# The exit code of a run whose numbers are not what the definition says; its document says which.
WRONG_NUMBERS = 70


def peers(wanted):
    try:
        import torch
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    large = torch.randn(1 << 28, device="cuda")
    rows = torch.randn(4096, 4096, device="cuda")
    a, b = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    copy = torch.empty_like(large)
    of_copy = gpu.seconds_of(lambda: copy.copy_(large), wanted, flush_writes=True)
    return {"torch": torch.__version__, "copy_bytes_per_s": 2 * large.numel() * 4 / of_copy,
            "softmax_4096x4096_seconds": gpu.seconds_of(lambda: torch.softmax(rows, 1), wanted, flush_writes=True),
            "matmul_1024_f32_seconds": gpu.seconds_of(lambda: a @ b, wanted, flush_writes=True)}


def faster(entry):
    """Than equation by equation, where that was measured."""
    if "speedup" not in entry:
        return ""
    return f"  {entry['speedup']:.2f}× faster" if entry["speedup"] else f"  {entry['equation_by_equation'].get('left_out', 'no fair peer')}"


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--baseline", action="store_true", help="measure equation by equation, too")
    options = parser.parse_args()
    beside = [] if options.baseline else ["--no-baseline"]
    results, device = [], ""
    for example in sorted((records.ROOT / "examples").glob("*.nk")):
        document = records.run_napkin(example, "--machine", "gpu", "--seconds", str(options.seconds), "--no-validate",
                                      *beside, accepted=(0, WRONG_NUMBERS))
        device = document["device"]
        entry = {"example": example.stem, "sizes": document["sizes"], "predicted_seconds": document["predicted_seconds"],
                 "seconds": document["seconds"], "ratio": document["seconds"] / document["predicted_seconds"],
                 "good": all(check["judgement"] == "good" for check in document["checks"])}
        if options.baseline:
            entry["equation_by_equation"], entry["speedup"] = document["equation_by_equation"], document.get("speedup")
        results.append(entry)
        print(f"{example.stem:22}{entry['predicted_seconds'] * 1e6:11.1f} µs{entry['seconds'] * 1e6:11.1f} µs{entry['ratio']:7.2f}  "
              f"{'good' if entry['good'] else 'BAD'}{faster(entry)}", flush=True)
    off = [max(entry["ratio"], 1 / entry["ratio"]) for entry in results]
    torch_peers = peers(options.seconds)
    print(f"{sum(entry['good'] for entry in results)} of {len(results)} right; off by {records.median(off):.2f}× in the median; peers {torch_peers}")
    gpu.write(options, "napkin.gpu-examples/1", device, median_off=records.median(off), peers=torch_peers, results=results)
    return 0 if all(entry["good"] for entry in results) else 1


if __name__ == "__main__":
    sys.exit(main())
