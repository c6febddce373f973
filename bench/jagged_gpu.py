#!/usr/bin/env python3
"""Attention over packed sequences of unequal lengths, by napkin_call, beside torch's varlen FlashAttention in the same process.

    python3 bench/jagged_gpu.py [--output bench/results/NAME.json]

Sixty-four sequences have lengths from 1 to 8,192 by Zipf's law, causal, in bf16, with 16 heads. Both get the same tensors and offsets. What each
does is timed by events, with its launches; rates count the products that the masks leave. The padded form reads a length for each sequence of the
batch, beside torch's scaled_dot_product_attention under the same mask.
"""
import math
import random

import any_sizes_gpu
import gpu
import in_process
import torch

HEADS = 16
PACKED = """packed(Q[b, q, h, k]: bf16, K[b, x, h, k]: bf16, V[b, x, h, d]: bf16, F[b + 1]: i32) -> O[b, q, h, d]: bf16
    S[h, b, q, x] = sum(k) Q[b, q, h, k] * K[b, x, h, k]
    P[h, b, q, x] = softmax(x) {}
    O[b, q, h, d] = sum(x) P[h, b, q, x] * V[b, x, h, d]
sizes q = x = F[b] .. F[b + 1]
"""
PADDED = """padded(Q[b, h, q, k]: bf16, K[b, h, x, k]: bf16, V[b, h, x, d]: bf16, L[b]: i32) -> O[b, h, q, d]: bf16
    S[b, h, q, x] = sum(k) Q[b, h, q, k] * K[b, h, x, k]
    P[b, h, q, x] = softmax(x) S[b, h, q, x] * k^-0.5
    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, h, x, d]
sizes x = L[b]
"""
SCORE = "S[h, b, q, x] * k^-0.5"


def zipf_lengths(count, most, seed):
    """So many lengths from 1 to the most, of which the r-th is as likely as 1 / r."""
    numbers = random.Random(seed)
    return [max(1, int(most ** numbers.random())) for _ in range(count)]


def raced(ours, theirs, out, wanted):
    theirs()
    ours()
    torch.cuda.synchronize()
    apart = (out.float() - wanted().float()).abs().max().item()
    return {"seconds": gpu.seconds_of(ours, 0.05), "torch_seconds": gpu.seconds_of(theirs, 0.05), "largest_difference": apart}


def packed(napkin, lengths, width, is_causal):
    from torch.nn.attention.varlen import varlen_attn
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    make = lambda: torch.randn(offsets[-1], HEADS, width, device="cuda", dtype=torch.bfloat16)
    q, k, v = make(), make(), make()
    out = torch.empty_like(q)
    of = torch.tensor(offsets, device="cuda", dtype=torch.int32)
    program = any_sizes_gpu.Program(napkin, PACKED.format(f"where(x <= q, {SCORE}, -inf)" if is_causal else SCORE))
    window = {"window_size": (-1, 0)} if is_causal else {}
    try:
        torch_of = lambda: varlen_attn(q, k, v, of, of, max(lengths), max(lengths), **window)
        torch_of()
    except TypeError:
        torch_of = lambda: varlen_attn(q, k, v, of, of, max(lengths), max(lengths), is_causal=is_causal)
    row = raced(lambda: program(q, k, v, of, out), torch_of, out, torch_of)
    flops = sum(4 * n * n * HEADS * width / (2 if is_causal else 1) for n in lengths)
    row.update(rows=offsets[-1], width=width, causal=is_causal, flop_per_s=flops / row["seconds"], torch_flop_per_s=flops / row["torch_seconds"])
    print("packed {rows:7} rows  d {width:3}  causal {causal:d}  {0:7.1f} µs ({1:7.1f})  {2:.3f} ×  {3:5.0f} TFLOP/s  apart {largest_difference:.4f}".format(
        row["seconds"] * 1e6, row["torch_seconds"] * 1e6, row["torch_seconds"] / row["seconds"], row["flop_per_s"] / 1e12, **row), flush=True)
    return row


def padded(napkin, lengths, queries, width):
    most = max(lengths)
    make = lambda rows: torch.randn(len(lengths), HEADS, rows, width, device="cuda", dtype=torch.bfloat16)
    q, k, v = make(queries), make(most), make(most)
    out = torch.empty_like(q)
    of = torch.tensor(lengths, device="cuda", dtype=torch.int32)
    mask = (torch.arange(most, device="cuda")[None, :] < of[:, None])[:, None, None, :]
    program = any_sizes_gpu.Program(napkin, PADDED)
    torch_of = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    row = raced(lambda: program(q, k, v, of, out), torch_of, out, torch_of)
    row.update(sequences=len(lengths), most=most, queries=queries, width=width)
    print("padded {sequences} × {most}  queries {queries}  {0:7.1f} µs ({1:7.1f})  {2:.3f} ×  apart {largest_difference:.4f}".format(
        row["seconds"] * 1e6, row["torch_seconds"] * 1e6, row["torch_seconds"] / row["seconds"], **row), flush=True)
    return row


def main():
    options = gpu.parser(__doc__).parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    print("torch's in brackets")
    lengths = zipf_lengths(64, 8192, 1)
    rows = {"packed": [packed(napkin, of, width, is_causal) for of, width, is_causal in
                       [(lengths, 128, True), (lengths, 128, False), (lengths, 64, True), (zipf_lengths(64, 8192, 2), 128, True),
                        ([2048] * 16, 128, True), (zipf_lengths(512, 512, 3), 128, True)]],
            "padded": [padded(napkin, zipf_lengths(32, 4096, 4), 128, 128)]}
    causal = [row["torch_seconds"] / row["seconds"] for row in rows["packed"]]
    print(f"packed: geometric mean {math.prod(causal) ** (1 / len(causal)):.3f}, least {min(causal):.3f}")
    gpu.write(options, "napkin.jagged/1", torch.cuda.get_device_name(0), **rows)


if __name__ == "__main__":
    main()
