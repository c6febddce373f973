#!/bin/sh
# Builds the unit, error and fuzz tests with clang's address and undefined-behaviour sanitizers, and runs them. Then
# libFuzzer looks for new inputs for a while (default: 60 processor seconds, shared between the fuzz targets):
#
#   scripts/sanitize.sh [SECONDS [KINDS]]
#
# KINDS are those of the tests (default: "unit error"); "unit error text property numeric" takes about 40 minutes on two
# cores. One build does for all, as it is libFuzzer's that has the sanitizers in. An input that fails is left in
# build/fuzz/artifacts/; give it to build/fuzz/tests/fuzz_NAME to see it fail again.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
kinds=${2:-unit error}
build=build/fuzz

targets=
for kind in $kinds; do
    [ -z "$(find tests/$kind -name '*.cpp' 2>/dev/null)" ] || targets="$targets test_$kind"
done
fuzzers=
for file in tests/fuzz/*.cpp; do
    [ ! -e "$file" ] || fuzzers="$fuzzers $(basename "$file" .cpp)"
done
for name in $fuzzers; do targets="$targets fuzz_$name"; done
[ -n "$targets" ] || exit 0

mkdir -p $build/artifacts
# Without optimization clang compiles the sanitizers' checks in a third of the time, which is most of it where nothing
# new is looked for.
[ "$seconds" -gt 0 ] && optimized=-O1 || optimized=-O0
case " $kinds " in
    *" text "* | *" property "* | *" numeric "*) optimized=-O1 targets="$targets napkin-cli" ;;
esac
cmake --preset fuzz "-DNAPKIN_WERROR=${CI:+ON}" "-DCMAKE_CXX_FLAGS_RELEASE=$optimized -g1" >$build/build.log 2>&1 || { cat $build/build.log >&2; exit 1; }
cmake --build $build --target $targets >$build/build.log 2>&1 || { grep -E -A 12 'error:|FAILED' $build/build.log | head -n 60 >&2; exit 1; }

export ASAN_SYMBOLIZER_PATH=/usr/bin/llvm-symbolizer-19 UBSAN_OPTIONS=print_stacktrace=1
ctest --test-dir $build --parallel 2 --output-on-failure --no-tests=error -L "^($(echo $kinds fuzz | tr ' ' '|'))\$" >$build/test.log 2>&1 </dev/null ||
    { grep -vE ' Passed +[0-9.]+ sec$|^ +Start +[0-9]+:' $build/test.log; exit 1; }
sed -n '/% tests passed/p' $build/test.log

[ -n "$fuzzers" ] && [ "$seconds" -gt 0 ] || exit 0
each=$((seconds / $(echo $fuzzers | wc -w)))
[ $each -le 30 ] || each=30
[ $each -ge 5 ] || each=5
for name in $fuzzers; do
    mkdir -p $build/found/$name
    corpus=tests/fuzz/corpus/$name
    [ -d $corpus ] || corpus=
    seeds=$(sed -n "s/^$name //p" tests/fuzz/seeds.txt)
    echo "$name $build/tests/fuzz_$name -max_total_time=$each -timeout=20 -rss_limit_mb=4096 -print_final_stats=1" \
        "-artifact_prefix=$build/artifacts/$name- $build/found/$name $corpus $seeds"
done | xargs -P 2 -L 1 sh -c '
    name=$1; shift
    if "$@" >build/fuzz/$name.log 2>&1; then
        sed -n "s/^stat::number_of_executed_units: */fuzz $name: inputs tried: /p" build/fuzz/$name.log
    else
        tail -n 60 build/fuzz/$name.log; exit 1
    fi' sh
