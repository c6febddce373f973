#!/usr/bin/env python3
"""A thousand launches of kernels on the GPU at hand, compared bit by bit with the first one, and small ones under compute-sanitizer.

    python3 bench/checks_gpu.py [--launches 1000] [--output bench/results/NAME.json]

Before each launch that is compared its results are filled with NaN. Where compute-sanitizer is not installed, that is said in place of its figures. The exit code is
1 where a launch differs or the sanitizer finds anything.
"""
import re
import shutil
import subprocess
import sys

import torch

import gpu
import records
from in_process import Napkin

KERNELS = [("attention", {"h": 16, "q": 1000, "x": 1000, "k": 64, "d": 64}), ("causal", {"h": 16, "q": 1024, "x": 1024, "k": 128, "d": 128}),
           ("attention", {"h": 8, "q": 777, "x": 2048, "k": 256, "d": 256}), ("matmul", {"m": 4096, "n": 4096, "k": 512}),
           ("matmul", {"m": 1023, "n": 1025, "k": 519}), ("residual", {"m": 1024, "n": 4096, "k": 512}), ("bias_gelu", {"m": 1024, "n": 4096, "k": 512}),
           ("gated", {"m": 1024, "n": 2048, "k": 512})]
SANITIZED = [("attention", {"h": 1, "q": 128, "x": 192, "k": 64, "d": 64}), ("attention", {"h": 1, "q": 130, "x": 200, "k": 128, "d": 128}),
             ("causal", {"h": 1, "q": 200, "x": 200, "k": 64, "d": 64}), ("residual", {"m": 256, "n": 512, "k": 128}),
             ("residual", {"m": 130, "n": 201, "k": 128}), ("matmul", {"m": 127, "n": 129, "k": 131}), ("gated", {"m": 256, "n": 256, "k": 128})]
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "": torch.float32}


def arrays(text, sizes):
    """Random arguments and results, as the diagram's first line declares them."""
    head = text.splitlines()[0]
    found = [re.findall(r"(\w+)\[([^\]]*)\](?:: (\w+))?", part) for part in head.split("->")]
    make = [[torch.randn([sizes[axis.strip()] for axis in axes.split(",")], device="cuda").to(TYPES[kind]) for _, axes, kind in part] for part in found]
    return make[0], make[1]


def launches_that_differ(napkin, diagram, sizes, launches):
    text = gpu.DIAGRAMS[diagram]
    kernel = napkin.kernel(text, sizes).compile()
    arguments, results = arrays(text, sizes)
    kernel(*arguments, *results)
    first = [r.clone() for r in results]
    different = 0
    for _ in range(launches):
        for r in results:
            r.fill_(float("nan"))
        kernel(*arguments, *results)
        different += any(not torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(first, results))
    kernel.free()
    return different


def sanitized(tool, diagram, sizes):
    """What the sanitizer says in its last line."""
    command = ["compute-sanitizer", "--tool", tool, records.NAPKIN, "run", "-", "--machine", "gpu", "--no-baseline", "--no-validate", "--seconds", "0.001", *gpu.sizes_of(sizes)]
    done = subprocess.run(command, input=gpu.DIAGRAMS[diagram].replace("bf16", "f16") if "q" in sizes else gpu.DIAGRAMS[diagram], capture_output=True, text=True)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "SUMMARY" in line]
    return said[-1].strip("= ") if said else f"exit {done.returncode}: {(done.stdout + done.stderr)[-300:]}"


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--launches", type=int, default=1000)
    options = parser.parse_args()
    napkin = Napkin()
    repeats = []
    for diagram, sizes in KERNELS:
        different = launches_that_differ(napkin, diagram, sizes, options.launches)
        repeats.append({"kernel": diagram, "sizes": sizes, "launches": options.launches, "different": different})
        print(f"{gpu.title(diagram, sizes)}: {different} of {options.launches} launches differ from the first", flush=True)
    found = []
    if shutil.which("compute-sanitizer"):
        for tool in ("memcheck", "racecheck"):
            for diagram, sizes in SANITIZED:
                found.append({"tool": tool, "kernel": diagram, "sizes": sizes, "said": sanitized(tool, diagram, sizes)})
                print(f"{tool} {gpu.title(diagram, sizes)}: {found[-1]['said']}", flush=True)
    else:
        print("compute-sanitizer is not installed: nothing is said of races and bounds")
    gpu.write(options, "napkin.gpu-checks/2", torch.cuda.get_device_name(), repeats=repeats, compute_sanitizer=found or "not installed")
    clean = all(re.search(r"SUMMARY: 0 (errors|hazards)", f["said"]) for f in found)
    return 0 if clean and not any(r["different"] for r in repeats) else 1


if __name__ == "__main__":
    sys.exit(main())
