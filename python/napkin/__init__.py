"""Napkin: a diagram in text becomes a fused kernel that runs on arrays of any library.

    attention = napkin.compile(text)
    out = attention(q, k, v)

Nothing is imported with it but Python's own modules. `napkin.torch` is a module of its own.
"""

from ._errors import Error, MachineError, Place
from ._looks import Benchmark, Look, Measured
from ._program import Array, Program, compile, load
from ._native import version as __version__

__all__ = [
    "Array",
    "Benchmark",
    "Error",
    "Look",
    "MachineError",
    "Measured",
    "Place",
    "Program",
    "compile",
    "load",
    "__version__",
]
