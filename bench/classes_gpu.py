#!/usr/bin/env python3
"""Kernels that serve all sizes, beside kernels made for each size alone, in the same process.

    python3 bench/classes_gpu.py [--lengths 40] [--shapes 36] [--products 200] [--output bench/results/NAME.json]

Attention in bf16 at shapes of a sweep (head sizes, dense and causal, powers of two) and at lengths between them, and products of sizes drawn at random. The first kind
is one program for each text, called by napkin_call with the shapes in any order, as a server would; the second is planned and compiled for the shape with all
sizes as numbers. Both run on the same tensors in turn.
"""
import concurrent.futures
import math
import random

import any_sizes_gpu
import gpu
import in_process
import torch

ATTENTION = """attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) {}
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
"""
SCORE = "S[h, q, x] * k^-0.5"
TEXTS = {False: ATTENTION.format(SCORE), True: ATTENTION.format(f"where(x <= q, {SCORE}, -inf)")}
PRODUCT = gpu.DIAGRAMS["matmul"]


def tensors_of(kind, sizes):
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    if kind == "product":
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        return make(m, k), make(n, k), make(m, n)
    h, s, k = sizes["h"], sizes["q"], sizes["k"]
    return make(h, s, k), make(h, s, k), make(h, s, k), make(h, s, k)


def cases(options):
    random.seed(1)
    of_width = lambda s, d: {"h": max(1, min(64, 16384 // s)), "q": s, "x": s, "k": d, "d": d}
    swept = [(causal, of_width(2**i, d)) for causal in (False, True) for d in (64, 128) for i in range(5, 15)][:options.shapes]
    between = [(i % 2 == 0, of_width(max(1, int(32768 ** random.random())), 128 if i % 4 < 3 else 64)) for i in range(options.lengths)]
    sizes = lambda: int(2 ** random.uniform(4, 13))
    products = [{"m": sizes(), "n": 8 * max(1, sizes() // 8), "k": 8 * max(2, sizes() // 8)} for _ in range(options.products)]
    return ([("shape", TEXTS[causal], of) for causal, of in swept] + [("between", TEXTS[causal], of) for causal, of in between] +
            [("product", PRODUCT, of) for of in products])


def main():
    parser = gpu.parser(__doc__)
    for name, count in (("lengths", 40), ("shapes", 36), ("products", 200)):
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    napkin = in_process.Napkin()
    torch.manual_seed(1)
    found, every = [], cases(options)
    programs = {}
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        alone = list(pool.map(lambda case: napkin.kernel(case[1], case[2]).compile(), every))
    order = list(range(len(every)))
    random.shuffle(order)
    for i in order:
        kind, text, sizes = every[i]
        width = sizes.get("d", 0)
        program = programs.setdefault((text, width), any_sizes_gpu.Program(napkin, text))
        tensors = tensors_of(kind, sizes)
        ours, theirs = program.on(*tensors), lambda: alone[i](*tensors)
        ours()
        theirs()
        # In turn, as the card's clock moves.
        times = [[], []]
        for _ in range(3):
            for of, run in zip(times, (ours, theirs)):
                of.append(gpu.seconds_of(run, 0.004))
        found.append({"kind": kind, "causal": "where" in text, **sizes, "seconds": min(times[0]), "seconds_alone": min(times[1])})
    for kind in ("shape", "between", "product"):
        rows = sorted(((row["seconds_alone"] / row["seconds"], row) for row in found if row["kind"] == kind), key=lambda pair: pair[0])
        if not rows:
            continue
        print(f"{kind}: {len(rows)}, geometric mean {math.exp(sum(math.log(r) for r, _ in rows) / len(rows)):.4f}, below 0.95: {sum(r < 0.95 for r, _ in rows)}; least:")
        for ratio, row in rows[:6]:
            sizes = {k: v for k, v in row.items() if k not in ("kind", "seconds", "seconds_alone")}
            print(f"  {ratio:.3f}  {row['seconds'] * 1e6:8.1f} µs ({row['seconds_alone'] * 1e6:8.1f})  {sizes}", flush=True)
    print("codes:", {f"{'causal' if 'where' in text else 'dense' if width else 'product'} {width}": program.codes() for (text, width), program in programs.items()})
    gpu.write(options, "napkin.classes/1", torch.cuda.get_device_name(0), rows=found)


if __name__ == "__main__":
    main()
