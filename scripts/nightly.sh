#!/bin/sh
# Random programs in numbers that no daily run has time for: interpreted through every room, and compiled, many to a
# module; and every example compiled at many ragged sizes. The counts, the seeds and whatever failed are recorded as
# JSON.
#
#   scripts/nightly.sh [--programs 20000] [--compiled 5000] [--examples 5000] [--first SEED] [--seconds N]
#       [--jobs N] [--record FILE] [--build build/release]
#
# No piece of work begins after --seconds; the record counts what was done.
# Exit 0: nothing failed; 1: something did, and the record names the seeds.
set -eu
cd "$(dirname "$0")/.."

programs=20000 compiled=5000 examples=5000 first=1000000 seconds=36000 jobs=$(nproc) build=build/release
record=bench/results/$(date +%F)-random-programs.json
arguments=$*
while [ $# -gt 0 ]; do
    case $1 in
        --programs) programs=$2 ;;
        --compiled) compiled=$2 ;;
        --examples) examples=$2 ;;
        --first) first=$2 ;;
        --seconds) seconds=$2 ;;
        --jobs) jobs=$2 ;;
        --record) record=$2 ;;
        --build) build=$2 ;;
        *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    [ $# -gt 1 ] || { echo "nightly.sh: $1 needs a value" >&2; exit 2; }
    shift 2
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME="$folder/cache"

# One line a piece of work: test program, filter, seeds. A piece is small, so that what runs beside it ends at about the
# same time.
pieces() {
    awk -v first="$first" -v programs="$programs" -v compiled="$compiled" -v examples="$examples" '
        function piece(tests, at, by, end) {
            if (at < end) print tests, first + at ":" first + (at + by < end ? at + by : end)
        }
        BEGIN {
            for (k = 0; k * 1000 < programs || k * 120 < compiled || k * 240 < examples; ++k) {
                piece("test_property Shards/Programs.*", k * 1000, 1000, programs)
                piece("test_numeric Shards/CompiledPrograms.*", k * 120, 120, compiled)
                piece("test_numeric CompiledExamples.*", k * 240, 240, examples)
            }
        }'
}

deadline=$(($(date +%s) + seconds))
export folder build deadline
pieces | xargs -r -P "$jobs" -n 3 sh -c '
    [ "$(date +%s)" -lt "$deadline" ] || exit 0
    kind=${2%.*} && kind=${kind#Shards/} && log=$folder/$kind-$3
    NAPKIN_SEEDS=$3 nice "$build/tests/$1" --gtest_filter="$2" --gtest_output="json:$log.json" \
        >"$log.log" 2>&1 || { tail -n 40 "$log.log" >&2; true; }' piece

python3 - "$folder" "$record" "$first" "$arguments" <<'PYTHON'
import datetime, glob, json, os, re, subprocess, sys

folder, record, first, command = sys.argv[1:]
totals, failures, seconds = {}, [], {}
kinds = {"Programs": "interpreted", "CompiledPrograms": "compiled", "CompiledExamples": "examples"}
for path in sorted(glob.glob(folder + "/*.json")):
    kind = kinds[os.path.basename(path).split("-")[0]]
    document = json.load(open(path))
    for suite in document["testsuites"]:
        for test in suite["testsuite"]:
            seconds[kind] = seconds.get(kind, 0) + float(test["time"].rstrip("s"))
            for name in ("programs", "kernels", "steps", "merges", "runs"):
                if name in test:
                    counts = totals.setdefault(kind, {})
                    counts[name] = counts.get(name, 0) + int(test[name])
            # the property of this name where nothing failed, else GoogleTest's own list
            reported = test.get("failures", [])
            for failure in reported if isinstance(reported, list) else []:
                seed = re.search(r"seed (\d+): ([^\n]*)", failure["failure"])
                failures.append({"kind": kind, "seed": int(seed[1]), "what": seed[2]} if seed
                                else {"kind": kind, "what": failure["failure"][:300]})
missing = [os.path.basename(log)[:-4] for log in glob.glob(folder + "/*.log") if not os.path.exists(log[:-4] + ".json")]
for kind in totals:
    totals[kind]["failures"] = sum(f["kind"] == kind for f in failures)
    totals[kind]["processor_seconds"] = round(seconds[kind], 1)
commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
device = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
document = {"date": datetime.date.today().isoformat(), "device": f"{device}, {os.cpu_count()} cores", "commit": commit,
            "command": "scripts/nightly.sh " + command, "first_seed": int(first), **totals, "failures": failures, "pieces_that_ended_early": missing}
with open(record, "w") as out:
    json.dump(document, out, indent=2)
    out.write("\n")
print(f"{record}: " + ", ".join(f"{t.get('programs', 0)} {k}, {t.get('failures', 0)} failed" for k, t in totals.items()))
sys.exit(1 if failures or missing or not totals else 0)
PYTHON
