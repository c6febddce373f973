#!/bin/sh
# No operator is special: under src/ the names of the field's operators may stand in comments only. What follows // or
# stands between /* and */ is a comment, and so is a line that begins with *. --self-test checks the check.
set -eu
cd "$(dirname "$0")/.."

check() {
    [ -d "$1" ] || return 0
    find "$1" -type f -exec awk '{
        code = $0
        sub(/\/\/.*/, "", code)
        gsub(/\/\*[^*]*(\*\/|$)/, "", code)
        sub(/^[ \t]*\*([ \t\/].*|$)/, "", code)
        if (tolower(code) ~ /softmax|attention/) {
            print FILENAME ":" FNR ":" $0 "   <- operator names belong in lib/std.nk and examples/; under src/ only in comments"
            bad = 1
        }
    } END { exit bad }' {} + >&2
}

if [ "${1-}" = --self-test ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    printf '// softmax\n    int a;  ///< Attention\n/* softmax\n * attention\n */\nint x; /* softmax */ int y;\n' >"$folder/good.cpp"
    check "$folder" || { echo "check_names.sh: self-test: comments were refused" >&2; exit 1; }
    for code in 'int fused_SoftMax;  // code' 'f("attention");' '/* note */ softmax();' 'a *softmax;'; do
        printf '%s\n' "$code" >"$folder/bad.cpp"
        if check "$folder" 2>/dev/null; then
            echo "check_names.sh: self-test: let through: $code" >&2
            exit 1
        fi
    done
    exit 0
fi
check "${1:-src}"
