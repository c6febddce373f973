#!/usr/bin/env python3
"""FlexAttention's public examples by napkin.torch.flex_attention on the GPU at hand, beside torch's compiled flex_attention.

    python3 bench/flex_gpu.py [--tiny] [--length 4096] [--only causal window …] [--output bench/results/NAME.json]

Both get the same score and mask functions, which are Python. For each: the first call, in which torch compiles and napkin traces, plans and compiles, and the
median of later ones. The values of both are compared with the definition in f32.

`--tiny`: short sequences on the processor beside torch's uncompiled flex_attention, which shows that all of this works.
"""
import math
import time

import gpu
import records
import torch

BATCH, HEADS, WIDTH = 2, 16, 64


def examples(length, heads, device):
    """Name: score function, mask function, groups of heads."""
    numbers = lambda values: torch.tensor(values, device=device, dtype=torch.int32)
    side = math.isqrt(length)
    window, near = max(2, length // 4), max(1, side // 10)
    prefixes, documents = numbers([length // 8, length // 3]), numbers([place * 6 // length for place in range(length)])
    bias = torch.randn(heads, 2 * length, device=device)
    # Sequences of unequal lengths, one behind the other.
    ends = [0, length // 16, length // 5, length // 2, length]
    offsets, sequence = numbers(ends), numbers([sum(place >= end for end in ends) - 1 for place in range(length)])

    def causal(b, h, q, kv):
        return q >= kv

    def alibi(score, b, h, q, kv):
        return score + torch.exp2(-((h + 1) * 8.0 / heads)) * (kv - q)

    def jagged(b, h, q, kv):
        return (sequence[q] == sequence[kv]) & (q - offsets[sequence[q]] >= kv - offsets[sequence[kv]])
    return {
        "plain": (None, None, 1),
        "causal": (None, causal, 1),
        "grouped": (None, causal, 4),
        "window": (None, lambda b, h, q, kv: (q >= kv) & (q - kv <= window), 1),
        "prefix": (None, lambda b, h, q, kv: (kv < prefixes[b]) | (q >= kv), 1),
        "document": (None, lambda b, h, q, kv: (documents[q] == documents[kv]) & (q >= kv), 1),
        "alibi": (alibi, causal, 1),
        "softcap": (lambda score, b, h, q, kv: 20 * torch.tanh(score / 20), causal, 1),
        "bias": (lambda score, b, h, q, kv: score + bias[h, q - kv + length], None, 1),
        "natten": (None, lambda b, h, q, kv: ((q // side - kv // side).abs() <= near) & ((q % side - kv % side).abs() <= near), 1),
        "jagged": (None, jagged, 1),
    }


def first_call_of(run, device):
    """Its result, and its seconds."""
    begin = time.perf_counter()
    out = run()
    if device == "cuda":
        torch.cuda.synchronize()
    return out, time.perf_counter() - begin


def seconds_of(run, options, device):
    if device == "cuda":
        return gpu.seconds_of(run, options.seconds)
    return records.median([first_call_of(run, device)[1] for _ in range(5)])


def by_definition(example, q, k, v):
    """The last batch in f32, a head at a time, with all of its scores in memory."""
    score_mod, mask_mod, groups = example
    number = lambda value: torch.tensor(value, device=q.device, dtype=torch.int32)
    rows, columns = (torch.arange(n, device=q.device, dtype=torch.int32) for n in (q.shape[2], k.shape[2]))
    b, i, j, heads = number(BATCH - 1), rows[:, None], columns[None, :], []
    for head in range(q.shape[1]):
        score = q[-1, head].float() @ k[-1, head // groups].float().mT * q.shape[-1] ** -0.5
        if score_mod:
            score = score_mod(score, b, number(head), i, j)
        if mask_mod:
            score = score.where(mask_mod(b, number(head), i, j), -math.inf)
        heads.append(torch.softmax(score, -1) @ v[-1, head // groups].float())
    return torch.stack(heads)


def raced(name, example, length, options, device):
    from napkin.torch import flex_attention as of_napkin
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    score_mod, mask_mod, groups = example
    dtype = torch.float32 if options.tiny else torch.bfloat16
    draw = lambda heads: torch.randn(BATCH, heads, length, WIDTH, device=device, dtype=dtype)
    q, k, v = draw(HEADS), draw(HEADS // groups), draw(HEADS // groups)
    words = {"score_mod": score_mod, "enable_gqa": groups > 1}
    mask = create_block_mask(mask_mod, BATCH, None, length, length, device=device) if mask_mod else None
    torch._dynamo.reset()
    compiled = flex_attention if options.tiny else torch.compile(flex_attention)
    theirs = lambda: compiled(q, k, v, block_mask=mask, **words)
    ours = lambda: of_napkin(q, k, v, block_mask=mask, **words)
    try:
        of_torch, torch_first = first_call_of(theirs, device)
    except Exception as error:  # without a peer there is no ratio
        print(f"{name:9} torch's compiled flex_attention fails: {str(error).strip().splitlines()[0][:200]}", flush=True)
        return None
    own, first = first_call_of(ours, device)
    wanted = by_definition(example, q, k, v)
    apart = lambda found: (found[-1].float() - wanted).abs().max().item()
    row = {"example": name, "groups": groups, "first_call_s": first, "torch_first_call_s": torch_first, "seconds": seconds_of(ours, options, device),
           "torch_seconds": seconds_of(theirs, options, device), "largest_error": apart(own), "torch_largest_error": apart(of_torch)}
    print("{example:9} {0:9.1f} µs ({1:9.1f})  {2:6.3f} ×  first call {3:8.2f} ms ({4:8.2f})  error {largest_error:.5f} ({torch_largest_error:.5f})".format(
        row["seconds"] * 1e6, row["torch_seconds"] * 1e6, row["torch_seconds"] / row["seconds"], first * 1e3, torch_first * 1e3, **row), flush=True)
    return row


def main():
    options = gpu.parser(__doc__)
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--length", type=int, default=4096)
    options.add_argument("--only", nargs="*")
    options = options.parse_args()
    device, length = ("cpu", 64) if options.tiny else ("cuda", options.length)
    torch.manual_seed(1)
    print("torch's in brackets")
    with torch.no_grad():
        rows = [raced(name, example, length, options, device) for name, example in examples(length, HEADS, device).items() if not options.only or name in options.only]
    rows = [row for row in rows if row]
    ratios = [row["torch_seconds"] / row["seconds"] for row in rows]
    print(f"geometric mean {math.prod(ratios) ** (1 / len(ratios)):.3f}, least {min(ratios):.3f}")
    wrong = [row["example"] for row in rows if row["largest_error"] > max(2 * row["torch_largest_error"], 1e-5)]
    print(f"errors above twice torch's: {', '.join(wrong) or 'none'}")
    gpu.write(options, "napkin.flex/1", "processor" if options.tiny else torch.cuda.get_device_name(0), torch=torch.__version__, length=length, batch=BATCH, heads=HEADS,
              width=WIDTH, examples=rows)


if __name__ == "__main__":
    main()
