"""Patterns such as ``/users/<id:int>/files/<name>``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

NAMED = re.compile(r"<([a-z_]+)(?::(int|str|rest))?>")


class PatternError(ValueError):
    """A pattern that can't be understood."""


@dataclass(frozen=True)
class Part:
    """One part of a pattern. ``kind`` is "static", "int", "str" or "rest"; ``text`` is the text or the name."""

    kind: str
    text: str

    def value(self, segment: str) -> Any:
        """What a segment means for this part, or None if it doesn't fit."""
        if self.kind == "static":
            return segment if segment == self.text else None
        if self.kind == "int":
            return int(segment) if re.fullmatch(r"[0-9]+", segment) else None
        return segment


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a pattern.

    ``<name>`` or ``<name:str>`` is one segment, ``<name:int>`` one of the digits 0 to 9 only, ``<name:rest>`` (only at
    the end) one or more segments, as a list. PatternError for anything else with ``<`` or ``>``, and for a name twice.
    """
    parts = []
    for piece in text.strip("/").split("/") if text.strip("/") else []:
        match = NAMED.fullmatch(piece)
        if match:
            parts.append(Part(match[2] or "str", match[1]))
        elif "<" in piece or ">" in piece:
            raise PatternError(f"what is {piece!r}?")
        else:
            parts.append(Part("static", piece))
    names = [part.text for part in parts if part.kind != "static"]
    if len(set(names)) != len(names) or any(part.kind == "rest" for part in parts[:-1]):
        raise PatternError(f"a name twice, or something after a rest: {text!r}")
    return tuple(parts)


def fit(parts: tuple[Part, ...], segments: list[str]) -> dict[str, Any] | None:
    """The values by name if the segments fit the pattern, else None."""
    values: dict[str, Any] = {}
    for n, part in enumerate(parts):
        if n >= len(segments):
            return None
        if part.kind == "rest":
            values[part.text] = segments[n:]
            return values
        value = part.value(segments[n])
        if value is None:
            return None
        if part.kind != "static":
            values[part.text] = value
    return values if len(segments) == len(parts) else None
