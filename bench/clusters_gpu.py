#!/usr/bin/env python3
"""Products on the GPU at hand in clusters of two blocks that copy for each other, along either axis, and by single blocks, beside cuBLAS.

    python3 bench/clusters_gpu.py [--rounds 5] [--seconds 0.05] [--output bench/results/NAME.json]

All run in this process, on random inputs and results full of NaN; each round measures all of them in turns of a few launches, by events with the GPU's caches
flushed before each launch. `chosen` is what napkin plans where nothing is said of clusters. Ratios are medians of the rounds' ratios to cuBLAS, above 1
where napkin is faster; errors are against double precision in sixteen slices, over the greatest value. The last sizes end inside of tiles: they are
checked, and hardly worth timing. Needs torch.
"""
import sys

import torch

import compare_gpu
import gpu
from in_process import Napkin

WAYS = {"chosen": "", "alone": "schedule\n    cluster m 1\n", "along m": "schedule\n    cluster m 2\n", "along n": "schedule\n    cluster n 2\n"}


def cases():
    for sizes in ((4096, 4096, 4096), (8192, 8192, 8192)):
        yield compare_gpu.matmul(*sizes)
    for sizes in ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 16384)):
        yield compare_gpu.block_fp8(*sizes)
    yield compare_gpu.fp8(8192, 8192, 8192)
    yield compare_gpu.matmul(1000, 1992, 1032)


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    napkin, results, samples = Napkin(), [], gpu.Samples()
    for case in cases():
        kernels, refused = {}, {}
        for way, schedule in WAYS.items():
            try:
                kernels[way] = napkin.kernel(gpu.DIAGRAMS[case["diagram"]] + schedule, case["sizes"]).compile()
            except RuntimeError as error:  # sizes that are no whole clusters
                refused[way] = str(error).splitlines()[0]
        outputs, peer = case["results"], case["peer"]
        runs = {way: lambda kernel=kernel: kernel(*case["inputs"], *outputs) for way, kernel in kernels.items()}
        found = gpu.race({**runs, peer: case["run"]}, peer, options.rounds, options.seconds, samples)
        at = torch.randperm(len(outputs[0]), device="cuda")[:16]
        references = case["reference"](at)
        entry = {"diagram": case["diagram"], "sizes": case["sizes"], "peer": peer, "peer_seconds": found[peer]["seconds"], "refused": refused, "ways": {}}
        print(f"{gpu.title(case['diagram'], case['sizes'])} {peer} {found[peer]['seconds'] * 1e6:.1f} µs", flush=True)
        for way, run in runs.items():
            for output in outputs:
                output.fill_(float("nan"))
            run()
            wrong = compare_gpu.error(outputs, references, at)
            lines = [line.strip() for line in kernels[way].plan_text.splitlines()]
            cluster = next((line for line in lines if line.startswith("cluster")), "")
            is_whole = all(bool(torch.isfinite(output).all()) for output in outputs)
            entry["ways"][way] = {"cluster": cluster, "predicted_seconds": kernels[way].predicted_seconds, "error": wrong, "is_whole": is_whole, **found[way]}
            print(f"    {way:8} {found[way]['seconds'] * 1e6:8.1f} µs (predicted {kernels[way].predicted_seconds * 1e6:8.1f}) ratio {found[way]['ratio']:.3f}"
                  f"; error {wrong:.1e}{'' if is_whole else ', NOT ALL WRITTEN'}; {found[way]['clock_mhz']:.0f} MHz  {cluster}", flush=True)
        for way, why in refused.items():
            print(f"    {way:8} {why}", flush=True)
        results.append(entry)
    gpu.write(options, "napkin.clusters-gpu/1", torch.cuda.get_device_name(), torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
