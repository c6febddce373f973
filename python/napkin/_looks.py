"""What there is to look at: answers of napkin's commands, and measured times."""

import json
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import _arrays, _errors, _native

if TYPE_CHECKING:
    from ._program import Program


class Look:
    """What a command printed: `text` is that, and `data` the same as JSON has it. In a notebook it shows itself.

    `kind` is "derivation", "plan", "cost", "source", "diagram" (an SVG) or "report" (a page of HTML).
    """

    def __init__(self, kind: str, text: str, ask: Callable[[List[str]], str]) -> None:
        self.kind = kind
        self.text = text
        self._ask = ask

    @property
    def data(self) -> Dict[str, Any]:
        """The same as a dict, whose "schema" names its form: "napkin.plan/1". Raises Error for a page, which has
        none.
        """
        found: Dict[str, Any] = json.loads(self._ask(["--json"]))
        return found

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the text into a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<napkin {self.kind}, {len(self.text)} characters>" if self._is_drawn() else self.text

    def _is_drawn(self) -> bool:
        return self.kind in ("diagram", "report")

    def _repr_html_(self) -> str:
        from ._html import framed, inline, preformatted

        if self.kind == "diagram":
            return inline(self.text)
        return framed(self.text) if self.kind == "report" else preformatted(self.text)

    def _repr_svg_(self) -> Optional[str]:
        return self.text if self.kind == "diagram" else None


def _answer(words: Sequence[str], text: str) -> str:
    """What the command prints. Raises Error or MachineError where it fails."""
    code, out, messages = _native.command(words, text)
    if code == 0:
        return out
    raise _errors.made(messages, 1 if code <= 2 else code, [("command-failed", messages.split("\n")[0], 0, 0)])


def look(
    program: "Program",
    command: str,
    kind: str,
    more: Sequence[str] = (),
    *,
    machine: Optional[str] = None,
    sizes: Optional[Dict[str, int]] = None,
) -> Look:
    """What a command says of the program, with the program's own sizes, machine and schedule where none are given."""

    def ask(last: List[str]) -> str:
        words = [command, "-", *more, *last]
        for axis, size in {**program.sizes, **(sizes or {})}.items():
            words += ["--set", f"{axis}={size}"]
        if program.diagram is not None:
            words += ["--diagram", program.diagram]
        if command == "derive":  # which depends on no machine and takes no schedule
            return _answer(words, program.text)
        if machine or program.machine:
            words += ["--machine", str(machine or program.machine)]
        if program.batch_invariant:
            words.append("--batch-invariant")
        if program.schedule is None:
            return _answer(words, program.text)
        with tempfile.NamedTemporaryFile("w", suffix=".schedule", encoding="utf-8") as file:
            file.write(program.schedule)
            file.flush()
            return _answer([*words, "--schedule", file.name], program.text)

    return Look(kind, ask([]), ask)


class Measured(NamedTuple):
    """A row of a benchmark. `seconds` is the median of a call, `least` and `most` are the quartiles."""

    name: str
    seconds: float
    least: float
    most: float
    calls: int


class Benchmark:
    """Measured times of a call, in seconds: `rows`, the program's own first; `predicted` is the model's, None where
    it is unknown.
    """

    def __init__(self, rows: List[Measured], predicted: Optional[float]) -> None:
        self.rows = rows
        self.predicted = predicted

    def _table(self) -> List[Tuple[str, ...]]:
        own = self.rows[0].seconds
        table: List[Tuple[str, ...]] = [("", "median", "quartiles", "calls", "beside napkin")]
        for row in self.rows:
            ratio = "" if row is self.rows[0] else f"{row.seconds / own:.2f}×"
            quartiles = f"{_duration(row.least)} … {_duration(row.most)}"
            table.append((row.name, _duration(row.seconds), quartiles, str(row.calls), ratio))
        if self.predicted is not None:
            table.append(("predicted", _duration(self.predicted), "", "", f"{self.predicted / own:.2f}×"))
        return table

    def __repr__(self) -> str:
        table = self._table()
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        lines = (
            "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in table
        )
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        from ._html import table

        return table(self._table())


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _synchronizer(arrays: Sequence[Any]) -> Callable[[], None]:
    """Waits for what was launched on the arrays' device; nothing to wait for on a processor."""
    import sys

    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    for array in arrays:
        if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
            return lambda: torch.cuda.synchronize(array.device)
        if cupy is not None and isinstance(array, cupy.ndarray):
            return lambda: array.device.synchronize()
    return lambda: None


def _measured(name: str, call: Callable[[], Any], wait: Callable[[], None], seconds: float) -> Measured:
    """Calls in batches, so that waiting for a GPU does not count, until the time is up."""
    call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    once = max(time.perf_counter() - start, 1e-7)
    batch = max(1, min(1000, int(0.02 / once)))
    times: List[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        wait()
        times.append((time.perf_counter() - start) / batch)
    times.sort()
    return Measured(
        name, times[len(times) // 2], times[len(times) // 4], times[3 * len(times) // 4], batch * len(times)
    )


def _predicted(program: "Program", arrays: Sequence[Any]) -> Optional[float]:
    """Seconds of a call by the model, for these arrays where they lie; None where it cannot tell."""
    sizes: Dict[str, int] = {}
    types: Dict[str, str] = {}
    for array, given in zip(program.inputs, arrays):
        sizes.update(zip(array.axes, getattr(given, "shape", ())))
        name = str(getattr(given, "dtype", "")).partition("torch.")
        type = _arrays.TYPE_OF_DTYPE.get(name[2] or name[0])
        if array.type is None and type is not None:
            types[array.name] = _arrays.NAME_OF[type]
    on_gpu = any(getattr(array, "__dlpack_device__", lambda: (1, 0))()[0] == _arrays.ON_GPU for array in arrays)
    try:
        plan = look(program.typed(**types), "plan", "plan", machine="gpu" if on_gpu else None, sizes=sizes).data
    except _errors.Error:
        return None
    return sum(float(kernel["predicted"]["seconds"]) for kernel in plan["kernels"])


def benchmark(program: "Program", arrays: Sequence[Any], against: Any, seconds: float) -> Benchmark:
    """The rows of Program.benchmark."""
    others = (
        against
        if isinstance(against, dict)
        else {} if against is None else {getattr(against, "__name__", type(against).__name__): against}
    )
    wait = _synchronizer(arrays)
    predicted = _predicted(program, arrays)
    rows = [_measured(program.name, lambda: program(*arrays), wait, seconds)]
    for name, function in others.items():
        rows.append(_measured(name, lambda: function(*arrays), wait, seconds))
    return Benchmark(rows, predicted)
