#!/usr/bin/env python3
"""napkin's kernels on the GPU at hand beside cuBLAS, torch's fused attention (cuDNN or FlashAttention) and a copy of the same bytes.

    python3 bench/compare_gpu.py [--only products fp8 block epilogues attention rows] [--rounds 5] [--seconds 0.2] [--output bench/results/NAME.json]

Products of 8-bit numbers are raced against cuBLAS with one scale for each matrix, or one for each block of 128; epilogues against cuBLAS followed by
the one kernel that torch.compile makes of the rest, or by torch's own kernels where those are faster. Both run in this process, on random inputs and
results full of NaN; each round measures both in turns of a few launches, by events with the GPU's caches flushed before each launch. The ratio is the median
of the rounds' ratios, above 1 where napkin is faster; the errors are those of both against double precision in sixteen slices, over the greatest value.
Needs torch.
"""
import sys

import torch

import gpu
from in_process import Napkin

BF16, FP8, F32 = torch.bfloat16, torch.float8_e4m3fn, torch.float32


def random(*shape, type=BF16):
    return torch.randn(*shape, device="cuda").to(type)


def unwritten(*shape, type=BF16):
    """Full of NaN, so that what a kernel leaves out shows."""
    return torch.full(shape, float("nan"), device="cuda", dtype=type)


def case(diagram, sizes, inputs, results, peer, run, reference, work, unit="TFLOP/s", scale=1e12):
    """One race: the diagram by name, its inputs in its order, its results, and the peer's name and work. `run` gives the peer's results, and
    `reference`, from the first index of some slices along the results' first axis, the results there in double precision."""
    return {"diagram": diagram, "sizes": sizes, "inputs": inputs, "results": results, "peer": peer, "run": run, "reference": reference, "work": work,
            "unit": unit, "scale": scale}


def matmul(m, n, k):
    a, b = random(m, k), random(n, k)
    return case("matmul", {"m": m, "n": n, "k": k}, (a, b), [unwritten(m, n)], "cuBLAS", lambda: a @ b.T, lambda i: [a[i].double() @ b.double().T], 2 * m * n * k)


def batched(b, m, n, k):
    x, y = random(b, m, k), random(b, n, k)
    return case("batched", {"b": b, "m": m, "n": n, "k": k}, (x, y), [unwritten(b, m, n)], "cuBLAS", lambda: x @ y.mT, lambda i: [x[i].double() @ y[i].double().mT],
                2 * b * m * n * k)


def attention(diagram, h, x, d):
    q, k, v = (random(h, x, d) for _ in range(3))
    causal = diagram == "causal"

    def reference(i, queries=512):
        logits = q[i, :queries].double() @ k[i].double().mT * d ** -0.5
        if causal:
            logits = logits.masked_fill(torch.ones(logits.shape[1:], dtype=torch.bool, device="cuda").triu(1), float("-inf"))
        return [logits.softmax(-1) @ v[i].double()]
    run = lambda: torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    return case(diagram, {"h": h, "q": x, "x": x, "k": d, "d": d}, (q, k, v), [unwritten(h, x, d)], "torch", run, reference, 4 * h * x * x * d // (2 if causal else 1))


def rows(diagram, r, c):
    x, y = random(r, c, type=F32), torch.empty(r, c, device="cuda")
    parameters = [random(c, type=F32) for _ in range(2)] if diagram == "layernorm" else []

    def reference(i):
        if not parameters:
            return [x[i].double().softmax(1)]
        return [torch.nn.functional.layer_norm(x[i].double(), (c,), *(p.double() for p in parameters))]
    return case(diagram, {"r": r, "c": c}, (x, *parameters), [unwritten(r, c, type=F32)], "copy", lambda: y.copy_(x), reference, 8 * r * c, "GB/s", 1e9)


def fp8(m, n, k):
    a, b = random(m, k, type=FP8), random(n, k, type=FP8)
    one = torch.ones((), device="cuda")
    run = lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=BF16, use_fast_accum=True)
    return case("fp8", {"m": m, "n": n, "k": k}, (a, b), [unwritten(m, n)], "cuBLAS", run, lambda i: [a[i].double() @ b.double().T], 2 * m * n * k)


def block_fp8(m, n, k):
    a, b = random(m, k, type=FP8), random(n, k, type=FP8)
    # cuBLAS reads the scales of A along the rows first.
    of_a, of_b = torch.rand(k // 128, m, device="cuda").T, torch.rand(n // 128, k // 128, device="cuda")
    run = lambda: torch._scaled_mm(a, b.T, of_a, of_b.T, out_dtype=BF16)

    def reference(i):
        scaled = of_b.double().repeat_interleave(128, 0).repeat_interleave(128, 1) * b.double()
        return [(a[i].double() * of_a[i].double().repeat_interleave(128, 1)) @ scaled.T]
    return case("block_fp8", {"m": m, "w": n // 128, "n": n, "block": k // 128, "k": 128}, (a, b, of_a.contiguous(), of_b), [unwritten(m, n)], "cuBLAS", run, reference,
                2 * m * n * k)


def epilogue(diagram, m, n, k):
    a, b, g = (random(*shape) for shape in ((m, k), (n, k), (n, k)))
    bias, r = (random(*shape) for shape in ((n,), (m, n)))
    more = {"bias_gelu": bias, "residual": r, "gated": g}[diagram]
    results = [unwritten(m, n), unwritten(m, type=F32)] if diagram == "residual" else [unwritten(m, n)]

    def work(a, b, g, bias, r):
        if diagram == "bias_gelu":
            return torch.nn.functional.gelu(a @ b.T + bias)
        if diagram == "gated":
            return torch.nn.functional.silu(a @ b.T) * (a @ g.T)
        d = a @ b.T + r
        # The statistics are of the sums in f32, or in double precision where the inputs are.
        return d, (d.to(torch.promote_types(d.dtype, F32)) ** 2).sum(1)

    def reference(i):
        out = work(a[i].double(), b.double(), g.double(), bias.double(), r[i].double())
        return list(out) if isinstance(out, tuple) else [out]
    plain, compiled = lambda: work(a, b, g, bias, r), torch.compile(lambda: work(a, b, g, bias, r))
    best = min((gpu.seconds_of(run, 0.02), name, run) for name, run in (("torch", plain), ("compiled torch", compiled)))
    return case(diagram, {"m": m, "n": n, "k": k}, (a, b, more), results, best[1], best[2], reference,
                2 * m * n * k * (2 if diagram == "gated" else 1))


def error(results, references, i):
    """Of several results the worst: the greatest difference from the reference, in slices along the first axis, over the reference's greatest value.

    A reference may hold fewer values than a slice along the second axis, the first ones.
    """
    def of(result, reference):
        held = result[i][:, :reference.shape[1]] if reference.dim() > 1 else result[i]
        return ((held.double() - reference).abs().max() / reference.abs().max()).item()
    return max(of(result, reference) for result, reference in zip(results, references))


def sets():
    """The cases by name, made as they are asked for."""
    shapes = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096))
    return {
        "products": lambda: [*(matmul(*sizes) for sizes in (
            (4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096), (4096, 14336, 4096), (2048, 2048, 2048), (8192, 1024, 8192),
            (512, 4096, 4096), (128, 8192, 8192), (64, 7168, 16384), (4095, 4097, 4103))), batched(64, 512, 512, 512)],
        "fp8": lambda: (fp8(*sizes) for sizes in shapes),
        "block": lambda: (block_fp8(*sizes) for sizes in shapes),
        "epilogues": lambda: (epilogue(name, *sizes) for sizes in ((4096, 4096, 4096), (8192, 8192, 2048), (8192, 4096, 1024))
                              for name in ("bias_gelu", "residual", "gated")),
        "attention": lambda: [*(attention("attention", 16, 16384, d) for d in (64, 128)), attention("causal", 16, 16384, 128)],
        "rows": lambda: [rows("softmax", 4096, 4096), rows("softmax", 32768, 1024), rows("layernorm", 8192, 4096)],
    }


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=sets(), default=list(sets()))
    options = parser.parse_args()
    napkin, results, samples = Napkin(), [], gpu.Samples()
    for case in (case for name in options.only for case in sets()[name]()):
        kernel = napkin.kernel(gpu.DIAGRAMS[case["diagram"]], case["sizes"]).compile()
        outputs = case["results"]
        runs = {"napkin": lambda: kernel(*case["inputs"], *outputs), case["peer"]: case["run"]}
        found = gpu.race(runs, case["peer"], options.rounds, options.seconds, samples)
        at = torch.randperm(len(outputs[0]), device="cuda")[:16]
        references = case["reference"](at)
        theirs = case["run"]()
        entry = {"diagram": case["diagram"], "sizes": case["sizes"], "predicted_seconds": kernel.predicted_seconds, "seconds": found["napkin"]["seconds"],
                 "peer": case["peer"], "peer_seconds": found[case["peer"]]["seconds"], "unit": case["unit"], "ratio": found["napkin"]["ratio"],
                 "off_in_clocks": gpu.off_in_clocks(kernel, found["napkin"]),
                 "clock_mhz": found["napkin"]["clock_mhz"], "peer_clock_mhz": found[case["peer"]]["clock_mhz"], "error": error(outputs, references, at)}
        if case["peer"] != "copy":
            entry["peer_error"] = error(theirs if isinstance(theirs, tuple) else [theirs], references, at)
        for name in ("", "peer_"):
            entry[f"{name}rate"] = case["work"] / entry[f"{name}seconds"] / case["scale"]
        results.append(entry)
        print(f"{gpu.title(entry['diagram'], case['sizes'])} {entry['seconds'] * 1e6:10.1f} µs (predicted {entry['predicted_seconds'] * 1e6:.1f}, {100 * entry['off_in_clocks']:+.0f}% of its clocks)"
              f" {entry['rate']:8.0f} {case['unit']}  {case['peer']:>7} {entry['peer_rate']:8.0f}  ratio {entry['ratio']:.2f}; error {entry['error']:.1e}, peer's "
              f"{entry.get('peer_error', float('nan')):.1e}; MHz {entry['clock_mhz']:.0f} {entry['peer_clock_mhz']:.0f}", flush=True)
    mean, worst = gpu.mean_off(results)
    if worst:
        print(f"predictions in clocks: {100 * mean:.1f}% off in the mean, {100 * worst['off_in_clocks']:+.0f}% at worst: {gpu.title(worst['diagram'], worst['sizes'])}")
    gpu.write(options, "napkin.compare-gpu/2", torch.cuda.get_device_name(), torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
