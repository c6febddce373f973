"""What the benchmarks on GPUs share: the diagrams that they measure, and how long work of torch takes."""
import argparse
import ctypes
import math
import pathlib
import random
import threading
import time

import records

DIAGRAMS = {
    "matmul": """matmul(A[m, k]: bf16, B[n, k]: bf16) -> C[m, n]: bf16
    C[m, n] = sum(k) A[m, k] * B[n, k]
""",
    "batched": """batched(A[b, m, k]: bf16, B[b, n, k]: bf16) -> C[b, m, n]: bf16
    C[b, m, n] = sum(k) A[b, m, k] * B[b, n, k]
""",
    "fp8": """fp8(A[m, k]: e4m3, B[n, k]: e4m3) -> C[m, n]: bf16
    C[m, n] = sum(k) A[m, k] * B[n, k]
""",
    "block_fp8": """block_fp8(A[m, block, k]: e4m3, B[n, block, k]: e4m3, sa[m, block], sb[w, block]) -> C[m, n]: bf16
    P[m, n, block] = sum(k) A[m, block, k] * B[n, block, k]
    C[m, n] = sum(block) P[m, n, block] * sb[n // 128, block] * sa[m, block]
""",
    "bias_gelu": """bias_gelu(A[m, k]: bf16, B[n, k]: bf16, bias[n]: bf16) -> C[m, n]: bf16
    C[m, n] = gelu((sum(k) A[m, k] * B[n, k]) + bias[n])
""",
    "residual": """residual(A[m, k]: bf16, B[n, k]: bf16, R[m, n]: bf16) -> D[m, n]: bf16, Q[m]: f32
    D[m, n] = (sum(k) A[m, k] * B[n, k]) + R[m, n]
    Q[m] = sum(n) D[m, n] * D[m, n]
""",
    "gated": """gated(A[m, k]: bf16, B[n, k]: bf16, G[n, k]: bf16) -> C[m, n]: bf16
    C[m, n] = silu(sum(k) A[m, k] * B[n, k]) * (sum(k) A[m, k] * G[n, k])
""",
    "attention": """attention(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    P[h, q, x] = softmax(x) S[h, q, x] * k^-0.5
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
""",
    "causal": """causal(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16) -> O[h, q, d]: bf16
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    M[h, q, x] = where(x <= q, S[h, q, x] * k^-0.5, -inf)
    P[h, q, x] = softmax(x) M[h, q, x]
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
""",
    "softmax": """rows(X[r, c]) -> Y[r, c]
    Y[r, c] = softmax(c) X[r, c]
""",
    "layernorm": """rows(X[r, c], g[c], b[c]) -> Y[r, c]
    Y[r, c] = layernorm(c)(X[r, c], g[c], b[c])
""",
}

ATTENTION_OF_LOGITS = """variant(Q[h, q, k]: {type}, K[h, x, k]: {type}, V[h, x, d]: {type}{more}) -> O[h, q, d]: {type}
    S[h, q, x] = sum(k) Q[h, q, k] * K[h, x, k]
    A[h, q, x] = {logits}
    P[h, q, x] = softmax(x) A[h, q, x]
    O[h, q, d] = sum(x) P[h, q, x] * V[h, x, d]
"""
SCALED = "S[h, q, x] * k^-0.5"
DIAGRAMS["sink"] = """sink(Q[h, q, k]: bf16, K[h, x, k]: bf16, V[h, x, d]: bf16, A[h]) -> O[h, q, d]: bf16
    S[h, q, x]: f32 = k^-0.5 * sum(k) Q[h, q, k] * K[h, x, k]
    M[h, q] = max(max(x) S[h, q, x], A[h])
    E[h, q, x] = exp(S[h, q, x] - M[h, q])
    Z[h, q] = exp(A[h] - M[h, q]) + sum(x) E[h, q, x]
    O[h, q, d] = sum(x) E[h, q, x] / Z[h, q] * V[h, x, d]
"""


def attention_of(logits, more="", type="bf16"):
    """Attention of logits that are made of S[h, q, x], with more arguments where they need them."""
    return ATTENTION_OF_LOGITS.format(type=type, logits=logits, more=more)


def parser(text):
    out = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--seconds", type=float, default=0.2, help="about how long each measures")
    out.add_argument("--output", type=pathlib.Path)
    return out


def each_selected(programs, only):
    """The programs whose names have one of the parts that `only` lists, separated by commas; all of them where it is empty."""
    return {name: of for name, of in programs.items() if not only or any(part in name for part in only.split(","))}.items()


def write(options, schema, device, **fields):
    """The record, where one is asked for."""
    if options.output:
        records.write(options.output, {**records.head(schema, device), **fields})


def sizes_of(sizes):
    """The arguments that give a diagram's axes their sizes."""
    return [word for name, size in sizes.items() for word in ("--set", f"{name}={size}")]


def title(diagram, sizes):
    return f"{diagram:10} {'×'.join(map(str, sizes.values())):>22}"


def flush_of_caches(writes=False):
    """What flushes the GPU's caches: it reads more than they hold.

    Written lines stay in the L2 until others need the room, and the kernel that is measured behind a flush that writes has them go to memory beside its own
    transfers: 6 to 7 µs on an H200, a seventh of what a product of 128×8192×8192 takes. Lines that are only read are given up at once.

    `writes`: beside what `napkin run` measures, which flushes by writing."""
    import torch

    # What is summed up is written once here, so that every page has memory of its own.
    buffer = torch.zeros(64 << 20, dtype=torch.float32, device="cuda")
    out = torch.empty((), dtype=torch.float32, device="cuda")
    return buffer.zero_ if writes else lambda: torch.sum(buffer, 0, out=out)


def seconds_of(work, wanted, flush_writes=False):
    """The median by events over about as many seconds as are wanted, with the GPU's caches flushed before each launch."""
    import torch

    flush = flush_of_caches(flush_writes)
    work()
    times = []
    while len(times) < 5 or (sum(times) < wanted and len(times) < 200):
        flush()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return records.median(times)


def off_in_clocks(kernel, measured):
    """By what part the prediction of a kernel is off where its core runs at the clock that was sampled: 0.1 where it takes 1.1 times as long as the model has it
    at that clock. Of a kernel that memory bounds the prediction hardly moves with the clock. `measured`: of a race."""
    hz = measured["clock_mhz"] * 1e6
    return measured["clocks"] / hz / kernel.predicted_seconds_at(hz) - 1 if hz > 0 else math.nan


def mean_off(results):
    """The mean of how far predictions are off, either way, and the worst one's result."""
    known = [r for r in results if r["off_in_clocks"] == r["off_in_clocks"]]
    if not known:
        return math.nan, None
    return sum(abs(r["off_in_clocks"]) for r in known) / len(known), max(known, key=lambda r: abs(r["off_in_clocks"]))


class Samples:
    """The core's clock and the board's power, sampled every few milliseconds by NVML, where that is there."""

    def __init__(self):
        self.found = []
        try:
            nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0:
                threading.Thread(target=self.sample, args=(nvml, device), daemon=True).start()
        except OSError:
            pass

    def sample(self, nvml, device, core_clock=1):
        mhz, milliwatts = ctypes.c_uint(), ctypes.c_uint()
        while True:
            if nvml.nvmlDeviceGetClockInfo(device, core_clock, ctypes.byref(mhz)) == 0 and nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(milliwatts)) == 0:
                self.found.append((mhz.value, milliwatts.value / 1e3))
            time.sleep(0.004)

    def clear(self):
        self.found = []

    def taken(self):
        return list(self.found)


def of_samples(samples):
    """Medians of samples' clocks and powers; NaN where there are none."""
    clocks, powers = zip(*samples) if samples else ([math.nan], [math.nan])
    return {"clock_mhz": records.median(clocks), "power_watts": records.median(powers)}


def launch_times(work, count, flush):
    """Seconds of each of so many launches by events, one after the other, with the GPU's caches flushed before each; one more before them is not timed."""
    import torch

    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    work()
    for begin, end in events:
        flush()
        begin.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in events]


def race(runs, reference, rounds, seconds, samples, launches=8):
    """Of each of the runs by name: the least of the rounds' medians, the median over the rounds of the reference's time over its own, the median of what the rounds'
    medians are in the clocks sampled in them, and the median clock and power.

    A round is made of turns: in each, every run is launched a few times, in an order of the turn's own, so that all of a round are measured in the same state of
    a card that limits its power, each as often after a hotter one as after a cooler one.
    """
    flush = flush_of_caches()
    times, clocks, states = ({name: [] for name in runs} for _ in range(3))
    order = list(runs)
    for _ in range(rounds):
        of_round, states_of_round = ({name: [] for name in runs} for _ in range(2))
        while not all(of_round.values()) or (sum(map(sum, of_round.values())) < seconds * len(runs) and len(of_round[reference]) < 200):
            random.shuffle(order)
            for name in order:
                samples.clear()
                of_round[name] += launch_times(runs[name], launches, flush)
                states_of_round[name] += samples.taken()
        for name in runs:
            times[name].append(records.median(of_round[name]))
            clocks[name].append(times[name][-1] * of_samples(states_of_round[name])["clock_mhz"] * 1e6)
            states[name] += states_of_round[name]

    def over_reference(name):
        return records.median([theirs / own for theirs, own in zip(times[reference], times[name])])
    return {name: {"seconds": min(times[name]), "ratio": over_reference(name), "clocks": records.median([c for c in clocks[name] if c == c] or [math.nan]),
                   **of_samples(states[name])} for name in runs}
