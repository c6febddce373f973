"""What the Python benchmarks share: running napkin, and the head of a record (date, device, commit, command)."""
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A machine without a checkout says by its environment what runs there, and of which commit.
NAPKIN = pathlib.Path(os.environ.get("NAPKIN_BINARY", ROOT / "build/release/bin/napkin"))


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def run_napkin(*arguments, text=None, accepted=(0,), command="run"):
    """The document that `napkin run --json`, or another command, prints; where it exits otherwise than is accepted, so does this."""
    words = [NAPKIN, command, *arguments, "--json"]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    if done.returncode not in accepted:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def run_kernel(arguments, text=None):
    """The kernel measured, neither checked nor compared."""
    return run_napkin(*arguments, "--no-baseline", "--no-check", "--no-validate", text=text)


def measure_host(vector_bytes=None):
    """Measures this computer, as its code with vectors of so many bytes sees it, and keeps the figures: plans and predictions read them."""
    width = ["--vector-bytes", str(vector_bytes)] if vector_bytes else []
    done = subprocess.run([NAPKIN, "machines", "measure", *width], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    for line in done.stderr.splitlines():
        print(line, file=sys.stderr)


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def head(schema, device):
    return {
        "schema": schema,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device,
        "load": os.getloadavg()[0],
        "commit": os.environ.get("NAPKIN_COMMIT") or output_of("git", "-C", ROOT, "rev-parse", "HEAD"),
        "changed_since": output_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no") != "",
        "command": "python3 " + " ".join(sys.argv),
    }


def write(path, record):
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"written: {path}", file=sys.stderr)
