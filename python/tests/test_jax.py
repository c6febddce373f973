"""Programs as functions of jax's arrays, on the processor. Skipped where there is no jax."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

import napkin
import napkin.jax

ATTENTION = """
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d], L[q]
    S[q, x] = k^-0.5 * sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x]
    O[q, d] = sum(x) P[q, x] * V[x, d]
    L[q] = logsumexp(x) S[q, x]
"""


@pytest.fixture(scope="module")
def attention():
    return napkin.jax.operator(napkin.compile(ATTENTION))


def qkv(q=6, x=9, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), 3)
    return tuple(jax.random.normal(key, shape, dtype) for key, shape in zip(keys, [(q, 8), (x, 8), (x, 8)]))


def of_jax(q, k, v):
    s = (q @ k.T).astype(jnp.float32) * 8**-0.5
    return jax.nn.softmax(s) @ v.astype(jnp.float32), jax.nn.logsumexp(s, -1)


def close(found, wanted, tolerance=1e-5):
    for one, other in zip(found, wanted, strict=True):
        assert isinstance(one, jax.Array)
        np.testing.assert_allclose(np.asarray(one, np.float32), other, rtol=tolerance, atol=tolerance)


def test_calls(attention):
    close(attention(*qkv()), of_jax(*qkv()))
    out = attention(*qkv(dtype=jnp.bfloat16))
    assert out[0].dtype == jnp.bfloat16
    close(out, of_jax(*qkv(dtype=jnp.bfloat16)), 5e-2)


def test_jit_and_vmap(attention):
    compiled = jax.jit(lambda q, k, v: attention(q * 2, k, v))
    for size in (5, 7):
        q, k, v = qkv(q=size)
        close(compiled(q, k, v), of_jax(q * 2, k, v))
    q, k, v = qkv()
    found = jax.vmap(attention, in_axes=(0, None, None))(jnp.stack([q, 3 * q]), k, v)
    close([one[1] for one in found], of_jax(3 * q, k, v))


def test_sizes_that_follow_from_others():
    conv = napkin.jax.operator(
        napkin.compile("conv(X[n], W[w]) -> Y[i]\n    Y[i] = sum(w) X[i + w] * W[w]\nsizes i = n - w + 1\n")
    )
    x, w = jnp.arange(9.0), jnp.ones(3)
    assert jax.jit(conv)(x, w).tolist() == jnp.convolve(x, w, "valid").tolist()
    with pytest.raises(ValueError, match="has 1 axes, not 2"):
        jax.jit(conv)(jnp.ones((2, 2)), w)


def test_arrays_are_read_where_they_lie():
    x = jnp.arange(6.0).reshape(2, 3)
    out = np.empty((3, 2), np.float32)
    napkin.compile("f(A[i, j]) -> B[j, i]\n    B[j, i] = 2 * A[i, j]\n")(x, out=out)
    np.testing.assert_array_equal(out, 2 * np.asarray(x).T)
