#!/bin/sh
# No test's result depends on the processor at hand: tests name machines by files (machines/, tests/machines/), and are
# on tests/machines/cpu-256.toml where they name none. What asks for the host, its vectors or its threads stands in one
# of the files below, which are about that. Else its line ends in "any processor", as its result is the same on each.
# --self-test checks the check.
set -eu
cd "$(dirname "$0")/.."

# The host's description and measurement, its instructions in the prelude and in compiled kernels, and OpenBLAS' choice
# of them.
about_it='unit/test_machine.cpp numeric/test_measure_machine.cpp unit/test_cpu_prelude.cpp numeric/cpu_kernel_case.cpp unit/test_tensor.cpp'

check() {
    find "$1" -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.py' \) -exec awk -v folder="$1/" -v about_it=" $about_it " '
        FNR == 1 { exempt = index(about_it, " " substr(FILENAME, length(folder) + 1) " ") }
        exempt || /any processor$/ { next }
        { code = $0; sub(/\/\/.*/, "", code) }
        code ~ /"([^"]*[ ,=])?host(-[0-9]+)?[ ,"]/ || code ~ /host_machine *\(|host_name *\(|native_vector_bytes|hardware_concurrency|cpu_supports|march=native/ {
            print FILENAME ":" FNR ":" $0 "   <- depends on the processor at hand; name a machine of tests/machines/"
            bad = 1
        } END { exit bad }' {} + >&2
}

if [ "${1-}" = --self-test ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    mkdir -p "$folder/unit"
    printf 'load_machine("generic-cpu"); // not the host, as in "host"\nf("hosts"); g("h200");\nnames("host"); // any processor\n' >"$folder/good.cpp"
    printf 'host_machine(16);\n' >"$folder/unit/test_machine.cpp"
    check "$folder" || { echo "check_machines.sh: self-test: what is good was refused" >&2; exit 1; }
    for code in 'load_machine("host-512").value();' 'napkin("plan a.nk --machine host");' 'draw("a.nk --machine host-256 --step 1");' 'auto m = host_machine();' \
        'if (native_vector_bytes() == 16) return;' 'o.machine = "host";' 'cost("--machine host,h200");'; do
        printf '%s\n' "$code" >"$folder/bad.cpp"
        if check "$folder" 2>/dev/null; then
            echo "check_machines.sh: self-test: let through: $code" >&2
            exit 1
        fi
    done
    exit 0
fi
check "${1:-tests}"
