"""Kinds of fields. ``clean`` turns a typed text into a value or raises ``Mistake``."""

from __future__ import annotations

import re
from typing import Any


class Mistake(Exception):
    """What is wrong with a typed text, for the visitor to read."""


class Field:
    """A text, stripped of white space at both ends; a required one must not be empty then."""

    def __init__(self, required: bool = True) -> None:
        self.required = required

    def clean(self, text: str) -> Any:
        """Empty: ``Mistake("is missing")`` if it is required, else the value is None. Otherwise as ``convert``."""
        text = text.strip()
        if not text:
            if self.required:
                raise Mistake("is missing")
            return None
        return self.convert(text)

    def convert(self, text: str) -> Any:
        """The value of a text that isn't empty. For subclasses to change."""
        return text


class Text(Field):
    """A text of at most ``longest`` characters; else ``Mistake("is too long")``."""

    def __init__(self, longest: int = 100, required: bool = True) -> None:
        super().__init__(required)
        self.longest = longest

    def convert(self, text: str) -> str:
        if len(text) > self.longest:
            raise Mistake("is too long")
        return text


class Email(Text):
    """An address in lower case: something, one ``@``, something with a dot inside; no white space.

    Else ``Mistake("is not an address")``. At most ``longest`` characters, as a Text.
    """

    def __init__(self, longest: int = 50, required: bool = True) -> None:
        self.longest = longest

    def clean(self, text: str) -> Any:
        text = text.strip().lower()
        if text and not re.fullmatch(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+", text):
            raise Mistake("is not an address")
        return self.convert(text)


class Number(Field):
    """A whole number (an int) of at least ``least``, if that is given.

    ``Mistake("is not a number")`` or ``Mistake("is too small")``.
    """

    def __init__(self, least: int | None = None, required: bool = True) -> None:
        super().__init__(required)
        self.least = least

    def clean(self, text: str) -> Any:
        if not re.fullmatch(r"[+-]?[0-9]+", text.strip()):
            raise Mistake("is not a number")
        return self.convert(text)
    def convert(self, text: str) -> int:
        value = int(text)
        if self.least is not None and value < self.least:
            raise Mistake("is too small")
        return value
