#!/bin/sh
# No source file has more than 1000 lines.
set -eu
cd "$(dirname "$0")/.."
find src include tools tests bench python -type f \( -name '*.cpp' -o -name '*.c' -o -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.cu' \) -exec wc -l {} + 2>/dev/null |
    awk '$2 != "total" && $1 > 1000 { print $2 ":1: " $1 " lines, where 1000 are allowed; split the file" > "/dev/stderr"; bad = 1 }
         END { exit bad }'
