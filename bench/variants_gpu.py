#!/usr/bin/env python3
"""Attention in its variants on the GPU at hand, beside compiled FlexAttention, or cuDNN where it has the variant: masks, biases, grouped queries, sizes of heads.

    python3 bench/variants_gpu.py [--rounds 3] [--seconds 0.05] [--only window softcap …] [--length 8192] [--output bench/results/NAME.json]

Each round measures napkin's kernel and its peer one after the other, with the GPU's caches flushed before each launch; the ratio is the median of the
rounds' ratios. Needs torch.
"""
import pathlib
import sys
import tempfile

import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import gpu
import records

GROUPED = """grouped(Q[g, h, q, k]: bf16, K[g, x, k]: bf16, V[g, x, d]: bf16) -> O[g, h, q, d]: bf16
    S[g, h, q, x] = sum(k) Q[g, h, q, k] * K[g, x, k]
    P[g, h, q, x] = softmax(x) where(x <= q, S[g, h, q, x] * k^-0.5, -inf)
    O[g, h, q, d] = sum(x) P[g, h, q, x] * V[g, x, d]
"""
SCORE = gpu.SCALED


def variants(length, heads):
    """Name: text, sizes, what FlexAttention is given (score_mod, mask_mod), or cuDNN's arguments."""
    text = gpu.attention_of

    def causal(b, h, q, x):
        return q >= x
    slopes = torch.exp2(-8 * (torch.arange(heads, device="cuda") + 1) / heads)
    documents = torch.arange(length, device="cuda", dtype=torch.int32) // (length // 8)
    sizes = {"h": heads, "q": length, "x": length, "k": 128, "d": 128}
    flex = {
        "window": (text(f"where(x <= q and q - x < 1024, {SCORE}, -inf)"), None, lambda b, h, q, x: (q >= x) & (q - x < 1024)),
        "softcap": (text(f"where(x <= q, 30 * tanh({SCORE} / 30), -inf)"), lambda s, b, h, q, x: 30 * torch.tanh(s / 30), causal),
        "alibi": (text(f"where(x <= q, {SCORE} - 2^(-8 * (h + 1) / size(h)) * (q - x), -inf)"), lambda s, b, h, q, x: s - slopes[h] * (q - x), causal),
        "documents": (text(f"where(D[q] == E[x], {SCORE}, -inf)", ", D[q]: i32, E[x]: i32"), None, lambda b, h, q, x: documents[q] == documents[x]),
        "bias": (text(f"{SCORE} + B[q, x]", ", B[q, x]: bf16"), "bias", None),
        "sink": (gpu.DIAGRAMS["sink"], "sink", None),
    }
    out = {name: {"text": t, "sizes": sizes, "flex": (score, mask)} for name, (t, score, mask) in flex.items()}
    out["documents"]["inputs"] = {"D": documents, "E": documents}
    for s in (4096, 8192, 16384):
        out[f"grouped {s}"] = {"text": GROUPED, "sizes": {"g": 8, "h": 8, "q": s, "x": s, "k": 128, "d": 128}, "cudnn": True}
    for k, d in ((96, 96), (192, 128), (40, 40), (80, 80), (64, 64), (128, 128)):
        for kind in ("bf16", "f16"):
            out[f"{k}/{d} {kind}"] = {"text": text(f"where(x <= q, {SCORE}, -inf)", type=kind),
                                      "sizes": {"h": heads, "q": length, "x": length, "k": k, "d": d}, "cudnn": True, "kind": kind}
    return out


def tensors(case):
    s, kind = case["sizes"], {"bf16": torch.bfloat16, "f16": torch.float16}[case.get("kind", "bf16")]
    heads, shared = s["h"] * s.get("g", 1), s.get("g", s["h"])
    make = lambda h, n, d: torch.randn(1, h, n, d, device="cuda", dtype=kind)
    return make(heads, s["q"], s["k"]), make(shared, s["x"], s["k"]), make(shared, s["x"], s["d"])


def peer_of(case):
    q, k, v = tensors(case)
    if case.get("cudnn"):
        def run():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
        run()
        return "cuDNN", run
    score, mask = case["flex"]
    length = q.shape[2]
    block_mask = create_block_mask(mask, None, None, length, length, device="cuda") if mask else None
    compiled = torch.compile(flex_attention)
    if score == "bias":
        bias = torch.randn(length, length, device="cuda", dtype=q.dtype)
        score = lambda s, b, h, i, j: s + bias[i, j]
    if score == "sink":
        logits = torch.randn(q.shape[1], device="cuda")

        @torch.compile
        def with_sink(q, k, v):
            out, lse = flex_attention(q, k, v, return_lse=True)
            return out * torch.sigmoid(lse - logits[None, :, None])[..., None].to(out.dtype)
        run = lambda: with_sink(q, k, v)
    else:
        run = lambda: compiled(q, k, v, score_mod=score, block_mask=block_mask)
    run()
    return "compiled FlexAttention", run


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--only", nargs="+", help="names of variants, or how they begin")
    options = parser.parse_args()
    results, device = [], ""
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, case in variants(options.length, options.heads).items():
        if options.only and not any(name.startswith(wanted) for wanted in options.only):
            continue
        try:
            peer, run = peer_of(case)
        except RuntimeError as error:  # a peer that does not have the variant is said to lack it, and no ratio is given
            peer, run = f"no peer: {str(error).splitlines()[0][:100]}", None
        rounds, given = [], []
        for array, values in case.get("inputs", {}).items():
            numpy.save(folder / f"{array}.npy", values.cpu().numpy())
            given += ["--input", f"{array}={folder / array}.npy"]
        for _ in range(options.rounds):
            document = records.run_kernel(["-", "--machine", "gpu", "--seconds", str(options.seconds), *given, *gpu.sizes_of(case["sizes"])], text=case["text"])
            rounds.append((document["seconds"], gpu.seconds_of(run, options.seconds, flush_writes=True) if run else None))
        device = document["device"]
        seconds = min(r[0] for r in rounds)
        entry = {"variant": name, "sizes": case["sizes"], "predicted_seconds": document["predicted_seconds"], "seconds": seconds, "peer": peer}
        if run:
            entry |= {"peer_seconds": min(r[1] for r in rounds), "ratio": records.median([r[1] / r[0] for r in rounds])}
        results.append(entry)
        print(f"{name:14} {seconds * 1e6:9.1f} µs (predicted {document['predicted_seconds'] * 1e6:9.1f})  {peer}"
              + (f" {entry['peer_seconds'] * 1e6:9.1f} µs, ratio {entry['ratio']:.2f}" if run else ""), flush=True)
    gpu.write(options, "napkin.variants-gpu/1", device, torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
