#!/bin/sh
# Installs build/release under build/consumer and builds tests/consumer against it with find_package(napkin).
set -eu
cd "$(dirname "$0")/.."
prefix=$PWD/build/consumer/prefix
rm -rf build/consumer
cmake --install build/release --prefix "$prefix" >/dev/null
cmake -G Ninja -S tests/consumer -B build/consumer/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build build/consumer/build
build/consumer/build/consumer
build/consumer/build/consumer_c
# The installed tool works away from its sources.
if [ -x "$prefix/bin/napkin" ]; then
    (cd / && "$prefix/bin/napkin" --help >/dev/null)
    # And finds the core for its pages, where one was built.
    core=no
    [ ! -e build/release/bin/napkin.wasm.gz ] || core=yes
    page=$PWD/build/consumer/report.html
    "$prefix/bin/napkin" report examples/attention.nk --machine h100-sxm5 -o "$page"
    grep -q 'id="core"' "$page" && found=yes || found=no
    [ $found = $core ] || { echo "consumer.sh: a report of the installed napkin has a core: $found; one was built: $core" >&2; exit 1; }
fi
