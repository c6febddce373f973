#!/usr/bin/env python3
"""What the model says an H200 can do at most, beside what the best libraries reached on one.

    python3 bench/h200_bounds.py PEERS.md [--output bench/results/NAME.json]

PEERS.md holds the measured tables (TFLOP/s, TB/s). The model's time is that of units and pipes side by side, so nothing may be faster:
a row with a ratio above 1 is a fault of the model or of machines/h200.toml, and makes the exit code 1.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAPKIN = ROOT / "build/release/bin/napkin"


def tables(text):
    """The rows of every table by its section's title, as lists of cells."""
    out, title = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif line.startswith("|") and not set(line) <= set("|- "):
            out.setdefault(title, []).append([cell.strip(" *") for cell in line.strip("|").split("|")])
    return out


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return 0.0


def cost(file, types, **sizes):
    """Seconds and what binds, from `napkin cost`."""
    command = [NAPKIN, "cost", ROOT / "examples" / file, "--machine", "h200", "--types", types, "--json"]
    for axis, size in sizes.items():
        command += ["--set", f"{axis}={size}"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer["time"]["seconds"], answer["time"]["bound_by"], answer


def attention(file, types, d, length):
    heads = 16384 // length * (2048 // d)
    seconds, bound_by, _ = cost(file, types, h=heads, q=length, x=length, k=d, d=d)
    return 4 * heads * length * length * d / (2 if file == "causal.nk" else 1) / seconds / 1e12, bound_by


def rows(measured):
    file_of = {"no": "multihead.nk", "yes": "causal.nk"}
    for title, table in measured.items():
        head, body = table[0], table[1:]
        if title.startswith("Attention forward, FP16"):
            for d, causal, length, *rates in body:
                bound, by = attention(file_of[causal], "f16", int(d), int(length))
                yield f"attention f16 d={d} causal={causal} S={length}", max(map(number, rates)), bound, "TFLOP/s", by
        elif title.startswith("Attention forward, FP8"):
            for d, causal, *rates in body:
                for length, rate in zip(head[2:], rates):
                    size = int(length[:-1]) * 1024 if length.endswith("k") else int(length)
                    bound, by = attention(file_of[causal], "e4m3", int(d), size)
                    yield f"attention e4m3 d={d} causal={causal} S={size}", number(rate), bound, "TFLOP/s", by
        elif title.startswith("Matmul"):
            for m, n, k, bf16, *fp8 in body:
                for types, rate in (("bf16", number(bf16)), ("e4m3", max(map(number, fp8)))):
                    seconds, by, _ = cost("matmul.nk", types, a=m, b=k, c=n)
                    yield f"matmul {types} {m}×{n}×{k}", rate, 2 * int(m) * int(n) * int(k) / seconds / 1e12, "TFLOP/s", by
        elif title.startswith("Decode"):
            for batch, length, q_heads, kv_heads, *rates in body:
                heads = int(batch) * int(kv_heads)
                seconds, by, _ = cost("multihead.nk", "bf16", h=heads, q=int(q_heads) // int(kv_heads), x=length, k=128, d=128)
                bound = 2 * heads * int(length) * 128 * 2 / seconds / 1e12
                yield f"decode bf16 b={batch} S={length} heads={q_heads}/{kv_heads}", max(map(number, rates)), bound, "TB/s", by
        elif title.startswith("Memory-bound"):
            for operation, shape, *rates in body:
                r, c = (int(part) for part in shape.split("×"))
                if operation in ("softmax", "layernorm"):
                    seconds, by, _ = cost(f"{operation}.nk", "bf16", r=r, c=c)
                    yield f"{operation} bf16 {r}×{c}", max(map(number, rates)), 2 * r * c * 2 / seconds / 1e12, "TB/s", by


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    for what, measured, bound, unit, bound_by in rows(tables(options.peers.read_text())):
        results.append({"workload": what, "measured": measured, "bound": round(bound, 3), "unit": unit, "bound_by": bound_by,
                        "ratio": round(measured / bound, 3)})
        print(f"{what:48} measured {measured:8.4g}  bound {bound:8.4g} {unit:8} {measured / bound:6.2f}  {bound_by}")
    ratios = sorted(r["ratio"] for r in results)
    print(f"{len(results)} workloads: measured/bound {ratios[0]} to {ratios[-1]}, median {ratios[len(ratios) // 2]}")
    if options.output:
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        options.output.write_text(json.dumps({
            "schema": "napkin.h200_bounds/1",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "device": "one H200: the peers' rates as measured there on 2026-11-20; the bounds need no device",
            "commit": commit, "command": "python3 " + " ".join(sys.argv), "results": results}, indent=1, ensure_ascii=False) + "\n")
    return 1 if ratios[-1] > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
