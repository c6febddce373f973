#!/bin/sh
# Formats the C++ sources in place with .clang-format; with --check, changes nothing, prints what it would change and fails.
# Further arguments are the files to format, in place of all.
set -eu
cd "$(dirname "$0")/.."

# One version, as they differ in what they write.
format=$(command -v clang-format-19) || { echo "format.sh: clang-format-19 is missing; scripts/setup.sh test installs it" >&2; exit 3; }
how=-i
[ "${1-}" = --check ] && { how='--dry-run -Werror'; shift; }

if [ $# -gt 0 ]; then
    printf '%s\0' "$@"
else
    find src include tools tests bench -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.cu' \) \
        -not -path '*/golden/*' -print0 2>/dev/null
fi | xargs -0 -r -n 8 -P 2 "$format" $how --style=file
