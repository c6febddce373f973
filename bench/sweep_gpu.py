#!/usr/bin/env python3
"""The plan that the model chooses beside the best of a sweep over tiles, warps, chunks and parts of the contracted axis, on the GPU at hand.

    python3 bench/sweep_gpu.py [--rounds 15] [--seconds 0.03] [--output bench/results/NAME.json]

Of all combinations those run that napkin's rules and the assembler admit and whose predicted time is under twice the least bound: once each, then the
five fastest and the chosen one in turns. The sweep judges the model; napkin itself chooses without it.
"""
import concurrent.futures
import itertools
import json
import subprocess
import sys
import tempfile

import gpu
import records

SIZES = [(4096, 4096, 4096), (2048, 2048, 2048), (8192, 1024, 8192), (512, 4096, 4096)]
WARPS, COLUMNS, CHUNKS, PARTS = (4, 8, 12, 16), (64, 96, 128, 160, 192, 224, 256), (64, 128), (1, 2)
FINALISTS = 5


def arguments(sizes, schedule, folder):
    out = ["-", "--machine", "gpu", *gpu.sizes_of(sizes)]
    if schedule is None:
        return out
    warps, columns, chunk, parts = schedule
    path = f"{folder}/{'_'.join(map(str, schedule))}.schedule"
    with open(path, "w") as file:
        file.write(("kernel C_part\n" if parts > 1 else "") + f"tensor axis m\nwarps {warps}\nrole copies 4\ngroup n {columns}\nstream k {chunk}\n")
    return [*out, "--schedule", path, *(["--split", f"k={parts}"] if parts > 1 else [])]


def planned(sizes, schedule, folder):
    """Predicted seconds and bound of the schedule; none where it is refused."""
    done = subprocess.run([records.NAPKIN, "plan", *arguments(sizes, schedule, folder), "--json"], input=gpu.DIAGRAMS["matmul"],
                          capture_output=True, text=True)
    if done.returncode != 0 or "speaks against" in done.stderr:
        return None
    kernels = [kernel["predicted"] for kernel in json.loads(done.stdout)["kernels"]]
    return sum(k["seconds"] for k in kernels), sum(k["busy"][0]["seconds"] for k in kernels)


def measure(sizes, schedule, folder, seconds):
    return records.run_kernel([*arguments(sizes, schedule, folder), "--seconds", str(seconds)], text=gpu.DIAGRAMS["matmul"])


def main():
    parser = gpu.parser(__doc__)
    parser.set_defaults(seconds=0.03)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results, device = [], ""
    with tempfile.TemporaryDirectory() as folder:
        for m, n, k in SIZES:
            sizes = {"m": m, "n": n, "k": k}
            all_of_them = [None, *itertools.product(WARPS, COLUMNS, CHUNKS, PARTS)]
            with concurrent.futures.ThreadPoolExecutor(14) as pool:
                plans = dict(zip(all_of_them, pool.map(lambda s: planned(sizes, s, folder), all_of_them)))
            least_bound = min(plan[1] for plan in plans.values() if plan)
            admitted = [s for s, plan in plans.items() if plan and plan[0] < 2 * least_bound]
            once = {s: measure(sizes, s, folder, options.seconds)["seconds"] for s in admitted}
            finalists = sorted((s for s in once if s is not None), key=once.get)[:FINALISTS]
            times = {s: [] for s in [None, *finalists]}
            for _ in range(options.rounds):
                for s in times:
                    document = measure(sizes, s, folder, options.seconds)
                    times[s].append(document["seconds"])
            device = document["device"]
            best = min(finalists, key=lambda s: records.median(times[s]))
            ratio = records.median([a / b for a, b in zip(times[None], times[best])])
            results.append({"sizes": sizes, "schedules": len(all_of_them) - 1, "admitted": len(admitted), "chosen_seconds": records.median(times[None]),
                            "best": dict(zip(("warps", "columns", "chunk", "parts"), best)), "best_seconds": records.median(times[best]), "ratio": ratio,
                            "all": [{"schedule": s, "predicted_seconds": plans[s][0], "seconds": once[s]} for s in admitted]})
            print(f"{gpu.title('matmul', sizes)} {len(admitted)} of {len(all_of_them) - 1} run; chosen {results[-1]['chosen_seconds'] * 1e6:.1f} µs, best"
                  f" {results[-1]['best_seconds'] * 1e6:.1f} µs with {results[-1]['best']}: {ratio:.3f}", flush=True)
    gpu.write(options, "napkin.sweep-gpu/1", device, results=results)


if __name__ == "__main__":
    sys.exit(main())
