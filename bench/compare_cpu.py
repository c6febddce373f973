#!/usr/bin/env python3
"""napkin's kernels beside torch's fused attention, OpenBLAS' sgemm and a copy of the same bytes, at one vector width.

    python3 bench/compare_cpu.py [--vector-bytes 32] [--rounds 5] [--seconds 1] [--output bench/results/NAME.json]

The computer is measured first, as its user is told to do. Each round measures napkin's kernel and its peer one after the other, so that both
see the machine in the same state. Times are the least of the rounds' medians; the ratio is the median of the rounds' ratios, above 1 where
napkin is faster. OpenBLAS takes processors newer than itself for old ones: the kernels of its own choice and those for the processor's
vectors are tried, and the faster ones are the peer; so is a copy through the caches or past them. Rows are of two sizes: what large caches
hold from one run to the next, and 512 MiB, which comes from memory. A peer that is not installed leaves its rows out: torch (pip install
torch), OpenBLAS (apt install libopenblas0). On a machine that does other work too, run it under
`chrt -f 10`: without real-time priority a peer that spins on both cores loses more than a kernel that does not.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import records

DIAGRAMS = (pathlib.Path(__file__).parent / "kernels.nk").read_text()


def attention(diagram, d, target):
    sizes = {"h": 8, "q": 4096, "x": 4096, "k": d, "d": d}
    flops = 4 * 8 * 4096 * 4096 * d / (2 if diagram == "causal" else 1)
    return {"diagram": diagram, "sizes": sizes, "peer": "torch", "work": flops, "unit": "GFLOP/s", "target": target}


def rows(diagram, r, c):
    return {"diagram": diagram, "sizes": {"r": r, "c": c}, "peer": "copy", "work": 8 * r * c, "unit": "GB/s", "target": 0.8}


CASES = [
    attention("dense", 64, 1.25),
    attention("dense", 128, 1.0),
    attention("causal", 64, None),
    attention("causal", 128, None),
    {"diagram": "matmul", "sizes": {"m": 2048, "n": 2048, "k": 2048}, "peer": "openblas", "work": 2 * 2048**3, "unit": "GFLOP/s",
     "target": 0.95},
    rows("softmax_rows", 4096, 4096),
    rows("layernorm_rows", 8192, 1024),
    rows("softmax_rows", 32768, 4096),
    rows("layernorm_rows", 131072, 1024),
]

# What holds each library to vectors of that many bytes.
WIDTHS = {
    16: {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41",
         "OPENBLAS_CORETYPE": "Nehalem"},
    32: {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
         "OPENBLAS_CORETYPE": "Haswell"},
    64: {},
}


# How a copy may go. `pieces` calls memcpy for pieces that stay in the caches. `whole` calls it once a thread, which
# leaves the caches out where the copy is large. `past caches` stores past the caches whatever the size.
WAYS_TO_COPY = [{"WAY_TO_COPY": way} for way in ("pieces", "whole", "past caches")]
STREAMED_COPY = """
#include <immintrin.h>
#include <stddef.h>
void copy(char* to, const char* from, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 32) _mm256_stream_ps((float*)(to + i), _mm256_load_ps((const float*)(from + i)));
    _mm_sfence();
}
"""


def settings_of(peer, vector_bytes):
    """The settings of a peer to choose the fastest of."""
    if peer == "copy":
        return WAYS_TO_COPY
    if vector_bytes or peer != "openblas":
        return [WIDTHS.get(vector_bytes, {})]
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    wider = [("avx512f", "SkylakeX"), ("avx2", "Haswell")]
    return [{}] + [{"OPENBLAS_CORETYPE": core} for flag, core in wider if flag in flags]


# ---- peers, each in a process of its own, as their settings are read once
# -----------------------------------------------------------

def numbers(count):
    return (ctypes.c_float * count)(*random.choices([random.gauss(0, 1) for _ in range(4096)], k=count))


def torch_peer(threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)

    def prepare(diagram, sizes):
        q, k, v = (torch.randn(1, sizes["h"], sizes["q"], sizes["d"]) for _ in range(3))
        fused = torch.nn.functional.scaled_dot_product_attention
        return lambda: fused(q, k, v, is_causal=diagram == "causal")

    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", prepare


def openblas_peer(threads):
    blas = ctypes.CDLL("libopenblas.so.0")
    blas.openblas_set_num_threads(threads)
    blas.openblas_get_config.restype = ctypes.c_char_p

    def prepare(_, sizes):
        m, n, k = (sizes[axis] for axis in "mnk")
        a, b, c = numbers(m * k), numbers(k * n), (ctypes.c_float * (m * n))()
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        return lambda: blas.cblas_sgemm(101, 111, 111, m, n, k, one, a, k, b, n, zero, c, n)

    return blas.openblas_get_config().decode(), prepare


def in_huge_pages(size):
    """Memory as napkin's arrays are in, where the system has such pages: the peer is not to lose by its address translation."""
    memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return (ctypes.c_char * size).from_buffer(memory)


def streamed_copy():
    """STREAMED_COPY, compiled; memcpy where there is no compiler, or where the processor has no such vectors."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if not shutil.which("cc") or not cpuinfo.exists() or "avx" not in cpuinfo.read_text().split():
        return ctypes.CDLL(None).memcpy
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder) / "copy.c", pathlib.Path(folder) / "copy.so"
        source.write_text(STREAMED_COPY)
        done = subprocess.run(["cc", "-O2", "-mavx", "-shared", "-fPIC", "-o", library, source], capture_output=True)
        return ctypes.CDLL(library).copy if done.returncode == 0 else ctypes.CDLL(None).memcpy


def copy_peer(threads):
    way = os.environ["WAY_TO_COPY"]
    copy_bytes = streamed_copy() if way == "past caches" else ctypes.CDLL(None).memcpy
    copy_bytes.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def prepare(_, sizes):
        size = 4 * sizes["r"] * sizes["c"]
        source, target = (in_huge_pages(size) for _ in range(2))
        ctypes.memset(source, 1, size)
        piece = 1 << 18 if way == "pieces" else size // threads // 64 * 64
        starts = range(0, size, piece)

        def copy(part):
            to, begin = ctypes.addressof(target), ctypes.addressof(source)
            for at in starts[part * len(starts) // threads:(part + 1) * len(starts) // threads]:
                copy_bytes(to + at, begin + at, min(piece, size - at))

        def run():
            workers = [threading.Thread(target=copy, args=(part,)) for part in range(1, threads)]
            for worker in workers:
                worker.start()
            copy(0)
            for worker in workers:
                worker.join()

        return run

    return "copies: memcpy in pieces of 256 KiB, one a thread, or stores past the caches, whichever is fastest", prepare


PEERS = {"torch": torch_peer, "openblas": openblas_peer, "copy": copy_peer}


def serve(name, threads):
    """Answers one request a line: the median seconds of the case that it names. The first line tells the peer's version."""
    try:
        version, prepare = PEERS[name](threads)
    except (ImportError, OSError) as missing:
        print(json.dumps({"missing": str(missing)}), flush=True)
        return
    print(json.dumps({"version": version}), flush=True)
    prepared = {}
    for line in sys.stdin:
        request = json.loads(line)
        key = json.dumps([request["diagram"], request["sizes"]])
        if key not in prepared:
            prepared = {key: prepare(request["diagram"], request["sizes"])}
            prepared[key]()
        times, begin = [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - begin < request["seconds"]:
            start = time.perf_counter()
            prepared[key]()
            times.append(time.perf_counter() - start)
        print(json.dumps(records.median(times)), flush=True)


class Peer:
    def __init__(self, name, threads, environment):
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", name, "--threads", str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment})
        hello = json.loads(self.process.stdout.readline())
        self.missing, self.version, self.environment = hello.get("missing"), hello.get("version"), environment

    def seconds(self, case, seconds):
        request = {"diagram": case["diagram"], "sizes": case["sizes"], "seconds": seconds}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def fastest_peer(name, threads, environments, case):
    """The peer with the environment in which the case takes it least; the others are ended."""
    peers = [Peer(name, threads, environment) for environment in environments]
    if len(peers) > 1 and not peers[0].missing:
        peers.sort(key=lambda peer: peer.seconds(case, 0.2))
    for slower in peers[1:]:
        slower.end()
    return peers[0]


# ---- side by side
# -------------------------------------------------------------------------------------------------------------------

def measure(case, peer, options):
    arguments = ["-", "--diagram", case["diagram"], "--seconds", str(options.seconds), "--threads", str(options.threads)]
    for axis, size in case["sizes"].items():
        arguments += ["--set", f"{axis}={size}"]
    if options.vector_bytes:
        arguments += ["--vector-bytes", str(options.vector_bytes)]
    ours, theirs, document = [], [], {}
    for _ in range(options.rounds):
        document = records.run_kernel(arguments, DIAGRAMS)
        ours.append(document["seconds"])
        theirs.append(peer.seconds(case, options.seconds))
    ratio = records.median([t / o for o, t in zip(ours, theirs)])
    return document, {
        "diagram": case["diagram"], "sizes": case["sizes"], "type": "f32", "unit": case["unit"],
        "napkin": {"seconds": min(ours), "rate": case["work"] / min(ours) / 1e9, "rounds": ours,
                   "predicted_seconds": document["predicted_seconds"]},
        case["peer"]: {"seconds": min(theirs), "rate": case["work"] / min(theirs) / 1e9, "rounds": theirs,
                       "environment": peer.environment},
        "ratio": ratio, "target": case["target"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vector-bytes", type=int, choices=sorted(WIDTHS), help="of all that is compared (default: as the machine has)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="about how long each measures in a round")
    parser.add_argument("--only", default="", help="part of a diagram's name")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--serve", choices=sorted(PEERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.threads)

    cases = [case for case in CASES if options.only in case["diagram"]]
    records.measure_host(options.vector_bytes)
    results, device = [], ""
    print(f"{'':16}{'sizes':>26}{'napkin':>12}{'':>16}{'peer':>20}{'':>16}{'ratio':>8}{'target':>8}")
    versions = {}
    for case in cases:
        peer = fastest_peer(case["peer"], options.threads, settings_of(case["peer"], options.vector_bytes), case)
        versions[case["peer"]] = peer.version or f"missing: {peer.missing}"
        if peer.missing:
            print(f"{case['diagram']:16} left out: {peer.missing}")
            continue
        document, entry = measure(case, peer, options)
        peer.end()
        device = document["machine"]
        results.append(entry)
        ours, theirs = entry["napkin"], entry[case["peer"]]
        sizes = "×".join(str(size) for size in case["sizes"].values())
        print(f"{case['diagram']:16}{sizes:>26}{ours['seconds'] * 1e3:9.1f} ms{ours['rate']:8.1f} {case['unit']}"
              f"{case['peer']:>9}{theirs['seconds'] * 1e3:8.1f} ms{theirs['rate']:8.1f} {case['unit']}"
              f"{entry['ratio']:8.2f}{case['target'] or '-':>8}", flush=True)
    if options.output:
        records.write(options.output, {
            **records.head("napkin.compare_cpu/2", device), "vector_bytes": options.vector_bytes, "threads": options.threads,
            "peers": versions, "results": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
