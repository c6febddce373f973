"""Programs as operators of torch: in torch.compile, with gradients, under vmap.

Importing this module imports torch, 2.4 or later.
"""

import functools
import inspect
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import torch

from ._arrays import DTYPES, NAME_OF, NAMES, TYPE_OF_DTYPE, WHOLE
from ._operators import trace_graph
from ._program import Array, Program
from ._sizes import shapes_of_outputs, types_of_outputs
from ._trace import NoEquation, Value, Writer

__all__ = ["NoEquation", "Operator", "Traced", "flex_attention", "operator", "trace"]

TYPES: Dict[torch.dtype, str] = {
    getattr(torch, dtype): NAME_OF[type] for dtype, type in TYPE_OF_DTYPE.items() if hasattr(torch, dtype)
}
_names: Set[str] = set()


def operator(
    program: Program, *, name: Optional[str] = None, backward: Union[Program, bool, None] = None
) -> "Operator":
    """The program as an operator that torch knows.

    It takes and gives tensors as the program does. It is registered as napkin::`name`, by default the program's name,
    with a number where that is taken. torch.compile(fullgraph=True, dynamic=True) keeps it whole, with sizes as
    symbols; vmap weaves an axis into it. Under autocast, inputs whose type the text leaves open are cast as those of
    torch's products are.

    Its gradients are those that napkin derives, and so are theirs. `backward` gives others. What it takes are inputs and outputs of the program, by their names, and gradients
    of outputs: dO is that of O. What it gives are gradients of inputs: dQ is that of Q. An input whose gradient it
    does not give has none. False: there are no gradients.

    Raises ValueError for a backward program that takes or gives anything else.
    """
    return Operator(program, name or program.name, backward)


class Operator:
    """What operator() makes; call it with tensors. `op` is torch's name of it, as torch.library.opcheck takes it."""

    def __init__(self, program: Program, name: str, backward: Union[Program, bool, None]) -> None:
        self.program = program
        self.name = _unused(name)
        self._backward = _Gradients(program, backward) if backward is not False and _has_reals(program) else None
        self._output_types: Dict[Tuple[Any, ...], List[torch.dtype]] = {}
        self._woven: Dict[Tuple[bool, ...], Operator] = {}
        self._shapes = shapes_of_outputs(program, torch._check)
        tensors = ", ".join(f"Tensor {array.name}" for array in program.inputs)
        results = ", ".join(["Tensor"] * len(program.outputs))
        schema = f"({tensors}) -> {results if len(program.outputs) == 1 else f'({results})'}"
        made = torch.library.custom_op(f"napkin::{self.name}", self._run, mutates_args=(), schema=schema)
        made.register_fake(self._fake)
        made.register_vmap(self._vmap)
        if self._backward is not None:
            made.register_autograd(self._backward.run, setup_context=self._backward.keep)
        self._made = made
        self.op = getattr(getattr(torch.ops.napkin, self.name), "default")

    def __call__(self, *tensors: torch.Tensor, **named: torch.Tensor) -> Any:
        """Gives what the program gives. Where torch has nothing to record, its dispatcher is passed by."""
        if named:
            tensors = tensors + tuple(named.pop(array.name) for array in self.program.inputs[len(tensors) :])
            if named:
                raise TypeError(f"{self.name} has no argument '{next(iter(named))}'")
        compiling = _is_compiling()
        if tensors and (compiling or _any_autocast()) and torch.is_autocast_enabled(tensors[0].device.type):
            tensors = self._lowered(tensors)
        if compiling or not _are_plain(tensors):
            return self.op(*tensors)
        return self.program(*tensors)

    def __repr__(self) -> str:
        return f"<napkin operator napkin::{self.name} of {self.program!r}>"

    def _lowered(self, tensors: Sequence[torch.Tensor]) -> Tuple[torch.Tensor, ...]:
        """What autocast makes of tensors whose type the text leaves open: as of those of torch's products."""
        dtype = torch.get_autocast_dtype(tensors[0].device.type)
        return tuple(
            tensor.to(dtype) if array.type is None and tensor.dtype in _LOWERED else tensor
            for array, tensor in zip(self.program.inputs, tensors)
        )

    def _run(self, *tensors: torch.Tensor) -> Any:
        return self.program(*tensors)

    def _dtypes(self, tensors: Sequence[torch.Tensor]) -> List[torch.dtype]:
        key = tuple(TYPES[tensor.dtype] for tensor in tensors)
        if key not in self._output_types:
            types = types_of_outputs(self.program, key)
            self._output_types[key] = [getattr(torch, DTYPES[NAMES[type]]) for type in types]
        return self._output_types[key]

    def _fake(self, *tensors: torch.Tensor) -> Any:
        shapes = self._shapes([tensor.shape for tensor in tensors])
        outputs = tuple(tensors[0].new_empty(shape, dtype=dtype) for shape, dtype in zip(shapes, self._dtypes(tensors)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _vmap(self, info: Any, in_dims: Tuple[Optional[int], ...], *tensors: torch.Tensor) -> Any:
        batched = tuple(dim is not None for dim in in_dims)
        if batched not in self._woven:
            self._woven[batched] = Operator(woven(self.program, batched), f"{self.program.name}_woven", False)
        moved = [t if dim is None else t.movedim(dim, 0) for t, dim in zip(tensors, in_dims)]
        results = self._woven[batched].op(*moved)
        return results, 0 if len(self.program.outputs) == 1 else (0,) * len(self.program.outputs)


def _has_reals(program: Program) -> bool:
    """Whether it takes and gives real numbers."""
    return all(any(a.type not in WHOLE for a in arrays) for arrays in (program.inputs, program.outputs))


class _Gradients:
    """A backward program, as torch's autograd calls it. One that is derived is made when it is first asked for."""

    def __init__(self, forward: Program, backward: Union[Program, bool, None]) -> None:
        self.forward = forward
        self.inputs = [array.name for array in forward.inputs]
        self.outputs = [array.name for array in forward.outputs]
        self._operator: Optional[Operator] = None
        if isinstance(backward, Program):
            self._take(backward)

    @property
    def operator(self) -> "Operator":
        if self._operator is None:
            self._take(self.forward.gradient())
        assert self._operator is not None
        return self._operator

    def _take(self, backward: Program) -> None:
        forward = self.forward
        self.takes = [array.name for array in backward.inputs]
        self.gives = [array.name for array in backward.outputs]
        gradients = ["d" + name for name in self.outputs]
        for name in self.takes:
            if name not in self.inputs + self.outputs + gradients:
                raise ValueError(f"{backward.name} takes {name}, which {forward.name} neither takes nor gives")
        for name in self.gives:
            if name not in ["d" + name for name in self.inputs]:
                raise ValueError(f"{backward.name} gives {name}, which is the gradient of no input of {forward.name}")
        self._operator = Operator(backward, f"{forward.name}_backward", None)

    def keep(self, ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        """Saves what the backward program takes."""
        assert self.operator
        outputs = output if isinstance(output, tuple) else (output,)
        known = dict(zip(self.inputs + self.outputs, (*inputs, *outputs)))
        ctx.save_for_backward(*[known[name] for name in self.takes if name in known])
        ctx.like = [(tuple(tensor.shape), tensor.dtype) for tensor in outputs]

    def run(self, ctx: Any, *gradients: Optional[torch.Tensor]) -> Any:
        """The gradient of every input."""
        saved = iter(ctx.saved_tensors)
        given: Dict[str, Any] = dict(zip(["d" + name for name in self.outputs], gradients))
        some = next(gradient for gradient in gradients if gradient is not None)
        arguments = []
        for name in self.takes:
            if name not in given:
                arguments.append(next(saved))
            elif given[name] is None:
                shape, dtype = ctx.like[self.outputs.index(name[1:])]
                arguments.append(some.new_zeros(shape, dtype=dtype))
            else:
                arguments.append(given[name])
        results = self.operator(*arguments)
        by_name = dict(zip(self.gives, results if isinstance(results, tuple) else (results,)))
        out = tuple(by_name.get("d" + name) for name in self.inputs)
        return out if len(out) > 1 else out[0]


def woven(program: Program, batched: Sequence[bool]) -> Program:
    """The program with one more axis, the first of those inputs for which `batched` is true, and of all outputs."""
    arrays = (*program.inputs, *program.outputs)
    taken = {array.name for array in arrays} | {axis for array in arrays for axis in array.axes}
    taken |= set(re.findall(r"\w+", program.text))
    axis = next(
        name for name in ("batch", *(f"batch_{number}" for number in range(len(taken) + 1))) if name not in taken
    )

    def declared(array: Array, is_woven: bool) -> str:
        return str(array._replace(axes=(axis, *array.axes))) if is_woven else str(array)

    inputs = ", ".join(map(declared, program.inputs, batched))
    outputs = ", ".join(declared(array, True) for array in program.outputs)
    left = ", ".join(f"{array.name}[{', '.join((axis, *array.axes))}]" for array in program.outputs)
    right = ", ".join(
        f"{a.name}[{axis}, ..]" if is_woven and a.axes else f"{a.name}[{axis}]" if is_woven else a.name
        for a, is_woven in zip(program.inputs, batched)
    )
    name = f"{program.name}_{axis}"
    text = f"{program.text.rstrip()}\n{name}({inputs}) -> {outputs}\n    {left} = {program.name}({right})\n"
    return Program(text, sizes=program.sizes, machine=program.machine)


def _unused(name: str) -> str:
    """The name, or the name with the first number that makes it unused."""
    unused, number = name, 1
    while unused in _names:
        number += 1
        unused = f"{name}_{number}"
    _names.add(unused)
    return unused


_PLAIN = (torch.Tensor, torch.nn.Parameter)
# What autocast casts in torch's products; f64 stays (torch/csrc: cached_cast, is_eligible).
_LOWERED = (torch.float32, torch.float16, torch.bfloat16)
_any_autocast = torch._C._is_any_autocast_enabled
_is_compiling, _grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
_num_modes, _transformation = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack


def _are_plain(tensors: Sequence[Any]) -> bool:
    """Whether nothing watches: no gradient, no mode, no transformation."""
    if _num_modes() or _transformation() is not None:
        return False
    grad = _grad_enabled()
    for tensor in tensors:  # which is quicker than all()
        if type(tensor) not in _PLAIN or (grad and tensor.requires_grad):
            return False
    return True


# ---- functions of torch as texts


class Traced:
    """A function of torch's operators as a program: call it with the function's tensors.

    `program` takes these, and then `captured`: the tensors that the function reads besides. `text` is the program's.
    """

    def __init__(self, program: Program, captured: Sequence[torch.Tensor]) -> None:
        self.program = program
        self.captured = tuple(captured)
        self.operator = operator(program)

    @property
    def text(self) -> str:
        """The equations."""
        return self.program.text

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Gives what the function gives."""
        return self.operator(*tensors, *self.captured)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.program._repr_html_()


def trace(fn: Callable[..., Any], *examples: torch.Tensor, name: Optional[str] = None) -> Traced:
    """The program of a function, or module, of torch's operators, by torch.export.

    `examples` are tensors as it takes them. Types of real tensors and sizes are open in the program. A number that
    the function computes from a shape, and a size that it cuts a dimension by, is that of the examples. Raises
    NoEquation at an operator that has no equation.
    """

    class Module(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fn = fn

        def forward(self, *tensors: Any) -> Any:
            return self.fn(*tensors)

    label = str(name or getattr(fn, "__name__", "traced"))
    try:
        return _traced(torch.export.export(Module(), examples, strict=False), examples, fn, label)
    except NoEquation as error:
        # The quick way of exporting knows no lines of the function; the other one may not take it.
        try:
            return _traced(torch.export.export(Module(), examples, strict=True), examples, fn, label)
        except NoEquation:
            raise
        except Exception:
            raise error from None


def _traced(exported: Any, examples: Sequence[torch.Tensor], fn: Callable[..., Any], name: str) -> Traced:
    writer = Writer()
    known = {**dict(exported.state_dict), **dict(exported.constants)}
    inputs: List[Value] = []
    captured: List[torch.Tensor] = []
    behind: List[Any] = []
    names = _parameters(fn, len(examples))
    given = iter(zip(names, examples))
    for spec, node in zip(exported.graph_signature.input_specs, exported.graph.nodes):
        if spec.target is None:
            inputs.append(writer.input(*next(given)))
        elif known[spec.target].dim() == 0:
            inputs.append(_constant(known[spec.target]))
        else:
            captured.append(known[spec.target])
            inputs.append(writer.input(node.name.partition("_")[2], captured[-1]))
            behind.append(writer.inputs.pop())  # the function's own tensors stand first
    writer.inputs += behind
    values = trace_graph(
        exported.graph, writer, inputs, lambda target: _constant(getattr(exported.graph_module, target))
    )
    return Traced(_named_program(writer, values, name), captured)


def _parameters(fn: Callable[..., Any], count: int) -> List[str]:
    """Names of a function's tensors: those of its parameters, where it has so many."""
    try:
        names = list(inspect.signature(getattr(fn, "forward", fn)).parameters)
    except (TypeError, ValueError):
        names = []
    return names if len(names) == count else [f"X{number}" for number in range(count)]


def _constant(tensor: torch.Tensor) -> Value:
    """A tensor without dimensions that a graph holds."""
    if tensor.numel() != 1:
        raise NoEquation("tensor that is made in the function")
    return Value((None,) * tensor.dim(), lambda _: str(tensor.item()), tensor.dtype is torch.bool)


def _named_program(writer: Writer, values: Sequence[Value], name: str) -> Program:
    outputs = []
    for value in values:
        made = writer.equation("Y", value.dims, value.at)
        if any(dim is None for dim in value.dims):
            raise NoEquation("result with a dimension of size 1: squeeze it")
        outputs.append(made.at(["i"] * len(value.dims)).partition("[")[0])
    name = name if name.isidentifier() else "traced"
    return Program(writer.text(writer.unused(name), outputs))


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Optional[Callable[..., Any]] = None,
    block_mask: Any = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Torch's flex_attention with a score and a mask function, which are traced to equations.

    query is [batch, heads, q, k], key [batch, groups, x, k], value [batch, groups, x, d]; the result is [batch,
    heads, q, d]. `block_mask` is a mask function, or what create_block_mask makes, of which the mask function is
    read. The program of a pair of functions is kept: make them once. Gradients are derived, those of tensors that the
    functions capture too. Raises NoEquation at an operator that has no equation.
    """
    mask_mod = getattr(block_mask, "mask_mod", block_mask)
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and not enable_gqa:
        raise ValueError("key and value have fewer heads than query: enable_gqa=True says that this is meant")
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    traced = _flex(score_mod, mask_mod, factor, groups, query.device)
    out: torch.Tensor = traced(query, key, value)
    return out


@functools.lru_cache(maxsize=256)
def _flex(score_mod: Any, mask_mod: Any, factor: float, groups: int, device: torch.device) -> Traced:
    """The program of FlexAttention with these functions."""
    writer = Writer([*"bhqxkdgQKVSTPO", "softmax", "flex"])
    captured: List[torch.Tensor] = []
    head = f"h // {groups}" if groups > 1 else "h"
    arguments = ["b", "h", "q", "x"]
    score = "S[b, h, q, x]"
    if score_mod is not None:
        score = _scalar(score_mod, [score, *arguments], writer, captured, device)
    mask = _scalar(mask_mod, arguments, writer, captured, device) if mask_mod is not None else ""
    if writer.equations:
        raise NoEquation("reduction in a score or mask function")
    heads = "g" if groups > 1 else "h"
    inputs = ", ".join(["Q[b, h, q, k]", f"K[b, {heads}, x, k]", f"V[b, {heads}, x, d]", *writer.signature({})])
    masked = f"where({mask}, {score}, -inf)" if mask else score
    softmax = "masked_softmax" if mask else "softmax"
    text = f"""flex({inputs}) -> O[b, h, q, d]
    S[b, h, q, x] = (sum(k) Q[b, h, q, k] * K[b, {head}, x, k]) * {factor!r}
    T[b, h, q, x] = {masked}
    P[b, h, q, x] = {softmax}(x) T[b, h, q, x]
    O[b, h, q, d] = sum(x) P[b, h, q, x] * V[b, {head}, x, d]
"""
    return Traced(Program(text), captured)


def _scalar(
    fn: Callable[..., Any], names: Sequence[str], writer: Writer, captured: List[torch.Tensor], device: torch.device
) -> str:
    """The expression of a function of numbers and indices, which read as `names`."""
    from torch.fx.experimental.proxy_tensor import make_fx

    # One element in place of none: indexing by it is a read of torch's, and no number of Python's. Each is another
    # tensor, as make_fx takes one tensor for one argument.
    types = [torch.float32 if "[" in name else torch.int32 for name in names]
    examples = [torch.zeros(1, dtype=dtype, device=device) for dtype in types]
    made = make_fx(fn)(*examples)

    def attribute(target: str) -> Value:
        tensor = getattr(made, target)
        if tensor.numel() == 1:
            return _constant(tensor)
        for known, name in zip(captured, writer.inputs):
            if known is tensor:
                return Value(name[1], lambda indices: f"{name[0]}[{', '.join(indices)}]", tensor.dtype is torch.bool)
        captured.append(tensor)
        # The result's type is that of query, key and value.
        return writer.input("captured", tensor, is_typed=True)

    inputs = [Value((None,), lambda _, name=name: name) for name in names]  # type: ignore[misc]
    (value,) = trace_graph(made.graph, writer, inputs, attribute)
    return value.at(["0"] * len(value.dims))
