#!/bin/sh
# Checks that the core of reports compiles with a library as old as emscripten's in Debian 12. Clang reads its sources
# with the headers of libc++ 14, as emscripten takes minutes to install and to compile. What only WebAssembly has, as
# sizes of 32 bits, is for scripts/browser.sh to find.
set -eu
cd "$(dirname "$0")/.."
build=build/core-check
mkdir -p $build
log=$build/build.log
{
    cmake -G Ninja -S . -B $build -DCMAKE_BUILD_TYPE=Debug -DNAPKIN_TESTS=OFF &&
        cmake --build $build --target napkin-core-check
} >$log 2>&1 || { grep -E -A 12 'error:|FAILED|unknown target' $log | head -n 60 >&2 || tail -n 40 $log >&2; exit 1; }
