#!/bin/bash
# Builds the Python package's wheel, installs it in an empty environment and runs python/tests there.
#
#   scripts/wheel.sh            build/wheels/napkin-….whl, and its tests
#   scripts/wheel.sh DIR        the same with the wheel in DIR
#
# Objects of build/release that are there already come from ccache. Packages of Python come from PyPI.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/wheels}
log=build/wheel.log
environment=build/wheel-environment
python=${PYTHON:-python3}

run() {
    "$@" >>$log 2>&1 || { tail -n 60 $log >&2; echo "wheel.sh: failed: $*; all of its output: $PWD/$log" >&2; exit 1; }
}

mkdir -p build "$out"
: >$log
rm -rf $environment "$out"/napkin-*.whl
run "$python" -m venv $environment
bin=$PWD/$environment/bin
start=$SECONDS
run "$bin/pip" wheel --no-deps -w "$out" -C cmake.define.NAPKIN_WERROR=ON .
echo "wheel: built in $((SECONDS - start)) s: $(cd "$out" && ls -sh napkin-*.whl)"
# Without any other package: a text is read, planned and shown, and the command line works.
run "$bin/pip" install --no-deps "$out"/napkin-*.whl
(cd / && "$bin/python" -c 'import napkin; napkin.compile("f(A[i]) -> B[i]\n    B[i] = A[i] + 1\n").plan("h200", i=64)' &&
    "$bin/python" -m napkin --version)
run "$bin/pip" install numpy ml_dtypes pytest mypy nbclient ipykernel
# The tests run in a folder of their own, so that the sources are not what they import.
"$bin/python" -m pytest -q -p no:cacheprovider python/tests
