"""Formulas with exact numbers.

From weakest to strongest binding:
    a + b, a - b        from the left: a - b - c is (a - b) - c
    a * b, a / b        from the left: a / b / c is (a / b) / c
    -a, +a              may be repeated; -a * b is (-a) * b, and -a ^ b is -(a ^ b)
    a ^ b               from the right: a ^ b ^ c is a ^ (b ^ c); b may have signs: 2 ^ -1
    number, name, ( )   numbers are digits with at most one point among or after them: 12, 0.5, 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+\.?[0-9]*)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<op>[-+*/^()]))")


class FormulaError(ValueError):
    """The text is not a formula, or it can't be computed."""


def tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) of each token, and ("end", "") last."""
    text = text.rstrip()
    found = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise FormulaError(f"what is {text[at:].strip()[:10]!r}?")
        found.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    return [*found, ("end", "")]


class Parser:
    """Recursive descent: one method for each line of the grammar."""

    def __init__(self, text: str, names: Mapping[str, int | Fraction]) -> None:
        self.tokens = tokens(text)
        self.names = names
        self.at = 0

    def take(self, *ops: str) -> str:
        """Step over the next token and return it, if it is one of these operators; else return ""."""
        kind, text = self.tokens[self.at]
        if kind == "op" and text in ops:
            self.at += 1
            return text
        return ""

    def sum(self) -> Fraction:
        left = self.product()
        while op := self.take("+", "-"):
            right = self.product()
            left = left + right if op == "+" else left - right
        return left

    def product(self) -> Fraction:
        left = self.signed()
        while op := self.take("*", "/"):
            right = self.signed()
            left = left * right if op == "*" else divide(left, right)
        return left

    def signed(self) -> Fraction:
        if op := self.take("+", "-"):
            value = self.signed()
            return -value if op == "-" else value
        return self.power()

    def power(self) -> Fraction:
        left = self.atom()
        if self.take("^"):
            return power(left, self.signed())
        return left

    def atom(self) -> Fraction:
        kind, text = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return Fraction(text.rstrip("."))
        if kind == "name":
            self.at += 1
            if text not in self.names:
                raise FormulaError(f"no value for {text!r}")
            return Fraction(self.names[text])
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise FormulaError("a ')' is missing")
            return value
        raise FormulaError(f"a value is missing before {text!r}" if text else "a value is missing at the end")


def divide(a: Fraction, b: Fraction) -> Fraction:
    if b == 0:
        raise FormulaError("division by zero")
    return a / b


def power(a: Fraction, b: Fraction) -> Fraction:
    if b.denominator != 1 or abs(b) > 1000:
        raise FormulaError("an exponent must be a whole number from -1000 to 1000")
    if a == 0 and b < 0:
        raise FormulaError("division by zero")
    return a ** int(b)


def evaluate(text: str, names: Mapping[str, int | Fraction] | None = None) -> int | Fraction:
    """The value of a formula: an int if it is whole, else a Fraction.

    ``names`` has the values of names. FormulaError (a ValueError) for a text that is not a formula, a name without
    a value, a division by zero (also 0 to a negative power), an exponent that is not whole or beyond 1000.
    """
    parser = Parser(text, names or {})
    value = parser.sum()
    kind, rest = parser.tokens[parser.at]
    if kind != "end":
        raise FormulaError(f"what is {rest!r} doing there?")
    return int(value) if value.denominator == 1 else value
