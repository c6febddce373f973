#!/usr/bin/env python3
"""napkin's kernels on the GPU at hand beside cuBLAS, torch's fused attention (cuDNN or FlashAttention) and a copy of the same bytes.

    python3 bench/compare_gpu.py [--only products fp8 block epilogues attention rows] [--rounds 5] [--seconds 0.2] [--output bench/results/NAME.json]

Products of 8-bit numbers are raced against cuBLAS with one scale for each matrix, or one for each block of 128; epilogues against cuBLAS followed by
the one kernel that torch.compile makes of the rest, or by torch's own kernels where those are faster. Each round measures napkin's kernel and its peer one after the other, by events with the GPU's caches flushed before each launch, so that
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


def fp8(m, n, k):
    a, b = (torch.randn(*shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    one = torch.ones((), device="cuda")
    run = lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    return {"diagram": "fp8", "sizes": {"m": m, "n": n, "k": k}, "peer": "cuBLAS", "run": run, "work": 2 * m * n * k, "unit": "TFLOP/s", "scale": 1e12}


def block_fp8(m, n, k):
    a, b = (torch.randn(*shape, device="cuda").to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    of_a = torch.rand(k // 128, m, device="cuda").T
    of_b = torch.rand(n // 128, k // 128, device="cuda").T
    run = lambda: torch._scaled_mm(a, b.T, of_a, of_b, out_dtype=torch.bfloat16)
    return {"diagram": "block_fp8", "sizes": {"m": m, "w": n // 128, "n": n, "block": k // 128, "k": 128}, "peer": "cuBLAS", "run": run,
            "work": 2 * m * n * k, "unit": "TFLOP/s", "scale": 1e12}


def epilogue(diagram, m, n, k):
    a, b, g = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k), (n, k)))
    bias, r = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((n,), (m, n)))

    def of_residual():
        d = a @ b.T + r
        return d, (d.float() ** 2).sum(1)

    plain = {"bias_gelu": lambda: torch.nn.functional.gelu(a @ b.T + bias), "residual": of_residual,
             "gated": lambda: torch.nn.functional.silu(a @ b.T) * (a @ g.T)}[diagram]
    compiled = torch.compile(plain)
    best = min((gpu.seconds_of(run, 0.02), name, run) for name, run in (("torch", plain), ("compiled torch", compiled)))
    return {"diagram": diagram, "sizes": {"m": m, "n": n, "k": k}, "peer": best[1], "run": best[2],
            "work": 2 * m * n * k * (2 if diagram == "gated" else 1), "unit": "TFLOP/s", "scale": 1e12}


def sets():
    """The cases by name, made as they are asked for."""
    shapes = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))
    return {
        "products": lambda: [*(matmul(*sizes) for sizes in (
            (4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096), (4096, 14336, 4096), (2048, 2048, 2048), (8192, 1024, 8192),
            (512, 4096, 4096), (128, 8192, 8192), (64, 7168, 16384), (4095, 4097, 4103))), batched(64, 512, 512, 512)],
        "fp8": lambda: (fp8(*sizes) for sizes in shapes),
        "block": lambda: (block_fp8(*sizes) for sizes in shapes),
        "epilogues": lambda: (epilogue(name, 4096, 4096, 4096) for name in ("bias_gelu", "residual", "gated")),
        "attention": lambda: [*(attention("attention", 16, 16384, d) for d in (64, 128)), attention("causal", 16, 16384, 128)],
        "rows": lambda: [rows("softmax", 4096, 4096), rows("softmax", 32768, 1024), rows("layernorm", 8192, 4096)],
    }


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=sets(), default=list(sets()))
    options = parser.parse_args()
    results, device = [], ""
    for case in (case for name in options.only for case in sets()[name]()):
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
