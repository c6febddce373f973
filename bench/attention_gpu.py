#!/usr/bin/env python3
"""Attention forward on the GPU at hand, beside cuDNN and FlashAttention-2: 36 shapes of 16384 tokens, heads of 64, 128 and 256, dense and causal.

    python3 bench/attention_gpu.py [--rounds 3] [--seconds 0.1] [--lengths 512 1024 …] [--heads 64 128 256] [--type f16] [--output bench/results/NAME.json]

Each round measures napkin's kernel and its peers one after the other, with the GPU's caches flushed before each launch; the ratio is the median of
the rounds' ratios to the best peer of the shape. FlashAttention-3 is not raced: its figures are those measured on an H200 on 2026-11-20, times what cuDNN
reaches here over what it reached then. Needs torch.
"""
import concurrent.futures
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpu
import records

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


def peer(backend, q, k, v, causal):
    def run():
        with sdpa_kernel(backend):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return run


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lengths", type=int, nargs="+", choices=LENGTHS, default=LENGTHS)
    parser.add_argument("--heads", type=int, nargs="+", choices=(64, 128, 256), default=[64, 128, 256])
    parser.add_argument("--type", choices=TYPES, default="f16")
    options = parser.parse_args()

    def command(d, causal, s):
        sizes = {"h": TOKENS // s * WIDTH // d, "q": s, "x": s, "k": d, "d": d}
        text = gpu.DIAGRAMS["causal" if causal else "attention"].replace("bf16", options.type)
        return ["-", "--machine", "gpu", *gpu.sizes_of(sizes)], text

    shapes = [(d, causal, s) for d in options.heads for causal in (False, True) for s in options.lengths]
    # Plans and their code are made before anything is timed, and found in the cache then.
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda shape: records.run_napkin(*command(*shape)[0], text=command(*shape)[1], command="plan"), shapes))
    results, device = [], ""
    for d, causal, s in shapes:
        arguments, text = command(d, causal, s)
        q, k, v = (torch.randn(TOKENS // s, WIDTH // d, s, d, device="cuda", dtype=TYPES[options.type]) for _ in range(3))
        peers = {"cuDNN": peer(SDPBackend.CUDNN_ATTENTION, q, k, v, causal), "FlashAttention-2": peer(SDPBackend.FLASH_ATTENTION, q, k, v, causal)}
        rounds = []
        for _ in range(options.rounds):
            document = records.run_kernel([*arguments, "--seconds", str(options.seconds)], text=text)
            rounds.append((document["seconds"], {name: gpu.seconds_of(run, options.seconds) for name, run in peers.items()}))
        device = document["device"]
        flops = 4 * TOKENS * WIDTH * s / (2 if causal else 1)
        rate = flops / min(r[0] for r in rounds) / 1e12
        peer_rates = {name: flops / min(r[1][name] for r in rounds) / 1e12 for name in peers}
        cudnn, flash_3 = FLASH_3[d, causal][LENGTHS.index(s)]
        peer_rates["FlashAttention-3, scaled"] = flash_3 * peer_rates["cuDNN"] / cudnn
        over_cudnn = records.median([r[1]["cuDNN"] / r[0] for r in rounds])
        best = max(peer_rates, key=peer_rates.get)
        ratio = over_cudnn * peer_rates["cuDNN"] / peer_rates[best]
        results.append({"d": d, "causal": causal, "s": s, "type": options.type, "predicted_seconds": document["predicted_seconds"],
                        "seconds": min(r[0] for r in rounds), "rate": rate, "peer_rates": peer_rates, "over_cudnn": over_cudnn, "best_peer": best, "ratio": ratio})
        print(f"d {d:3} {'causal' if causal else 'dense ':6} {s:6} {rate:6.0f} TFLOP/s, {document['predicted_seconds'] / results[-1]['seconds']:.2f} of the prediction's time;"
              f" cuDNN {peer_rates['cuDNN']:4.0f} ×{over_cudnn:.2f}; best {best} {peer_rates[best]:4.0f} ×{ratio:.2f}", flush=True)
    mean = lambda key: math.exp(sum(math.log(r[key]) for r in results) / len(results))
    print(f"geometric mean: {mean('ratio'):.3f} of the best peer, {mean('over_cudnn'):.3f} of cuDNN")
    gpu.write(options, "napkin.attention-gpu/1", device, torch=torch.__version__, cudnn=torch.backends.cudnn.version(),
              mean_over_best=mean("ratio"), mean_over_cudnn=mean("over_cudnn"), results=results)


if __name__ == "__main__":
    sys.exit(main())
