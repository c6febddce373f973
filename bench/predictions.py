#!/usr/bin/env python3
"""Predicted and measured time of twenty examples at their own sizes on this computer.

    python3 bench/predictions.py [--seconds 0.5] [--rounds 5] [--cold] [--vector-bytes 32] [--output bench/results/NAME.json]

Each round measures the computer, as its user is told to do, and then predicts and runs all examples, so that a prediction and its measurement
are of the same minute, and a slow spell meets one round of many examples and not all rounds of one. --cold empties the caches before each run, which
costs kernels of a few milliseconds more than the way of their arrays from memory that is predicted. Each row's ratio is the median of its
rounds' ratios of measured and predicted time. A prediction is off by the ratio or its inverse, whichever is above 1; the last line has
the median and the worst.
"""
import argparse
import os
import pathlib
import sys

import records

EXAMPLES = """alibi attention attention_bias batched_matmul causal conv1d cross_attention cross_entropy decode grouped_query layernorm
linear_attention logsumexp matmul matmul_chain mlp rmsnorm_linear sliding_window softmax swiglu""".split()


def run(example, options):
    arguments = [records.ROOT / "examples" / f"{example}.nk", "--seconds", str(options.seconds), "--threads", str(options.threads)]
    if options.vector_bytes:
        arguments += ["--vector-bytes", str(options.vector_bytes)]
    if options.cold:
        arguments += ["--cold"]
    return records.run_kernel(arguments)


def round_of(options):
    records.measure_host(options.vector_bytes)
    return [run(example, options) for example in EXAMPLES]


def entry_of(example, documents):
    rounds = [{"predicted_seconds": d["predicted_seconds"], "seconds": d["seconds"]} for d in documents]
    ratios = [r["seconds"] / r["predicted_seconds"] for r in rounds]
    return {"example": example, "sizes": documents[0]["sizes"], **{key: records.median([r[key] for r in rounds]) for key in rounds[0]},
            "rounds": rounds, "ratio": records.median(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="about how long each measures in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cold", action="store_true", help="empty the caches before each run")
    parser.add_argument("--vector-bytes", type=int, help="of the kernels' vectors (default: as the machine has)")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()

    rounds = [round_of(options) for _ in range(options.rounds)]
    device = rounds[0][0]["machine"]
    results = [entry_of(example, documents) for example, documents in zip(EXAMPLES, zip(*rounds))]
    print(f"{'':20}{'predicted':>12}{'measured':>12}{'ratio':>8}")
    for entry in results:
        print(f"{entry['example']:20}{entry['predicted_seconds'] * 1e3:9.3f} ms{entry['seconds'] * 1e3:9.3f} ms{entry['ratio']:8.2f}")
    off = [max(entry["ratio"], 1 / entry["ratio"]) for entry in results]
    worst = max(range(len(off)), key=off.__getitem__)
    print(f"off by {records.median(off):.2f}× in the median, by {off[worst]:.2f}× at worst ({EXAMPLES[worst]})")
    if options.output:
        records.write(options.output, {**records.head("napkin.predictions/2", device), "threads": options.threads,
                                       "caches": "cold" if options.cold else "warm",
                                       "vector_bytes": options.vector_bytes, "median_off": records.median(off),
                                       "worst_off": off[worst], "worst": EXAMPLES[worst], "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
