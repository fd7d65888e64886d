"""Actions in plain text: what is a block, and what it asks for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiltyard.players.model.text_protocol import (
    MAX_BLOCKS,
    SYSTEM,
    actions,
    blocks,
    code_actions,
    fenced,
    refusal,
)
from tiltyard.tools import Call, Refusal, canonical, parse_action

PIECES = st.sampled_from(
    [
        "```",
        "````",
        "~~~",
        "tool",
        "json",
        "write_file",
        "view_file a.py",
        "submit",
        "\n",
        "{",
        "}",
        '"',
        "tool:",
        " 1-9",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES | st.text(max_size=4)).map("".join)))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_actions_that_can_be_read(text: str) -> None:
    found = actions(text)
    assert len(found) <= MAX_BLOCKS
    for action in [*found, *code_actions(text, "solution.py"), refusal("why", text)]:
        assert isinstance(parse_action(action), Call | Refusal)


def test_the_examples_of_the_prompt_are_calls() -> None:
    found = [parse_action(action) for action in actions(SYSTEM)]
    assert all(isinstance(call, Call) for call in found)
    assert [call.tool for call in found if isinstance(call, Call)] == [
        "view_file",
        "list_files",
        "run_tests",
        "submit",
        "write_file",
        "replace_text",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```view_file a.py\n```", [{"tool": "view_file", "path": "a.py"}]),
        ("  ~~~ view_file 'a b.py'\n~~~", [{"tool": "view_file", "path": "a b.py"}]),
        (
            "```view_file a.py 3 9\n```",
            [{"tool": "view_file", "path": "a.py", "start_line": 3, "end_line": 9}],
        ),
        (
            "```view_file a.py 3-9\n```",
            [{"tool": "view_file", "path": "a.py", "start_line": 3, "end_line": 9}],
        ),
        ("```view_file a2.py 3\n```", [{"tool": "view_file", "path": "a2.py", "start_line": 3}]),
        ("```submit\n```\n```submit\n```", [{"tool": "submit"}] * 2),
        ("```write_file a.py\n```", [{"tool": "write_file", "path": "a.py", "content": ""}]),
        ("```write_file a.py\nx\n\n```", [{"tool": "write_file", "path": "a.py", "content": "x\n\n"}]),
        (
            "````write_file a.md\n```\nx\n```\n````",
            [{"tool": "write_file", "path": "a.md", "content": "```\nx\n```\n"}],
        ),
        ("```python\nsubmit\n```", []),
        ("I would call `submit` now.", []),
        ('```json\n{"size": 3}\n```', []),
        ('```json\n{"tool": "submit"}\n```', ['{"tool": "submit"}']),
        ('```\n{"name": "submit", "arguments": {}}\n```', ['{"name": "submit", "arguments": {}}']),
        (
            '```tool\n[{"tool": "list_files"}, {"tool": "submit"}]\n```',
            [{"tool": "list_files"}, {"tool": "submit"}],
        ),
        ('  {"tool": "submit"}\n', ['{"tool": "submit"}']),
        ("", []),
    ],
)
def test_what_is_an_action(text: str, expected: list[object]) -> None:
    assert actions(text) == expected


def test_a_replacement() -> None:
    (action,) = actions("```replace_text a.py\n<<<<<<< OLD\na\nb\n=======\nc\n>>>>>>> NEW\n```")
    assert action == {"tool": "replace_text", "path": "a.py", "old": "a\nb", "new": "c"}
    (empty,) = actions("```replace_text a.py\n<<<<<<<\na\n=======\n>>>>>>>\n```")
    assert empty["new"] == ""


def test_a_refusal_replays_in_the_same_words() -> None:
    action = refusal("No action was found.", "some prose")
    found = parse_action(json.loads(canonical(action)))
    assert isinstance(found, Refusal) and found.message == "No action was found." and found.chars == 10


def test_at_most_so_many_blocks() -> None:
    assert len(blocks("```submit\n```\n" * 1000)) == MAX_BLOCKS == len(actions("```submit\n```\n" * 1000))


def test_the_last_block_of_code_counts() -> None:
    text = "```python\na = 1\n```\n```text\nb\n```\n```py\nc = 2\n"
    written, submitted = code_actions(text, "main.py")
    assert written == {"tool": "write_file", "path": "main.py", "content": "c = 2\n\n"}
    assert submitted == {"tool": "submit"}
    assert code_actions("no code", "main.py") == code_actions("```python\n\n```", "main.py") == []


def test_a_file_in_a_block() -> None:
    assert fenced(b"a = 1\n") == "```python\na = 1\n```"
    assert fenced(b"a = '```'\n").startswith("````python\n") and "\x1b" not in fenced(b"\x1b")
    (found,) = blocks(fenced(b"x\n````\ny"))
    assert found.body == "x\n````\ny" and found.closed
