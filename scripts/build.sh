#!/bin/sh
# Builds build/release quietly: ./napkin and ./test call it. One build at a time: a second one waits for the first.
#
#   scripts/build.sh tool            the command line tool alone
#   scripts/build.sh tests [-D...]   the tool and the tests; with CMake settings
#   scripts/build.sh all [-D...]     and the benchmarks
#
# Says one line on stderr; on failure the end of the compiler's output follows, and the exit code is 1.
set -eu
cd "$(dirname "$0")/.."
what=$1
shift
build=build/release
mkdir -p $build

# A build folder that came here with a copy of another checkout would build that one's sources.
if [ -e $build/CMakeCache.txt ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" $build/CMakeCache.txt; then
    rm -rf $build
    mkdir -p $build
fi

configure_and_build() {
    # What ./napkin compares the sources' times with: the start of the build, so that an edit made during it counts as
    # newer.
    touch $build/started
    if [ "$what" = all ]; then
        cmake --preset release -DNAPKIN_TESTS=ON -DNAPKIN_BENCH=ON "$@" && cmake --build $build || return
    elif [ "$what" = tests ]; then
        cmake --preset release -DNAPKIN_TESTS=ON "$@" && cmake --build $build || return
    else
        if [ ! -e $build/build.ninja ]; then
            cmake --preset release -DNAPKIN_TESTS=OFF "$@" || return
        fi
        cmake --build $build --target napkin-cli || return
    fi
    mv $build/started $build/tool-is-newer-than-this
}

(
    if command -v flock >/dev/null; then flock 9; fi
    if [ -e $build/tool-is-newer-than-this ]; then
        echo "napkin: building what changed" >&2
    else
        echo "napkin: building, for the first time here, which takes some minutes" >&2
    fi
    configure_and_build "$@" >$build/build.log 2>&1 9>&- || {
        grep -E -A 12 'error:|Error|FAILED' $build/build.log | head -n 60 >&2 || tail -n 40 $build/build.log >&2
        echo "napkin: the build failed; all of its output: $PWD/$build/build.log" >&2
        exit 1
    }
) 9>$build/lock
