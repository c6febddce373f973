"""Calls: arrays, types, views, results, errors, threads."""

import threading

import numpy as np
import pytest

import napkin

MATMUL = """
matmul(A[i, k], B[k, j]) -> C[i, j]
    C[i, j] = sum(k) A[i, k] * B[k, j]
"""


@pytest.fixture(scope="module")
def matmul():
    return napkin.compile(MATMUL)


def drawn(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_types_are_those_of_the_arrays(matmul):
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 1e-5), (np.float16, 1e-2)):
        a, b = drawn(5, 7, dtype=dtype), drawn(7, 3, dtype=dtype, seed=1)
        c = matmul(a, b)
        assert c.dtype == dtype
        np.testing.assert_allclose(c.astype(float), a.astype(float) @ b.astype(float), rtol=tolerance, atol=tolerance)
    c = matmul(drawn(5, 7, dtype=np.float16), drawn(7, 3))
    assert c.dtype == np.float32


def test_types_without_a_name_in_dlpack(matmul):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = drawn(5, 7, dtype=ml_dtypes.bfloat16), drawn(7, 3, dtype=ml_dtypes.bfloat16, seed=1)
    c = matmul(a, b)
    assert c.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(c.astype(float), a.astype(float) @ b.astype(float), rtol=2e-2, atol=2e-2)
    wide = drawn(10, 14, dtype=ml_dtypes.bfloat16)
    c = matmul(wide.T[::2, ::-1][:, 1:8], b)
    np.testing.assert_allclose(
        c.astype(float), wide.T[::2, ::-1][:, 1:8].astype(float) @ b.astype(float), rtol=2e-2, atol=5e-2
    )
    c = napkin.compile("f(A[i]: e4m3) -> B[i]\n    B[i] = 2 * A[i]\n")(np.arange(4).astype(ml_dtypes.float8_e4m3fn))
    assert c.dtype == np.float32 and list(c) == [0, 2, 4, 6]


def test_views_are_read_as_they_lie(matmul):
    a, b = drawn(14, 10), drawn(3, 7)
    wanted = a[1::2, 2:9] @ b.T
    np.testing.assert_allclose(matmul(a[1::2, 2:9], b.T), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(matmul(a[::-1][::2, 2:9], b.T), a[::-1][::2, 2:9] @ b.T, rtol=1e-4, atol=1e-5)


def test_results_are_written_where_out_says(matmul):
    a, b = drawn(5, 7), drawn(7, 3)
    whole = np.zeros((3, 10), np.float32)
    out = whole[:, 1::2].T
    assert matmul(a, b, out=out) is out
    np.testing.assert_allclose(whole[:, 1::2].T, a @ b, rtol=1e-4, atol=1e-5)
    assert not whole[:, ::2].any()
    wide = np.zeros((5, 3), np.float64)
    matmul(a, b, out=wide)
    np.testing.assert_allclose(wide, a @ b, rtol=1e-4, atol=1e-5)


def test_read_only_arrays_are_read_and_not_written(matmul):
    a, b = drawn(5, 7), drawn(7, 3)
    a.flags.writeable = b.flags.writeable = False
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)
    out = np.zeros((5, 3), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        matmul(a, b, out=out)


def test_arguments_by_name_and_numbers():
    program = napkin.compile("f(A[i], s) -> B[i], C\n    B[i] = s * A[i]\n    C = sum(i) A[i]\n")
    a = drawn(6)
    b, c = program(s=0.5, A=a)
    np.testing.assert_allclose(b, 0.5 * a, rtol=1e-6)
    assert c.shape == () and abs(c - a.sum()) < 1e-4
    first = np.empty(6, np.float32)
    b, c = program(a, 2.0, out=(first, None))
    assert b is first
    second = np.empty((), np.float32)
    b, c = program(a, 2.0, out=[None, second])
    assert c is second and b is not first
    np.testing.assert_allclose(b, 2 * a, rtol=1e-6)


def test_sizes_that_the_text_computes():
    program = napkin.compile("f(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + w] * W[w]\nsizes i = n - w + 1\n")
    x, w = drawn(20), drawn(4)
    np.testing.assert_allclose(program(x, w), np.convolve(x, w[::-1], "valid"), rtol=1e-4, atol=1e-5)
    assert program.outputs[0].sizes == ("n - w + 1",)
    assert program(drawn(3), drawn(3)).shape == (1,)


def test_empty_arrays(matmul):
    assert matmul(np.zeros((0, 4), np.float32), np.zeros((4, 3), np.float32)).shape == (0, 3)
    assert not matmul(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)).any()


def test_kernels_are_kept_by_shape(matmul):
    program = napkin.compile(MATMUL)
    program(drawn(5, 7), drawn(7, 3)), program(drawn(5, 7), drawn(7, 3))
    assert program.kernels == 1
    program.prepare(drawn(9, 7), drawn(7, 3))
    assert program.kernels == 2


def test_what_is_wrong_with_arrays(matmul):
    with pytest.raises(napkin.Error) as raised:
        matmul(drawn(5, 7), drawn(6, 3))
    assert raised.value.code == "view-sizes" and "axis k is 6 in B but 7 in A" in str(raised.value)
    with pytest.raises(napkin.Error) as raised:
        matmul(drawn(5), drawn(6, 3))
    assert raised.value.code == "view-sizes"
    with pytest.raises(napkin.Error) as raised:
        matmul(drawn(5, 7), drawn(7, 3), out=drawn(5, 4))
    assert raised.value.code == "view-sizes"
    with pytest.raises(napkin.Error) as raised:
        matmul(drawn(5, 7).astype(np.complex64), drawn(7, 3))
    assert raised.value.code == "unknown-type"
    typed = napkin.compile("f(A[i]: f16) -> B[i]\n    B[i] = A[i]\n")
    with pytest.raises(napkin.Error) as raised:
        typed(drawn(3))
    assert raised.value.code == "view-type" and "f32" in str(raised.value)
    for wrong in ((1, 2, 3), ("A", "B"), (object(), object()), (drawn(5, 7),)):
        with pytest.raises(TypeError):
            matmul(*wrong)
    with pytest.raises(TypeError, match="no argument 'D'"):
        matmul(drawn(5, 7), drawn(7, 3), D=1)
    with pytest.raises(TypeError, match="given twice"):
        matmul(drawn(5, 7), drawn(7, 3), A=1)
    with pytest.raises(TypeError, match="out has to be 1"):
        matmul(drawn(5, 7), drawn(7, 3), out=(1, 2))


def test_indices_outside_of_an_array():
    program = napkin.compile("f(X[v], i[t]: i32) -> Y[t]\n    Y[t] = X[i[t]]\n")
    assert list(program(np.arange(4, dtype=np.float32), np.array([3, 0], np.int32))) == [3, 0]
    with pytest.raises(napkin.Error) as raised:
        program(np.arange(4, dtype=np.float32), np.array([4], np.int32))
    assert raised.value.code == "index-out-of-range"


class OnAGpu:
    """Says that it lies on a device, where the CPU's numbers are."""

    def __init__(self, array, device=(2, 0)):
        self.array, self.device = array, device
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


def test_streams_are_handed_to_the_arrays_library(matmul):
    a, b = OnAGpu(drawn(5, 7)), OnAGpu(drawn(7, 3))
    out = np.empty((5, 3), np.float32)

    class Stream:
        ptr = 77

    matmul(a, b, out=out)
    matmul(a, b, out=out, stream=Stream())
    assert a.streams == b.streams == [1, 77]


def test_old_dlpack(matmul):
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    a, b = drawn(5, 7), drawn(7, 3)
    out = np.empty((5, 3), np.float32)
    matmul(Old(a), Old(b), out=out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="give the results as out="):
        matmul(Old(a), Old(b))


def test_sizes_and_schedules_from_outside():
    windowed = "f(A[i]) -> B[i]\n    B[i] = where(i < w, A[i], 0)\nsizes w = 1\n"
    assert list(napkin.compile(windowed, sizes={"w": 2})(np.ones(3, np.float32))) == [1, 1, 0]
    with pytest.raises(napkin.Error) as raised:
        napkin.compile(windowed, sizes={"z": 2})
    assert raised.value.code == "unknown-axis"
    tiled = napkin.compile(MATMUL, schedule="group i = 2")
    a, b = drawn(6, 4), drawn(4, 3)
    np.testing.assert_allclose(tiled(a, b), a @ b, rtol=1e-4, atol=1e-5)
    assert "[override]" in tiled.plan(i=64, j=64, k=64).text
    with pytest.raises(napkin.Error) as raised:
        napkin.compile(MATMUL, schedule="grop i = 2")
    assert raised.value.code == "unknown-choice"


def test_threads_call_one_program():
    program = napkin.compile(MATMUL)
    failures = []

    def calls(number):
        for size in (3, 4, 3, 5, 4, 3):
            a, b = drawn(size, 7, seed=number), drawn(7, 3, seed=size)
            if not np.allclose(program(a, b), a @ b, rtol=1e-4, atol=1e-5):
                failures.append((number, size))

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and program.kernels == 3


def test_what_takes_long_is_said(capsys, monkeypatch):
    import time

    from napkin import _progress

    monkeypatch.setattr(_progress, "SECONDS_OF_SILENCE", 0.02)
    quick, slow = _progress.Note("quick"), _progress.Note("slow")
    quick.stop()
    time.sleep(0.2)
    slow.stop()
    said = capsys.readouterr().err
    assert "compiling slow" in said and said.endswith(" s\n") and "quick" not in said
