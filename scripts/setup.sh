#!/bin/sh
# Installs what napkin is built from, as far as it is missing, with Debian's package manager.
#
#   scripts/setup.sh run     what ./napkin needs: compiler, CMake and libraries
#   scripts/setup.sh test    and what ./test needs; in a git checkout it also sets up scripts/hooks
#   scripts/setup.sh all     and what .ci/run needs: clang, its sanitizers, libFuzzer and clang-tidy, Python's headers
#   scripts/setup.sh pages   what ./napkin and tests/browser need: Chromium
#   scripts/setup.sh browser and what the core in their pages needs: emscripten
#
# Prints one line where it has something to install and nothing where it has not. Exit code 3: it may not install.
set -eu

run='g++ cmake ninja-build ccache libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libhwloc-dev
libmimalloc-dev libopenblas0-pthread'
test="$run libgtest-dev libgmock-dev libbenchmark-dev libopenblas-dev clang-format-19 python3 python3-numpy"
all="$test clang-14 clang-19 libclang-rt-19-dev llvm-19 clang-tidy-19 libc++-14-dev python3-dev python3-venv"
pages="$run python3 chromium"
browser="$pages emscripten"

case ${1-} in
    run) wanted=$run ;;
    test) wanted=$test ;;
    all) wanted=$all ;;
    pages) wanted=$pages ;;
    browser) wanted=$browser ;;
    *) echo "usage: scripts/setup.sh run|test|all|pages|browser" >&2; exit 2 ;;
esac

# Who runs the tests may commit: git then calls scripts/hooks. A checkout that has hooks of its own keeps those alone.
set_up_hooks() (
    cd "$(dirname "$0")/.."
    [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || return 0
    git config core.hooksPath >/dev/null && return 0
    ls "$(git rev-parse --git-path hooks)" 2>/dev/null | grep -qv '\.sample$' || git config core.hooksPath scripts/hooks
)
case $1 in test | all) set_up_hooks || true ;; esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    # Not Debian: CMake says what is missing, if anything is. These are the names to look for.
    for tool in c++ cmake ninja; do
        command -v $tool >/dev/null || {
            echo "napkin: $tool is missing, and only Debian's packages are installed by themselves; on Debian 12: $wanted" >&2
            exit 3
        }
    done
    exit 0
fi

missing=
for package in $wanted; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
        *' installed') ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as_root='sudo env'
else
    echo "napkin: packages are missing, and installing them takes root (you are $(id -un), without sudo). As root, run:" >&2
    echo "    apt-get update && apt-get install --no-install-recommends$missing" >&2
    exit 3
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
    # The log is shown only when something went wrong.
    "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; echo "napkin: failed: $*" >&2; exit 3; }
}
echo "napkin: installing$missing" >&2
apt="$as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600"
[ -n "$as_root" ] || apt="env $apt"
quietly $apt update
quietly $apt install --yes --no-install-recommends $missing
