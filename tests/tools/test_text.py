"""What is shown can't act on a terminal, can't hide, and says how much was left out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.tools.text import cut_middle, decode, name, safe, tokens


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("\x1b[2Jx", "\\x1b[2Jx"),
        ("a\r\nb", "a\\r\nb"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\udcff", "\\xff"),
        ("\0\x07\x08", "\\0\\a\\b"),
        ("tab\tand newline\n", "tab\tand newline\n"),
        ("日本語 👩‍💻 é", "日本語 👩‍💻 é"),
    ],
)
def test_safe(given_text: str, shown: str) -> None:
    assert safe(given_text) == shown


def test_bytes_that_are_no_text() -> None:
    assert safe(decode(b"ok \xff\xfe \x1b")) == "ok \\xff\\xfe \\x1b"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters()))
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = safe(text)
    shown.encode()
    assert safe(shown) == shown
    bad = {c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"}
    assert not bad


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab\n"), max_size=600), st.integers(0, 500))
def test_cut_is_bounded_and_counts(text: str, limit: int) -> None:
    shown = cut_middle(text, limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
    elif "[… " in shown:
        head, _, rest = shown.partition("\n[… ")
        count, _, tail = rest.partition(" characters left out …]\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(count) == len(text) - len(head) - len(tail)


def test_cut_shows_both_ends() -> None:
    shown = cut_middle("\n".join(f"line {n}" for n in range(1000)), 300, "view a part")
    assert shown.startswith("line 0\n")
    assert shown.endswith("\nline 999")
    assert "characters left out; view a part …]" in shown


def test_names_are_one_bounded_line() -> None:
    assert name("a\nb\x1b") == "a\\nb\\x1b"
    assert len(name("x" * 1000)) == 200


def test_tokens() -> None:
    assert [tokens(n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
