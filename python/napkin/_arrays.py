"""Arrays that DLPack has no name for, and new arrays of each library.

Types are DLPack's: (code, bits) of DLDataType. NAMES has those of the language.
"""

import sys
from typing import Any, Callable, Dict, Optional, Tuple

Type = Tuple[int, int]

# Names of the language, in the order of DLPack's codes: integers, unsigned, IEEE floats, bfloat, bool, float8.
NAMES: Dict[str, Type] = {
    "i8": (0, 8),
    "i16": (0, 16),
    "i32": (0, 32),
    "i64": (0, 64),
    "u8": (1, 8),
    "f16": (2, 16),
    "f32": (2, 32),
    "f64": (2, 64),
    "bf16": (4, 16),
    "bool": (6, 8),
    "e4m3": (10, 8),
    "e5m2": (12, 8),
}
# Types of no real numbers.
WHOLE = frozenset(("i8", "i16", "i32", "i64", "u8", "bool"))
NAME_OF: Dict[Type, str] = {pair: name for name, pair in NAMES.items()}

# What NumPy and its relatives call these types: dtype.name.
DTYPES: Dict[Type, str] = {
    (0, 8): "int8",
    (0, 16): "int16",
    (0, 32): "int32",
    (0, 64): "int64",
    (1, 8): "uint8",
    (2, 16): "float16",
    (2, 32): "float32",
    (2, 64): "float64",
    (4, 16): "bfloat16",
    (6, 8): "bool",
    (10, 8): "float8_e4m3fn",
    (12, 8): "float8_e5m2",
}
TYPE_OF_DTYPE: Dict[str, Type] = {name: pair for pair, name in DTYPES.items()}

ON_CPU, ON_GPU = 1, 2


def _dtype(name: str) -> Any:
    """NumPy's dtype of that name; those that NumPy lacks are of ml_dtypes."""
    import numpy

    if hasattr(numpy, name):
        return numpy.dtype(getattr(numpy, name))
    import ml_dtypes

    return numpy.dtype(getattr(ml_dtypes, name))


def _library_of(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def view(array: Any, stream: int) -> Optional[Tuple[Any, ...]]:
    """Where an array lies, by __cuda_array_interface__ or __array_interface__; None where it has neither.

    The tuple is (address, device type, device, code, bits, shape, strides in values or None, read-only, what keeps it
    alive). Raises TypeError for elements of a type that napkin does not have, ValueError for strides that are no
    whole values.
    """
    on_gpu = getattr(array, "__cuda_array_interface__", None)
    if isinstance(array, (bool, int, float)):
        import numpy

        array = numpy.asarray(array, "float32" if isinstance(array, float) else None)
    interface = on_gpu or getattr(array, "__array_interface__", None)
    if interface is None:
        return None
    dtype = getattr(array, "dtype", None)
    name = getattr(dtype, "name", str(dtype))
    if name not in TYPE_OF_DTYPE:
        raise TypeError(f"napkin has no type for elements of {name}")
    code, bits = TYPE_OF_DTYPE[name]
    strides = interface.get("strides")
    if strides is not None:
        if any(stride % (bits // 8) for stride in strides):
            raise ValueError(f"strides of {strides} bytes are no whole numbers of {name}")
        strides = tuple(stride // (bits // 8) for stride in strides)
    address, read_only = interface["data"]
    device = int(getattr(getattr(array, "device", None), "id", 0) or 0) if on_gpu else 0
    return (
        address,
        ON_GPU if on_gpu else ON_CPU,
        device,
        code,
        bits,
        tuple(interface["shape"]),
        strides,
        read_only,
        array,
    )


def _empty_numpy(like: Any, shape: Tuple[int, ...], type: Type) -> Any:
    import numpy

    return numpy.empty(shape, _dtype(DTYPES[type]))


def _empty_torch(like: Any, shape: Tuple[int, ...], type: Type) -> Any:
    torch = sys.modules["torch"]
    return torch.empty(shape, dtype=getattr(torch, DTYPES[type]), device=like.device)


def _empty_cupy(like: Any, shape: Tuple[int, ...], type: Type) -> Any:
    cupy = sys.modules["cupy"]
    with like.device:
        return cupy.empty(shape, _dtype(DTYPES[type]))


# Libraries whose arrays are not made by DLPack's exchange interface. Numbers of Python count as NumPy's.
EMPTY: Dict[str, Callable[[Any, Tuple[int, ...], Type], Any]] = {
    "numpy": _empty_numpy,
    "ml_dtypes": _empty_numpy,
    "builtins": _empty_numpy,
    "torch": _empty_torch,
    "cupy": _empty_cupy,
}


def empty(like: Any, shape: Tuple[int, ...], code: int, bits: int) -> Any:
    """A new array of the library of `like`, where `like` lies. Raises TypeError for a library that napkin makes no
    arrays of.
    """
    make = EMPTY.get(_library_of(like))
    if make is None:
        raise TypeError(f"napkin makes no arrays of {_library_of(like)}: give the results as out=")
    return make(like, shape, (code, bits))
