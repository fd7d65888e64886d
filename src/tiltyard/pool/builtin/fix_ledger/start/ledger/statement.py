"""Statements of accounts."""

from __future__ import annotations

from . import money
from .journal import Journal


def statement(journal: Journal, account: str, first: str, last: str) -> list[str]:
    """The lines of a statement for a period, both days included.

    ``opening AMOUNT``, then for each booking that touches the account ``DATE TEXT AMOUNT BALANCE`` (the balance after
    it), then ``closing AMOUNT``; separated by single spaces. The opening balance is that before the first day.
    """
    balance = journal.balance(account, before=first)
    lines = [f"opening {money.show(balance)}"]
    for booking in journal.between(first, last):
        if account in booking.lines:
            amount = booking.lines[account]
            balance += amount
            lines.append(f"{booking.date} {booking.text} {money.show(amount)} {money.show(balance)}")
    lines.append(f"closing {money.show(balance)}")
    return lines


def trial_balance(journal: Journal) -> list[tuple[str, str]]:
    """(account, balance as text) of all accounts whose balance isn't zero, by account."""
    accounts = sorted({account for booking in journal.bookings for account in booking.lines})
    return [(account, money.show(cents)) for account in accounts if (cents := journal.balance(account))]
