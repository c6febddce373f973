"""What is wrong, as Python's exceptions."""

from typing import List, NamedTuple, Tuple


class Place(NamedTuple):
    """One thing that is wrong: a stable name of it, a line of words, and its place in the text.

    `line` and `column` count from 1, the column in bytes; they are 0 where it is not about the text.
    """

    code: str
    message: str
    line: int
    column: int


class Error(Exception):
    """The text, the sizes or the arrays are wrong.

    Its message has all that is wrong: each with its line, a caret, what was expected and what is near. `code`, `line`
    and `column` are those of the first; `errors` has all.
    """

    def __init__(self, text: str, errors: List[Place]) -> None:
        super().__init__(text)
        self.errors = errors
        self.code, _, self.line, self.column = errors[0]

    def __str__(self) -> str:
        return "\n" + str(self.args[0]).rstrip("\n")


class MachineError(Error):
    """The machine lacks something: a GPU, a compiler, memory. Or napkin itself has a fault, with the code "fault"."""


def made(text: str, status: int, errors: List[Tuple[str, str, int, int]]) -> Error:
    """The exception for a status of napkin's C interface that is not 0."""
    return (Error if status == 1 else MachineError)(text, [Place(*one) for one in errors])
