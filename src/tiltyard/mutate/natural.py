"""A mutation as a person would have written it: no bracket that nobody needs, no ``pass`` where a line can go.

What comes out means the same as what went in. Who looks for a bug must find it by what the code does, not by how odd
it looks; the measuring of tests does not need this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tiltyard.errors import UsageError
from tiltyard.mutate.find import program
from tiltyard.mutate.model import Mutation, apply

_UNDONE = re.compile(r"(?s)(.*\S) (?:\+ 1 - 1|- 1 \+ 1)")
_NEGATIVE = re.compile(r"-(\d{1,18}) ([+-]) 1")
_TWICE = re.compile(r"(?s)(.*\S) (?:([+-]) 1 \2 1)")
_COMPARES = re.compile(r"[^=<>!]*(?:[=!]=|[<>]=?|\b(?:not )?in\b|\bis\b)[^=<>!]*")
_SEVERAL = re.compile(r"\b(?:and|or|if)\b")
_FLOAT = re.compile(r"\(([\d.e+-]+) (\+ 1\.0|/ 2)\)")
_ODD = ("(True)", "(False)")


def natural(source: str, mutation: Mutation) -> Mutation | None:
    """The same change in natural words, or None for one that looks injected whatever one does."""
    if mutation.operator == "condition" and mutation.text in _ODD:
        return None  # ``if False:``; the operator "guard" does what is meant
    if mutation.operator == "constant" and _lengthened(mutation):
        return None  # nobody writes 'yearx'
    if mutation.operator == "condition" and _COMPARES.fullmatch(mutation.before):
        return None  # ``not a == b``; the operator "comparison" does what is meant
    if match := _NEGATIVE.fullmatch(mutation.text):
        number = int(match[1]) + (1 if match[2] == "-" else -1)
        return replace(mutation, text=f"-{number}" if number else "0")
    if match := _TWICE.fullmatch(mutation.text):
        return replace(mutation, text=f"{match[1]} {match[2]} 2")
    if match := _FLOAT.fullmatch(mutation.text):
        value = float(match[1])
        return replace(mutation, text=repr(value + 1.0 if match[2][0] == "+" else value / 2))
    if mutation.operator == "slice" and not mutation.text:
        return _without_spaces(source, mutation)
    if mutation.text == "pass" and mutation.operator != "body":
        return _without_line(source, mutation)
    mutation = _undone(mutation)
    meant = program(apply(source, [mutation]))
    for text in _simpler(mutation):
        if text != mutation.text:
            made = replace(mutation, text=text)
            if _same(source, made, meant):
                return made
    return mutation


def _undone(mutation: Mutation) -> Mutation:
    """``n`` for ``n + 1 - 1``, ``x`` for ``not not x`` (in a condition, where the two are the same)."""
    if match := _UNDONE.fullmatch(mutation.text):
        return replace(mutation, text=match[1])
    inner = _bare(mutation.text[5:-1]) if mutation.text.startswith("(not (") else ""
    if inner.startswith("not ") and not _SEVERAL.search(inner):
        return replace(mutation, text=inner[4:])
    return mutation


def _lengthened(mutation: Mutation) -> bool:
    quoted = mutation.before[-1:] in "\"'" and mutation.text[-2:-1] == "x" and mutation.text[-1:] in "\"'"
    return mutation.text == "x" or (quoted and mutation.before[-2:-1] != "x" and len(mutation.text) > 2)


def _simpler(mutation: Mutation) -> Iterator[str]:
    """Other ways to write it, the simplest first."""
    text = mutation.text
    if text.startswith("(not (") and text.endswith("))"):
        inner = text[6:-2]
        for bare in (_bare(inner), inner):
            yield f"not {bare}"
            yield f"not ({bare})"
    if (bare := _bare(text)) != text:
        yield bare
    if mutation.before[:1] == '"' and text[:1] == text[-1:] == "'" and '"' not in text:
        yield f'"{text[1:-1]}"'


def _bare(text: str) -> str:
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    return text


def _same(source: str, mutation: Mutation, meant: str | None) -> bool:
    return program(apply(source, [mutation])) == meant


def _without_spaces(source: str, mutation: Mutation) -> Mutation:
    """A bound of a slice gone with the space that stood between it and the colon: ``[: b]`` for ``[ : b]``."""
    data, start, end = source.encode(), mutation.start, mutation.end
    while data[start - 1 : start] == b" " and data[end : end + 1] == b"]":
        start -= 1
    while data[end : end + 1] == b" " and data[start - 1 : start] == b"[":
        end += 1
    return replace(mutation, start=start, end=end, before=data[start:end].decode())


def _without_line(source: str, mutation: Mutation) -> Mutation | None:
    """The lines taken out whole; None where the block has no others: a lone ``pass`` tells where it was."""
    data = source.encode()
    start = data.rfind(b"\n", 0, mutation.start) + 1
    end = data.find(b"\n", mutation.end) + 1 or len(data)
    after = data[mutation.end : end].strip()
    if data[start : mutation.start].strip() or (after and not after.startswith(b"#")):
        return None
    made = replace(mutation, start=start, end=end, text="", before=data[start:end].decode())
    try:
        return made if program(apply(source, [made])) is not None else None
    except UsageError:
        return None
