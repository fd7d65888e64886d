"""One constant for another, in code, in prose and in data: a number, or a word that a program takes or gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tiltyard.check.rename import libcst
from tiltyard.sources.perturb import prose
from tiltyard.sources.perturb.model import CantError


class Swap(Protocol):
    """``old`` and ``new`` as they are written."""

    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...
    def in_code(self, text: str) -> str:
        """A whole program. CantError: libcst can't parse it."""

    def in_tests(self, text: str) -> str:
        """A whole program that is a test: what it gives the solution must be about the new constant too."""

    def in_prompt(self, text: str) -> str: ...
    def in_data(self, text: str) -> str:
        """What goes into a program, or comes out of it."""


@dataclass(frozen=True, slots=True)
class NumberSwap:
    """A number in code, comments, docstrings and prose. Data stays: a program is given what it was given."""

    old: str
    new: str

    def in_code(self, text: str) -> str:
        def number(node: Any) -> Any:
            return node.with_changes(value=self.new) if node.value == self.old else node

        return _transformed(text, self._in_prose, {"Integer": number, "Float": number})

    def in_tests(self, text: str) -> str:
        return self.in_code(text)

    def in_prompt(self, text: str) -> str:
        def other(piece: prose.Piece, part: str) -> str:
            stays = piece.kind == prose.QUOTED or (piece.kind == prose.DATA and piece.fenced)
            return part if stays else self._in_prose(part)

        return _by_pieces(text, self.in_code, other)

    def in_data(self, text: str) -> str:
        return text

    def _in_prose(self, text: str) -> str:
        return re.sub(rf"(?<![\w.]){re.escape(self.old)}(?![\w]|\.\d)", lambda _: self.new, text)


@dataclass(frozen=True, slots=True)
class WordSwap:
    """A text of one or a few words: where the code has exactly it, where prose has it in quotes or as code, and as
    whole words in data."""

    old: str
    new: str

    def in_code(self, text: str) -> str:
        def literal(node: Any) -> Any:
            same = node.raw_value == self.old and "b" not in node.prefix.lower()
            return node.with_changes(value=node.value.replace(self.old, self.new)) if same else node

        return _transformed(text, self._marked, {"SimpleString": literal})

    def in_tests(self, text: str) -> str:
        def literal(node: Any) -> Any:
            return node.with_changes(value=node.value.replace(self.old, self.new))

        return _transformed(text, self._marked, {"SimpleString": literal})

    def in_prompt(self, text: str) -> str:
        def other(piece: prose.Piece, part: str) -> str:
            if piece.kind == prose.DATA or (piece.kind == prose.CODE and part.strip() == self.old):
                return self.in_data(part)
            if piece.kind == prose.PROSE and self.old.isupper():
                return self.in_data(part)
            return self._quoted(part)

        return _by_pieces(text, self._in_block, other)

    def _in_block(self, text: str) -> str:
        """A block of code of the prompt: examples are like tests, but a docstring in it is prose."""
        return self.in_code(text) if '"""' in text else self.in_tests(text)

    def in_data(self, text: str) -> str:
        return re.sub(rf"(?<![\w'-]){re.escape(self.old)}(?![\w'-])", lambda _: self.new, text)

    def _quoted(self, text: str) -> str:
        return re.sub(rf"(?P<q>['\"]){re.escape(self.old)}(?P=q)", lambda m: m["q"] + self.new + m["q"], text)

    def _marked(self, text: str) -> str:
        return self._quoted(text).replace(f"`{self.old}`", f"`{self.new}`")


def _by_pieces(text: str, code: Callable[[str], str], other: Callable[[prose.Piece, str], str]) -> str:
    """A prompt, piece by piece: whole blocks of code as such where they are whole programs."""
    out = []
    for piece in prose.pieces(text, frozenset()):
        part = text[piece.start : piece.end]
        if piece.fenced and piece.kind == prose.CODE:
            try:
                part = code(part)
            except CantError:
                part = other(piece, part)
        else:
            part = other(piece, part)
        out.append(part)
    return "".join(out)


def _transformed(text: str, in_prose: Callable[[str], str], leaves: dict[str, Callable[[Any], Any]]) -> str:
    cst = libcst()

    class Change(cst.CSTTransformer):  # type: ignore[misc,name-defined]
        def leave_Comment(self, original_node: Any, updated_node: Any) -> Any:
            return updated_node.with_changes(value=in_prose(updated_node.value))

        def leave_Expr(self, original_node: Any, updated_node: Any) -> Any:
            value = updated_node.value
            if not isinstance(value, cst.SimpleString):
                return updated_node
            return updated_node.with_changes(value=value.with_changes(value=in_prose(value.value)))

    for name, change in leaves.items():

        def leave(
            self: Any, original_node: Any, updated_node: Any, change: Callable[[Any], Any] = change
        ) -> Any:
            return change(updated_node)

        setattr(Change, f"leave_{name}", leave)
    try:
        made: str = cst.parse_module(text).visit(Change()).code
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError):
        raise CantError("code that libcst can't parse") from None
    return made
