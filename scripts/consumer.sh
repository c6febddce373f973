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
[ ! -x "$prefix/bin/napkin" ] || (cd / && "$prefix/bin/napkin" --help >/dev/null)
