#!/usr/bin/env python3
"""napkin's kernels on the GPU at hand beside cuBLAS, torch's fused attention (cuDNN or FlashAttention) and a copy of the same bytes.

    python3 bench/compare_gpu.py [--rounds 5] [--seconds 0.2] [--output bench/results/NAME.json]

Each round measures napkin's kernel and its peer one after the other, by events with the GPU's caches flushed before each launch, so that
both see the card at the same clock. The ratio is the median of the rounds' ratios, above 1 where napkin is faster. Needs torch.
"""
import sys

import torch

import gpu
import records

def matmul(m, n, k):
    a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k)))
    return {"diagram": "matmul", "sizes": {"m": m, "n": n, "k": k}, "peer": "cuBLAS", "run": lambda: a @ b.T, "work": 2 * m * n * k,
            "unit": "TFLOP/s", "scale": 1e12}


def batched(b, m, n, k):
    x, y = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((b, m, k), (b, n, k)))
    return {"diagram": "batched", "sizes": {"b": b, "m": m, "n": n, "k": k}, "peer": "cuBLAS", "run": lambda: x @ y.mT,
            "work": 2 * b * m * n * k, "unit": "TFLOP/s", "scale": 1e12}


def attention(diagram, h, x, d):
    q, k, v = (torch.randn(1, h, x, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    run = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=diagram == "causal")
    return {"diagram": diagram, "sizes": {"h": h, "q": x, "x": x, "k": d, "d": d}, "peer": "torch", "run": run,
            "work": 4 * h * x * x * d // (2 if diagram == "causal" else 1), "unit": "TFLOP/s", "scale": 1e12}


def rows(diagram, r, c):
    x = torch.randn(r, c, device="cuda")
    y = torch.empty_like(x)
    return {"diagram": diagram, "sizes": {"r": r, "c": c}, "peer": "copy", "run": lambda: y.copy_(x), "work": 8 * r * c, "unit": "GB/s",
            "scale": 1e9}


def cases():
    for sizes in ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096), (4096, 14336, 4096), (2048, 2048, 2048),
                  (8192, 1024, 8192), (512, 4096, 4096), (128, 8192, 8192), (64, 7168, 16384), (4095, 4097, 4103)):
        yield matmul(*sizes)
    yield batched(64, 512, 512, 512)
    for d in (64, 128):
        yield attention("attention", 16, 16384, d)
    yield attention("causal", 16, 16384, 128)
    yield rows("softmax", 4096, 4096)
    yield rows("softmax", 32768, 1024)
    yield rows("layernorm", 8192, 4096)


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    results, device = [], ""
    for case in cases():
        command = ["-", "--machine", "gpu", "--seconds", str(options.seconds), *gpu.sizes_of(case["sizes"])]
        rounds = []
        for _ in range(options.rounds):
            document = records.run_kernel(command, text=gpu.DIAGRAMS[case["diagram"]])
            rounds.append((document["seconds"], gpu.seconds_of(case["run"], options.seconds)))
        device = document["device"]
        ours, theirs = (min(r[i] for r in rounds) for i in (0, 1))
        entry = {"diagram": case["diagram"], "sizes": case["sizes"], "predicted_seconds": document["predicted_seconds"], "seconds": ours,
                 "peer": case["peer"], "peer_seconds": theirs, "unit": case["unit"], "rate": case["work"] / ours / case["scale"],
                 "peer_rate": case["work"] / theirs / case["scale"], "ratio": records.median([r[1] / r[0] for r in rounds])}
        results.append(entry)
        print(f"{gpu.title(entry['diagram'], case['sizes'])} {ours * 1e6:10.1f} µs (predicted {entry['predicted_seconds'] * 1e6:.1f})"
              f" {entry['rate']:8.0f} {case['unit']}  {case['peer']:>7} {entry['peer_rate']:8.0f}  ratio {entry['ratio']:.2f}", flush=True)
    gpu.write(options, "napkin.compare-gpu/1", device, torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
