"""Torch's operators as equations: one row an operator. What has no row is an error at its line."""

import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ._arrays import NAME_OF, TYPE_OF_DTYPE
from ._trace import Dim, NoEquation, Value, Writer, broadcast, elementwise, joined, wrapped
from ._views import Views, is_long

# Operators element by element: the expression of their operands, by the operator's name.
# fmt: off
FORMS: Dict[str, str] = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "pow": "{} ^ {}", "neg": "-{}",
    "rsub": "{1} - {0}", "reciprocal": "1 / {}", "square": "{0} * {0}", "remainder": "{} % {}",
    "floor_divide": "{} // {}", "maximum": "max({}, {})", "minimum": "min({}, {})", "where": "where({}, {}, {})",
    "masked_fill": "where({1}, {2}, {0})", "logical_not": "not {}", "bitwise_not": "not {}",
    "logical_and": "{} and {}", "bitwise_and": "{} and {}", "logical_or": "{} or {}", "bitwise_or": "{} or {}",
    "__and__": "{} and {}", "__or__": "{} or {}",
    "leaky_relu": "where({0} > 0, {0}, {1} * {0})", "clamp_min": "max({}, {})", "clamp_max": "min({}, {})",
    **{name: name + "({})" for name in (
        "sigmoid", "relu", "silu", "gelu", "softplus", "mish", "log_sigmoid", "exp", "exp2", "expm1", "log", "log2",
        "log1p", "sqrt", "rsqrt", "sin", "cos", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "erfc", "abs",
        "floor", "ceil", "round", "trunc", "sign", "isnan", "isinf",
    )},
}
# fmt: on
COMPARISONS = {"lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}", "eq": "{} == {}", "ne": "{} != {}"}
LOGICAL = {"logical_not", "logical_and", "logical_or"}
# These are of truths alone; of integers they have no equation.
BITWISE = {"bitwise_not", "bitwise_and", "bitwise_or", "__and__", "__or__"}
# Operators that give the same values: layouts and gradients are nothing to equations.
SAME = {"contiguous", "clone", "detach", "alias", "lift_fresh_copy", "dropout", "detach_", "_assert_tensor_metadata"}
REDUCTIONS = {"sum": "sum", "amax": "max", "amin": "min", "prod": "prod"}


class Operators(Views):
    """Writes one call after the other. Each method is an operator that is more than a form."""

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
        return method(
            *arguments, **{key: value for key, value in words.items() if key not in ("device", "layout", "pin_memory")}
        )

    # ---- element by element

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
        if name in BITWISE and not all(value.truth for value in values):
            raise NoEquation(name + " of integers")
        if name == "leaky_relu" and len(values) == 1:
            values.append(self.value(0.01))
        return elementwise(form, values, name in COMPARISONS or name in LOGICAL | BITWISE)

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

    def op_layer_norm(
        self, x: Value, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *more: Any
    ) -> Value:
        return self._normalized(x, shape, True, weight, bias, eps)

    def op_rms_norm(self, x: Value, shape: Any, weight: Any = None, eps: Any = None) -> Value:
        return self._normalized(
            x, shape, False, weight, None, eps if eps is not None else torch.finfo(torch.float32).eps
        )

    # ---- products

    def _product(
        self, a: Value, b: Value, over: Optional[Dim], dims: Sequence[Optional[Dim]], at_a: Any, at_b: Any
    ) -> Value:
        """The sum over one dimension of what a and b have at places that follow from the indices and that of the
        sum.
        """

        def body(indices: List[str]) -> str:
            place = indices[len(dims)] if over is not None else "0"
            return f"{wrapped(a.at(at_a(indices, place)))} * {wrapped(b.at(at_b(indices, place)))}"

        return self.writer.equation(
            "C", dims, body, "sum" if over is not None else "", [over] if over is not None else []
        )

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
            reads = [one.at([at.get(letter, "0") for letter in word]) for word, one in zip(letters, operands)]
            return " * ".join(map(wrapped, reads))

        over = [dim for dim in (dims[letter] for letter in solid) if dim is not None]
        return self.writer.equation("C", [dims[letter] for letter in right], body, "sum" if over else "", over)

    def op_scaled_dot_product_attention(
        self,
        q: Value,
        k: Value,
        v: Value,
        mask: Any = None,
        dropout: float = 0.0,
        causal: bool = False,
        *,
        scale: Any = None,
        **words: Any,
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
        return self._triangle(
            x, lambda row, column: f"{column} <= {row} + {diagonal}" if diagonal else f"{column} <= {row}"
        )

    def op_triu(self, x: Value, diagonal: int = 0) -> Value:
        return self._triangle(
            x, lambda row, column: f"{column} >= {row} + {diagonal}" if diagonal else f"{column} >= {row}"
        )

    def _triangle(self, x: Value, condition: Callable[[str, str], str]) -> Value:
        if x.truth:
            always = self.value(True).at([])
            return Value(
                x.dims,
                lambda i: condition(i[-2], i[-1]) + ("" if x.at(i) == always else f" and {wrapped(x.at(i))}"),
                True,
            )
        return self._kept(x, condition, "0")


def trace_graph(
    graph: torch.fx.Graph, writer: Writer, inputs: Sequence[Value], attribute: Callable[[str], Value]
) -> List[Value]:
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
            values[node] = (
                writer.equation("T", value.dims, value.at) if several and not value.truth and is_long(value) else value
            )
    return []


def _place(node: torch.fx.Node) -> str:
    """The line that a node comes from, for messages."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    files = [number for number, line in enumerate(lines) if line.startswith("File ")]
    return ": " + " ".join(lines[files[-1] : files[-1] + 2]) if files else ""
