#!/bin/sh
# Opens reports of build/release's tool in a headless Chromium (tests/browser), with the core as WebAssembly in them.
# Installs what is missing.
#
#   scripts/browser.sh            builds the core in build/wasm first, quickly rather than small
#   scripts/browser.sh without    pages without the core alone
set -eu
cd "$(dirname "$0")/.."
build=build/wasm
mkdir -p $build
core=
case ${1-} in
    without) scripts/setup.sh pages ;;
    '')
        scripts/setup.sh browser
        core=$build/bin/napkin.wasm.gz
        log=$build/build.log
        {
            cmake -G Ninja -S . -B $build -DCMAKE_BUILD_TYPE=Debug -DNAPKIN_TESTS=OFF &&
                cmake --build $build --target napkin-wasm
        } >$log 2>&1 || { grep -E -A 12 'error:|FAILED' $log | head -n 60 >&2 || tail -n 40 $log >&2; exit 1; }
        ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
XDG_CACHE_HOME=$PWD/$build/cache NO_COLOR=1 python3 tests/browser/test_report.py build/release/bin/napkin . $build/browser $core
