#!/usr/bin/env python3
"""Views of random strides and offsets by napkin_call on the GPU, against torch in double precision on the same views.

    python3 bench/views_gpu.py [--rounds N] [--seed S]

Products, softmax and attention in bf16 and f32. Axes lie in memory in any order, with gaps, and arrays begin at any value or, where they
allow it, at any byte. Some sizes are 0 or 1. What lies between the values of an output has to stay as it is. Exit code 1 where a value is wrong.
"""
import argparse
import random
import sys

import any_sizes_gpu
import in_process
import torch

PROGRAMS = {
    "product": ("product(A[m, k]: {t}, B[n, k]: {t}) -> C[m, n]: {t}\n    C[m, n] = sum(k) A[m, k] * B[n, k]\n",
                ("mk", "nk"), "mn", lambda a, b: a @ b.T),
    "softmax": ("f(X[r, c]: {t}) -> Y[r, c]: {t}\n    Y[r, c] = softmax(c) X[r, c]\n", ("rc",), "rc", lambda x: x.softmax(1)),
    "attention": ("attention(Q[h, q, k]: {t}, K[h, x, k]: {t}, V[h, x, d]: {t}) -> O[h, q, d]: {t}\n    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n"
                  "    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n",
                  ("hqk", "hxk", "hxd"), "hqd", lambda q, k, v: (q @ k.transpose(1, 2) * q.shape[2] ** -0.5).softmax(2) @ v)}
SIZES = (0, 1, 2, 3, 7, 8, 16, 31, 64, 65, 100, 128, 200, 257)
FEATURES = (8, 16, 64, 128)


def view(rng, shape, dtype):
    """Memory full of -1, and a view of it."""
    strides, apart = [0] * len(shape), rng.choice((1, 1, 1, 2, 3))
    in_order = list(range(len(shape)))[::-1]
    if rng.random() < 0.5:
        rng.shuffle(in_order)
    for d in in_order:
        strides[d] = apart
        apart = apart * max(shape[d], 1) + rng.choice((0, 0, 1, 8))
    offset = rng.choice((0, 0, 1, 2, 8, 13))
    memory = torch.full((apart + offset + 16,), -1.0, device="cuda", dtype=dtype)
    return memory, memory.as_strided(shape, strides, offset)


def check(rng, programs, napkin, name, dtype):
    text, inputs, output, of = PROGRAMS[name]
    type_name = {torch.bfloat16: "bf16", torch.float32: "f32"}[dtype]
    program = programs.setdefault((name, dtype), None) or any_sizes_gpu.Program(napkin, text.format(t=type_name))
    programs[name, dtype] = program
    sizes = {axis: rng.choice(FEATURES if axis in "kd" else SIZES) for axis in "".join(inputs) + output}
    if sizes.get("x") == 0 or sizes.get("c") == 0:
        return True  # a softmax over nothing has no values that torch and napkin must agree on
    shaped = lambda axes: [sizes[axis] for axis in axes]
    views = [view(rng, shaped(axes), dtype)[1] for axes in inputs]
    for v in views:
        v.copy_(torch.randn(v.shape, device="cuda"))
    memory, out = view(rng, shaped(output), dtype)
    program(*views, out)
    torch.cuda.synchronize()
    wanted = of(*(v.double() for v in views))
    tolerance = 0.02 if dtype == torch.bfloat16 else 1e-4
    apart = ((out.double() - wanted).abs() / (1 + wanted.abs())).max().item() if out.numel() else 0.0
    written = torch.zeros_like(memory, dtype=torch.bool).as_strided(out.shape, out.stride(), out.storage_offset())
    touched = written._base if written._base is not None else written
    written.fill_(True)
    kept = bool((memory[~touched] == -1).all())
    if not (apart <= tolerance and kept):
        print(f"wrong: {name} {type_name} {sizes} strides {[v.stride() for v in views]}, {out.stride()} offsets "
              f"{[v.storage_offset() for v in views]}, {out.storage_offset()}: apart {apart:.4g}, gaps {'kept' if kept else 'written'}")
    return apart <= tolerance and kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, napkin, programs = random.Random(options.seed), in_process.Napkin(), {}
    torch.manual_seed(options.seed)
    right = sum(check(rng, programs, napkin, rng.choice(list(PROGRAMS)), rng.choice((torch.bfloat16, torch.float32))) for _ in range(options.rounds))
    print(f"{right} of {options.rounds} right; {sum(p.codes() for p in programs.values())} codes of {len(programs)} programs")
    return 0 if right == options.rounds else 1


if __name__ == "__main__":
    sys.exit(main())
