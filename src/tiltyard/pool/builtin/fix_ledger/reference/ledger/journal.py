"""Bookings. Dates are ISO texts such as ``"2026-03-01"``, which sort as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import money


class Unbalanced(ValueError):
    """The amounts of a booking don't add up to zero."""


@dataclass(frozen=True)
class Booking:
    """One booking; ``number`` counts from 1 in the order of entry, ``lines`` is cents by account."""

    number: int
    date: str
    text: str
    lines: dict[str, int]


class Journal:
    """All bookings, in the order of entry."""

    def __init__(self) -> None:
        self.bookings: list[Booking] = []

    def post(self, date: str, text: str, lines: Mapping[str, str]) -> int:
        """Enter a booking: an amount (text) for each account. Return its number.

        Unbalanced if the amounts don't add up to zero; ValueError if one is not an amount. Nothing is entered then.
        """
        return self._enter(date, text, {account: money.parse(amount) for account, amount in lines.items()})

    def post_shared(self, date: str, text: str, source: str, amount: str, shares: Sequence[tuple[str, int]]) -> int:
        """Book an amount away from ``source`` and share it among (account, weight) pairs, as ``money.share`` does."""
        cents = money.parse(amount)
        parts = money.share(cents, [weight for _, weight in shares])
        lines = {source: -cents}
        for (account, _), part in zip(shares, parts):
            lines[account] = lines.get(account, 0) + part
        return self._enter(date, text, lines)

    def _enter(self, date: str, text: str, lines: dict[str, int]) -> int:
        if sum(lines.values()) != 0:
            raise Unbalanced(f"off by {money.show(sum(lines.values()))}")
        booking = Booking(len(self.bookings) + 1, date, text, lines)
        self.bookings.append(booking)
        return booking.number

    def balance(self, account: str, before: str | None = None) -> int:
        """Cents on an account, of all bookings, or of those with a date earlier than ``before``."""
        return sum(
            booking.lines.get(account, 0)
            for booking in self.bookings
            if before is None or booking.date < before
        )

    def between(self, first: str, last: str) -> list[Booking]:
        """The bookings of a period, both days included, by date; those of one date in the order of entry."""
        found = [booking for booking in self.bookings if first <= booking.date <= last]
        return sorted(found, key=lambda booking: booking.date)
