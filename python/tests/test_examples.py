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
from test_reference import LENGTHS_ARE_DATA, Case

# The second evaluator does not read the others, which have a test of their own below.
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.nk") if not LENGTHS_ARE_DATA.search(p.read_text()))


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


def attention_of(q, k, v, mask):
    """The heads of one sequence in double precision; rows stand before heads."""
    scores = np.where(mask, np.einsum("qhk,xhk->hqx", q, k) * q.shape[-1] ** -0.5, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqx,xhd->qhd", weights / weights.sum(-1, keepdims=True), v)


def test_packed_sequences():
    offsets = np.array([0, 5, 5, 6, 40], np.int32)
    draw = np.random.default_rng(1).standard_normal
    q, k, v = (draw((offsets[-1] + 3, 2, 8)).astype(np.float32) for _ in range(3))
    found = napkin.load(ROOT / "examples/packed_attention.nk")(q, k, v, offsets)
    wanted = np.zeros_like(q)
    for first, last in zip(offsets[:-1], offsets[1:]):
        rows = slice(first, last)
        if first < last:
            wanted[rows] = attention_of(q[rows], k[rows], v[rows], np.tri(last - first, dtype=bool))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    with pytest.raises(napkin.Error, match="offsets-descend|lies before"):
        napkin.load(ROOT / "examples/packed_attention.nk")(q, k, v, offsets[::-1].copy())


def test_lengths_of_a_padded_batch():
    lengths = np.array([3, 0, 9], np.int32)
    draw = np.random.default_rng(2).standard_normal
    q, k, v = (draw(shape).astype(np.float32) for shape in ((3, 2, 8), (3, 9, 2, 8), (3, 9, 2, 8)))
    found = napkin.load(ROOT / "examples/lengths.nk")(q, k, v, lengths)
    wanted = np.zeros_like(q)
    for b, n in enumerate(lengths):
        if n > 0:
            wanted[b] = attention_of(q[b : b + 1], k[b, :n], v[b, :n], True)[0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
