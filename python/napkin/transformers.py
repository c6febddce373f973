"""Attention of the models of Hugging Face's transformers, by napkin.

    import napkin.transformers
    model = AutoModelForCausalLM.from_config(config, attn_implementation="napkin")

Importing this module imports torch and transformers, 5.0 or later, and registers two implementations of attention.
`napkin` also trains; `napkin_or_sdpa` leaves calls under gradients to torch's scaled_dot_product_attention.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.utils.import_utils import is_tracing

from ._program import Program
from .torch import TYPES, Operator, operator

__all__ = ["Mask", "attention", "mask", "programs"]

# Which keys a query sees, as a text has it: conditions of b, h, g, q and x, which all have to hold. Then a term of the
# scores, the arrays that all this reads, and a line of sizes. Last: whether a query may see no key, with the result 0.
Rule = Tuple[Tuple[str, ...], str, Tuple[str, ...], str, bool]

_ALL_KEYS: Rule = ((), "", (), "", False)
_CAUSAL: Rule = (("x <= q",), "", (), "", False)


class Mask(BlockMask):  # type: ignore[misc]
    """A rule with the tensors that it reads, in place of a tensor of truths.

    It is a BlockMask by name alone: models hand one through as it is.
    """

    def __init__(self, shape: Tuple[int, int, int, int], rule: Rule, tensors: Tuple[torch.Tensor, ...] = ()) -> None:
        self.shape_of_mask, self.rule, self.tensors = shape, rule, tensors

    @property
    def shape(self) -> Tuple[int, int, int, int]:
        """[batch, 1, queries, keys]."""
        return self.shape_of_mask

    def to(self, device: Any) -> "Mask":
        """The same on that device."""
        return Mask(self.shape, self.rule, tuple(tensor.to(device) for tensor in self.tensors))

    def __repr__(self) -> str:
        return f"<napkin mask {' and '.join(self.rule[0]) or self.rule[1] or 'of all keys'}>"


# What transformers' functions of masks say, by their code. The number is that of the function that encloses it.
_KINDS: Dict[Any, str] = {
    masking_utils.causal_mask_function.__code__: "causal",
    masking_utils.bidirectional_mask_function.__code__: "all",
    masking_utils.sliding_window_overlay(1).__code__: "window",
    masking_utils.sliding_window_bidirectional_overlay(1).__code__: "around",
}
_AND = masking_utils.and_masks(masking_utils.causal_mask_function).__code__


def _kinds(function: Any) -> Optional[List[Tuple[str, int]]]:
    """What all has to hold by a function of a mask; None where it is not one of transformers' own."""
    code = getattr(function, "__code__", None)
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    if code is _AND and len(held) == 1:
        parts = [_kinds(part) for part in held[0]]
        return None if None in parts else [kind for part in parts for kind in part or ()]
    if code not in _KINDS or not all(type(value) is int for value in held):
        return None
    return [(_KINDS[code], held[0] if held else 0)]


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: Optional[torch.Tensor] = None,
    device: Any = "cpu",
    **words: Any,
) -> Any:
    """What transformers asks for as a mask: a Mask, or of functions that are not its own a tensor of truths.

    Query i is at place `q_offset` + i and key j at `kv_offset` + j. `attention_mask` [batch, places] is false where
    there is padding.
    """
    kinds = _kinds(mask_function)
    if kinds is None:
        words.update(mask_function=mask_function, attention_mask=attention_mask, device=device)
        words["allow_is_causal_skip"] = words["allow_is_bidirectional_skip"] = False
        return masking_utils.sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, **words)
    conditions: List[str] = []
    arrays: List[str] = []
    tensors: List[torch.Tensor] = []
    sizes = ""
    # The last query is at the last key, unless a cache has room behind it.
    end = q_offset - kv_offset + q_length
    place = "q + size(x) - size(q)"
    if any(kind != "all" for kind, _ in kinds) and (isinstance(end, torch.Tensor) or end != kv_length):
        place, sizes = "q + L[b] - size(q)", "x = L[b]"
        arrays.append("L[b]: i32")
        if isinstance(end, torch.Tensor):
            # A cache moves its own tensor on before the attention reads this one.
            tensors.append(end.to(torch.int32).repeat(batch_size))
        else:
            tensors.append(torch.full((batch_size,), end, dtype=torch.int32, device=device))
    for kind, width in kinds:
        if kind == "causal" and q_length > 1:  # a single query is the last one
            conditions.append(f"x <= {place}")
        elif kind == "window" and width < kv_length:
            conditions.append(f"{place} - x < {width}")
        elif kind == "around" and width < kv_length:
            conditions.append(f"abs({place} - x) <= {width}")
    # What is traced is not read.
    if attention_mask is not None and (is_tracing(attention_mask) or not attention_mask[:, kv_offset:].all()):
        padding: Any = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
        conditions.append("A[b, x]")
        arrays.append("A[b, x]: bool")
        tensors.append(padding[:, kv_offset : kv_offset + kv_length].contiguous())
    rule = (tuple(conditions), "", tuple(arrays), sizes, "A[b, x]" in conditions)
    return Mask((batch_size, 1, q_length, kv_length), rule, tuple(tensors))


def _mask_of(given: Optional[torch.Tensor], causal: bool, query: torch.Tensor, key: torch.Tensor) -> Mask:
    """The mask that a tensor [batch, 1 or heads, queries, keys] is, of truths or of numbers that are added."""
    shape = (query.shape[0], 1, query.shape[2], key.shape[2])
    if given is None:
        return Mask(shape, _CAUSAL if causal and shape[2] > 1 else _ALL_KEYS)
    given = given[:, :, :, : shape[3]].expand(shape[0], -1, -1, -1)
    axes, tensor = "b, q, x", given[:, 0]
    if given.shape[1] > 1:
        axes, tensor = "b, h, g, q, x", given.unflatten(1, (key.shape[1], -1))
    if given.dtype is torch.bool:
        return Mask(shape, ((f"M[{axes}]",), "", (f"M[{axes}]: bool",), "", True), (tensor,))
    return Mask(shape, ((), f"M[{axes}]", (f"M[{axes}]: {TYPES[tensor.dtype]}",), "", False), (tensor,))


_operators: Dict[Tuple[Any, ...], Operator] = {}


def programs() -> List[Program]:
    """The programs that models called so far, one for each combination of what they asked for."""
    return [made.program for made in _operators.values()]


def _operator(*asked: Any) -> Operator:
    """The operator of a combination, which _text takes."""
    if asked not in _operators:
        _operators[asked] = operator(Program(_text(*asked)))
    return _operators[asked]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _name(*asked: Any) -> str:
    """Its name among torch's operators, which a graph that is being traced keeps in its place."""
    return _operator(*asked).name


def _text(rule: Rule, scale: float, softcap: Optional[float], sinks: Optional[str], bias: Optional[str]) -> str:
    """The text of one combination. Sizes, and the types of queries, keys and values, are open.

    `sinks` and `bias` are the types of these, where there are any.
    """
    conditions, added, read, sizes, may_be_empty = rule
    arrays = ["Q[b, h, g, q, k]", "K[b, h, x, k]", "V[b, h, x, d]", *read]
    score = "S[b, h, g, q, x]" if scale == 1 else f"S[b, h, g, q, x] * {scale!r}"
    if bias:
        arrays.append(f"B[b, h, g, q, x]: {bias}")
        score += " + B[b, h, g, q, x]"
    if softcap:
        score = f"{softcap!r} * tanh(({score}) / {softcap!r})"
    if added:
        score += f" + {added}"
    if conditions:
        score = f"where({' and '.join(conditions)}, {score}, -inf)"
    if sinks:
        arrays.append(f"N[h, g]: {sinks}")
        softmax = """    M[b, h, g, q] = max(max(x) T[b, h, g, q, x], N[h, g])
    E[b, h, g, q, x] = exp(T[b, h, g, q, x] - M[b, h, g, q])
    Z[b, h, g, q] = exp(N[h, g] - M[b, h, g, q]) + sum(x) E[b, h, g, q, x]
    P[b, h, g, q, x] = E[b, h, g, q, x] / Z[b, h, g, q]"""
    else:
        softmax = f"    P[b, h, g, q, x] = {'masked_' * may_be_empty}softmax(x) T[b, h, g, q, x]"
    return f"""attention({', '.join(arrays)}) -> O[b, q, h, g, d]
    S[b, h, g, q, x] = sum(k) Q[b, h, g, q, k] * K[b, h, x, k]
    T[b, h, g, q, x] = {score}
{softmax}
    O[b, q, h, g, d] = sum(x) P[b, h, g, q, x] * V[b, h, x, d]
""" + (f"sizes {sizes}\n" if sizes else "")


def attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: Optional[float] = None,
    is_causal: Optional[bool] = None,
    softcap: Optional[float] = None,
    s_aux: Optional[torch.Tensor] = None,
    position_bias: Optional[torch.Tensor] = None,
    **words: Any,
) -> Tuple[torch.Tensor, None]:
    """What transformers calls as attention.

    query is [batch, heads, queries, k], key [batch, groups, keys, k], value [batch, groups, keys, d]; the result is
    [batch, queries, heads, d]. `s_aux` [heads] are logits of sinks, `position_bias` [1 or batch, heads, queries, keys]
    is added to scores. Views are read as they lie. Gradients are those that napkin derives. Raises
    NotImplementedError for dropout.
    """
    if dropout:
        raise NotImplementedError("napkin's attention has no dropout: put the model in eval()")
    mask = attention_mask
    if type(mask) is not Mask:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        mask = _mask_of(mask, causal, query, key)
    batches, heads, queries, k = query.shape
    shared = key.shape[1]
    tensors, sinks, bias = mask.tensors, None, None
    if position_bias is not None:
        bias = TYPES[position_bias.dtype]
        tensors += (position_bias.expand(batches, -1, -1, -1).unflatten(1, (shared, -1)),)
    if s_aux is not None:
        sinks = TYPES[s_aux.dtype]
        tensors += (s_aux.view(shared, -1),)
    asked = mask.rule, k**-0.5 if scaling is None else scaling, softcap, sinks, bias
    run = getattr(torch.ops.napkin, _name(*asked)) if torch.compiler.is_compiling() else _operator(*asked)
    out = run(query.view(batches, shared, heads // shared, queries, k), key, value, *tensors)
    return out.flatten(2, 3), None


def _attention_or_sdpa(module: Any, query: torch.Tensor, *tensors: Any, **words: Any) -> Any:
    function = sdpa_attention_forward if torch.is_grad_enabled() else attention
    return function(module, query, *tensors, **words)


def _mask_or_sdpa(*sizes: Any, **words: Any) -> Any:
    return (masking_utils.sdpa_mask if torch.is_grad_enabled() else mask)(*sizes, **words)


AttentionInterface.register("napkin", attention)
AttentionMaskInterface.register("napkin", mask)
AttentionInterface.register("napkin_or_sdpa", _attention_or_sdpa)
AttentionMaskInterface.register("napkin_or_sdpa", _mask_or_sdpa)
