#!/usr/bin/env python3
"""Products of 16-bit matrices on the GPU at hand beside a hand-written kernel and cuBLAS, on the shapes for which that kernel is written.

    python3 bench/prototype_gpu.py FOLDER [--rounds 5] [--seconds 0.05] [--output bench/results/NAME.json]

FOLDER holds harness.py and build/g_c1.cubin and g_c2_gm8.cubin: the kernel by single blocks and by clusters of two. All run in this process, on random
inputs; each round measures all of them in turns of a few launches, by events with the GPU's caches flushed before each launch. Ratios are medians of the rounds'
ratios to g_c1, above 1 where the other is faster. Needs torch.
"""
import sys
import threading
import time

import torch

import compare_gpu
import gpu
from in_process import Napkin

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 1024), (16384, 4096, 4096), (4096, 14336, 4096), (8192, 1024, 8192), (2048, 2048, 2048))
BUILDS = {"g_c1": {}, "g_c2_gm8": {"CL": 2}}


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("folder", help="of the hand-written kernel")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    import harness

    def keep_alive():  # the harness ends a process that says nothing for long
        while True:
            harness.beat()
            time.sleep(5)
    threading.Thread(target=keep_alive, daemon=True).start()
    napkin, results, samples = Napkin(), [], gpu.Samples()
    for m, n, k in SHAPES:
        case = compare_gpu.matmul(m, n, k)
        (a, b), (result,) = case["inputs"], case["results"]
        kernel = napkin.kernel(gpu.DIAGRAMS["matmul"], case["sizes"]).compile()
        outputs = {name: compare_gpu.unwritten(m, n) for name in BUILDS}
        runs = {"napkin": lambda: kernel(a, b, result), "cuBLAS": case["run"],
                **{name: harness.gemm(name, how, a, b, outputs[name]) for name, how in BUILDS.items()}}
        found = gpu.race(runs, "g_c1", options.rounds, options.seconds, samples)
        at = torch.randperm(m, device="cuda")[:16]
        references = case["reference"](at)
        for name, output in {"napkin": result, **outputs}.items():
            found[name]["error"] = compare_gpu.error([output], references, at)
        results.append({"sizes": case["sizes"], "predicted_seconds": kernel.predicted_seconds, **found})
        print(gpu.title("matmul", case["sizes"]) + "".join(f"  {name} {of['seconds'] * 1e6:.1f} µs, {of['ratio']:.3f}" for name, of in found.items()), flush=True)
    gpu.write(options, "napkin.prototype-gpu/1", torch.cuda.get_device_name(), torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
