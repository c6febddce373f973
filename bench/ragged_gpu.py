#!/usr/bin/env python3
"""Attention's variants at ragged sizes on the GPU at hand, each compared with double precision: random masks, biases, types, sizes of heads and lengths.

    python3 bench/ragged_gpu.py [--count 500] [--seed 1] [--output bench/results/NAME.json]

Logits are N(0, 1), or steep: one key 30 times as large, late keys 40 times, rising by 2^15 from block to block. What is wrong is printed with what it takes to
run it again; the exit code is 1 then.
"""
import argparse
import concurrent.futures
import pathlib
import random
import subprocess
import sys

import gpu
import records

S = gpu.SCALED
SQUARE = {  # of as many keys as queries
    "causal": f"where(x <= q, {S}, -inf)",
    "window": f"where(x <= q and q - x < 77, {S}, -inf)",
    "softcap": f"where(x <= q, 30 * tanh({S} / 30), -inf)",
    "alibi": f"where(x <= q, {S} - 2^(-8 * (h + 1) / size(h)) * (q - x), -inf)",
    "steep": "where(x <= q, S[h, q, x] * 3, -inf)",
    "late keys": f"where(x <= q, where(x > size(x) // 2, 40, 1) * ({S}), -inf)",
    "rising": f"where(x <= q, {S} + (x // 64) * 32768, -inf)",
    "finite mask": f"where(x <= q, {S}, -1e9)",
}
ANY = {
    "dense": (S, ""),
    "bottom right": (f"where(x - size(x) <= q - size(q), {S}, -inf)", ""),
    "documents": (f"where(D[q] % 3 == E[x] % 3, {S}, -inf)", ", D[q]: i32, E[x]: i32"),
    "bias": (f"{S} + B[h, q, x]", ", B[h, q, x]"),
    "temperature": ("S[h, q, x] * T[h]", ", T[h]"),
    "one key": (f"where(x == 5, 30, 1) * ({S})", ""),
}
# Folds of the same tiles that are no softmax, and one beside it.
OTHER = {
    "sigmoid": "O[h, q, d] = sum(x) sigmoid({S}) * V[h, x, d]",
    "squared relu": "O[h, q, d] = sum(x) max({S}, 0) * max({S}, 0) * V[h, x, d]",
    "decay": "O[h, q, d] = sum(x) where(x <= q, {S} * 2^(-(q - x) / 64), 0) * V[h, x, d]",
    "kernel regression": "W[h, q, x] = exp(-abs({S}))\n    Z[h, q] = sum(x) W[h, q, x]\n    O[h, q, d] = (sum(x) W[h, q, x] * V[h, x, d]) / Z[h, q]",
    "max-plus": "O[h, q, d] = max(x) {S} + V[h, x, d]",
    "entropy": "P[h, q, x] = softmax(x) {S}\n    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]\n    E[h, q] = sum(x) 0 - P[h, q, x] * log(P[h, q, x] + 1e-9)",
}
LENGTHS = [(113, 203), (799, 3), (1, 1025), (1, 4097), (1024, 1023), (257, 257), (513, 513), (640, 640), (190, 190), (1023, 1023), (65, 2049), (384, 100)]
EQUAL_LENGTHS = [190, 257, 513, 640, 1000, 1023]
HEADS = [(128, 128), (64, 64), (256, 256), (96, 96), (192, 128), (64, 256), (40, 80), (80, 80), (8, 16), (120, 72)]


LAYOUTS = {  # of heads in memory, and which queries share keys; values far from zero
    "": [],
    "rows of heads": [("Q[h, q, k]", "Q[q, h, k]"), ("K[h, x, k]", "K[x, h, k]"), ("V[h, x, d]", "V[x, h, d]"), ("O[h, q, d]", "O[q, h, d]")],
    "one head of keys": [("K[h, x, k]", "K[x, k]"), ("V[h, x, d]", "V[x, d]")],
    "values + 100": [("P[h, q, x] * V[h, x, d]", "P[h, q, x] * (V[h, x, d] + 100)")],
}


def other(text, kind):
    """The diagram of a fold that is no softmax."""
    more = ", E[h, q]: f32" if "E[h, q]" in text else ""
    return (f"other(Q[h, q, k]: {kind}, K[h, x, k]: {kind}, V[h, x, d]: {kind}) -> O[h, q, d]: {kind}{more}\n"
            f"    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]\n    {text.replace('{S}', S)}\n")


def case(number, choice):
    variant = choice.choice([*SQUARE, *ANY, *OTHER, "sink"])
    q, x = choice.choice(LENGTHS)
    if variant in SQUARE:
        q = x = choice.choice(EQUAL_LENGTHS)
    k, d = choice.choice(HEADS)
    kind = choice.choice(["f16", "bf16"])
    logits, more = (SQUARE[variant], "") if variant in SQUARE else ANY.get(variant, ("", ""))
    text = gpu.DIAGRAMS["sink"] if variant == "sink" else other(OTHER[variant], kind) if variant in OTHER else gpu.attention_of(logits, more, kind)
    layout = choice.choice(list(LAYOUTS))
    for before, after in LAYOUTS[layout]:
        text = text.replace(before, after)
    sizes = f"h={choice.choice([1, 2, 3])},q={q},x={x},k={k},d={d}"
    command = ["run", "-", "--machine", "gpu", "--seed", str(number), "--seconds", "0.003", "--no-baseline", "--no-validate", "--set", sizes]
    return f"{variant}{', ' if layout else ''}{layout}, {kind}, {sizes}, --seed {number}", command, text


def fault(named):
    _, command, text = named
    done = subprocess.run([records.NAPKIN, *command], input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-400:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    choice = random.Random(options.seed)
    cases = [case(options.seed * 100000 + n, choice) for n in range(options.count)]
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for named, found in zip(cases, pool.map(fault, cases)):
            if found:
                wrong.append(named[0])
                print(f"{named[0]}: {found}", flush=True)
    print(f"{options.count} cases, {len(wrong)} wrong")
    if options.output:
        records.write(options.output, {**records.head("napkin.ragged-gpu/1", "gpu"), "cases": options.count, "seed": options.seed, "wrong": wrong})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
