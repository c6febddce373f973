#!/usr/bin/env python3
"""Gradients that napkin derives from forward texts, beside torch's own backward in the same process.

    python3 bench/backward_gpu.py [--output bench/results/NAME.json] [--quick]

Attention's forward text is differentiated by `napkin grad`, keeping its result and the row statistics, as FlashAttention-2 does. What runs is the
gradient's kernels by napkin_call, against the backward of torch's scaled_dot_product_attention (cuDNN where torch has it, else FlashAttention) on the
same tensors: its autograd call alone, without the forward. Normalisations and the cross-entropy of rows are raced with torch.compile. Values are
compared with torch's gradients in f32.
"""
import json
import math
import subprocess

import any_sizes_gpu
import gpu
import in_process
import records
import torch

ATTENTION = """attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) {}
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
"""
SCORE = "S[h, q, x] * k^-0.5"
ROWS = {
    "layer norm": ("f(X[r, c]: bf16, G[c]: bf16, B[c]: bf16) -> Y[r, c]: bf16\n    Y[r, c] = layernorm(c)(X[r, c], G[c], B[c])\n",
                   lambda x, g, b: torch.nn.functional.layer_norm(x, x.shape[-1:], g, b)),
    "RMSNorm": ("f(X[r, c]: bf16, G[c]: bf16) -> Y[r, c]: bf16\n    Y[r, c] = rmsnorm(c)(X[r, c], G[c])\n",
                lambda x, g: torch.nn.functional.rms_norm(x, x.shape[-1:], g, 1e-6)),
}


def gradient(text, keep=()):
    """The forward text that also returns what is kept, the gradient's text, and the names of what is kept."""
    command = [str(records.NAPKIN), "grad", "-", "--json", *(["--keep", ",".join(keep)] if keep else [])]
    run = lambda *more: json.loads(subprocess.run([*command, *more], input=text, capture_output=True, text=True, check=True).stdout)
    back = run()
    return run("--forward")["text"], back["text"], back["kept"]


def inputs_of(text):
    """Names of a printed text's arguments."""
    inside = text[text.index("(") + 1:text.index(") ->")]
    depth, words, word = 0, [], ""
    for c in inside + ",":
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            words.append(word.split("[")[0].split(":")[0].strip())
            word = ""
        else:
            word += c
    return words


def attention(napkin, heads, length, width, is_causal, seconds):
    make = lambda: torch.randn(heads, length, width, device="cuda", dtype=torch.bfloat16)
    q, k, v, d_o = make(), make(), make(), make()
    forward_text, back_text, kept = gradient(ATTENTION.format(f"where(x <= q, {SCORE}, -inf)" if is_causal else SCORE), ["O", "P_L"])
    forward, back = any_sizes_gpu.Program(napkin, forward_text), any_sizes_gpu.Program(napkin, back_text)
    out = torch.empty_like(q)
    statistics = {"O": out, **{name: torch.empty(heads, length, device="cuda", dtype=torch.float32) for name in kept if name != "O"}}
    forward(q, k, v, *[statistics[name] for name in ["O", *[n for n in kept if n != "O"]]])
    given = {"Q": q, "K": k, "V": v, "dO": d_o, **statistics}
    d_q, d_k, d_v = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    arguments = [given[name] for name in inputs_of(back_text)]
    ours = lambda: back(*arguments, d_q, d_k, d_v)
    tensors = [t[None].detach().requires_grad_() for t in (q, k, v)]
    result = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=is_causal)
    theirs = lambda: torch.autograd.grad(result, tensors, d_o[None], retain_graph=True)
    wanted = theirs()
    ours()
    torch.cuda.synchronize()
    apart = max(((mine.float() - theirs_of[0].float()).abs().max() / theirs_of.float().abs().max()).item()
                for mine, theirs_of in zip((d_q, d_k, d_v), wanted))
    row = {"heads": heads, "length": length, "width": width, "causal": is_causal, "seconds": gpu.seconds_of(ours, seconds),
           "torch_seconds": gpu.seconds_of(theirs, seconds), "largest_difference": apart}
    flops = 10 * heads * length * length * width / (2 if is_causal else 1)
    row["flop_per_s"], row["torch_flop_per_s"] = flops / row["seconds"], flops / row["torch_seconds"]
    print("attention {heads:3} × {length:6} d {width:3} causal {causal:d}  {0:9.1f} µs ({1:8.1f})  {2:.3f} ×  {3:4.0f} ({4:4.0f}) TFLOP/s  apart {largest_difference:.4f}".format(
        row["seconds"] * 1e6, row["torch_seconds"] * 1e6, row["torch_seconds"] / row["seconds"], row["flop_per_s"] / 1e12, row["torch_flop_per_s"] / 1e12, **row),
        flush=True)
    return row


def rows(napkin, name, count, columns, seconds):
    text, of_torch = ROWS[name]
    _, back_text, _ = gradient(text)
    back = any_sizes_gpu.Program(napkin, back_text)
    x = torch.randn(count, columns, device="cuda", dtype=torch.bfloat16)
    weights = [torch.randn(columns, device="cuda", dtype=torch.bfloat16) for _ in range(len(inputs_of(text)) - 1)]
    d_y = torch.randn_like(x)
    found = [torch.empty_like(t) for t in (x, *weights)]
    given = dict(zip([*inputs_of(text), "dY"], (x, *weights, d_y)))
    arguments = [given[word] for word in inputs_of(back_text)]
    ours = lambda: back(*arguments, *found)
    leaves = [t.detach().requires_grad_() for t in (x, *weights)]
    result = torch.compile(of_torch)(*leaves)
    theirs = lambda: torch.autograd.grad(result, leaves, d_y, retain_graph=True)
    wanted = theirs()
    ours()
    torch.cuda.synchronize()
    apart = max(((mine.float() - of.float()).abs().max() / of.float().abs().max()).item() for mine, of in zip(found, wanted))
    row = {"program": name, "rows": count, "columns": columns, "seconds": gpu.seconds_of(ours, seconds), "torch_seconds": gpu.seconds_of(theirs, seconds),
           "largest_difference": apart, "bytes_per_s": 3 * x.numel() * 2}
    row["bytes_per_s"] /= row["seconds"]
    print("{program:12} {rows} × {columns}  {0:8.1f} µs ({1:8.1f})  {2:.3f} ×  {3:.2f} TB/s  apart {largest_difference:.4f}".format(
        row["seconds"] * 1e6, row["torch_seconds"] * 1e6, row["torch_seconds"] / row["seconds"], row["bytes_per_s"] / 1e12, **row), flush=True)
    return row


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a few sizes")
    options = parser.parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    print("torch's in brackets")
    shapes = [(32, 4096, 64, False), (16, 4096, 128, False), (16, 4096, 128, True)]
    if not options.quick:
        shapes += [(32, 4096, 64, True), (16, 8192, 128, False), (16, 8192, 128, True), (8, 4096, 256, False),
                   (16, 3001, 128, False), (16, 3001, 128, True)]
    found = {"attention": [], "rows": []}
    for shape in shapes:
        try:
            found["attention"].append(attention(napkin, *shape, 0.1))
        except Exception as error:  # one shape that fails must not hide the others
            print(shape, "failed:", str(error)[:400], flush=True)
    for name in ROWS:
        try:
            found["rows"].append(rows(napkin, name, 32768, 4096, 0.1))
        except Exception as error:
            print(name, "failed:", str(error)[:400], flush=True)
    ratios = [row["torch_seconds"] / row["seconds"] for row in found["attention"]]
    if ratios:
        print(f"attention: geometric mean {math.prod(ratios) ** (1 / len(ratios)):.3f}, least {min(ratios):.3f}")
    gpu.write(options, "napkin.backward/1", torch.cuda.get_device_name(0), **found)


if __name__ == "__main__":
    main()
