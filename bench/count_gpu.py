#!/usr/bin/env python3
"""What the GPU counts beside what the scheduled program says: bytes from memory and from L2, and bank conflicts.

    python3 bench/count_gpu.py [--ncu PATH] [--machine gpu] [--output bench/results/NAME.json]

Each kernel is run once under Nsight Compute, its caches flushed before it. "Predicted" are the simulator's bytes of the same schedule, as
`napkin plan --json` prints them: GMEM to L2 beside dram__bytes, L2 to SMEM beside the bytes between L2 and an SM, in which bulk copies
are. What a kernel writes last may stay in L2, so that fewer bytes than are predicted reach memory while it runs.
"""
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import gpu
import records

CASES = [
    ("matmul", {"m": 4096, "n": 4096, "k": 4096}),
    ("attention", {"h": 16, "q": 16384, "x": 16384, "k": 128, "d": 128}),
    ("softmax", {"r": 4096, "c": 4096}),
]
# What is predicted: which step of a kernel's traffic (the first is memory to L2, the last L2 to an SM), and which way.
COUNTED = {
    "dram__bytes_read.sum": (0, "loaded_bytes"),
    "dram__bytes_write.sum": (0, "stored_bytes"),
    "l1tex__m_xbar2l1tex_read_bytes.sum": (-1, "loaded_bytes"),
    "l1tex__m_l1tex2xbar_write_bytes.sum": (-1, "stored_bytes"),
}
# Nothing is predicted of these. A wavefront is one turn of a request at shared memory, and a conflict a turn more than
# it needs.
CONFLICTS = ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"]
L2_SECTORS = ["lts__t_sectors_op_read.sum"]


def find_ncu(given):
    for path in filter(None, [given, os.environ.get("NCU"), shutil.which("ncu"), "/usr/local/cuda/bin/ncu",
                              *sorted(map(str, pathlib.Path("/opt/nvidia/nsight-compute").glob("*/ncu")), reverse=True)]):
        if os.access(path, os.X_OK):
            return path
    sys.exit("ncu (Nsight Compute) is not found: install CUDA's cuda-nsight-compute, or give --ncu PATH")


def read_log(text):
    """By kernel, in the order of launches: name and metrics. The lines of ncu's own remarks begin with "==" and are no CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(lines):
        if not row["Metric Value"]:
            continue
        kernel = kernels.setdefault(row["ID"], {"kernel": row["Kernel Name"], "metrics": {}})
        kernel["metrics"][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return [kernels[key] for key in sorted(kernels, key=int)]


def count(ncu, arguments, text, kernels):
    """The counters of the first launch of every kernel. Metrics that this version of ncu does not know are left out."""
    metrics = [*COUNTED, *CONFLICTS, *L2_SECTORS]
    while metrics:
        with tempfile.NamedTemporaryFile(suffix=".csv") as log, tempfile.NamedTemporaryFile("w", suffix=".nk") as diagram:
            diagram.write(text)
            diagram.flush()
            command = [ncu, "--clock-control", "none", "--cache-control", "all", "--csv", "--print-units", "base", "--log-file", log.name,
                       "--metrics", ",".join(metrics), "--kernel-name", "regex:^napkin_kernel_", "--launch-count", str(kernels),
                       records.NAPKIN, "run", diagram.name, *arguments, "--seconds", "0.01", "--no-baseline", "--no-check", "--no-validate"]
            done = subprocess.run(command, capture_output=True, text=True)
            said = pathlib.Path(log.name).read_text()
        if counted := read_log(said):
            return counted
        unknown = [metric for metric in metrics if re.search(rf"Failed to find metric.*{re.escape(metric)}", said + done.stderr)]
        if not unknown:
            sys.exit(f"{' '.join(map(str, command))}\n{said}{done.stderr}")
        metrics = [metric for metric in metrics if metric not in unknown]
    sys.exit("ncu knows none of the metrics")


def rows_of(counted, planned):
    """One row for each metric: counted and predicted, over all kernels."""
    rows = []
    for metric, (step, way) in COUNTED.items():
        values = [kernel["metrics"][metric] for kernel in counted if metric in kernel["metrics"]]
        if len(values) != len(planned):
            continue
        traffic = [kernel["predicted"]["traffic"][step] for kernel in planned]
        predicted = sum(step[way] for step in traffic)
        rows.append({"metric": metric, "path": traffic[0]["path"], "way": way, "counted": sum(values), "predicted": predicted,
                     "ratio": sum(values) / predicted if predicted else None})
    return rows


def main():
    parser = gpu.parser(__doc__)
    parser.add_argument("--ncu")
    parser.add_argument("--machine", default="gpu")
    options = parser.parse_args()
    ncu, results = find_ncu(options.ncu), []
    for diagram, sizes in CASES:
        text, arguments = gpu.DIAGRAMS[diagram], ["--machine", options.machine, *gpu.sizes_of(sizes)]
        planned = records.run_napkin("-", *arguments, text=text, command="plan")
        counted = count(ncu, arguments, text, len(planned["kernels"]))
        rows = rows_of(counted, planned["kernels"])
        totals = {metric: sum(kernel["metrics"].get(metric, 0) for kernel in counted) for metric in CONFLICTS + L2_SECTORS}
        results.append({"diagram": diagram, "sizes": sizes, "machine": planned["machine"], "counts": rows, "besides": totals, "kernels": counted})
        print(gpu.title(diagram, sizes))
        for row in rows:
            ratio = f"{row['ratio']:.3f}" if row["ratio"] is not None else "–"
            print(f"  {row['path']:12} {row['way']:13} counted {row['counted'] / 1e6:12.2f} MB  predicted {row['predicted'] / 1e6:12.2f} MB  "
                  f"ratio {ratio:>6}  {row['metric']}")
        conflicts, turns = (totals[metric] for metric in CONFLICTS)
        share = f" ({conflicts / turns:.1%})" if turns else ""
        print(f"  bank conflicts {conflicts:.0f} of {turns:.0f} turns at shared memory{share}; sectors read at L2 {totals[L2_SECTORS[0]]:.0f}", flush=True)
    found = records.run_napkin(command="doctor", accepted=(0, 3))["findings"]
    device = next(finding["says"] for finding in found if finding["what"] == "GPU")
    gpu.write(options, "napkin.count-gpu/1", device, ncu=records.output_of(ncu, "--version").split("\n")[-1], results=results)


if __name__ == "__main__":
    sys.exit(main())
