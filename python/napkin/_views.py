"""Torch's operators that compute nothing: shapes, numbers and reads by index."""

import math
from typing import Any, List, Optional, Sequence, Tuple

import torch

from ._trace import Dim, NoEquation, Value, Writer, broadcast, number


class Views:
    """Each method is an operator. A view is the value that it is of, at other indices."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def value(self, given: Any) -> Value:
        """A number as a value."""
        return given if isinstance(given, Value) else Value((), lambda _: number(given))

    # ---- shapes

    def _named(self, x: Value) -> Value:
        """The value as an array, so that its expression stands once."""
        return self.writer.equation("T", x.dims, x.at) if is_long(x) else x

    def _placed(self, x: Value, order: Sequence[int]) -> Value:
        return Value(
            tuple(x.dims[i] for i in order),
            lambda indices: x.at([indices[list(order).index(i)] for i in range(len(order))]),
            x.truth,
        )

    def op_permute(self, x: Value, order: Sequence[int]) -> Value:
        return self._placed(x, [place % len(order) for place in order])

    def op_transpose(self, x: Value, a: int, b: int) -> Value:
        order = list(range(len(x.dims)))
        order[a], order[b] = order[b], order[a]
        return self._placed(x, order)

    def op_t(self, x: Value) -> Value:
        return self._placed(x, list(range(len(x.dims)))[::-1])

    op_numpy_T = op_t

    def op_mT(self, x: Value) -> Value:
        return self.op_transpose(x, -1, -2)

    def op_unsqueeze(self, x: Value, dim: int) -> Value:
        place = dim % (len(x.dims) + 1)
        return Value((*x.dims[:place], None, *x.dims[place:]), lambda i: x.at([*i[:place], *i[place + 1 :]]), x.truth)

    def op_squeeze(self, x: Value, dims: Any = None) -> Value:
        asked = range(len(x.dims)) if dims is None else [dims] if isinstance(dims, int) else dims
        gone = {place % len(x.dims) for place in asked if x.dims[place] is None}
        left = [place for place in range(len(x.dims)) if place not in gone]

        def at(indices: List[str]) -> str:
            own = dict(zip(left, indices))
            return x.at([own.get(place, "0") for place in range(len(x.dims))])

        return Value(tuple(x.dims[place] for place in left), at, x.truth)

    def op_expand(self, x: Value, sizes: Sequence[int], **words: Any) -> Value:
        added = len(sizes) - len(x.dims)
        dims = [*[None] * added, *x.dims]
        made = tuple(Dim(size) if dim is None and size > 1 else dim for dim, size in zip(dims, sizes))
        return Value(made, lambda indices: x.at(indices[added:]), x.truth)

    def op_select(self, x: Value, dim: int, index: int) -> Value:
        place, axis = dim % len(x.dims), x.dims[dim]
        at = index + (axis.size if axis is not None else 1) if index < 0 else index
        return Value(
            (*x.dims[:place], *x.dims[place + 1 :]), lambda i: x.at([*i[:place], str(at), *i[place:]]), x.truth
        )

    def op_slice(self, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
        place, axis = dim % len(x.dims), x.dims[dim]
        size = axis.size if axis is not None else 1
        first, last, _ = slice(start, end, step).indices(size)
        count = max(0, -(-(last - first) // step))
        if count == size:
            return x
        if count == 0:
            raise NoEquation("slice without values")

        def at(indices: List[str]) -> str:
            index = indices[place] if step == 1 else f"{step}*{indices[place]}"
            return x.at([*indices[:place], f"{index} + {first}" if count > 1 else str(first), *indices[place + 1 :]])

        return Value((*x.dims[:place], Dim(count) if count > 1 else None, *x.dims[place + 1 :]), at, x.truth)

    def op_view(self, x: Value, shape: List[int]) -> Value:
        """Dimensions that are cut or taken together: their indices are quotients, rests and sums of products."""
        sizes = [dim.size if dim is not None else 1 for dim in x.dims]
        dims: List[Optional[Dim]] = []
        parts: List[Tuple[List[int], List[int]]] = []  # places of x and of the result with one product
        i = j = 0
        while i < len(sizes) or j < len(shape):
            own, new = ([i] if i < len(sizes) else []), ([j] if j < len(shape) else [])
            i, j = i + len(own), j + len(new)
            while (a := math.prod(sizes[p] for p in own)) != (b := math.prod(shape[p] for p in new)):
                if a < b:
                    own.append(i)
                    i += 1
                else:
                    new.append(j)
                    j += 1
            parts.append((own, new))
        for own, new in parts:
            solid = [x.dims[p] for p in own if x.dims[p] is not None]
            large = [p for p in new if shape[p] > 1]
            same = len(solid) == len(large) and all(d is not None and d.size == shape[p] for d, p in zip(solid, large))
            found = dict(zip(large, solid)) if same else {p: Dim(shape[p]) for p in large}
            dims += [found.get(p) for p in new]

        def at(indices: List[str]) -> str:
            placed = ["0"] * len(sizes)
            for own, new in parts:
                mine, theirs = [p for p in own if sizes[p] > 1], [p for p in new if shape[p] > 1]
                if [sizes[p] for p in mine] == [shape[p] for p in theirs]:
                    for p, q in zip(mine, theirs):
                        placed[p] = indices[q]
                    continue
                flat = ""
                for q in theirs:
                    flat = f"({flat}) * {shape[q]} + {indices[q]}" if flat else indices[q]
                below = math.prod(sizes[p] for p in mine)
                for number_of, p in enumerate(mine):
                    below //= sizes[p]
                    index = f"({flat}) // {below}" if below > 1 else f"({flat})"
                    placed[p] = index if number_of == 0 else f"({index}) % {sizes[p]}"
            return x.at(placed)

        return Value(tuple(dims), at, x.truth)

    op_reshape = op_flatten = op_unflatten = op__unsafe_view = op_view

    # ---- numbers and reads

    def op_arange(self, start: int, end: Any = None, step: int = 1, **words: Any) -> Value:
        first, last = (0, start) if end is None else (start, end)
        count = len(range(first, last, step))

        def at(indices: List[str]) -> str:
            scaled = indices[0] if step == 1 else f"{step} * {indices[0]}"
            return f"{scaled} + {first}" if first else scaled

        return Value((Dim(count) if count > 1 else None,), at)

    def op_full(self, sizes: Sequence[int], value: Any, **words: Any) -> Value:
        truth = isinstance(value, bool) or words.get("dtype") is torch.bool
        text = number(bool(value) if truth else value)
        return Value(tuple(Dim(size) if size > 1 else None for size in sizes), lambda _: text, truth)

    def op_ones(self, sizes: Sequence[int], **words: Any) -> Value:
        return self.op_full(sizes, 1, **words)

    def op_zeros(self, sizes: Sequence[int], **words: Any) -> Value:
        return self.op_full(sizes, 0, **words)

    def op_full_like(self, x: Value, value: Any, **words: Any) -> Value:
        return Value(x.dims, lambda _: number(value), words.get("dtype") is torch.bool)

    def op_ones_like(self, x: Value, **words: Any) -> Value:
        return self.op_full_like(x, 1, **words)

    def op_zeros_like(self, x: Value, **words: Any) -> Value:
        return self.op_full_like(x, 0, **words)

    def op_scalar_tensor(self, value: Any, **words: Any) -> Value:
        return self.value(value)

    def op_index(self, x: Value, indices: Sequence[Any]) -> Value:
        """Reads where integer arrays say; these stand next to each other."""
        places = [place for place, index in enumerate(indices) if index is not None]
        if places != list(range(places[0], places[-1] + 1)) or any(indices[place].truth for place in places):
            raise NoEquation("index by masks, or by arrays apart from each other")
        values = [indices[place] for place in places]
        dims, first = broadcast(values), places[0]
        count = len(dims)

        def at(own: List[str]) -> str:
            inner = own[first : first + count]
            read = [value.at(inner[count - len(value.dims) :]) for value in values]
            return x.at([*own[:first], *read, *own[first + count :]])

        return Value((*x.dims[:first], *dims, *x.dims[first + len(places) :]), at, x.truth)

    def op_embedding(self, table: Value, index: Value, *more: Any) -> Value:
        return self.op_index(table, [index])


def is_long(value: Value) -> bool:
    """Whether its expression is worth a name: more than a read."""
    return any(c in value.at([f"i{place}" for place in range(len(value.dims))]) for c in "+-*/(")
