"""Programs on a GPU, on torch's tensors: streams, graphs, torch.compile, FlexAttention. Skipped where there is none."""

import threading

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)

import napkin
import napkin.torch

ATTENTION = """
attention(Q[b, h, q, k], K[b, h, x, k], V[b, h, x, d]) -> O[b, h, q, d]
    S[b, h, q, x] = sum(k) Q[b, h, q, k] * K[b, h, x, k]
    P[b, h, q, x] = softmax(x) where(x <= q, S[b, h, q, x] * k^-0.5, -inf)
    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, h, x, d]
"""


@pytest.fixture(scope="module")
def attention():
    return napkin.compile(ATTENTION)


def qkv(n=256, seed=0, dtype=torch.bfloat16):
    draw = torch.Generator("cuda").manual_seed(seed)
    return tuple(torch.randn(2, 4, n, 64, generator=draw, device="cuda").to(dtype) for _ in range(3))


def of_torch(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)


def close(found, wanted):
    torch.testing.assert_close(found.float(), wanted.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_calls(attention, dtype):
    q, k, v = qkv(dtype=dtype)
    out = attention(q, k, v)
    assert out.device == q.device and out.dtype == dtype
    close(out, of_torch(q, k, v))
    into = torch.empty_like(q)
    assert attention(q, k, v, out=into) is into
    close(into, out)


def test_other_lengths(attention):
    for n in (1, 17, 128, 300, 1000):
        q, k, v = qkv(n)
        close(attention(q, k, v), of_torch(q, k, v))


def test_the_current_stream_is_taken(attention):
    q, k, v = qkv()
    attention.prepare(q, k, v)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        later = q * 2
        out = attention(later, k, v)
        assert not stream.query()
    stream.synchronize()
    close(out, of_torch(q * 2, k, v))
    named = attention(q, k, v, stream=stream)
    stream.synchronize()
    close(named, of_torch(q, k, v))


def test_a_graph_is_captured(attention):
    q, k, v = qkv()
    out = torch.empty_like(q)
    attention.prepare(q, k, v, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        attention(q, k, v, out=out)
    q.copy_(qkv(seed=5)[0])
    graph.replay()
    torch.cuda.synchronize()
    close(out, of_torch(q, k, v))


def test_operator(attention):
    operator = napkin.torch.operator(attention)
    torch.library.opcheck(operator.op, qkv())
    compiled = torch.compile(lambda q, k, v: operator(q * 2, k, v) + 1, fullgraph=True, dynamic=True)
    for n in (64, 192, 320):
        q, k, v = qkv(n)
        close(compiled(q, k, v), of_torch(q * 2, k, v) + 1)


def test_eight_threads(attention):
    # One kernel's workspace is one stream's: all threads launch on the same stream.
    wanted = {seed: of_torch(*qkv(seed=seed)) for seed in range(8)}
    failures = []

    def calls(seed):
        for _ in range(20):
            q, k, v = qkv(seed=seed)
            if not torch.allclose(attention(q, k, v).float(), wanted[seed], rtol=2e-2, atol=2e-2):
                failures.append(seed)

    threads = [threading.Thread(target=calls, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_flex_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q, k, v = qkv(512)
    window = create_block_mask(lambda b, h, q, kv: (q >= kv) & (q - kv < 100), None, None, 512, 512, device="cuda")
    wanted = torch.compile(flex_attention)(q, k, v, block_mask=window)
    close(napkin.torch.flex_attention(q, k, v, block_mask=window), wanted)


def test_a_benchmark_has_the_predicted_time(attention):
    table = attention.benchmark(*qkv(), against={"torch": lambda q, k, v: of_torch(q, k, v)}, seconds=0.1)
    assert table.predicted and [row.name for row in table.rows] == ["attention", "torch"]
