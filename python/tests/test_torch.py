"""Programs as torch's operators, on the processor. Skipped where there is no torch."""

import pytest

torch = pytest.importorskip("torch")

import napkin
import napkin.torch

ATTENTION = """
attention(Q[q, k], K[x, k], V[x, d]) -> O[q, d]
    S[q, x] = sum(k) Q[q, k] * K[x, k]
    P[q, x] = softmax(x) S[q, x] * k^-0.5
    O[q, d] = sum(x) P[q, x] * V[x, d]
"""

BACKWARD = """
attention_backward(Q[q, k], K[x, k], V[x, d], O[q, d], dO[q, d]) -> dQ[q, k], dK[x, k], dV[x, d]
    S[q, x] = (sum(k) Q[q, k] * K[x, k]) * k^-0.5
    P[q, x] = softmax(x) S[q, x]
    D[q] = sum(d) dO[q, d] * O[q, d]
    G[q, x] = P[q, x] * ((sum(d) dO[q, d] * V[x, d]) - D[q]) * k^-0.5
    dQ[q, k] = sum(x) G[q, x] * K[x, k]
    dK[x, k] = sum(q) G[q, x] * Q[q, k]
    dV[x, d] = sum(q) P[q, x] * dO[q, d]
"""

CONVOLUTION = (
    "conv(X[n], W[w]) -> Y[i], Z\n    Y[i] = sum(w) X[i + w] * W[w]\n    Z = sum(n) X[n]\nsizes i = n - w + 1\n"
)


@pytest.fixture(scope="module")
def attention():
    return napkin.torch.operator(napkin.compile(ATTENTION), backward=napkin.compile(BACKWARD))


@pytest.fixture(scope="module")
def conv():
    return napkin.torch.operator(napkin.compile(CONVOLUTION))


def drawn(*shape, dtype=torch.float32, seed=0, grad=False):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)
    return made.requires_grad_(grad)


def of_torch(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v


def qkv(q=6, x=9, k=8, **options):
    return drawn(q, k, **options), drawn(x, k, seed=1, **options), drawn(x, k, seed=2, **options)


def test_programs_take_tensors_and_give_them():
    program = napkin.compile(ATTENTION)
    for dtype, tolerance in (
        (torch.float64, 1e-12),
        (torch.float32, 1e-5),
        (torch.bfloat16, 5e-2),
        (torch.float16, 5e-3),
    ):
        q, k, v = qkv(dtype=dtype)
        out = program(q, k, v)
        assert isinstance(out, torch.Tensor) and out.dtype == dtype
        torch.testing.assert_close(
            out.double(), of_torch(q.double(), k.double(), v.double()), rtol=tolerance, atol=tolerance
        )
    q, k, v = qkv()
    out = torch.empty(8, 6).mT
    assert program(q.mT.contiguous().mT, k, v, out=out) is out
    torch.testing.assert_close(out, of_torch(q, k, v), rtol=1e-4, atol=1e-5)
    fp8 = napkin.compile("f(A[i]) -> B[i]: f32\n    B[i] = 2 * A[i]\n")(torch.arange(4.0).to(torch.float8_e4m3fn))
    assert fp8.tolist() == [0, 2, 4, 6]


def test_opcheck(attention, conv):
    for grad in (False, True):
        torch.library.opcheck(attention.op, qkv(dtype=torch.float64, grad=grad))
    torch.library.opcheck(conv.op, (drawn(9), drawn(3)))
    torch.library.opcheck(conv.op, (drawn(9, dtype=torch.float16), drawn(3, dtype=torch.float16)))


def test_gradients(attention):
    assert torch.autograd.gradcheck(attention, qkv(q=3, x=4, k=2, dtype=torch.float64, grad=True))
    q, k, v = qkv(grad=True)
    attention(q, k, v).square().sum().backward()
    found = [t.grad.clone() for t in (q, k, v)]
    for t in (q, k, v):
        t.grad = None
    of_torch(q, k, v).square().sum().backward()
    for t, gradient in zip((q, k, v), found):
        torch.testing.assert_close(gradient, t.grad, rtol=1e-3, atol=1e-4)


def test_gradients_of_some_inputs_and_outputs():
    forward = napkin.compile("f(A[i], B[i]) -> C[i], D[i]\n    C[i] = A[i] * B[i]\n    D[i] = A[i] + B[i]\n")
    backward = napkin.compile("g(B[i], dC[i], dD[i]) -> dA[i]\n    dA[i] = dC[i] * B[i] + dD[i]\n")
    f = napkin.torch.operator(forward, backward=backward)
    a, b = drawn(5, grad=True), drawn(5, seed=1)
    c, _ = f(a, b)
    c.sum().backward()
    torch.testing.assert_close(a.grad, b)
    with pytest.raises(ValueError, match="takes E"):
        napkin.torch.operator(forward, backward=napkin.compile("g(E[i]) -> dA[i]\n    dA[i] = E[i]\n"))
    with pytest.raises(ValueError, match="gives dE"):
        napkin.torch.operator(forward, backward=napkin.compile("g(dC[i]) -> dE[i]\n    dE[i] = dC[i]\n"))


@pytest.fixture(scope="module")
def derived():
    return napkin.torch.operator(napkin.compile(ATTENTION))


def test_derived_gradients(derived, conv):
    assert torch.autograd.gradcheck(derived, qkv(q=3, x=4, k=2, dtype=torch.float64, grad=True))
    small = (drawn(5, dtype=torch.float64, grad=True), drawn(2, seed=1, dtype=torch.float64, grad=True))
    assert torch.autograd.gradcheck(conv, small)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2)):
        q, k, v = qkv(dtype=dtype, grad=True)
        derived(q, k, v).float().square().sum().backward()
        wanted = [t.detach().double().requires_grad_() for t in (q, k, v)]
        of_torch(*wanted).square().sum().backward()
        for t, of in zip((q, k, v), wanted):
            assert t.grad.dtype == dtype
            torch.testing.assert_close(t.grad.double(), of.grad, rtol=tolerance, atol=tolerance)


def test_derived_gradients_have_gradients():
    f = napkin.torch.operator(napkin.compile("f(X[i], W[i]) -> Y\n    Y = sum(i) tanh(X[i] * W[i])\n"))
    given = (drawn(4, dtype=torch.float64, grad=True), drawn(4, seed=1, dtype=torch.float64, grad=True))
    assert torch.autograd.gradgradcheck(f, given)


def test_gradients_of_programs():
    program = napkin.compile("f(X[i], N[i]: i32, W[j]) -> Y[i, j], Z: i32\n    Y[i, j] = X[i] * N[i] * W[j]\n    Z = sum(i) N[i]\n")
    gradient = program.gradient()
    assert [array.name for array in gradient.inputs] == ["X", "N", "W", "dY"]
    assert [array.name for array in gradient.outputs] == ["dX", "dW"]
    assert [array.name for array in program.gradient("W").outputs] == ["dW"]
    with pytest.raises(ValueError, match="no input N"):
        program.gradient("N")


def test_a_traced_function_has_gradients():
    layer = torch.nn.Sequential(torch.nn.LayerNorm(6), torch.nn.Linear(6, 4), torch.nn.GELU())
    x = drawn(5, 6)
    traced = napkin.torch.trace(layer, x)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    traced(a).square().sum().backward()
    layer(b).square().sum().backward()
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)


def test_an_operator_without_gradients_says_so():
    conv = napkin.torch.operator(napkin.compile(CONVOLUTION), backward=False)
    y, _ = conv(drawn(9, grad=True), drawn(3))
    with pytest.raises(RuntimeError, match="autograd"):
        y.sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_whole_with_dynamic_shapes(attention, backend):
    import torch._dynamo.testing

    counted = torch._dynamo.testing.CompileCounterWithBackend(backend)
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: attention(q * 2, k, v) + 1, fullgraph=True, dynamic=True, backend=counted)
    for size in (5, 7, 11):  # none of them another axis' size, which torch would take for the same
        q, k, v = qkv(q=size, x=size + 4)
        torch.testing.assert_close(compiled(q, k, v), of_torch(q * 2, k, v) + 1, rtol=1e-4, atol=1e-5)
    assert counted.frame_count == 1


@pytest.mark.parametrize("which", ["attention", "derived"])
def test_compiled_with_gradients(which, request):
    attention = request.getfixturevalue(which)
    torch._dynamo.reset()
    q, k, v = qkv(grad=True)
    torch.compile(lambda *t: attention(*t).square().sum(), fullgraph=True, backend="aot_eager")(q, k, v).backward()
    found, q.grad = q.grad, None
    of_torch(q, k, v).square().sum().backward()
    torch.testing.assert_close(found, q.grad, rtol=1e-3, atol=1e-4)


def test_sizes_stay_symbols(conv):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    x, w = drawn(9), drawn(3)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        y, z = conv(mode.from_tensor(x, static_shapes=False), mode.from_tensor(w, static_shapes=False))
    assert isinstance(y.shape[0], torch.SymInt) and z.shape == ()
    assert not isinstance(conv(drawn(9), drawn(3))[0].shape[0], torch.SymInt)


def test_vmap_weaves_an_axis(attention, conv):
    q, k, v = drawn(4, 6, 8), drawn(9, 8, seed=1), drawn(9, 4, 8, seed=2)
    found = torch.vmap(attention, in_dims=(0, None, 1))(q, k, v)
    wanted = torch.stack([of_torch(q[i], k, v[:, i]) for i in range(4)])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    y, z = torch.vmap(conv, in_dims=(0, None))(drawn(4, 9), drawn(3))
    assert y.shape == (4, 7) and z.shape == (4,)


def test_arguments_by_name(attention):
    q, k, v = qkv()
    torch.testing.assert_close(attention(q, V=v, K=k), of_torch(q, k, v), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError):
        attention(q, k, v, W=v)


def test_autocast(attention):
    q, k, v = qkv(grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention(q, k.bfloat16(), v)
        assert out.dtype == torch.matmul(q, k.mT).dtype == torch.bfloat16
        assert attention(*(t.double() for t in (q, k, v))).dtype == torch.float64
        typed = napkin.torch.operator(napkin.compile("f(A[i]: f32, B[i]) -> C[i]\n    C[i] = A[i] + B[i]\n"))
        assert typed(torch.ones(3), torch.ones(3)).dtype == torch.bfloat16
        compiled = torch.compile(lambda *t: attention(*t), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(q, k, v), out)
    out.float().sum().backward()
    assert q.grad.dtype == torch.float32
    assert attention(q, k, v).dtype == torch.float32
