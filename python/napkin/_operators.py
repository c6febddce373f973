"""Torch's operators as equations: one row an operator. What has no row is an error at its line."""

import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ._arrays import NAME_OF, TYPE_OF_DTYPE
from ._trace import Dim, NoEquation, Value, Writer, broadcast, elementwise, joined, number, wrapped

# Operators element by element: the expression of their operands, by the operator's name.
FORMS: Dict[str, str] = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "pow": "{} ^ {}", "neg": "-{}",
    "rsub": "{1} - {0}", "reciprocal": "1 / {}", "square": "{0} * {0}", "remainder": "{} % {}", "floor_divide": "{} // {}",
    "maximum": "max({}, {})", "minimum": "min({}, {})", "where": "where({}, {}, {})", "masked_fill": "where({1}, {2}, {0})",
    "logical_not": "not {}", "bitwise_not": "not {}", "logical_and": "{} and {}", "bitwise_and": "{} and {}",
    "logical_or": "{} or {}", "bitwise_or": "{} or {}", "sigmoid": "sigmoid({})", "relu": "relu({})", "silu": "silu({})",
    "gelu": "gelu({})", "softplus": "softplus({})", "mish": "mish({})", "log_sigmoid": "log_sigmoid({})",
    "leaky_relu": "where({0} > 0, {0}, {1} * {0})", "clamp_min": "max({}, {})", "clamp_max": "min({}, {})",
    **{name: name + "({})" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh", "erf",
        "erfc", "abs", "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf")},
}  # fmt: skip
COMPARISONS = {"lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}", "eq": "{} == {}", "ne": "{} != {}"}
LOGICAL = {"logical_not", "bitwise_not", "logical_and", "bitwise_and", "logical_or", "bitwise_or"}
# Operators that give the same values: layouts and gradients are nothing to equations.
SAME = {"contiguous", "clone", "detach", "alias", "lift_fresh_copy", "dropout", "detach_", "_assert_tensor_metadata"}
REDUCTIONS = {"sum": "sum", "amax": "max", "amin": "min", "prod": "prod"}


class Operators:
    """Writes one call after the other. Each method is an operator that is more than a form."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def call(self, name: str, arguments: Sequence[Any], words: Dict[str, Any], meta: Any) -> Any:
        """The value of aten's operator of that name. Raises NoEquation."""
        if name in SAME:
            return arguments[0]
        if name in FORMS or name in COMPARISONS:
            return self._elementwise(name, list(arguments), words)
        if name in REDUCTIONS:
            return self._reduced(REDUCTIONS[name], *arguments, **{k: v for k, v in words.items() if k != "dtype"})
        method: Optional[Callable[..., Any]] = getattr(self, "op_" + name, None)
        if method is None:
            raise NoEquation(name)
        if name in ("view", "reshape", "flatten", "unflatten", "_unsafe_view"):
            return self.op_view(arguments[0], list(meta.shape))
        return method(*arguments, **{key: value for key, value in words.items() if key not in ("device", "layout", "pin_memory")})

    # ---- element by element

    def value(self, given: Any) -> Value:
        """A number as a value."""
        return given if isinstance(given, Value) else Value((), lambda _: number(given))

    def _elementwise(self, name: str, arguments: List[Any], words: Dict[str, Any]) -> Value:
        alpha = words.get("alpha", 1)
        if alpha != 1:
            arguments[1] = elementwise("{} * {}", [self.value(arguments[1]), self.value(alpha)])
        form = FORMS.get(name) or COMPARISONS[name]
        mode = words.get("rounding_mode")
        if mode is not None:
            form = {"floor": "{} // {}", "trunc": "trunc({} / {})"}[mode]
        if name == "gelu" and words.get("approximate", "none") != "none":
            form = "gelu_tanh({})"
        count = 3 if name in ("where", "masked_fill") else form.count("{}") or (2 if "{1}" in form else 1)
        values = [self.value(argument) for argument in arguments[:count]]
        if name.startswith("bitwise") and not all(value.truth for value in values):
            raise NoEquation(name + " of integers")
        if name == "leaky_relu" and len(values) == 1:
            values.append(self.value(0.01))
        return elementwise(form, values, name in COMPARISONS or name in LOGICAL)

    def op_clamp(self, x: Value, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> Value:
        low, high = low if min is None else min, high if max is None else max
        x = x if low is None else elementwise("max({}, {})", [x, self.value(low)])
        return x if high is None else elementwise("min({}, {})", [x, self.value(high)])

    def op_to(self, x: Value, dtype: Any = None, *more: Any, **words: Any) -> Value:
        dtype = words.get("dtype", dtype)
        if not isinstance(dtype, torch.dtype):
            return x
        name = NAME_OF[TYPE_OF_DTYPE[str(dtype).partition(".")[2]]]
        return elementwise(f"{name}({{}})", [x], dtype is torch.bool)

    op__to_copy = op_type_as = op_to

    # ---- reductions

    def _over(self, x: Value, dims: Any, keepdim: bool) -> Tuple[List[int], Tuple[Optional[Dim], ...], List[int]]:
        rank = len(x.dims)
        places = range(rank) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        reduced = sorted(place % rank for place in places) if rank else []
        left = [place for place in range(rank) if place not in reduced]
        kept = tuple(None if place in reduced else x.dims[place] for place in range(rank) if keepdim or place in left)
        return reduced, kept, [place for place in range(rank) if keepdim or place in left]

    def _reduced(self, reduction: str, x: Value, dim: Any = None, keepdim: bool = False, **words: Any) -> Value:
        reduced, kept, places = self._over(x, dim, keepdim)
        over = [d for d in (x.dims[place] for place in reduced) if d is not None]
        solid = [place for place in reduced if x.dims[place] is not None]

        def body(indices: List[str]) -> str:
            at = dict(zip(places, indices))
            at.update(zip(solid, indices[len(kept) :]))
            return x.at([at.get(place, "0") for place in range(len(x.dims))])

        return self.writer.equation("R", kept, body, reduction if over else "", over)

    def op_mean(self, x: Value, dim: Any = None, keepdim: bool = False, **words: Any) -> Value:
        reduced, _, _ = self._over(x, dim, keepdim)
        count = math.prod(d.size for d in (x.dims[place] for place in reduced) if d is not None)
        return elementwise("{} / {}", [self._reduced("sum", x, dim, keepdim), self.value(count)])

    def _along(self, function: str, x: Value, dim: int, more: Sequence[Value] = ()) -> Value:
        """A diagram of the library along one axis, which it keeps; `more` are arrays along that axis."""
        place = dim % len(x.dims)
        axis = x.dims[place]
        if axis is None:
            raise NoEquation(f"{function} along a dimension of size 1")
        for one in more:
            joined(axis, one.dims[0])

        def body(indices: List[str]) -> str:
            operands = [x.at(indices), *(one.at([indices[place]]) for one in more)]
            return f"{function}({indices[place]})({', '.join(operands)})"

        return self.writer.equation("A", x.dims, body)

    def op_softmax(self, x: Value, dim: int, *more: Any, **words: Any) -> Value:
        return self._along("softmax", x, dim)

    def op_log_softmax(self, x: Value, dim: int, *more: Any, **words: Any) -> Value:
        return self._along("log_softmax", x, dim)

    def op_logsumexp(self, x: Value, dim: Any, keepdim: bool = False) -> Value:
        largest = self._reduced("max", x, dim, True)
        rest = self._reduced("sum", elementwise("exp({})", [elementwise("{} - {}", [x, largest])]), dim, keepdim)
        shift = largest if keepdim else self._reduced("max", x, dim, False)
        return elementwise("log({}) + {}", [rest, shift])

    op__softmax, op__log_softmax = op_softmax, op_log_softmax

    def _normalized(self, x: Value, shape: Sequence[int], centred: bool, weight: Any, bias: Any, eps: float) -> Value:
        dims = list(range(-len(shape), 0))
        x = self._named(x)
        if centred:
            x = self._named(elementwise("{} - {}", [x, self.op_mean(x, dims, True)]))
        square = self.op_mean(elementwise("{0} * {0}", [x]), dims, True)
        x = elementwise("{} * rsqrt({} + {})", [x, square, self.value(eps)])
        x = x if weight is None else elementwise("{} * {}", [x, weight])
        return x if bias is None else elementwise("{} + {}", [x, bias])

    def op_layer_norm(self, x: Value, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *more: Any) -> Value:
        return self._normalized(x, shape, True, weight, bias, eps)

    def op_rms_norm(self, x: Value, shape: Any, weight: Any = None, eps: Any = None) -> Value:
        return self._normalized(x, shape, False, weight, None, eps if eps is not None else torch.finfo(torch.float32).eps)

    # ---- products

    def _product(self, a: Value, b: Value, over: Optional[Dim], dims: Sequence[Optional[Dim]], at_a: Any, at_b: Any) -> Value:
        """The sum over one dimension of what a and b have at places that follow from the indices and that of the sum."""

        def body(indices: List[str]) -> str:
            place = indices[len(dims)] if over is not None else "0"
            return elementwise("{} * {}", [Value((), lambda _: a.at(at_a(indices, place))), Value((), lambda _: b.at(at_b(indices, place)))]).at([])

        return self.writer.equation("C", dims, body, "sum" if over is not None else "", [over] if over is not None else [])

    def op_matmul(self, a: Value, b: Value) -> Value:
        vector_a, vector_b = len(a.dims) == 1, len(b.dims) == 1
        over = joined(a.dims[-1], b.dims[0 if vector_b else -2])
        batch = broadcast([Value(a.dims[:-2], a.at), Value(b.dims[:-2], b.at)])
        rows = () if vector_a else (a.dims[-2],)
        columns = () if vector_b else (b.dims[-1],)
        count = len(batch)

        def at_a(indices: List[str], place: str) -> List[str]:
            return [place] if vector_a else [*indices[count - len(a.dims) + 2 : count], indices[count], place]

        def at_b(indices: List[str], place: str) -> List[str]:
            column = count + (0 if vector_a else 1)
            return [place] if vector_b else [*indices[count - len(b.dims) + 2 : count], place, indices[column]]

        return self._product(a, b, over, (*batch, *rows, *columns), at_a, at_b)

    op_mm = op_bmm = op_matmul

    def op_linear(self, x: Value, weight: Value, bias: Any = None) -> Value:
        out = self.op_matmul(x, self.op_transpose(weight, 0, 1))
        return out if bias is None else elementwise("{} + {}", [out, bias])

    def op_einsum(self, equation: str, operands: Sequence[Value], **words: Any) -> Value:
        left, arrow, right = equation.replace(" ", "").partition("->")
        letters = left.split(",")
        if "." in equation or any(len(set(word)) != len(word) for word in letters):
            raise NoEquation(f"einsum {equation}")
        every = "".join(letters)
        right = right if arrow else "".join(sorted(letter for letter in set(every) if every.count(letter) == 1))
        dims: Dict[str, Optional[Dim]] = {}
        for word, operand in zip(letters, operands):
            for letter, dim in zip(word, operand.dims):
                dims[letter] = joined(dims.get(letter), dim)
        summed = [letter for letter in dims if letter not in right]
        solid = [letter for letter in summed if dims[letter] is not None]

        def body(indices: List[str]) -> str:
            at = dict(zip([*right, *solid], indices))
            factors = [Value((), lambda _, o=o, w=w: o.at([at.get(letter, "0") for letter in w])) for w, o in zip(letters, operands)]  # type: ignore[misc]
            return elementwise(" * ".join(["{}"] * len(factors)), factors).at([])

        over = [dim for dim in (dims[letter] for letter in solid) if dim is not None]
        return self.writer.equation("C", [dims[letter] for letter in right], body, "sum" if over else "", over)

    def op_scaled_dot_product_attention(
        self, q: Value, k: Value, v: Value, mask: Any = None, dropout: float = 0.0, causal: bool = False, *, scale: Any = None, **words: Any
    ) -> Value:
        axis = q.dims[-1]
        factor = scale if scale is not None else (axis.size if axis is not None else 1) ** -0.5
        scores = elementwise("{} * {}", [self.op_matmul(q, self.op_transpose(k, -2, -1)), self.value(factor)])
        if causal:
            scores = self._kept(scores, lambda row, column: f"{column} <= {row}")
        if mask is not None:
            scores = elementwise("where({1}, {0}, -inf)" if mask.truth else "{} + {}", [scores, mask])
        return self.op_matmul(self.op_softmax(self._named(scores), -1), v)

    def _kept(self, x: Value, condition: Callable[[str, str], str], otherwise: str = "-inf") -> Value:
        """x where the condition on its last two indices holds."""
        return Value(x.dims, lambda i: f"where({condition(i[-2], i[-1])}, {x.at(i)}, {otherwise})", x.truth)

    def op_tril(self, x: Value, diagonal: int = 0) -> Value:
        return self._triangle(x, lambda row, column: f"{column} <= {row} + {diagonal}" if diagonal else f"{column} <= {row}")

    def op_triu(self, x: Value, diagonal: int = 0) -> Value:
        return self._triangle(x, lambda row, column: f"{column} >= {row} + {diagonal}" if diagonal else f"{column} >= {row}")

    def _triangle(self, x: Value, condition: Callable[[str, str], str]) -> Value:
        if x.truth:
            always = self.value(True).at([])
            return Value(
                x.dims, lambda i: condition(i[-2], i[-1]) + ("" if x.at(i) == always else f" and {wrapped(x.at(i))}"), True
            )
        return self._kept(x, condition, "0")

    # ---- shapes

    def _named(self, x: Value) -> Value:
        """The value as an array, so that its expression stands once."""
        return self.writer.equation("T", x.dims, x.at) if _is_long(x) else x

    def _placed(self, x: Value, order: Sequence[int]) -> Value:
        return Value(tuple(x.dims[i] for i in order), lambda indices: x.at([indices[list(order).index(i)] for i in range(len(order))]), x.truth)

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
        return Value((*x.dims[:place], *x.dims[place + 1 :]), lambda i: x.at([*i[:place], str(at), *i[place:]]), x.truth)

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


def trace_graph(graph: torch.fx.Graph, writer: Writer, inputs: Sequence[Value], attribute: Callable[[str], Value]) -> List[Value]:
    """The values of a graph's outputs. Raises NoEquation, with the operator's name and line."""
    operators = Operators(writer)
    values: Dict[Any, Any] = {}
    given = iter(inputs)

    def known(argument: Any) -> Any:
        return torch.fx.map_arg(argument, lambda node: values[node])

    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = next(given)
        elif node.op == "get_attr":
            values[node] = attribute(str(node.target))
        elif node.op == "output":
            found = known(node.args[0])
            return [found] if isinstance(found, Value) else list(found)
        else:
            name = getattr(node.target, "_schema", None)
            name = name.name.partition("::")[2] if name is not None else str(node.target)
            try:
                value = operators.call(name, known(node.args), dict(known(node.kwargs)), node.meta.get("val"))
            except NoEquation as error:
                raise NoEquation(f"there is no equation for torch's {error}{_place(node)}") from None
            several = len(node.users) > 1 and isinstance(value, Value) and name not in SAME
            values[node] = writer.equation("T", value.dims, value.at) if several and not value.truth and _is_long(value) else value
    return []


def _place(node: torch.fx.Node) -> str:
    """The line that a node comes from, for messages."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    files = [number for number, line in enumerate(lines) if line.startswith("File ")]
    return ": " + " ".join(lines[files[-1] : files[-1] + 2]) if files else ""


def _is_long(value: Value) -> bool:
    """Whether its expression is worth a name: more than a read."""
    return any(c in value.at([f"i{place}" for place in range(len(value.dims))]) for c in "+-*/(")
