"""Shapes of a program's outputs from those of its inputs, which may be symbols of other libraries."""

import ast
import functools
import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ._program import Array, Program

_ARITHMETIC: Dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,  # sizes that are divided leave no rest
    ast.Pow: operator.pow,
}


def _size(text: Optional[str]) -> Callable[[Dict[str, Any], Array, str], Any]:
    """The size of an axis as a function of other axes' sizes."""
    tree = ast.parse(text.replace("^", "**"), mode="eval").body if text is not None else None

    def value(node: Optional[ast.expr], sizes: Dict[str, Any], array: Array, axis: str) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id in sizes:
            return sizes[node.id]
        if isinstance(node, ast.BinOp):
            return _ARITHMETIC[type(node.op)](
                value(node.left, sizes, array, axis), value(node.right, sizes, array, axis)
            )
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand, sizes, array, axis)
        raise ValueError(f"the size of {axis} in {array} does not follow from the inputs' shapes: give it as sizes=")

    return functools.partial(value, tree)


def shapes_of_outputs(
    program: Program, check: Callable[[Any, Callable[[], str]], None]
) -> Callable[[Sequence[Sequence[Any]]], List[List[Any]]]:
    """The function from the inputs' shapes to the outputs'. `check` is given what has to hold of them, and a message."""
    made = [[_size(given) for given in array.sizes] for array in program.outputs]

    def shapes(inputs: Sequence[Sequence[Any]]) -> List[List[Any]]:
        sizes: Dict[str, Any] = dict(program.sizes)
        said: Dict[str, str] = {}
        for array, shape in zip(program.inputs, inputs):
            check(len(shape) == len(array.axes), lambda: f"{array} has {len(array.axes)} axes, not {len(shape)}")
            for axis, size in zip(array.axes, shape):
                if axis in said:
                    check(
                        sizes[axis] == size, lambda: f"axis {axis} has different sizes in {said[axis]} and {array.name}"
                    )
                sizes[axis], said[axis] = size, array.name
        return [
            [sizes[axis] if axis in said else size(sizes, array, axis) for axis, size in zip(array.axes, of_array)]
            for array, of_array in zip(program.outputs, made)
        ]

    return shapes


def types_of_outputs(program: Program, inputs: Sequence[str]) -> Tuple[str, ...]:
    """The outputs' types, where the inputs that have none in the text are of these."""
    typed = program.typed(**{a.name: type for a, type in zip(program.inputs, inputs) if a.type is None})
    return tuple(array.type or "f32" for array in typed.outputs)
