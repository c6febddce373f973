#!/usr/bin/env python3
"""Kernels of this napkin on the GPU at hand beside those of another one, as of an earlier commit.

    python3 bench/beside_gpu.py --other napkin-of-commit [--rounds 3] [--seconds 0.05] [--only attention products …] [--output bench/results/NAME.json]

The subjects are 36 shapes of attention, 11 products, FP8 and block-scaled products, epilogues, variants of attention and grouped queries. Plans and code of
all are made first. Then both run in turns, one process at a time, with the GPU's caches flushed before each launch. A subject whose first ratio
is below 0.99 gets further rounds, and its ratio is their median. Above 1 this napkin is faster.
"""
import concurrent.futures
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import gpu
import records

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


def measured(binary, folder, n, subject, seconds):
    """Seconds of a launch and what was predicted."""
    _, text, sizes = subject
    file = pathlib.Path(folder) / f"{n}.nk"
    file.write_text(text)
    words = [binary, "run", file, "--machine", "gpu", "--no-baseline", "--no-check", "--no-validate", "--json", "--seconds", str(seconds), *gpu.sizes_of(sizes)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    document = json.loads(done.stdout)
    return document["seconds"], document["predicted_seconds"], document["device"]


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--other", required=True, help="the other program")
    parser.add_argument("--name", default="another napkin", help="of the other one, as its commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=subjects(), default=list(subjects()))
    options = parser.parse_args()
    all_subjects = [(kind, *subject) for kind in options.only for subject in subjects()[kind]]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        # What is planned and compiled here is found in the cache by the runs that count.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda asked: measured(asked[1], folder, asked[0], all_subjects[asked[0]], 0.001),
                          [(n, binary) for n in range(len(all_subjects)) for binary in (records.NAPKIN, options.other)]))
        for n, subject in enumerate(all_subjects):
            kind, text, sizes = subject
            runs = []
            # Inputs take longer to make than kernels to run: only what is not clear at once is measured again.
            while len(runs) < options.rounds and (not runs or runs[0][1][0] / runs[0][0][0] < 0.99):
                runs.append((measured(records.NAPKIN, folder, n, subject, options.seconds), measured(options.other, folder, n, subject, options.seconds)))
            own, other = (min(run[k][0] for run in runs) for k in (0, 1))
            results.append({"set": kind, "diagram": text.split("(")[0], "sizes": sizes, "seconds": own, "other_seconds": other,
                            "ratio": records.median([theirs[0] / ours[0] for ours, theirs in runs]), "predicted_seconds": runs[0][0][1],
                            "other_predicted_seconds": runs[0][1][1]})
            r, device = results[-1], runs[0][0][2]
            print(f"{kind:10} {gpu.title(r['diagram'], sizes)} {1e6 * own:9.1f} µs ×{r['ratio']:.3f}; predicted {1e6 * r['predicted_seconds']:.1f}, "
                  f"by the other {1e6 * r['other_predicted_seconds']:.1f}", flush=True)

    def mean(ratios):
        return math.exp(sum(map(math.log, ratios)) / len(ratios))
    means = {kind: mean([r["ratio"] for r in results if r["set"] == kind]) for kind in options.only}
    worst, overall = min(results, key=lambda r: r["ratio"]), mean([r["ratio"] for r in results])
    print(f"geometric mean ×{overall:.4f}, worst ×{worst['ratio']:.3f}: {worst['diagram']} {worst['sizes']};", ", ".join(f"{k} ×{v:.4f}" for k, v in means.items()))
    gpu.write(options, "napkin.beside-gpu/1", device, other=options.name, mean=overall, means=means, worst=worst["ratio"], results=results)


if __name__ == "__main__":
    sys.exit(main())
