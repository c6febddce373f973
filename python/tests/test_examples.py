"""Every example through Python, beside the second evaluator of tests/reference: NumPy arrays in, NumPy arrays out."""

import concurrent.futures
import functools

import numpy as np
import pytest
from conftest import ROOT

import napkin
from language import parse
from napkin._arrays import DTYPES, NAMES
from numbers_of_types import EXACT, INTEGERS
from test_reference import Case

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.nk"))


def dtype_of(name):
    pytest.importorskip("ml_dtypes")
    from napkin._arrays import _dtype

    return _dtype(DTYPES[NAMES[name]])


@functools.lru_cache(maxsize=None)
def case_of(example):
    """The example's main diagram at small sizes, with inputs and what they give."""
    path = ROOT / "examples" / f"{example}.nk"
    library, _ = parse((ROOT / "lib/std.nk").read_text())
    definitions, outer = parse(path.read_text())
    return Case(f"examples/{example}.nk", path.read_text(), definitions, outer, list(definitions)[-1], library, "0")


@functools.lru_cache(maxsize=None)
def called(example):
    """The case's arrays and the results of a call."""
    case = case_of(example)
    # Sizes that no shape says are those of the case.
    axes = {axis for array in case.definition.arguments for axis in array.axes}
    made = {name for name, tree in case.definition.sizes if tree[0] != "number"}
    program = napkin.load(ROOT / case.name, sizes={a: n for a, n in case.sizes.items() if a not in axes | made})
    arrays = {name: np.asarray(data).astype(dtype_of(type)) for name, (type, data) in case.inputs.items()}
    return program, arrays, program(**arrays)


@pytest.fixture(scope="session")
def all_called():
    """Compilers run on two threads, which is also how programs are called by several."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda example: pool_result(example), EXAMPLES))


def pool_result(example):
    try:
        return called(example)
    except Exception:  # the example's own test shows it
        return None


@pytest.mark.parametrize("example", EXAMPLES)
def test_example(example, all_called):
    case = case_of(example)
    program, _, results = called(example)
    if len(program.outputs) == 1:
        results = (results,)
    for output, found in zip(program.outputs, results):
        type, values = case.results[output.name]
        assert isinstance(found, np.ndarray) and found.dtype == dtype_of(type)
        wanted = values["exact"].data
        if type in INTEGERS:
            assert np.all((found == wanted) | (found == values["plain"].data)), output.name
            continue
        tolerance = case.tolerance(type, wanted.astype(EXACT), values)
        with np.errstate(all="ignore"):
            near = np.abs(found.astype(float) - wanted) <= tolerance
        same = near | (found.astype(float) == wanted) | (np.isnan(found.astype(float)) & np.isnan(wanted.astype(float)))
        assert np.all(same | np.isnan(tolerance)), output.name
