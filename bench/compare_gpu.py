#!/usr/bin/env python3
"""napkin's kernels on the GPU at hand beside cuBLAS, torch's fused attention (cuDNN or FlashAttention) and a copy of the same bytes.

    python3 bench/compare_gpu.py [--rounds 5] [--seconds 0.2] [--output bench/results/NAME.json]

Each round measures napkin's kernel and its peer one after the other, by events with the GPU's caches flushed before each launch, so that
both see the card at the same clock. The ratio is the median of the rounds' ratios, above 1 where napkin is faster. Needs torch.
"""
import argparse
import pathlib
import sys

import torch

import records

DIAGRAMS = {
    "matmul": """matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16
    C[m, n] = sum(k) A[m, k] * B[n, k]
""",
    "attention": """attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
""",
    "causal": """causal(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, -inf)
    P[h, q, x] = softmax(x) M[h, q, x]
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
""",
    "softmax": """rows(X[r, c]) -> Y[r, c]
    Y[r, c] = softmax(c) X[r, c]
""",
    "layernorm": """rows(X[r, c], g[c], b[c]) -> Y[r, c]
    Y[r, c] = layernorm(c)(X[r, c], g[c], b[c])
""",
}


def matmul(m, n, k):
    a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k)))
    return {"diagram": "matmul", "sizes": {"m": m, "n": n, "k": k}, "peer": "cuBLAS", "run": lambda: a @ b.T, "work": 2 * m * n * k,
            "unit": "TFLOP/s", "scale": 1e12}


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
    yield matmul(4096, 4096, 4096)
    yield matmul(8192, 8192, 8192)
    yield matmul(4096, 14336, 4096)
    for d in (64, 128):
        yield attention("attention", 16, 16384, d)
    yield attention("causal", 16, 16384, 128)
    yield rows("softmax", 4096, 4096)
    yield rows("softmax", 32768, 1024)
    yield rows("layernorm", 8192, 4096)


def seconds_of_peer(run, wanted):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    run()
    times = []
    while not times or (sum(times) < wanted and len(times) < 200):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return records.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    results, device = [], ""
    for case in cases():
        command = ["-", "--machine", "gpu", "--seconds", str(options.seconds)]
        for name, size in case["sizes"].items():
            command += ["--set", f"{name}={size}"]
        rounds = []
        for _ in range(options.rounds):
            document = records.run_kernel(command, text=DIAGRAMS[case["diagram"]])
            rounds.append((document["seconds"], seconds_of_peer(case["run"], options.seconds)))
        device = document["device"]
        ours, theirs = (min(r[i] for r in rounds) for i in (0, 1))
        entry = {"diagram": case["diagram"], "sizes": case["sizes"], "predicted_seconds": document["predicted_seconds"], "seconds": ours,
                 "peer": case["peer"], "peer_seconds": theirs, "unit": case["unit"], "rate": case["work"] / ours / case["scale"],
                 "peer_rate": case["work"] / theirs / case["scale"], "ratio": records.median([r[1] / r[0] for r in rounds])}
        results.append(entry)
        print(f"{entry['diagram']:10} {'×'.join(map(str, case['sizes'].values())):>22} {ours * 1e6:10.1f} µs (predicted {entry['predicted_seconds'] * 1e6:.1f})"
              f" {entry['rate']:8.0f} {case['unit']}  {case['peer']:>7} {entry['peer_rate']:8.0f}  ratio {entry['ratio']:.2f}", flush=True)
    if options.output:
        records.write(options.output, {**records.head("napkin.compare-gpu/1", device), "torch": torch.__version__, "results": results})


if __name__ == "__main__":
    sys.exit(main())
