"""Invoices in whole cents. Percentages are an int or a text with a decimal point, such as ``"7.5"``."""

from __future__ import annotations

import re

AMOUNT = re.compile(r"[+-]?[0-9]+(\.[0-9]{1,2})?")


def parse_amount(text: str) -> int:
    """Cents of an amount such as ``"12"``, ``"12.5"``, ``"-0.05"``; white space around it is ignored.

    ValueError for anything else, also for more than two decimals.
    """
    text = text.strip()
    if not AMOUNT.fullmatch(text):
        raise ValueError(f"not an amount: {text!r}")
    return int(float(text) * 100)


def percent_of(cents: int, percent: int | str) -> int:
    """``percent`` per cent of an amount, in whole cents. Half a cent goes away from zero."""
    return round(cents * float(percent) / 100)


def line_total(price: str, quantity: int, discount: int | str = 0) -> int:
    """Cents of ``quantity`` pieces at ``price`` each, less the discount in per cent of that sum."""
    full = parse_amount(price) * quantity
    return full - percent_of(full, discount)


def split(total: int, parts: int) -> list[int]:
    """Share a sum of at least 0 in ``parts`` parts that differ by at most one cent, larger parts first."""
    each, left = divmod(total, parts)
    return [each + 1] * left + [each] * (parts - left)


def invoice(lines: list[tuple[str, int, int | str]], tax: int | str) -> dict[str, int]:
    """Sum up lines of (price, quantity, discount); the tax is computed once, on the net sum."""
    net = sum(line_total(price, quantity, discount) for price, quantity, discount in lines)
    vat = percent_of(net, tax)
    return {"net": net, "tax": vat, "gross": net + vat}
