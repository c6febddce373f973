#!/usr/bin/env python3
"""Predicted and measured time of twenty examples at their own sizes on this computer.

    python3 bench/predictions.py [--seconds 1] [--rounds 3] [--vector-bytes 32] [--output bench/results/NAME.json]

Each row's ratio is measured over predicted time, measured being the least of the rounds' medians. A prediction is off by the ratio or its
inverse, whichever is above 1; the last line has the median and the worst.
"""
import argparse
import os
import pathlib
import sys

import records

EXAMPLES = """alibi attention attention_bias batched_matmul causal conv1d cross_attention cross_entropy decode grouped_query layernorm
linear_attention logsumexp matmul matmul_chain mlp rmsnorm_linear sliding_window softmax swiglu""".split()


def measure(example, options):
    arguments = [records.ROOT / "examples" / f"{example}.nk", "--seconds", str(options.seconds), "--threads", str(options.threads)]
    if options.vector_bytes:
        arguments += ["--vector-bytes", str(options.vector_bytes)]
    documents = [records.run_kernel(arguments) for _ in range(options.rounds)]
    measured, predicted = min(d["seconds"] for d in documents), documents[0]["predicted_seconds"]
    return documents[0]["machine"], {"example": example, "sizes": documents[0]["sizes"], "predicted_seconds": predicted,
                                     "seconds": measured, "ratio": measured / predicted}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1, help="about how long each measures in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--vector-bytes", type=int, help="of the kernels' vectors (default: as the machine has)")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()

    results, device = [], ""
    print(f"{'':20}{'predicted':>12}{'measured':>12}{'ratio':>8}")
    for example in EXAMPLES:
        device, entry = measure(example, options)
        results.append(entry)
        print(f"{example:20}{entry['predicted_seconds'] * 1e3:9.3f} ms{entry['seconds'] * 1e3:9.3f} ms{entry['ratio']:8.2f}", flush=True)
    off = [max(entry["ratio"], 1 / entry["ratio"]) for entry in results]
    worst = max(range(len(off)), key=off.__getitem__)
    print(f"off by {records.median(off):.2f}× in the median, by {off[worst]:.2f}× at worst ({EXAMPLES[worst]})")
    if options.output:
        records.write(options.output, {**records.head("napkin.predictions/1", device), "threads": options.threads,
                                       "vector_bytes": options.vector_bytes, "median_off": records.median(off),
                                       "worst_off": off[worst], "worst": EXAMPLES[worst], "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
