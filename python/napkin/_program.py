"""Programs: a text that is called with arrays, and looked at."""

import os
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from . import _arrays, _errors, _native, _progress
from ._looks import Benchmark, Look, benchmark, look

_native.set_up(_errors.made, _arrays.view, _arrays.empty, _progress.Note)


class Array(NamedTuple):
    """An input or output of a program.

    `type` is a word of the language, such as "f16"; None: the text leaves it open, and calls take it from their
    arrays. `axes` are the names of its axes. `sizes` are what the text says of their sizes: "4096", "n - w + 1", or
    None.
    """

    name: str
    type: Optional[str]
    axes: Tuple[str, ...]
    sizes: Tuple[Optional[str], ...]

    def __str__(self) -> str:
        axes = f"[{', '.join(self.axes)}]" if self.axes else ""
        return self.name + axes + (f": {self.type}" if self.type else "")


class Program(_native.Program):
    """What napkin.compile gives: call it with arrays.

    `program(*arrays, out=None, stream=None, **named)` takes the inputs in the text's order, or by their names, and
    gives the output, or a tuple of them. Shapes are those of the text's axes, and say their sizes. Views are read as
    they lie. Results are arrays of the first input's library and device, or those of `out`. On a GPU a call is
    launched on the stream that the arrays' library works on, or on `stream`: a number, or what has __cuda_stream__,
    .cuda_stream or .ptr. It returns before it has run. The first call with shapes that are new plans and compiles;
    `prepare` does that alone. Calls record no gradients; napkin.torch.operator does, and `gradient` is their program.

    Several threads may call it at a time. Raises Error and MachineError (`code` says which), and TypeError for what
    is no array.
    """

    text: str
    diagram: Optional[str]
    machine: Optional[str]
    sizes: Dict[str, int]
    schedule: Optional[str]
    batch_invariant: bool

    def __new__(
        cls,
        text: str,
        *,
        name: str = "<text>",
        diagram: Optional[str] = None,
        sizes: Optional[Dict[str, int]] = None,
        machine: Optional[str] = None,
        schedule: Optional[str] = None,
        batch_invariant: bool = False,
    ) -> "Program":
        self = super().__new__(cls, text, name, diagram, dict(sizes or {}), schedule, batch_invariant)
        assert isinstance(self, cls)
        self.text, self.diagram, self.machine, self.schedule = text, diagram, machine, schedule
        self.batch_invariant = batch_invariant
        self.sizes = dict(sizes or {})
        arrays = [
            Array(name, None if is_open else _arrays.NAME_OF[type], tuple(axes), tuple(given))
            for name, type, is_open, axes, given in self._arrays()
        ]
        count = self._num_inputs()
        self._inputs, self._outputs = tuple(arrays[:count]), tuple(arrays[count:])
        return self

    _inputs: Tuple[Array, ...]
    _outputs: Tuple[Array, ...]

    @property
    def name(self) -> str:
        """The diagram's name."""
        return self._name()

    @property
    def inputs(self) -> Tuple[Array, ...]:
        """What calls take."""
        return self._inputs

    @property
    def outputs(self) -> Tuple[Array, ...]:
        """What calls give."""
        return self._outputs

    @property
    def kernels(self) -> int:
        """How many kernels calls have made so far: one for each combination of types and shapes."""
        return self._kernels()

    @property
    def codes(self) -> int:
        """How many different codes these kernels have: what was compiled, or read from the cache, for them."""
        return self._codes()

    @property
    def copies(self) -> int:
        """How many views calls copied so far, as no kernel takes them where they lie: on a GPU alone."""
        return self._copies()

    def typed(self, every: Optional[str] = None, **types: str) -> "Program":
        """The program with types for arrays whose type the text leaves open: of every one, or by name, as Q="f16".

        A result that is not named has the promoted type of the open inputs. Raises KeyError for a type that the
        language lacks, and ValueError for an array that has a type or that the program lacks.
        """
        open_inputs = [array.name for array in self.inputs if array.type is None]
        open_outputs = [array.name for array in self.outputs if array.type is None]
        for name in types:
            if name not in open_inputs + open_outputs:
                raise ValueError(f"{self.name} leaves the type of no array {name} open")
        given = dict.fromkeys(open_inputs, every) if every else {}
        given.update(types)
        text = self._typed_text({name: _arrays.NAMES[type] for name, type in given.items() if type})
        return Program(
            text,
            diagram=self.diagram,
            sizes=self.sizes,
            machine=self.machine,
            schedule=self.schedule,
            batch_invariant=self.batch_invariant,
        )

    def gradient(self, *by: str) -> "Program":
        """The program of the gradients: napkin derives it from the equations.

        It takes what this program takes, and then dO for each output O of real numbers; it gives dX for each input X
        of real numbers, or for those named in `by`. Types that are open here are open there. Raises Error where there
        is nothing to differentiate.
        """
        inputs = [array for array in self.inputs if array.type not in _arrays.WHOLE]
        unknown = [name for name in by if name not in [array.name for array in inputs]]
        if unknown:
            raise ValueError(f"{self.name} has no input {unknown[0]} of real numbers")
        given = [array for array in inputs if not by or array.name in by]
        adjoints = [
            array._replace(name="d" + array.name) for array in self.outputs if array.type not in _arrays.WHOLE
        ]
        results = [array._replace(name="d" + array.name) for array in given]
        called = f"grad({', '.join([self.name, *(array.name for array in given)])})"
        name = f"{self.name}_grad"
        left = ", ".join(array.name for array in results)
        arguments = ", ".join(array.name for array in (*self.inputs, *adjoints))
        text = (
            f"{self.text.rstrip()}\n\n{name}({', '.join(map(str, (*self.inputs, *adjoints)))}) -> "
            f"{', '.join(map(str, results))}\n    {left} = {called}({arguments})\n"
        )
        return Program(text, sizes=self.sizes, machine=self.machine)

    # ---- looking

    def derive(self) -> Look:
        """The kernels that the equations become, each with the parts of its folds."""
        return look(self, "derive", "derivation")

    def explain(self, validate: bool = False) -> Look:
        """Every rewrite of the derivation with its side condition; `validate`: each tried on numbers that show
        faults.
        """
        return look(self, "derive", "derivation", ["--explain"] + (["--validate"] if validate else []))

    def plan(
        self, machine: Optional[str] = None, *, prove: bool = False, explain_time: bool = False, **sizes: int
    ) -> Look:
        """Tile sizes, places and threads for a machine, each with its reason, and the predicted time.

        `machine` is a machine's name or a .toml file, or "gpu", the one at hand; None: the program's, or this
        computer's processor. `sizes` are of axes. `prove` and `explain_time` are those of `napkin plan`.
        """
        more = ["--prove"] * prove + ["--explain-time"] * explain_time
        return look(self, "plan", "plan", more, machine=machine, sizes=sizes)

    def cost(self, machine: Optional[str] = None, *, explain: bool = False, **sizes: int) -> Look:
        """Transfers H and memory M in letters; on a machine also every level, unit and bound."""
        return look(self, "cost", "cost", ["--explain"] * explain, machine=machine, sizes=sizes)

    def source(self, machine: Optional[str] = None, *, complete: bool = False, **sizes: int) -> str:
        """The kernels as C++ or CUDA; `complete`: with the prelude, as it is compiled."""
        return look(self, "emit", "source", ["--complete"] * complete, machine=machine, sizes=sizes).text

    def draw(self, step: str = "two-level", machine: Optional[str] = None) -> Look:
        """Its Neural Circuit Diagram at a step of the derivation, as `napkin draw --step` names them."""
        return look(self, "draw", "diagram", ["--step", step, "--format", "svg"], machine=machine)

    def report(self, machine: Optional[str] = None, **sizes: int) -> Look:
        """All that is known of it on a machine, as a page that stands by itself: HTML."""
        return look(self, "report", "report", machine=machine, sizes=sizes)

    def benchmark(self, *arrays: Any, against: Any = None, seconds: float = 0.5) -> Benchmark:
        """Times calls with these arrays, and those of `against`, beside the predicted time.

        `against` is a function of the same arrays, or a dict of functions by name. `seconds` is how long each is
        repeated.
        """
        return benchmark(self, arrays, against, seconds)

    def __repr__(self) -> str:
        return (
            f"<napkin program {self.name}({', '.join(map(str, self.inputs))}) -> {', '.join(map(str, self.outputs))}>"
        )

    def _repr_svg_(self) -> str:
        return self.draw().text

    def _repr_html_(self) -> str:
        from ._html import page_of

        return page_of(self)


def compile(
    text: str,
    *,
    diagram: Optional[str] = None,
    sizes: Optional[Dict[str, int]] = None,
    machine: Optional[str] = None,
    schedule: Optional[str] = None,
    batch_invariant: bool = False,
) -> Program:
    """The program of a text.

    `diagram` names one of those that the text defines; None: the last. `sizes` go before the text's; shapes of arrays
    go before both. `machine` is what plan, cost and source are for where they name none; calls run where their arrays
    lie. `schedule` fixes choices, in the lines that `plan` prints. With `batch_invariant`, the bits of a row of a
    result do not depend on how many rows there are. Kernels are compiled by the first call. Raises Error for what is
    wrong in the text.
    """
    return Program(
        text, diagram=diagram, sizes=sizes, machine=machine, schedule=schedule, batch_invariant=batch_invariant
    )


def load(
    path: "Union[str, os.PathLike[str]]",
    *,
    diagram: Optional[str] = None,
    sizes: Optional[Dict[str, int]] = None,
    machine: Optional[str] = None,
    schedule: Optional[str] = None,
    batch_invariant: bool = False,
) -> Program:
    """The program of a file; as compile. Raises OSError where it cannot be read."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return Program(
        text,
        name=os.fspath(path),
        diagram=diagram,
        sizes=sizes,
        machine=machine,
        schedule=schedule,
        batch_invariant=batch_invariant,
    )
