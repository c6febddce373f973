"""Graphs of torch's operators as texts of napkin.

A value of the graph is a function from indices to an expression. What is computed element by element stays an
expression until a reduction reads it, or more than one reader. Then it becomes an equation. Dimensions that operators
join have one axis, so names are chosen at the end.
"""

import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from ._arrays import NAME_OF, TYPE_OF_DTYPE

Expression = Callable[[List[str]], str]


class NoEquation(NotImplementedError):
    """An operator of torch for which there is no equation; the message has its name and its line."""


class Dim:
    """A dimension, or the one that it was joined with. `axis` is its name, once one is chosen."""

    def __init__(self, size: int, of_input: bool = False) -> None:
        self.size, self.of_input, self.axis = size, of_input, ""
        self._joined: Optional[Dim] = None

    def root(self) -> "Dim":
        """The dimension that stands for all that it was joined with."""
        return self if self._joined is None else self._joined.root()

    def join(self, other: "Dim") -> None:
        """From now on they are one. Inputs' dimensions go before others, as shapes say their sizes."""
        a, b = self.root(), other.root()
        if a is not b:
            a, b = (b, a) if b.of_input and not a.of_input else (a, b)
            b._joined = a


class Value(NamedTuple):
    """`dims` has None where the size is 1: such an index is passed over."""

    dims: Tuple[Optional[Dim], ...]
    at: Expression
    truth: bool = False


class Equation(NamedTuple):
    """name[dims] = reduction(over) body."""

    name: str
    dims: Tuple[Dim, ...]
    reduction: str
    over: Tuple[Dim, ...]
    body: Expression  # of the indices of dims, then of over
    type: str = ""


def wrapped(text: str) -> str:
    """In parentheses, unless it is a name, a number, a read or a call: there, operators stand between brackets
    alone.
    """
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth == 0 and not (c.isalnum() or c in "_.)]"):
            return f"({text})"
    return f"({text})" if text.startswith("(") else text


def number(value: Union[bool, int, float]) -> str:
    """A number of Python in the language."""
    if isinstance(value, bool):
        return "1 == 1" if value else "1 == 0"
    text = {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(float(value)), repr(value))
    return text


class Writer:
    """Collects the equations of a text."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.equations: List[Equation] = []
        self.inputs: List[Tuple[str, Tuple[Dim, ...], str]] = []
        self._taken = set(taken) | {"and", "or", "not", "inf", "nan", "sizes", "schedule", "pi"}

    def unused(self, name: str) -> str:
        """The name as the language takes it, or with the first number that makes it unused."""
        name = re.sub(r"\W", "_", name).lstrip("_0123456789") or "t"
        unused, count = name, 1
        while unused in self._taken:
            count += 1
            unused = f"{name}_{count}"
        self._taken.add(unused)
        return unused

    def input(self, name: str, tensor: torch.Tensor, is_typed: bool = False) -> Value:
        """Declares an argument. Integers and truths have their types in the text. Others have those of the arrays, unless
        `is_typed`.
        """
        own = self.unused(name)
        dims = tuple(Dim(size, True) for size in tensor.shape)
        is_open = tensor.dtype.is_floating_point and not is_typed
        type = "" if is_open else NAME_OF[TYPE_OF_DTYPE[str(tensor.dtype).partition(".")[2]]]
        self.inputs.append((own, dims, type))
        single = [size == 1 for size in tensor.shape]

        def at(indices: List[str]) -> str:
            placed = ["0" if one else index for index, one in zip(indices, single)]
            return f"{own}[{', '.join(placed)}]" if placed else own

        kept = tuple(None if one else dim for dim, one in zip(dims, single))
        return Value(kept, at, tensor.dtype is torch.bool)

    def equation(
        self,
        name: str,
        dims: Sequence[Optional[Dim]],
        body: Expression,
        reduction: str = "",
        over: Sequence[Dim] = (),
        type: str = "",
    ) -> Value:
        """Defines an array; `body` is of indices of all dims, and then of over."""
        own, kept = self.unused(name), [place for place, dim in enumerate(dims) if dim is not None]
        count = len(dims)

        def placed(indices: List[str]) -> str:
            left = dict(zip(kept, indices))
            return body([left.get(place, "0") for place in range(count)] + indices[len(kept) :])

        solid = tuple(dim for dim in dims if dim is not None)
        self.equations.append(Equation(own, solid, reduction, tuple(over), placed, type))

        def at(indices: List[str]) -> str:
            read = [index for index, dim in zip(indices, dims) if dim is not None]
            return f"{own}[{', '.join(read)}]" if read else own

        return Value(tuple(dims), at)

    def signature(self, sizes: Dict[str, str]) -> List[str]:
        """The arguments as the text has them. Sizes of axes that get their names now are added."""
        words = [f"{own}[{', '.join(self._axes(dims, sizes))}]" if dims else own for own, dims, _ in self.inputs]
        return [word + (f": {type}" if type else "") for word, (_, _, type) in zip(words, self.inputs)]

    def text(self, name: str, outputs: Sequence[str]) -> str:
        """The text of a diagram, whose results are those arrays."""
        sizes: Dict[str, str] = {}
        signature = self.signature(sizes)
        said = {axis for word in signature for axis in re.findall(r"\w+", word)}
        lines, results = [], {}
        for equation in self.equations:
            axes = self._axes(equation.dims + equation.over, sizes)
            own, over = axes[: len(equation.dims)], axes[len(equation.dims) :]
            target = f"{equation.name}[{', '.join(own)}]" if own else equation.name
            results[equation.name] = target
            reduction = f"{equation.reduction}({', '.join(over)}) " if equation.reduction else ""
            lines.append(f"    {target} = {reduction}{equation.body(axes)}")
        head = f"{name}({', '.join(signature)}) -> {', '.join(results[output] for output in outputs)}"
        given = [f"{axis} = {size}" for axis, size in sizes.items() if axis not in said]
        return "\n".join([head, *lines] + ([f"sizes {', '.join(given)}"] if given else [])) + "\n"

    def _axis(self) -> str:
        """The next letter that is no other name."""
        return self.unused(next((letter for letter in "ijklmnopqrstuvwxyzabcdefgh" if letter not in self._taken), "i"))

    def _axes(self, dims: Sequence[Dim], sizes: Dict[str, str]) -> List[str]:
        """Names of axes, each once: a second axis of one dimension has a name of its own and the first one's size."""
        axes: List[str] = []
        for dim in dims:
            root = dim.root()
            if not root.axis:
                root.axis = self._axis()
                sizes[root.axis] = str(root.size)
            axis, count = root.axis, 1
            while axis in axes:
                count += 1
                axis = f"{root.axis}_{count}"
                sizes[axis] = root.axis
            axes.append(axis)
        return axes


def joined(a: Optional[Dim], b: Optional[Dim]) -> Optional[Dim]:
    """The dimension of what is computed from both."""
    if a is not None and b is not None:
        a.join(b)
    return a if a is not None else b


def broadcast(values: Sequence[Value]) -> Tuple[Optional[Dim], ...]:
    """The dimensions that operands have together, as torch aligns them."""
    rank = max((len(value.dims) for value in values), default=0)
    out: List[Optional[Dim]] = [None] * rank
    for value in values:
        for place, dim in enumerate(value.dims, rank - len(value.dims)):
            out[place] = joined(out[place], dim)
    return tuple(out)


def elementwise(form: str, values: Sequence[Value], truth: bool = False) -> Value:
    """`form` has {} for each operand."""

    is_call = re.fullmatch(r"\w+\([^()]*\)", form) is not None

    def at(indices: List[str]) -> str:
        operands = [value.at(indices[len(indices) - len(value.dims) :]) for value in values]
        return form.format(*(operands if is_call else map(wrapped, operands)))

    return Value(broadcast(values), at, truth)
