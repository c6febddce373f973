"""Functions of torch as texts, and FlexAttention's functions, beside torch. Skipped where there is no torch."""

import pytest

torch = pytest.importorskip("torch")
functional = torch.nn.functional

import napkin
import napkin.torch


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def attention(q, k, v):
    s = torch.einsum("bqk,bxk->bqx", q, k) * k.shape[-1] ** -0.5
    keep = torch.tril(torch.ones(s.shape[-2], s.shape[-1], dtype=torch.bool))
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v


def normed(x, w, g):
    y = functional.linear(functional.layer_norm(x, (8,), g), w)
    return functional.silu(y) * y + x.mean(-1, keepdim=True)


def heads(x, w):
    q = (x @ w).view(2, 6, 2, 4).transpose(1, 2)
    return functional.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(2, 6, 8)


def rows(table, index):
    return table[index, 1:5].float().amax(-1) + torch.logsumexp(functional.embedding(index, table), -1)


def elements(x, y):
    z = torch.where(x > y, x.clamp(-1, 1), torch.minimum(x, y).abs())
    return torch.exp(-z) / (1 + z.square()), (x - y).sum(0), torch.rsqrt(1 + x.pow(2))[:, 2:4]


def masked(x):
    band = (x > 0).triu(-1)
    return torch.where(band & ~(x > 1), x, 0.0).tril(1), torch.einsum("ij,jk->k", x, x.t()).softmax(0)


CASES = {
    "masked": (masked, drawn(5, 5)),
    "attention": (attention, drawn(2, 6, 8), drawn(2, 6, 8, seed=1), drawn(2, 6, 8, seed=2)),
    "normed": (normed, drawn(5, 8), drawn(8, 8, seed=1), drawn(8, seed=2)),
    "heads": (heads, drawn(2, 6, 8), drawn(8, 8, seed=1)),
    "rows": (rows, drawn(10, 6), torch.tensor([3, 0, 9])),
    "elements": (elements, drawn(5, 7), drawn(5, 7, seed=1)),
}


@pytest.mark.parametrize("name", CASES)
def test_traced(name):
    fn, *arguments = CASES[name]
    traced = napkin.torch.trace(fn, *arguments)
    torch.testing.assert_close(traced(*arguments), fn(*arguments), rtol=1e-4, atol=1e-5)


def test_a_traced_function_takes_other_sizes_and_types():
    traced = napkin.torch.trace(lambda x, w: torch.relu(x @ w), drawn(4, 6), drawn(6, 3))
    x, w = drawn(7, 5).double(), drawn(5, 9, seed=1).double()
    torch.testing.assert_close(traced(x, w), torch.relu(x @ w))
    assert "sum(" in traced.text


def test_modules_bring_their_parameters():
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.GELU(), torch.nn.Linear(5, 3)).requires_grad_(False)
    traced = napkin.torch.trace(module, drawn(4, 6))
    torch.testing.assert_close(traced(drawn(7, 6)), module(drawn(7, 6)), rtol=1e-4, atol=1e-5)


def running(x):
    y = x + 1
    return torch.cumsum(y, 0)


def test_an_operator_without_an_equation_is_named():
    with pytest.raises(napkin.torch.NoEquation, match=r"cumsum.*test_trace.py.*torch.cumsum\(y, 0\)"):
        napkin.torch.trace(running, drawn(4))


def alibi(score, b, h, q, kv):
    return score + torch.exp2(-((h + 1) * 8.0 / 4)) * (kv - q)


def softcap(score, b, h, q, kv):
    return 20 * torch.tanh(score / 20)


BIAS = drawn(4, 33, seed=5)
DOCUMENT = torch.tensor([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
PREFIX = torch.tensor([3, 6])

OFFSETS = torch.tensor([0, 3, 7, 12])


def jagged(b, h, q, kv):
    return (DOCUMENT[q] == DOCUMENT[kv]) & (q - OFFSETS[DOCUMENT[q]] >= kv - OFFSETS[DOCUMENT[kv]])


FLEX = {
    "plain": (None, None),
    "causal": (None, lambda b, h, q, kv: q >= kv),
    "window": (None, lambda b, h, q, kv: (q >= kv) & (q - kv <= 4)),
    "prefix": (None, lambda b, h, q, kv: (kv < PREFIX[b]) | (q >= kv)),
    "document": (None, lambda b, h, q, kv: (DOCUMENT[q] == DOCUMENT[kv]) & (q >= kv)),
    "nothing is left of a row": (None, lambda b, h, q, kv: q > kv),
    "natten": (None, lambda b, h, q, kv: ((q // 4 - kv // 4).abs() <= 1) & ((q % 4 - kv % 4).abs() <= 1)),
    "jagged": (None, jagged),
    "alibi": (alibi, lambda b, h, q, kv: q >= kv),
    "softcap": (softcap, None),
    "bias": (lambda score, b, h, q, kv: score + BIAS[h, q - kv + 16], None),
}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", FLEX)
def test_flex_attention(name, groups):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    score_mod, mask_mod = FLEX[name]
    q, k, v = drawn(2, 4, 12, 8), drawn(2, 4 // groups, 12, 8, seed=1), drawn(2, 4 // groups, 12, 8, seed=2)
    mask = create_block_mask(mask_mod, 2, 4, 12, 12, device="cpu") if mask_mod else None
    wanted = flex_attention(q, k, v, score_mod, mask, enable_gqa=groups > 1)
    found = napkin.torch.flex_attention(q, k, v, score_mod, mask, enable_gqa=groups > 1)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_flex_attention_gives_the_type_of_the_query():
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (drawn(2, 4, 12, 8, seed=seed).bfloat16() for seed in range(3))
    found = napkin.torch.flex_attention(q, k, v, FLEX["bias"][0])
    torch.testing.assert_close(found, flex_attention(q, k, v, FLEX["bias"][0]), rtol=2e-2, atol=2e-2)


def test_flex_attention_says_what_it_cannot():
    q, k = drawn(2, 4, 12, 8), drawn(2, 2, 12, 8)
    with pytest.raises(ValueError, match="enable_gqa"):
        napkin.torch.flex_attention(q, k, k)
    with pytest.raises(napkin.torch.NoEquation, match="erfinv"):
        napkin.torch.flex_attention(q, q, q, lambda s, b, h, i, j: torch.erfinv(s))
