"""Small pieces of HTML. Every text that comes from a record is escaped here, and nothing else makes markup of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_HARMFUL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)

_NUMERIC = re.compile(r"[~$+−-]?[0-9]|–?$")


def clean(text: str) -> str:
    """The text with what could steer a terminal or turn the direction of writing shown as an escape. No lone surrogate
    is left, which no file could hold."""
    return _HARMFUL.sub(lambda m: ascii(m.group())[1:-1], text.replace("\r\n", "\n"))


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def esc(value: object) -> Markup:
    """Any text as HTML; Markup as it is."""
    return value if isinstance(value, Markup) else Markup(escape(clean(str(value))))


def tag(name: str, *inside: object, **attributes: str) -> Markup:
    """``tag("td", "x", cls="l")``: an element; ``cls`` is its class."""
    given = "".join(f' {k.replace("cls", "class")}="{escape(clean(v))}"' for k, v in attributes.items())
    return Markup(f"<{name}{given}>" + "".join(esc(part) for part in inside) + f"</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """The parts one after the other; ``between`` them is HTML."""
    return Markup(between.join(esc(part) for part in parts))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, wide: Sequence[int] = ()) -> Markup:
    """A table that scrolls sideways by itself; the columns in ``wide`` may break their lines. Columns of numbers stand
    to the right."""
    cells = [[esc(cell) for cell in row] for row in rows]
    classes = []
    for n in range(len(head)):
        numbers = n > 0 and n not in wide and all(_NUMERIC.match(row[n]) for row in cells)
        classes.append("w" if n in wide else "n" if numbers else "l")
    top = tag("thead", tag("tr", *(tag("th", cell, cls=classes[n]) for n, cell in enumerate(head))))
    body = [tag("tr", *(tag("td", cell, cls=classes[n]) for n, cell in enumerate(row))) for row in cells]
    return tag("div", tag("table", top, tag("tbody", *body)), cls="scroll")


def figure(svg: str, caption: str) -> Markup:
    return tag("figure", Markup(svg), tag("figcaption", caption))


def section(id: str, title: str, *inside: object) -> Markup:
    return tag("section", tag("h2", title), *inside, id=id)


def fold(summary: object, *inside: object) -> Markup:
    """What is shown when it is opened."""
    return tag("details", tag("summary", summary), tag("div", *inside))
