"""How notebooks show programs and answers."""

from html import escape
from typing import TYPE_CHECKING, List, Sequence, Tuple

from ._errors import Error

if TYPE_CHECKING:
    from ._program import Program

# As many lines as a notebook shows at once; the rest scrolls.
_BLOCK = "max-height: 32em; overflow: auto; font-size: 85%; line-height: 1.3"


def preformatted(text: str) -> str:
    """Text as it stands."""
    return f'<pre style="{_BLOCK}">{escape(text)}</pre>'


def inline(svg: str) -> str:
    """A picture as a part of a page, without the line that says that it is XML."""
    return svg[svg.index("<svg") :]


def framed(page: str) -> str:
    """A whole page, apart from the notebook's own."""
    return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 45em; border: 0"></iframe>'


def table(rows: Sequence[Tuple[str, ...]]) -> str:
    """The first row is the head."""
    parts: List[str] = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        parts.append("<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>")
    return f"<table>{''.join(parts)}</table>"


def page_of(program: "Program") -> str:
    """A program's text and diagram, with its derivation and plan to open. What cannot be made says why in its place."""
    parts = [preformatted(program.text.strip())]
    try:
        parts.append(inline(program.draw().text))
    except Error as error:
        parts.append(preformatted(str(error)))
    for title, made in (("derivation", program.derive), ("plan", program.plan)):
        try:
            text = made().text
        except Error as error:
            text = str(error)
        parts.append(f"<details><summary>{title}</summary>{preformatted(text)}</details>")
    return "<div>" + "\n".join(parts) + "</div>"
