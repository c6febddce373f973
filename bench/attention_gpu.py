#!/usr/bin/env python3
"""Attention forward on the GPU at hand, beside its peers in one process: 36 shapes of 16384 tokens, heads of 64, 128 and 256, dense and causal.

    python3 bench/attention_gpu.py [--rounds 7] [--seconds 0.1] [--lengths 512 1024 …] [--heads 64 128 256] [--type f16]
                                   [--schedule 'scheduler static' …] [--deviation 8] [--output bench/results/NAME.json]

In each round the kernels are measured in turns of a few launches, with the GPU's caches flushed before each launch; a kernel's ratio is the
median of the rounds' ratios to cuDNN. FlashAttention-3 is not raced: its figures are those measured on an H200 on 2026-11-20, times what cuDNN reaches
here over what it reached then. `--schedule` races
napkin's kernel with these lines of a schedule, too, where they are not refused; `--deviation` multiplies Q, so that logits deviate by so much. The core's clock and the board's power are sampled while a kernel runs. The
results of napkin's kernels are compared with double precision in rows of some heads, over the greatest value, on memory that was full of NaN. Needs torch.
"""
import concurrent.futures
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpu
from in_process import Napkin

TOKENS, WIDTH = 16384, 2048
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
# TFLOP/s of cuDNN 9.19 and of FlashAttention-3 in f16, by head size and mask, for each of the lengths.
FLASH_3 = {
    (64, False): [(386.9, 324.4), (421.5, 381.2), (442.1, 475.9), (447.1, 512.4), (450.9, 537.1), (448.8, 531.8)],
    (64, True): [(259.6, 223.7), (340.0, 300.7), (379.9, 407.6), (411.9, 480.3), (425.8, 507.6), (469.8, 524.0)],
    (128, False): [(506.6, 384.7), (570.8, 435.6), (595.9, 468.3), (605.3, 478.3), (605.4, 484.3), (648.6, 499.5)],
    (128, True): [(331.4, 324.2), (421.4, 479.3), (481.2, 581.7), (512.3, 668.8), (533.8, 689.4), (551.4, 683.1)],
    (256, False): [(513.4, 389.5), (591.1, 464.7), (659.8, 497.0), (690.9, 489.5), (677.9, 498.7), (662.8, 507.7)],
    (256, True): [(336.5, 274.5), (442.5, 364.3), (522.6, 434.6), (569.0, 479.7), (579.0, 499.6), (591.3, 506.9)],
}
OWN, CUDNN, FLASH_2, FLASH_3_SCALED = "napkin", "cuDNN", "FlashAttention-2", "FlashAttention-3, scaled"


def peer(backend, q, k, v, causal):
    def run():
        with sdpa_kernel(backend):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return run


def error_of(run, q, k, v, out, causal):
    out.fill_(float("nan"))
    run()
    if not bool(torch.isfinite(out).all()):
        return math.inf
    worst, positions = 0.0, torch.arange(q.shape[2], device="cuda")
    for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
        rows = torch.cat([torch.randperm(q.shape[2], device="cuda")[:48], positions[-16:]])
        logits = q[b, h, rows].double() @ k[b, h].double().T * q.shape[3] ** -0.5
        if causal:
            logits = logits.masked_fill(positions[None] > rows[:, None], -math.inf)
        wanted = logits.softmax(-1) @ v[b, h].double()
        worst = max(worst, float((out[b, h, rows].double() - wanted).abs().max() / wanted.abs().max()))
    return worst


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--lengths", type=int, nargs="+", choices=LENGTHS, default=LENGTHS)
    parser.add_argument("--heads", type=int, nargs="+", choices=(64, 128, 256), default=[64, 128, 256])
    parser.add_argument("--masks", nargs="+", choices=("dense", "causal"), default=["dense", "causal"])
    parser.add_argument("--type", choices=TYPES, default="f16")
    parser.add_argument("--schedule", nargs="+", default=[], help="lines of a schedule, with which napkin's kernel is raced, too")
    parser.add_argument("--deviation", type=float, default=1, help="of the logits")
    options = parser.parse_args()
    napkin = Napkin()
    lines = {OWN: "", **{f"{OWN}, {line}": line for line in options.schedule}}

    def kernel(d, causal, s, line):
        sizes = {"h": TOKENS // s * WIDTH // d, "q": s, "x": s, "k": d, "d": d}
        text = gpu.DIAGRAMS["causal" if causal else "attention"].replace("bf16", options.type)
        try:
            return napkin.kernel(text + (f"schedule\n    {line}\n" if line else ""), sizes).compile()
        except RuntimeError:
            if not line:
                raise
            return None

    shapes = [(d, causal, s) for d in options.heads for causal in (False, True) for s in options.lengths
              if ("causal" if causal else "dense") in options.masks]
    asked = [(*shape, line) for shape in shapes for line in lines.values()]
    # Plans and their code are made before anything is timed.
    torch.zeros(1, device="cuda")
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        kernels = dict(zip(asked, pool.map(lambda a: kernel(*a), asked)))
    results, samples = [], gpu.Samples()
    for d, causal, s in shapes:
        q, k, v = (torch.randn(TOKENS // s, WIDTH // d, s, d, device="cuda", dtype=TYPES[options.type]) for _ in range(3))
        q *= options.deviation
        out = torch.empty_like(q)
        runs = {CUDNN: peer(SDPBackend.CUDNN_ATTENTION, q, k, v, causal), FLASH_2: peer(SDPBackend.FLASH_ATTENTION, q, k, v, causal)}
        own_runs = {name: lambda made=kernels[d, causal, s, line]: made(q, k, v, out) for name, line in lines.items() if kernels[d, causal, s, line]}
        runs |= own_runs
        found = gpu.race(runs, CUDNN, options.rounds, options.seconds, samples)
        flops = 4 * TOKENS * WIDTH * s / (2 if causal else 1)
        for figures in found.values():
            figures["rate"] = flops / figures["seconds"] / 1e12
        for name, run in own_runs.items():
            found[name]["predicted_seconds"] = kernels[d, causal, s, lines[name]].predicted_seconds
            found[name]["error"] = error_of(run, q, k, v, out, causal)
        own, cudnn = found[OWN], found[CUDNN]["rate"]
        then, flash_3 = FLASH_3[d, causal][LENGTHS.index(s)]
        over = {CUDNN: 1.0, FLASH_2: found[FLASH_2]["ratio"], FLASH_3_SCALED: flash_3 / then}
        best = max(over, key=over.get)
        predicted = kernels[d, causal, s, ""].predicted_seconds
        result = {"d": d, "causal": causal, "s": s, "type": options.type, "deviation": options.deviation, "predicted_seconds": predicted, "kernels": found,
                  "off_in_clocks": gpu.off_in_clocks(kernels[d, causal, s, ""], own), "over_cudnn": own["ratio"], "best_peer": best, "ratio": own["ratio"] / over[best]}
        results.append(result)
        others = "".join(f"; {' '.join(line.split())} ×{found[name]['ratio'] / own['ratio']:.3f} of it (predicted"
                         f" ×{predicted / found[name]['predicted_seconds']:.3f}, error {found[name]['error']:.1e})"
                         for name, line in lines.items() if name in found and line)
        print(f"d {d:3} {'causal' if causal else 'dense ':6} {s:6} {own['rate']:6.0f} TFLOP/s, {100 * result['off_in_clocks']:+.0f}% of the predicted clocks;"
              f" cuDNN {cudnn:4.0f} ×{own['ratio']:.3f}; best {best} ×{result['ratio']:.3f}"
              + others
              + f"; error {own['error']:.1e}; MHz " + " ".join(f"{f['clock_mhz']:.0f}" for f in found.values()), flush=True)
    mean = lambda key: math.exp(sum(math.log(r[key]) for r in results) / len(results))
    means = {"mean_over_best": mean("ratio"), "mean_over_cudnn": mean("over_cudnn")}
    means["mean_off_in_clocks"], worst = gpu.mean_off(results)
    if worst:
        print(f"predictions in clocks: {100 * means['mean_off_in_clocks']:.1f}% off in the mean, {100 * worst['off_in_clocks']:+.0f}% at worst: d {worst['d']}, "
              f"{'causal' if worst['causal'] else 'dense'}, {worst['s']}")
    print("geometric mean:", ", ".join(f"{value:.3f} {name}" for name, value in means.items() if name.startswith("mean_over")))
    gpu.write(options, "napkin.attention-gpu/2", torch.cuda.get_device_name(), torch=torch.__version__, cudnn=torch.backends.cudnn.version(),
              **means, results=results)


if __name__ == "__main__":
    sys.exit(main())
