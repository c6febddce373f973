#!/usr/bin/env python3
"""The plan that the model chooses beside the best of a sweep over schedules that the rules admit, on the GPU at hand: products and attention.

    python3 bench/sweep_gpu.py [--only products attention] [--rounds 15] [--seconds 0.02] [--output bench/results/NAME.json]

All combinations below are planned as by hand. Those that the rules admit and whose predicted time is under twice the least bound of all run once each, then
the five fastest and the chosen one in rounds, in turns of a few launches each. The sweep judges the model; napkin itself chooses without it. All results of a
shape are compared with those of the chosen plan. Needs torch.
"""
import collections
import concurrent.futures
import itertools
import math
import os
import sys

import torch

import gpu
import records
from in_process import Napkin

PRODUCTS = [(4096, 4096, 4096), (2048, 2048, 2048), (8192, 1024, 8192), (512, 4096, 4096)]
ATTENTION = [(64, False, 4096), (64, True, 2048), (128, False, 4096), (128, True, 4096), (256, False, 2048), (256, True, 1024)]
TOKENS, WIDTH = 16384, 2048  # of attention: batch × length, heads × head size
FINALISTS = 5
CHOSEN = "chosen"


def lines_of_products():
    """Schedules of C = A·Bᵀ: warps, columns, chunks, parts of the contracted axis, blocks of a cluster along either axis."""
    for warps, columns, chunk, parts, cluster in itertools.product((4, 8, 12, 16), (64, 96, 128, 160, 192, 224, 256), (64, 128), (1, 2),
                                                                   ("", "cluster m 2", "cluster n 2")):
        yield ([f"split k {parts}", "kernel C_part"] if parts > 1 else []) + [
            "mma_m axis m", f"warps {warps}", "role copies 4", f"group n {columns}", f"stream k {chunk}", *([cluster] if cluster else [])]


def lines_of_attention():
    """Schedules of one streamed loop of two products: warps, chunks, the running maximum, turns at the tensor cores, and of those with both also groups
    that are cut."""
    for warps, chunk, rescaling, ping_pong in itertools.product((8, 12, 16), (32, 64, 80, 96, 112, 128, 176), ("rescale", "always"), ("on", "off")):
        lines = ["mma_m axis q", f"warps {warps}", "role copies 4", f"stream x {chunk}", f"rescaling {rescaling}", f"ping_pong {ping_pong}"]
        yield lines
        if (rescaling, ping_pong) == ("rescale", "on"):
            yield [*lines, "scheduler stream_k"]


def cases(only):
    """Of each shape: its name, the diagram, sizes, how tensors are made, and the schedules."""
    if "products" in only:
        for m, n, k in PRODUCTS:
            yield (gpu.title("matmul", {"m": m, "n": n, "k": k}), gpu.DIAGRAMS["matmul"], {"m": m, "n": n, "k": k}, [(m, k), (n, k)], (m, n), torch.bfloat16,
                   list(lines_of_products()))
    if "attention" in only:
        for d, causal, s in ATTENTION:
            heads = TOKENS // s * WIDTH // d
            yield (f"attention d {d:3} {'causal' if causal else 'dense ':6} {s:6}", gpu.DIAGRAMS["causal" if causal else "attention"].replace("bf16", "f16"),
                   {"h": heads, "q": s, "x": s, "k": d, "d": d}, [(heads, s, d)] * 3, (heads, s, d), torch.float16, list(lines_of_attention()))


def planned(napkin, text, sizes, lines):
    """None where the rules refuse the schedule."""
    try:
        return napkin.kernel(text + ("schedule\n" + "".join(f"    {line}\n" for line in lines) if lines else ""), sizes)
    except RuntimeError as error:
        if not lines:
            raise
        return str(error).split("[")[-1].split("]")[0]


def main():
    parser = gpu.parser(__doc__)
    parser.set_defaults(seconds=0.02)
    parser.add_argument("--only", nargs="+", choices=("products", "attention"), default=["products", "attention"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    napkin, results, samples = Napkin(), [], gpu.Samples()
    torch.zeros(1, device="cuda")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, text, sizes, shapes, result_shape, dtype, schedules in cases(options.only):
            all_of_them = [(), *map(tuple, schedules)]
            plans = dict(zip(all_of_them, pool.map(lambda lines: planned(napkin, text, sizes, lines), all_of_them)))
            refused = collections.Counter(p for p in plans.values() if isinstance(p, str))
            plans = {lines: p for lines, p in plans.items() if not isinstance(p, str)}
            least_bound = min(p.busy_seconds for p in plans.values())
            admitted = {lines: p for lines, p in plans.items() if not lines or p.predicted_seconds < 2 * least_bound}
            list(pool.map(lambda p: p.compile(), admitted.values()))
            inputs = [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]
            expected, out = torch.empty(result_shape, device="cuda", dtype=dtype), torch.empty(result_shape, device="cuda", dtype=dtype)
            admitted[()](*inputs, expected)
            differ, once = [], {}
            for lines, kernel in admitted.items():
                out.fill_(math.nan)
                once[lines] = gpu.seconds_of(lambda: kernel(*inputs, out), options.seconds / 10)
                if not torch.allclose(out.float(), expected.float(), rtol=2e-2, atol=2e-2 * expected.abs().max().item()):
                    differ.append(lines)
            finalists = sorted((lines for lines in once if lines), key=once.get)[:FINALISTS]
            runs = {CHOSEN: lambda: admitted[()](*inputs, out)}
            runs |= {"; ".join(lines): lambda kernel=admitted[lines]: kernel(*inputs, out) for lines in finalists}
            raced = gpu.race(runs, CHOSEN, options.rounds, options.seconds, samples)
            best = max((name for name in raced if name != CHOSEN), key=lambda name: raced[name]["ratio"])
            results.append({"shape": title, "sizes": sizes, "schedules": len(schedules), "refused": dict(refused), "admitted": len(admitted) - 1,
                            "results_differ": differ, "predicted_seconds": admitted[()].predicted_seconds, "raced": raced, "best": best,
                            "ratio": raced[best]["ratio"],
                            "all": [{"schedule": "; ".join(lines), "predicted_seconds": admitted[lines].predicted_seconds, "seconds": s}
                                    for lines, s in once.items()]})
            print(f"{title}: {len(admitted) - 1} of {len(schedules)} run; chosen {raced[CHOSEN]['seconds'] * 1e6:.1f} µs; best ×{raced[best]['ratio']:.3f} of its speed"
                  f" with {best}" + (f"; {len(differ)} DIFFER" if differ else ""), flush=True)
            for kernel in plans.values():
                kernel.free()
    gpu.write(options, "napkin.sweep-gpu/2", torch.cuda.get_device_name(), torch=torch.__version__, results=results)


if __name__ == "__main__":
    sys.exit(main())
