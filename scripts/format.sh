#!/bin/sh
# Formats the C++ sources in place with .clang-format; with --check, changes nothing, names the files that it would
# change and fails. Further arguments are the files to format, in place of all.
set -eu
cd "$(dirname "$0")/.."

# One version, as they differ in what they write.
format=$(command -v clang-format-19) || { echo "format.sh: clang-format-19 is missing; scripts/setup.sh test installs it" >&2; exit 3; }

files() {
    if [ $# -gt 0 ]; then
        printf '%s\0' "$@"
    else
        find src include tools tests bench python -type f \( -name '*.cpp' -o -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.cu' \) \
            -not -path '*/golden/*' -print0 2>/dev/null
    fi
}

if [ "${1-}" != --check ]; then
    files "$@" | xargs -0 -r -n 8 -P 2 "$format" -i --style=file
else
    shift
    # One line a file says enough. One process at a time, as two would mix their lines.
    ! { files "$@" | xargs -0 -r "$format" --dry-run --style=file 2>&1; } |
        awk -F: '/code should be clang-formatted/ && !seen[$1]++ { print $1 ":" $2 ": not formatted; scripts/format.sh formats it" }' |
        grep . >&2
fi
