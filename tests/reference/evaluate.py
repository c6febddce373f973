"""Evaluates texts of the language, by docs/language.md alone: real numbers in extended precision, integers as they wrap.

Every value knows on which axes it depends: a label an axis, one dimension a label. The mode "exact" rounds where a cast says so and nowhere else;
"plain" evaluates in the precision that the types ask for, and "unrounded" without casts, to tell how far rounding takes a result.
"""
import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from language import LanguageError, parse
from numbers_of_types import EXACT, INTEGERS, REALS, promoted, rounded, truncated, wrapped

FUNCTIONS = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "atan": np.arctan, "sinh": np.sinh, "asinh": np.arcsinh, "cosh": np.cosh, "tanh": np.tanh,
    "erf": lambda x: np.vectorize(math.erf, otypes=[EXACT])(x.astype(float)),
    "erfc": lambda x: np.vectorize(math.erfc, otypes=[EXACT])(x.astype(float)),
}
ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}
COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
REDUCERS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
TYPES = [*REALS, *INTEGERS]


@dataclass
class Value:
    """`kind` is "real", the name of an integer type, or "whole" for whole constants and truth values, whose type is their partner's."""
    labels: tuple
    data: np.ndarray
    kind: str
    type: str = ""  # of a real number, the type in which it would be stored; "" of a constant
    outside: np.ndarray | None = None  # where it comes from outside of an array

    def over(self, labels):
        """The data with one dimension for each of the labels."""
        return spread(self.labels, self.data, labels)

    def outside_over(self, labels):
        return False if self.outside is None else spread(self.labels, self.outside, labels)


def spread(own, data, labels):
    order = [own.index(label) for label in labels if label in own]
    return np.transpose(data, order).reshape([data.shape[own.index(label)] if label in own else 1 for label in labels])


def united(*values):
    return tuple(dict.fromkeys(label for v in values for label in v.labels))


def where_outside(labels, *values):
    masks = [v.outside_over(labels) for v in values if v.outside is not None]
    if not masks:
        return None
    shape = np.broadcast_shapes(*[v.over(labels).shape for v in values])
    return np.broadcast_to(functools.reduce(np.logical_or, masks), shape)


@dataclass
class Stored:
    """An array: its own dimensions come after the labels over which it is woven."""
    woven: tuple
    value: Value  # without labels for its own dimensions
    own: int

    @property
    def extents(self):
        return self.value.data.shape[len(self.woven):]


class Evaluation:
    """Of the definitions of a text and a library, in one of the modes."""

    def __init__(self, definitions, library, mode):
        self.definitions, self.mode, self.plain = {**library, **definitions}, mode, mode == "plain"
        self.extents, self.fresh = {}, itertools.count()

    # ---- a definition
    def run(self, definition, arguments, sizes, is_callee=False):
        """The results, given the arguments in order, None for a default, and sizes by name that are known."""
        frame = Frame(self, definition, dict(sizes), is_callee)
        for array, given in zip(definition.arguments, list(arguments) + [None] * len(definition.arguments)):
            if given is None:
                if array.default is None:
                    raise LanguageError(f"{definition.name} needs {array.name}")
                given = Stored((), Value((), frame.eval(array.default, {}).data.astype(EXACT), "real", array.type or "f32"), 0)
            frame.bind(array, given)
        for equation in definition.equations:
            frame.define(equation)
        return [frame.arrays[r.name] for r in definition.results]

    def label(self, name, extent):
        label = f"{name}#{next(self.fresh)}"
        self.extents[label] = extent
        return label

    def real(self, data, type):
        """The value of an operation in the plain precision: what is computed in f64 for f64, else in f32."""
        return data if not self.plain else data.astype(np.float64 if type == "f64" else np.float32).astype(EXACT)


class Frame:
    """The arrays and sizes of one definition under evaluation."""

    def __init__(self, evaluation, definition, sizes, is_callee=False):
        self.e, self.definition, self.sizes, self.arrays = evaluation, definition, sizes, {}
        self.is_callee = is_callee
        self.in_whole = False  # in an index or a size, where a quotient leaves no rest

    def bind(self, array, stored):
        if len(array.axes) != stored.own:
            raise LanguageError(f"{array.name} has {len(array.axes)} axes, not {stored.own}")
        for axis, extent in zip(array.axes, stored.extents):
            if self.sizes.setdefault(axis, extent) != extent:
                raise LanguageError(f"{axis} is {self.sizes[axis]} and {extent}")
        self.arrays[array.name] = stored

    def size(self, name):
        if name not in self.sizes:
            for known, tree in self.definition.sizes:
                if known == name:
                    self.sizes[name] = int(self.whole(tree, {}).data)
                    break
            else:
                raise LanguageError(f"the size of {name} is not known")
        return self.sizes[name]

    def infer(self, tree):
        """An axis that indexes a dimension has its size."""
        if not isinstance(tree, tuple):
            return
        if tree[0] == "read" and tree[1] in self.arrays:
            stored, indices = self.arrays[tree[1]], tree[2]
            if ".." not in indices:
                for index, extent in zip(indices, stored.extents):
                    if isinstance(index, tuple) and index[0] == "name" and index[1] not in self.arrays and not self.has_size(index[1]):
                        self.sizes[index[1]] = extent
        for part in tree[1:]:
            for one in part if isinstance(part, list) else [part]:
                self.infer(one)

    def has_size(self, name):
        return name in self.sizes or any(name == known for known, _ in self.definition.sizes)

    # ---- equations
    def define(self, equation):
        self.infer(equation.body)
        results = self.called_on_arrays(equation)
        if results is None:
            scope = {axis: self.e.label(axis, self.size(axis)) for axis in equation.targets[0].axes}
            body = equation.body
            if body[0] == "apply":
                values = self.apply(body, scope)
            elif body[0] == "call" and body[1] in self.e.definitions:
                values = self.scalar_call(body, scope)
            else:
                # What a sum of integers is modulo 2^64, its target wraps or rounds.
                values = [self.eval_reduce(body, scope) if body[0] == "reduce" else self.eval(body, scope)]
            results = []
            for target, value in zip(equation.targets, values, strict=True):
                labels = tuple(scope[axis] for axis in target.axes)
                results.append(self.stored(value, labels))
        for target, stored in zip(equation.targets, results, strict=True):
            # Nothing remains of a callee but its equations, so that a condition around the call counts for them.
            if not self.is_callee and stored.value.outside is not None and np.any(stored.value.outside):
                raise LanguageError("an array is read outside of its extents")
            self.arrays[target.name] = self.typed(target, stored)

    def stored(self, value, own):
        """A value as an array whose own dimensions are the labels given; what else it depends on is woven."""
        extra = [label for label in value.labels if label not in own]
        woven = tuple(extra)
        labels = woven + own
        shape = [self.e.extents[label] for label in labels]
        data = np.broadcast_to(value.over(labels), shape).copy()
        outside = None if value.outside is None else np.broadcast_to(value.outside_over(labels), shape)
        return Stored(woven, Value((), data, value.kind, value.type, outside), len(own))

    def typed(self, target, stored):
        declared = next((r.type for r in self.definition.results if r.name == target.name and r.type), target.type)
        if declared:
            stored.value = self.converted(stored.value, declared, stored=True)
        elif stored.value.kind == "real":
            stored.value = self.kept(stored.value)
        else:
            stored.value = self.settled(stored.value)
        return stored

    def kept(self, value):
        """A real number in memory: rounded to its type where the precision is plain."""
        if self.e.plain and value.type:
            return Value(value.labels, rounded(value.data, value.type), "real", value.type, value.outside)
        return value

    @staticmethod
    def settled(value):
        if value.kind in INTEGERS:
            return Value(value.labels, wrapped(value.data, value.kind), value.kind, "", value.outside)
        return value

    def converted(self, value, type, stored=False):
        """A cast; what is stored in a real type is rounded only in the plain precision, and at the end (docs/check.md)."""
        labels, data = value.labels, value.data
        if type in INTEGERS:
            data = truncated(data, type) if value.kind == "real" else wrapped(data.astype(np.int64), type)
            return Value(labels, data, type, "", value.outside)
        data = data.astype(EXACT)
        if self.e.plain or not stored and self.e.mode == "exact":
            data = rounded(data, type)
        return Value(labels, data, "real", type, value.outside)

    # ---- expressions
    def whole(self, tree, scope):
        """An index or a size."""
        before, self.in_whole = self.in_whole, True
        value = self.eval(tree, scope)
        self.in_whole = before
        if value.kind == "real":
            raise LanguageError("an index or a size is not a whole number")
        return value

    def eval(self, tree, scope):
        value = getattr(self, "eval_" + tree[0])(tree, scope)
        return self.settled(value) if value.kind != "real" else value

    def eval_number(self, tree, scope):
        exact = float(tree[1])
        if exact.is_integer() and abs(exact) < 2.0**63:
            return Value((), np.array(int(tree[1]) if tree[1].isdigit() else int(exact), np.int64), "whole")
        return Value((), np.array(exact, EXACT), "real")

    def eval_name(self, tree, scope):
        name = tree[1]
        if name in scope:
            return Value((scope[name],), np.arange(self.e.extents[scope[name]], dtype=np.int64), "i64")
        if name in self.arrays:
            return self.eval_read(("read", name, []), scope)
        if name in ("inf", "nan") or name == "pi" and not self.has_size("pi"):
            return Value((), np.array({"inf": np.inf, "nan": np.nan, "pi": np.pi}[name], EXACT), "real")
        return Value((), np.array(self.size(name), np.int64), "i64")

    def eval_read(self, tree, scope):
        _, name, indices = tree
        if name not in self.arrays:
            raise LanguageError(f"{name} is not an array")
        stored = self.arrays[name]
        if len(indices) != stored.own:
            raise LanguageError(f"{name} has {stored.own} axes, not {len(indices)}")
        values = [self.whole(index, scope) for index in indices]
        labels = tuple(dict.fromkeys(stored.woven + tuple(label for v in values for label in v.labels)))
        at = [spread((label,), np.arange(self.e.extents[label]), labels) for label in stored.woven]
        outside = [v.outside_over(labels) for v in values if v.outside is not None]
        for value, extent in zip(values, stored.extents):
            place = value.over(labels)
            outside.append((place < 0) | (place >= extent))
            at.append(np.clip(place, 0, max(extent - 1, 0)))
        if 0 in stored.extents:
            data = np.zeros(np.broadcast_shapes(*[np.shape(a) for a in at], ()), stored.value.data.dtype)
        else:
            data = stored.value.data[tuple(at)]
        if stored.value.outside is not None:
            outside.append(stored.value.outside[tuple(at)])
        mask = np.broadcast_to(functools.reduce(np.logical_or, outside), data.shape) if outside else None
        return Value(labels, data, computed_kind(stored.value.kind), stored.value.type, mask if mask is not None and np.any(mask) else None)

    def eval_unary(self, tree, scope):
        a = self.eval(tree[2], scope)
        if tree[1] == "not":
            return Value(a.labels, a.data == 0, "whole", "", a.outside)
        return Value(a.labels, -(a.data if a.kind == "real" else a.data.astype(np.int64)), a.kind, a.type, a.outside)

    def eval_binary(self, tree, scope):
        _, op, left, right = tree
        a, b = self.eval(left, scope), self.eval(right, scope)
        if op in ("and", "or"):
            labels = united(a, b)
            data = (np.logical_and if op == "and" else np.logical_or)(a.over(labels) != 0, b.over(labels) != 0)
            return Value(labels, data, "whole", "", where_outside(labels, a, b))
        return self.combined(op, a, b)

    def combined(self, op, a, b):
        labels = united(a, b)
        outside = where_outside(labels, a, b)
        whole = a.kind != "real" and b.kind != "real"
        if op == "^" and whole:
            whole = b.kind == "whole" and b.data.ndim == 0 and int(b.data) >= 0
        if op == "/" and whole and self.in_whole:
            if np.any(remainder(a.over(labels), b.over(labels))):
                raise LanguageError("a quotient leaves a rest")
            op = "//"
        if op == "/":
            whole = False
        x, y = a.over(labels), b.over(labels)
        if whole:
            kind = self.partner(a, b)
            x, y = x.astype(np.int64), y.astype(np.int64)
            if op in COMPARISONS:
                return Value(labels, COMPARISONS[op](x, y), "whole", "", outside)
            if op == "^":
                data = np.ones_like(x)
                for _ in range(int(b.data)):
                    data = data * x
                kind = a.kind
            else:
                data = {"+": np.add, "-": np.subtract, "*": np.multiply, "//": divided, "%": remainder, "max": np.maximum, "min": np.minimum}[op](x, y)
            return Value(labels, data, kind, "", outside)
        x, y = x.astype(EXACT), y.astype(EXACT)
        if op in COMPARISONS:
            return Value(labels, COMPARISONS[op](x, y), "whole", "", outside)
        type = self.real_type(a, b)
        data = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "^": power, "max": np.maximum, "min": np.minimum,
                "//": lambda p, q: np.floor(p / q), "%": lambda p, q: p - q * np.floor(p / q)}[op](x, y)
        return Value(labels, self.e.real(data, type), "real", type, outside)

    @staticmethod
    def partner(a, b):
        """The type of integers made of two."""
        kinds = {a.kind, b.kind} - {"whole"}
        return "whole" if not kinds else kinds.pop() if len(kinds) == 1 else "i64"

    @staticmethod
    def real_type(a, b):
        return promoted(a.type if a.kind == "real" else "", b.type if b.kind == "real" else "") or ("f32" if {a.kind, b.kind} & set(INTEGERS) else "")

    def chosen(self, condition, a, b):
        labels = united(condition, a, b)
        taken = condition.over(labels) != 0
        outside = None
        if condition.outside is not None or a.outside is not None or b.outside is not None:
            outside = condition.outside_over(labels) | np.where(taken, a.outside_over(labels), b.outside_over(labels))
        if a.kind == "real" or b.kind == "real":
            return Value(labels, np.where(taken, a.over(labels).astype(EXACT), b.over(labels).astype(EXACT)), "real", self.real_type(a, b), outside)
        kind = self.partner(a, b)
        x, y = (v.over(labels).astype(np.int64) for v in (a, b))
        if kind != "whole":
            x, y = wrapped(x, kind), wrapped(y, kind)
        return Value(labels, np.where(taken, x, y), kind, "", outside)

    def eval_reduce(self, tree, scope):
        _, op, axes, body = tree
        own = [self.e.label(axis, self.size(axis)) for axis in axes]
        value = self.eval(body, {**scope, **dict(zip(axes, own))})
        rest = tuple(label for label in value.labels if label not in own)
        labels = rest + tuple(own)
        shape = [self.e.extents[label] for label in labels]
        data = np.broadcast_to(value.over(labels), shape).reshape(shape[:len(rest)] + [math.prod(shape[len(rest):])])
        outside = value.outside
        if outside is not None:
            outside = np.broadcast_to(spread(value.labels, outside, labels), shape).reshape(data.shape).any(axis=-1)
        if op in ("argmax", "argmin"):
            return Value(rest, (np.argmax if op == "argmax" else np.argmin)(data, axis=-1).astype(np.int64), "i64", "", outside)
        if value.kind == "real":
            data = REDUCERS[op](data, axis=-1)
            return Value(rest, self.e.real(np.asarray(data, EXACT), value.type), "real", value.type, outside)
        return Value(rest, REDUCERS[op](data.astype(np.int64), axis=-1), value.kind, "", outside)

    # ---- calls
    def eval_call(self, tree, scope):
        _, name, arguments = tree
        if name in TYPES:
            value = self.converted(self.eval(arguments[0], scope), name)
            value.kind = computed_kind(value.kind)
            return value
        if name == "size":
            return Value((), np.array(self.size(arguments[0][1]), np.int64), "i64")
        if name in self.e.definitions:
            results = self.scalar_call(tree, scope)
            return results[0]
        values = [self.eval(a, scope) for a in arguments]
        if name == "where":
            return self.chosen(*values)
        if name in ("max", "min", "pow"):
            value = values[0]
            for other in values[1:]:
                value = self.combined("^" if name == "pow" else name, value, other)
            return value
        (a,) = values
        if name == "abs":
            return Value(a.labels, np.abs(a.data) if a.kind == "real" else np.abs(a.data.astype(np.int64)), a.kind, a.type, a.outside)
        if name in ROUNDINGS:
            return a if a.kind != "real" else Value(a.labels, ROUNDINGS[name](a.data), "real", a.type, a.outside)
        if name not in FUNCTIONS:
            raise LanguageError(f"{name} is not a function")
        type = a.type if a.kind == "real" else "f32"
        return Value(a.labels, self.e.real(np.asarray(FUNCTIONS[name](a.data.astype(EXACT)), EXACT), type), "real", type, a.outside)

    def scalar_call(self, tree, scope):
        """Scalars to a definition of scalars: woven over all that they depend on."""
        _, name, arguments = tree
        callee = self.e.definitions[name]
        given = [self.woven(self.eval(a, scope)) for a in arguments]
        return [self.unwoven(result, ()) for result in self.e.run(callee, given, {}, True)]

    def woven(self, value, own=()):
        return self.stored(value, tuple(own))

    @staticmethod
    def unwoven(stored, own):
        return Value(stored.woven + tuple(own), stored.value.data, stored.value.kind, stored.value.type, stored.value.outside)

    @staticmethod
    def axes_of(callee):
        return list(dict.fromkeys(axis for array in callee.arguments for axis in array.axes))

    def eval_apply(self, tree, scope):
        results = self.apply(tree, scope)
        if len(results) != 1:
            raise LanguageError(f"{tree[1]} has several results")
        return results[0]

    def apply(self, tree, scope):
        """Over named axes, which stand for the callee's in the order of its signature; a callee of one axis takes several as one."""
        _, name, axes, arguments = tree
        if name not in self.e.definitions:
            raise LanguageError(f"{name} is not defined")
        callee = self.e.definitions[name]
        own = self.axes_of(callee)
        labels = [self.e.label(axis, self.size(axis)) for axis in axes]
        inner = {**scope, **dict(zip(axes, labels))}
        flat = len(own) == 1 and len(axes) > 1
        if not flat and len(own) != len(axes):
            raise LanguageError(f"{name} has {len(own)} axes, not {len(axes)}")
        given = []
        for array, argument in zip(callee.arguments, arguments):
            dims = tuple(labels) if flat and array.axes else tuple(labels[own.index(axis)] for axis in array.axes)
            stored = self.woven(self.eval(argument, inner), dims)
            if flat and array.axes:
                data = stored.value.data
                stored = reshaped(stored, data.shape[:len(stored.woven)] + (-1,), 1)
            given.append(stored)
        results = []
        for array, stored in zip(callee.results, self.e.run(callee, given, {}, True)):
            names = list(axes) if flat and array.axes else [axes[own.index(axis)] for axis in array.axes]
            if flat and array.axes:
                data = stored.value.data
                shape = data.shape[:len(stored.woven)] + tuple(self.e.extents[label] for label in labels)
                stored = reshaped(stored, shape, len(labels))
            missing = [axis for axis in names if axis not in scope]
            if missing:
                raise LanguageError(f"{missing[0]} is bound by nothing")
            results.append(self.unwoven(stored, [scope[axis] for axis in names]))
        return results

    def called_on_arrays(self, equation):
        """O[b, h, q, d] = attention(Q[b, h, ..], K[b, ..], V): the results, or None where the right side is no such call."""
        body = equation.body
        if body[0] != "call":
            return None
        _, name, arguments = body
        if name in ("einsum", "rearrange", "reduce") and arguments and arguments[0][0] == "text":
            return [self.pasted(name, arguments)]
        callee = self.e.definitions.get(name)
        if callee is None or not any(array.axes for array in callee.arguments + callee.results):
            return None
        left = equation.targets[0].axes
        woven = {}
        given = []
        for array, argument in zip(callee.arguments, arguments):
            if not array.axes:
                given.append(argument)
                continue
            if argument[0] == "name":
                argument = ("read", argument[1], [".."])
            if argument[0] != "read":
                raise LanguageError("an argument is no array")
            indices = argument[2]
            outer = indices[:indices.index("..")] if ".." in indices else indices[:len(indices) - len(array.axes)]
            names = indices[len(outer):] if ".." not in indices else None
            given.append((argument[1], outer, names))
            for index in outer:
                for axis in names_in(index):
                    if axis in left:
                        woven.setdefault(axis, None)
        for argument, array in zip(arguments, callee.arguments):
            if not array.axes:
                for axis in names_in(argument):
                    if axis in left:
                        woven.setdefault(axis, None)
        scope = {axis: self.e.label(axis, self.size(axis)) for axis in woven}
        stored = []
        for array, argument in zip(callee.arguments, given):
            if not array.axes:
                stored.append(self.woven(self.eval(argument, scope)))
                continue
            source, outer, names = argument
            own = [self.e.label(axis, extent) for axis, extent in
                   zip(array.axes, self.arrays[source].extents[len(outer):])]
            inner = dict(scope)
            trees = []
            for label in own:
                inner[label] = label
                trees.append(("name", label))
            if names is not None and any(n[0] != "name" for n in names):
                raise LanguageError("own axes are named by names")
            value = self.eval(("read", source, outer + trees), inner)
            stored.append(self.woven(value, own))
        results = []
        for target, result in zip(equation.targets, self.e.run(callee, stored, {}, True), strict=True):
            own = [axis for axis in target.axes if axis not in woven]
            if len(own) != result.own:
                raise LanguageError(f"{target.name} has {len(own)} axes of {name}'s, not {result.own}")
            places = {}
            for axis, extent in zip(own, result.extents):
                if self.sizes.setdefault(axis, extent) != extent:
                    raise LanguageError(f"{axis} is {self.sizes[axis]} and {extent}")
                places[axis] = self.e.label(axis, extent)
            places.update(scope)
            value = self.unwoven(result, [places[axis] for axis in own])
            results.append(self.stored(value, tuple(places[axis] for axis in target.axes)))
        return results

    def pasted(self, name, arguments):
        """einsum("qk,xk->qx", Q, K), rearrange("b h d -> h b d", X), reduce("r c -> r", "max", X)."""
        left, right = arguments[0][1].split("->")
        split = (lambda part: part.split()) if name != "einsum" or " " in left.strip().replace(", ", ",") else list
        operands = [split(part.strip()) for part in left.split(",")]
        out = split(right.strip())
        arrays = [self.arrays[a[1]] for a in arguments[(2 if name == "reduce" else 1):]]
        labels = {}
        product = None
        for letters, stored in zip(operands, arrays, strict=True):
            for letter, extent in zip(letters, stored.extents, strict=True):
                labels.setdefault(letter, self.e.label(letter, extent))
            value = self.unwoven(stored, [labels[letter] for letter in letters])
            product = value if product is None else self.combined("*", product, value)
        gone = [letter for letter in labels if letter not in out]
        if gone:
            op = arguments[1][1] if name == "reduce" else "sum"
            rest = tuple(label for label in product.labels if label not in {labels[g] for g in gone})
            data = product.over(rest + tuple(labels[g] for g in gone))
            data = data.reshape(data.shape[:len(rest)] + (-1,))
            if op == "mean":
                data = np.sum(data, axis=-1).astype(EXACT) / data.shape[-1]
                product = Value(rest, data, "real", product.type or "f32")
            else:
                product = Value(rest, np.asarray(REDUCERS[op](data, axis=-1)), product.kind, product.type)
        return self.stored(product, tuple(labels[letter] for letter in out))


def reshaped(stored, shape, own):
    value = stored.value
    outside = None if value.outside is None else value.outside.reshape(shape)
    return Stored(stored.woven, Value((), value.data.reshape(shape), value.kind, value.type, outside), own)


def names_in(tree):
    if not isinstance(tree, tuple):
        return set()
    if tree[0] == "name":
        return {tree[1]}
    found = set()
    for part in tree[1:]:
        for one in part if isinstance(part, list) else [part]:
            found |= names_in(one)
    return found


def computed_kind(kind):
    """In what elements of a type are computed with: the narrow integers in i32."""
    return "i32" if kind in INTEGERS and kind != "i64" else kind


def power(x, y):
    """Of a number below zero it is NaN but by a whole exponent, of -inf too."""
    return np.where((x < 0) & (y != np.rint(y)), EXACT(np.nan), np.power(x, y))


def divided(x, y):
    """Toward minus infinity; by zero it is 0."""
    return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y)))


def remainder(x, y):
    """With the sign of the divisor; by zero it is 0."""
    return np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y)))
