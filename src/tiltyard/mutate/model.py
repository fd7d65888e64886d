"""What a mutation is: data, and how it is applied. Knows nothing of how mutations are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiltyard.errors import UsageError

OPERATORS: Mapping[str, str] = {
    "boundary": "a comparison with or without its boundary: < for <=",
    "comparison": "a comparison turned round: == for !=, < for >=, in for not in",
    "arithmetic": "another arithmetic or bit operator: + for -, // for /; a sign dropped",
    "constant": "a number one higher or lower, a text a little longer, shorter or empty",
    "boolean": "True for False, and for or, one side of an and or or dropped, not dropped",
    "condition": "a condition negated, or taken for true or for false",
    "statement": "a statement removed: a call, an assignment, a raise, an early return",
    "argument": "two arguments of a call swapped, a keyword argument dropped",
    "return": "None returned in the place of a value",
    "exception": "another exception raised; a handler widened, narrowed or dropped",
    "default": "another default value of a parameter",
    "slice": "a bound of a slice one off, or dropped",
    "loop": "a range one off at either end; break for continue",
    "call": "a related function: min for max, any for all, lstrip for strip, list for sorted",
    "copy": "a copy dropped, so that two names share one object",
    "variable": "one parameter of a function in the place of another",
    "moved": "two neighbouring statements in the other order",
    "guard": "an if taken away: its body always done, or never; a filter dropped, one side of a choice alone",
    "local": "one local variable of a function in the place of another that is used in the same way",
    "body": "a function whose body is gone",
}
"""Every operator, and what it does in plain words."""
DEFAULT = tuple(name for name in OPERATORS if name not in ("variable", "moved", "guard", "local", "body"))
"""What adequacy uses: the others make changes that are either found at once or often change nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """One change: the bytes from ``start`` to ``end`` of the source in UTF-8 become ``text``.

    ``line`` is counted from 1; ``scope`` is the dotted name of the function or class around it, "" at the top level;
    ``before`` is what stands there now."""

    start: int
    end: int
    text: str
    operator: str
    line: int
    scope: str
    before: str


def apply(source: str, chosen: Sequence[Mutation]) -> str:
    """The source with these mutations made. UsageError: two of them overlap."""
    data = source.encode()
    out, at = [], 0
    for mutation in sorted(chosen):
        if mutation.start < at:
            raise UsageError(f"two mutations overlap in line {mutation.line}; expected ones that are apart")
        out += [data[at : mutation.start], mutation.text.encode()]
        at = mutation.end
    return b"".join([*out, data[at:]]).decode()


def describe(mutation: Mutation) -> str:
    """One line for people: ``Pager.label, line 40: first + 1 → first - 1``."""
    where = f"{mutation.scope}, line" if mutation.scope else "line"
    return f"{where} {mutation.line}: {_short(mutation.before)} → {_short(mutation.text)}"


def _short(text: str) -> str:
    one = " ".join(text.split()) or "nothing"
    return one if len(one) <= 60 else f"{one[:57]}..."
