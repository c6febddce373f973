#!/bin/sh
# Runs clang-tidy (.clang-tidy) over src/ and tools/, two files at a time.
#
#   scripts/tidy.sh             all files
#   scripts/tidy.sh --changed   those that differ from the last commit
#   scripts/tidy.sh FILE...     these
#
# A file is looked at again only when it, a header of ours that it includes, or the checks have changed since it was
# last clean.
set -eu
cd "$(dirname "$0")/.."
command -v clang-tidy-19 >/dev/null || { echo "tidy.sh: clang-tidy-19 is missing; scripts/setup.sh all installs it" >&2; exit 3; }
[ -e build/debug/compile_commands.json ] || cmake --preset debug >/dev/null

case ${1-} in
    '') files=$(find src tools -name '*.cpp') ;;
    --changed) files=$({ git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard; } |
        grep -E '^(src|tools)/.*\.cpp$' || true) ;;
    *) files=$* ;;
esac

clean=${XDG_CACHE_HOME:-$HOME/.cache}/napkin-tidy
mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete
export clean
echo "$files" | grep . | xargs -r -P 2 -n 1 sh -c '
    # The compiler lists the headers outside the system that the file reads.
    read_files=$(clang++-19 -std=c++20 -Iinclude -Isrc -Itools -MM "$1" 2>/dev/null | sed "s/^[^:]*://; s/\\\\$//") || read_files=
    key=$(cat .clang-tidy $read_files scripts/tidy.sh 2>/dev/null | sha256sum | cut -c 1-40)
    if [ -n "$read_files" ] && [ -e "$clean/$key" ]; then exit 0; fi
    # The commands are for GCC: clang need not know all of its warnings, and the library is not ours
    # (cmake/flags.cmake).
    clang-tidy-19 --quiet -p build/debug --extra-arg=-Wno-unknown-warning-option \
        --extra-arg=-Wno-deprecated-declarations "$1" 2>/dev/null || { echo "tidy.sh: $1 is not clean"; exit 1; }
    touch "$clean/$key"' sh
