"""A small library with good tests, for tests of breaking: as files, and as a git repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LEDGER = '''"""Accounts and what is booked on them."""

from shop.money import total


class Account:
    """One account."""

    def __init__(self, name, limit=100):
        self.name = name
        self.limit = limit
        self.bookings = []

    def book(self, amount, note=""):
        # nothing beyond the limit
        if abs(amount) > self.limit:
            raise ValueError("beyond the limit")
        self.bookings.append((amount, note))
        return len(self.bookings)

    def balance(self):
        return total(amount for amount, _ in self.bookings)

    def notes(self):
        return [note for _, note in self.bookings if note]
'''
MONEY = '''"""Sums of money."""


def total(amounts, start=0):
    """All of them together."""
    result = start
    for amount in amounts:
        result += amount
    return result


def shares(amount, people):
    """As even as whole cents can be, the first ones a cent more."""
    if people < 1:
        raise ValueError("nobody to share with")
    low, more = divmod(amount, people)
    return [low + 1 if n < more else low for n in range(people)]


def written(cents):
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"
'''
TEST_LEDGER = """import pytest

from shop.ledger import Account


def test_booking_counts_up():
    account = Account("a")
    assert account.book(5) == 1
    assert account.book(7, "x") == 2


def test_the_limit_holds():
    account = Account("a", limit=10)
    account.book(10)
    with pytest.raises(ValueError):
        account.book(11)
    assert account.balance() == 10


def test_a_balance_is_the_sum():
    account = Account("b")
    account.book(40)
    account.book(-15, "back")
    assert account.balance() == 25


def test_only_notes_that_say_something():
    account = Account("c")
    account.book(1, "one")
    account.book(2)
    assert account.notes() == ["one"]
"""
TEST_MONEY = """import unittest

import pytest

from shop.money import shares, total, written


@pytest.mark.parametrize(("cents", "text"), [(5, "0.05"), (-250, "-2.50"), (100, "1.00")])
def test_written_out(cents, text):
    assert written(cents) == text


class TestShares(unittest.TestCase):
    def test_even(self):
        self.assertEqual(shares(9, 3), [3, 3, 3])

    def test_uneven(self):
        self.assertEqual(shares(11, 3), [4, 4, 3])

    def test_nobody(self):
        with self.assertRaises(ValueError):
            shares(1, 0)


def test_total_from_a_start():
    assert total([1, 2], start=4) == 7
    assert total([]) == 0
"""
FILES = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/ledger.py": LEDGER,
    "shop/money.py": MONEY,
    "tests/test_ledger.py": TEST_LEDGER,
    "tests/test_money.py": TEST_MONEY,
    "LICENSE": "Permission is hereby granted, free of charge, to any person obtaining a copy\n",
    "setup.py": "from setuptools import setup\n\nsetup(name='shop')\n",
    "README.md": "# shop\n",
}


def write(folder: Path, files: dict[str, str] | None = None) -> Path:
    """The library as a folder."""
    for path, text in (files or FILES).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def repository(folder: Path) -> Path:
    """The library as a git repository of one commit."""
    write(folder)
    dates = {
        "GIT_AUTHOR_DATE": "2024-05-06T07:08:09+00:00",
        "GIT_COMMITTER_DATE": "2024-05-07T07:08:09+00:00",
    }
    who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A")
    mail = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@example.org")
    env = {**os.environ, **dates, **who, **mail, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A shop"]):
        subprocess.run(["git", *command], cwd=folder, env=env, check=True, timeout=60)
    return folder
