"""What a commit's message comes to as a prompt: what it says, what it must not give away, what is too little."""

from __future__ import annotations

import pytest

from tiltyard.sources.mine.history import as_text
from tiltyard.sources.mine.prompts import TEST_NAME, home_of, names_of_tests, read_message, upstream

GOOD = "Fix double of negative numbers: it returned the number itself, and should return twice as much"
HOME = "https://github.com/ann/box"


def test_a_good_message_stays_and_its_trailers_go() -> None:
    message = (
        f"{GOOD} (#31)\n\nSeen with `double(-1)`.\n\n* add tests\n\n* Also keep zero as it is\n\n"
        "Co-authored-by: Ben <ben@example.org>\n---------\n\nSession-Id: 1234\n"
    )
    said = read_message(message, home=HOME)
    assert said.text == f"{GOOD} (#31)\n\nSeen with `double(-1)`." and said.why == "" and said.leaks == ()
    assert said.upstream == (f"{HOME}/pull/31",)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("fix", "too short"),
        ("", "nothing is said"),
        ("Add tests", "nothing is said"),
        ("Merge pull request #3 from ann/box", "nothing is said"),
        ("Merge pull request #3 from ann/box\n\nFix it (#4)", "too short"),
        ("WIP: some things that are still to be looked at by somebody", "too vague"),
        ("A new look at the old story of the small box and its numbers", "says nothing of what is wrong or wanted"),
        ("https://github.com/ann/box/issues/232 https://github.com/ann/box/issues/233", "nothing is said"),
    ],
)  # fmt: skip
def test_too_little_is_said(message: str, why: str) -> None:
    assert read_message(message).why == why


@pytest.mark.parametrize(
    ("paragraph", "added", "what"),
    [
        ("Change it like this:\n@@ -1,2 +1,2 @@\n-    return n\n+    return n * 2", (), "a fragment of a diff"),
        ("It is enough to write\n\treturn  abs(n) * sign(n) * 2", ("    return abs(n) * sign(n) * 2",), "code of the patch"),
        ("Now `return abs(n) * sign(n) * 2`, as it was meant.", ("return abs(n) * sign(n) * 2",), "code of the patch"),
    ],
)  # fmt: skip
def test_what_gives_the_fix_away_is_left_out(paragraph: str, added: tuple[str, ...], what: str) -> None:
    """The paragraph goes, the rest stays; where nothing but it says enough, the task needs a prompt."""
    said = read_message(f"{GOOD}\n\n{paragraph}", added=added)
    assert (said.text, said.why, said.leaks) == (GOOD, "", (what,))
    alone = read_message(f"Fix it\n\n{paragraph}", added=added)
    assert alone.why == f"too short without {what}" and "return" not in alone.text


def test_names_of_added_tests_are_left_out() -> None:
    """Only the sentence that has one goes. A word that is part of another is none."""
    names = names_of_tests(
        {"tests/test_box.py": ["def test_double_negative():", "    class TestDouble:", "x = 1"]}
    )
    assert names == ("test_double_negative", "TestDouble")
    message = f"{GOOD}\n\nIt was wrong for all of them. Adds test_double_negative for it. Zero stays zero."
    said = read_message(message, test_names=names)
    assert said.text == f"{GOOD}\n\nIt was wrong for all of them.\nZero stays zero." and said.leaks == (
        TEST_NAME,
    )
    assert read_message(f"{GOOD}: test_double_negatives", test_names=names).leaks == ()


def test_common_words_of_a_patch_are_no_leak() -> None:
    """Short lines, imports, comments and prose of the patch may be in a message."""
    added = [
        "else:",
        "    return n",
        "import numbers",
        "# it returned the number itself",
        "it returned the number itself,",
    ]
    assert read_message(GOOD, added=added).leaks == ()


def test_changelogs_say_more() -> None:
    """New entries become part of the prompt; headings, and what the message says already, do not."""
    changelog = [
        "## 1.2 (unreleased)",
        "=====",
        "* double() of a negative number returned the number itself.",
        "- Passing text raises TypeError instead of repeating it twice silently.",
    ]
    said = read_message(GOOD.replace("itself", "itself of double"), changelog=changelog)
    assert said.text.endswith("Passing text raises TypeError instead of repeating it twice silently.")
    assert "1.2" not in said.text and said.text.count("\n\n") == 1
    assert read_message("fix", changelog=changelog).why == ""


def test_upstream_references() -> None:
    message = "Repair it, fixes #12 and GH-13 (see https://github.com/other/place/pull/7), issue14\n\nPR #15, c&#39;est tout"
    assert upstream(message) == ("https://github.com/other/place/pull/7", "#12", "#13", "#14", "#15")
    assert upstream(message, HOME)[1:] == (
        f"{HOME}/issues/12", f"{HOME}/issues/13", f"{HOME}/issues/14", f"{HOME}/pull/15",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("remote", "home"),
    [
        ("https://github.com/ann/box.git", HOME),
        ("git@github.com:ann/box.git", HOME),
        ("ssh://git@github.com:22/ann/box", HOME),
        ("https://ann:secret@github.com/ann/box", HOME),
        ("/srv/git/box.git", ""),
        ("", ""),
    ],
)
def test_homes_name_no_secret(remote: str, home: str) -> None:
    assert home_of(remote) == home


def test_messages_become_text() -> None:
    assert as_text("a\udcff\x1b[31m\tb\nc") == "a\N{REPLACEMENT CHARACTER}[31m\tb\nc"


def test_an_entry_of_a_changelog_is_one_piece_over_its_lines() -> None:
    lines = [
        "-   JWS support (``JSONWebSignatureSerializer``,",
        "    ``TimedJSONWebSignatureSerializer``) is deprecated. Use a dedicated",
        "    library such as authlib instead. :issue:`129`",
        "*   Empty keys are refused with ``BadData`` and no longer",
        "    taken for keys of spaces.",
        "",
        "    A paragraph by itself, about another matter altogether.",
    ]
    said = read_message("deprecate jws", changelog=lines)
    assert said.text.split("\n\n")[1:] == [
        "JWS support (``JSONWebSignatureSerializer``, ``TimedJSONWebSignatureSerializer``) is deprecated. Use a dedicated "
        "library such as authlib instead. :issue:`129`",
        "Empty keys are refused with ``BadData`` and no longer taken for keys of spaces.",
        "A paragraph by itself, about another matter altogether.",
    ]
