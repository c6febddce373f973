#!/usr/bin/env python3
"""Kernels of this library on the GPU at hand beside those of another one, as of an earlier commit, in one process.

    python3 bench/beside_gpu.py --other libnapkin.so [--rounds 5] [--seconds 0.04] [--only attention products …] [--output bench/results/NAME.json]

The subjects are 36 shapes of attention, 11 products, FP8 and block-scaled products, epilogues, variants of attention and grouped queries. In each round the
kernels are measured in turns of a few launches, with the GPU's caches flushed before each launch. The ratio is the median of the rounds' ratios; above 1
this library is faster. Results of both are compared with each other on memory that was full of NaN. Needs torch.

Both libraries export the C interface alone (a linker's version script), or the tables of one would be those of the other.
"""
import concurrent.futures
import math
import re
import sys

import torch

import gpu
from in_process import Napkin

OWN, OTHER = "this", "other"
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "f32": torch.float32, "i32": torch.int32}
ARRAY = re.compile(r"(\w+)\[([^\]]*)\](?::\s*(\w+))?")
TOKENS, WIDTH = 16384, 2048
GROUPED = """grouped(Q[g, h, q, k]: bf16, K[g, x, k]: bf16, V[g, x, d]: bf16) -> O[g, h, q, d]: bf16
    S[g, h, q, x] = sum(k) Q[g, h, q, k] * K[g, x, k]
    P[g, h, q, x] = softmax(x) where(x <= q, S[g, h, q, x] * k^-0.5, -inf)
    O[g, h, q, d] = sum(x) P[g, h, q, x] * V[g, x, d]
"""


def subjects():
    """By set: the text and the sizes of each subject."""
    attention = [(gpu.DIAGRAMS[name], {"h": TOKENS // s * WIDTH // d, "q": s, "x": s, "k": d, "d": d})
                 for d in (64, 128, 256) for name in ("attention", "causal") for s in (512, 1024, 2048, 4096, 8192, 16384)]
    products = [(gpu.DIAGRAMS["matmul"], dict(zip("mnk", sizes))) for sizes in (
        (4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096), (4096, 14336, 4096), (2048, 2048, 2048), (8192, 1024, 8192), (512, 4096, 4096),
        (128, 8192, 8192), (64, 7168, 16384), (4095, 4097, 4103))] + [(gpu.DIAGRAMS["batched"], {"b": 64, "m": 512, "n": 512, "k": 512})]
    large = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))
    heads = {"h": 16, "q": 8192, "x": 8192, "k": 128, "d": 128}
    text, score = gpu.attention_of, gpu.SCALED
    return {
        "attention": attention,
        "products": products,
        "fp8": [(gpu.DIAGRAMS["fp8"], dict(zip("mnk", sizes))) for sizes in large],
        "block": [(gpu.DIAGRAMS["block_fp8"], {"m": m, "w": n // 128, "n": n, "block": k // 128, "k": 128}) for m, n, k in large],
        "epilogues": [(gpu.DIAGRAMS[name], dict(zip("mnk", sizes))) for sizes in ((4096, 4096, 4096), (8192, 4096, 1024))
                      for name in ("bias_gelu", "residual", "gated")],
        "variants": [(text(f"where(x <= q and q - x < 1024, {score}, -inf)"), heads), (text(f"where(x <= q, 30 * tanh({score} / 30), -inf)"), heads),
                     (text(f"where(x <= q, {score} - 2^(-8 * (h + 1) / size(h)) * (q - x), -inf)"), heads),
                     (text(f"{score} + B[q, x]", ", B[q, x]: bf16"), heads), (gpu.DIAGRAMS["sink"], heads),
                     *((GROUPED, {"g": 8, "h": 8, "q": s, "x": s, "k": 128, "d": 128}) for s in (4096, 8192))],
    }


def arrays(text, sizes):
    """The inputs, random, and the results, full of NaN, in the order of the text's first line."""
    given, made = text.splitlines()[0].split("->")

    def each(part, fill):
        for _, axes, kind in ARRAY.findall(part):
            yield fill([sizes[axis.strip()] for axis in axes.split(",")], TYPES[kind or "f32"])
    return (list(each(given, lambda shape, kind: torch.randn(shape, device="cuda").to(kind))),
            list(each(made, lambda shape, kind: torch.full(shape, math.nan, device="cuda", dtype=kind))))


def difference(run, inputs, outputs, theirs):
    """The greatest difference of both libraries' results, over the greatest value."""
    run(*inputs, *outputs)
    torch.cuda.synchronize()
    return max(((a.double() - b.double()).abs().max() / b.double().abs().max()).item() for a, b in zip(outputs, theirs))


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--other", required=True, help="the other library")
    parser.add_argument("--name", default="another library", help="of the other one, as its commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=subjects(), default=list(subjects()))
    options = parser.parse_args()
    libraries = {OWN: Napkin(), OTHER: Napkin(options.other)}
    all_subjects = [(kind, *subject) for kind in options.only for subject in subjects()[kind]]
    torch.zeros(1, device="cuda")
    asked = [(n, name) for n in range(len(all_subjects)) for name in libraries]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        kernels = dict(zip(asked, pool.map(lambda a: libraries[a[1]].kernel(*all_subjects[a[0]][1:]).compile(), asked)))
    results, samples = [], gpu.Samples()
    for n, (kind, text, sizes) in enumerate(all_subjects):
        inputs, outputs = arrays(text, sizes)
        theirs = [torch.empty_like(o) for o in outputs]
        runs = {OWN: lambda: kernels[n, OWN](*inputs, *outputs), OTHER: lambda: kernels[n, OTHER](*inputs, *theirs)}
        runs[OTHER]()
        off = difference(kernels[n, OWN], inputs, outputs, theirs)
        found = gpu.race(runs, OTHER, options.rounds, options.seconds, samples)
        results.append({"set": kind, "diagram": text.split("(")[0], "sizes": sizes, "seconds": found[OWN]["seconds"], "other_seconds": found[OTHER]["seconds"],
                        "ratio": found[OWN]["ratio"], "predicted_seconds": kernels[n, OWN].predicted_seconds, "difference": off,
                        "off_in_clocks": gpu.off_in_clocks(kernels[n, OWN], found[OWN]),
                        "other_off_in_clocks": gpu.off_in_clocks(kernels[n, OTHER], found[OTHER])})
        r = results[-1]
        print(f"{kind:10} {gpu.title(r['diagram'], sizes)} {1e6 * r['seconds']:9.1f} µs ×{r['ratio']:.3f}, {100 * r['off_in_clocks']:+.0f}% of the predicted "
              f"clocks (other {100 * r['other_off_in_clocks']:+.0f}%), difference {off:.1e}", flush=True)
    means = {kind: math.exp(sum(math.log(r["ratio"]) for r in results if r["set"] == kind) / sum(r["set"] == kind for r in results)) for kind in options.only}
    worst = min(results, key=lambda r: r["ratio"])
    mean = math.exp(sum(math.log(r["ratio"]) for r in results) / len(results))
    print(f"geometric mean ×{mean:.4f}, worst ×{worst['ratio']:.3f}: {worst['diagram']} {worst['sizes']};", ", ".join(f"{k} ×{v:.4f}" for k, v in means.items()))
    gpu.write(options, "napkin.beside-gpu/1", torch.cuda.get_device_name(), other=options.name, torch=torch.__version__, mean=mean, means=means, worst=worst["ratio"],
              results=results)


if __name__ == "__main__":
    sys.exit(main())
