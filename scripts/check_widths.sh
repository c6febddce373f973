#!/bin/sh
# Runs tests that plan for, compile or run vectors once more as a processor of each width: 128, 256 and 512 bits. The
# processor passes for one without wider vectors; what it lacks itself is compiled for it, two of its own vectors for
# one.
#
#   scripts/check_widths.sh [CTEST-OPTION...]    default: what runs on this processor, and what is about it
#
# What goes through all widths by itself, as the kernels of examples and of random programs, is left to ./test.
# Expects what ./test built. Exit code 0 when all passed at every width.
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- -R '^text\.(Cli|Output)|^c_api\.|^unit\.(Api|Blas|FirstUse|Machine|PlanCache)\.|^numeric\.(Baseline|CompiledVerdict|Integers|MeasureMachine)\.'

failed=0
for bits in 128 256 512; do
    log=build/release/test-$bits.log
    NAPKIN_VECTOR_BYTES=$((bits / 8)) NAPKIN_MACHINE=$PWD/tests/machines/cpu-$bits.toml \
        ctest --test-dir build/release --parallel 2 --output-on-failure --no-tests=error "$@" >$log 2>&1 </dev/null || {
        failed=1
        echo "check_widths.sh: failed with vectors of $bits bits:"
        grep -vE '(Passed|\*\*\*Skipped) +[0-9.]+ sec$|^ +Start +[0-9]+:|^Test project|^Internal ctest' $log | cat -s
    }
    sed -n "s/.*% tests passed.*/$bits bits: &/p" $log
done
exit $failed
