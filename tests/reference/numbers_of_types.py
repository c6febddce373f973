"""Numbers of the language's types: integers that wrap, real numbers that round."""
import numpy as np

REALS = {  # significand digits with the leading one, least exponent of a normal number, largest number, infinities
    "f64": (53, -1022, float(np.finfo(np.float64).max), True),
    "f32": (24, -126, float(np.finfo(np.float32).max), True),
    "tf32": (11, -126, 3.4011621342146535e38, True),
    "f16": (11, -14, 65504.0, True),
    "bf16": (8, -126, 3.3895313892515355e38, True),
    "e4m3": (4, -6, 448.0, False),
    "e5m2": (3, -14, 57344.0, True),
}
INTEGERS = {"i64": (-(1 << 63), (1 << 63) - 1), "i32": (-(1 << 31), (1 << 31) - 1), "i16": (-(1 << 15), (1 << 15) - 1),
            "i8": (-128, 127), "u8": (0, 255), "bool": (0, 1)}  # least and greatest
EXACT = np.longdouble


def wrapped(data, type):
    """Whole numbers modulo 2^64 into the range of the type."""
    least, greatest = INTEGERS[type]
    if type == "bool":
        return (data != 0).astype(np.int64)
    return data if type == "i64" else ((data - least) & (greatest - least)) + least


def truncated(data, type):
    """Real numbers toward zero, into the range of the type; NaN is 0."""
    if type == "bool":
        return (data != 0).astype(np.int64)
    whole = np.trunc(np.nan_to_num(data, nan=0, posinf=np.inf, neginf=-np.inf))
    return np.clip(whole, *map(EXACT, INTEGERS[type])).astype(np.int64)


def rounded(data, type):
    """Real numbers to the nearest of the type, ties to even."""
    digits, least_exponent, largest, has_infinity = REALS[type]
    data = np.asarray(data, EXACT)
    finite = np.isfinite(data)
    _, exponent = np.frexp(np.where(finite, data, 1))
    unit = np.maximum(exponent, least_exponent + 1) - digits
    near = np.ldexp(np.rint(np.ldexp(np.where(finite, data, 0), -unit)), unit)
    result = np.where(finite, near, data)
    past = np.abs(result) > largest
    return np.where(past, np.copysign(EXACT(np.inf), data) if has_infinity else EXACT(np.nan), result)


def promoted(a, b):
    """The type of real numbers made of two: the one that holds both; "" of a constant."""
    if a == b or not b:
        return a
    if not a:
        return b
    order = ["e5m2", "e4m3", "f16", "tf32", "f32", "f64"]
    if "bf16" in (a, b):
        other = b if a == "bf16" else a
        return {"f64": "f64", "f32": "f32", "tf32": "tf32", "f16": "f32"}.get(other, "bf16")
    return max(a, b, key=order.index)
