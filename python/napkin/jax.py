"""Programs as functions of jax's arrays on the processor, also under jit and vmap.

Importing this module imports jax, 0.4.34 or later.
"""

from typing import Any, Callable, Dict, Tuple

import jax
import numpy

from ._arrays import DTYPES, NAME_OF, NAMES, TYPE_OF_DTYPE
from ._program import Program
from ._sizes import shapes_of_outputs, types_of_outputs

__all__ = ["operator"]


def _check(holds: bool, message: Callable[[], str]) -> None:
    if not holds:
        raise ValueError(message())


def operator(program: Program) -> Callable[..., Any]:
    """The program as a function of jax's arrays, which gives one, or a tuple of several.

    It reads arrays as they lie in memory. A function that jit compiles calls the program back, and vmap calls it once
    for each element. It has no gradients. Raises ValueError for shapes that do not fit.
    """
    shapes = shapes_of_outputs(program, _check)
    types: Dict[Tuple[str, ...], Tuple[str, ...]] = {}

    def called(*arrays: Any) -> Any:
        # In a call back, jax's own operators may wait for it.
        return program(*map(numpy.asarray, arrays))

    def function(*arrays: Any) -> Any:
        if not any(isinstance(array, jax.core.Tracer) for array in arrays):
            return jax.tree.map(jax.numpy.asarray, called(*arrays))
        given = tuple(NAME_OF[TYPE_OF_DTYPE[array.dtype.name]] for array in arrays)
        if given not in types:
            types[given] = types_of_outputs(program, given)
        results = tuple(
            jax.ShapeDtypeStruct(shape, DTYPES[NAMES[type]])
            for shape, type in zip(shapes([array.shape for array in arrays]), types[given])
        )
        one = results[0] if len(results) == 1 else results
        return jax.pure_callback(called, one, *arrays, vmap_method="sequential")

    return function
