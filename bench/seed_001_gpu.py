#!/usr/bin/env python3
"""The 12 tiles of A Case Study in CUDA Kernel Fusion (arXiv:2312.11918, Table 1) by their schedules in examples/schedules, on the GPU at hand: predicted,
measured, and beside both the document's own kernel as measured on an H200 (nvcc 13.0).

    python3 bench/seed_001_gpu.py [--seconds 0.2] [--rounds 3] [--heads 64 128 256] [--predict h200] [--output bench/results/NAME.json]

Each round measures all schedules one after the other; a schedule's time is the median of the rounds'. The last lines are Spearman's rank correlations of
the rates, of all tiles together. With --predict nothing is measured, and the plans are those for the machine that it names.
"""
import sys

import gpu
import records

EXAMPLES = records.ROOT / "examples" / "schedules"
TILES = [(rows, columns) for rows in (64, 128) for columns in (64, 128)]
# TFLOP/s: of the document's kernel on one H200, and as its Table 1 has them of an H100 PCIe; d, then in the order of
# TILES.
OWN_H200 = {64: (386, 423, 400, 427), 128: (480, 474, 481, 333), 256: (529, 456, 57, 59)}
OWN_H100_PCIE = {64: (230.1, 259.5, 247.9, 251.4), 128: (292.6, 289.3, 295.7, 208.7), 256: (308.1, 276.1, 39.3, 36.7)}
BATCH, POSITIONS, WIDTH = 4, 4096, 2048


def command(d, rows, columns, machine):
    schedule = EXAMPLES / f"flash-attention-2-{rows}x{columns}.schedule"
    return [str(EXAMPLES / "flash-attention-2.nk"), "--diagram", f"rows_{rows}", "--machine", machine, "--schedule", str(schedule),
            *gpu.sizes_of({"h": BATCH * WIDTH // d, "k": d, "d": d})]


def ranks(values):
    """Those of equal values are their middle."""
    return [sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values]


def rank_correlation(a, b):
    a, b = ranks(a), ranks(b)
    middle = (len(a) - 1) / 2
    products = lambda x, y: sum((p - middle) * (q - middle) for p, q in zip(x, y))
    return products(a, b) / (products(a, a) * products(b, b)) ** 0.5


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--heads", type=int, nargs="+", choices=OWN_H200, default=list(OWN_H200))
    parser.add_argument("--predict", metavar="MACHINE", help="plan for this machine and measure nothing")
    options = parser.parse_args()
    machine, flops = options.predict or "gpu", 4 * BATCH * POSITIONS**2 * WIDTH
    cases, device = [(d, i, *tile) for d in options.heads for i, tile in enumerate(TILES)], machine
    results = []
    for d, i, rows, columns in cases:
        plan = records.run_napkin(*command(d, rows, columns, machine), command="plan")
        kernel, = plan["kernels"]
        results.append({"d": d, "rows": rows, "columns": columns, "times": [], "registers": kernel["registers"],
                        "predicted_seconds": kernel["predicted"]["seconds"], "predicted_rate": flops / kernel["predicted"]["seconds"] / 1e12, "own_h200": OWN_H200[d][i], "own_h100_pcie": OWN_H100_PCIE[d][i]})
    for _ in range(0 if options.predict else options.rounds):
        for result, (d, _, rows, columns) in zip(results, cases):
            document = records.run_kernel([*command(d, rows, columns, machine), "--seconds", str(options.seconds)])
            device = document["device"]
            result["times"].append(document["seconds"])
    print(f"{'d':>3} {'tile':>9} {'registers':>10} {'spilled':>8} {'predicted':>13} {'measured':>13} {'TFLOP/s':>8} {'its own, H200':>14} {'H100 PCIe':>10}")
    for r in results:
        if r["times"]:
            r["seconds"] = records.median(r["times"])
            r["rate"] = flops / r["seconds"] / 1e12
        measured = f"{r['seconds'] * 1e3:10.3f} ms {r['rate']:8.0f}" if r["times"] else f"{'-':>13} {'-':>8}"
        print(f"{r['d']:3} {r['rows']:5}×{r['columns']:<3} {r['registers']['tiles']:10} {r['registers']['spilled']:8} {r['predicted_seconds'] * 1e3:10.3f} ms "
              f"{measured} {r['own_h200']:14} {r['own_h100_pcie']:10}")
    columns = {"predicted": "predicted_rate", "the document's on an H200": "own_h200", **({} if options.predict else {"measured": "rate"})}
    correlations = {}
    for i, a in enumerate(columns):
        for b in list(columns)[i + 1:]:
            correlations[f"{a} and {b}"] = rank_correlation([r[columns[a]] for r in results], [r[columns[b]] for r in results])
            print(f"rank correlation of {a} and {b}: {correlations[f'{a} and {b}']:.3f}")
    gpu.write(options, "napkin.seed-001-gpu/1", device, results=results, rank_correlations=correlations)


if __name__ == "__main__":
    sys.exit(main())
