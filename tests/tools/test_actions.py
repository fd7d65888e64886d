"""Anything at all becomes a checked call or a text; the canonical form plays again in the same words."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tiltyard.tools import Call, Refusal, parse_action

WRITE = Call("write_file", {"path": "a.py", "content": "x = 1\n"})
ARGUMENTS = {"path": "a.py", "content": "x = 1\n"}


class Function(BaseModel):
    name: str
    arguments: str


class OpenAICall(BaseModel):
    id: str = "call_1"
    type: str = "function"
    function: Function


class ToolUse(BaseModel):
    id: str = "toolu_1"
    type: str = "tool_use"
    name: str
    input: dict[str, Any]


FORMS = {
    "lesson": {"tool": "write_file", **ARGUMENTS},
    "openai": {
        "id": "c",
        "type": "function",
        "function": {"name": "write_file", "arguments": json.dumps(ARGUMENTS)},
    },
    "openai, arguments as object": {
        "type": "function",
        "function": {"name": "write_file", "arguments": ARGUMENTS},
    },
    "openai responses": {
        "type": "function_call",
        "call_id": "c",
        "name": "write_file",
        "arguments": json.dumps(ARGUMENTS),
    },
    "openai sdk": OpenAICall(function=Function(name="write_file", arguments=json.dumps(ARGUMENTS))),
    "anthropic": {"type": "tool_use", "id": "t", "name": "write_file", "input": ARGUMENTS},
    "anthropic sdk": ToolUse(name="write_file", input=ARGUMENTS),
    "mcp": {"name": "write_file", "arguments": ARGUMENTS},
    "any object": SimpleNamespace(name="write_file", arguments=ARGUMENTS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_call(form: str) -> None:
    assert parse_action(FORMS[form]) == WRITE
    assert parse_action(FORMS[form]).canonical == '{"content":"x = 1\\n","path":"a.py","tool":"write_file"}'


@pytest.mark.parametrize("form", [f for f in FORMS if isinstance(FORMS[f], dict)])
def test_every_form_as_json_text(form: str) -> None:
    assert parse_action(json.dumps(FORMS[form])) == WRITE


def test_optional_arguments() -> None:
    assert parse_action({"tool": "view_file", "path": "a", "start_line": 2, "end_line": None}) == Call(
        "view_file", {"path": "a", "start_line": 2}
    )
    assert parse_action({"name": "run_tests"}) == Call("run_tests", {})
    assert parse_action({"name": "submit", "arguments": ""}) == Call("submit", {})
    assert parse_action({"name": "submit", "arguments": "null"}) == Call("submit", {})
    assert parse_action({"tool": "view_file", "path": "a", "start_line": np.int64(3)}) == Call(
        "view_file", {"path": "a", "start_line": 3}
    )
    assert parse_action({"tool": "view_file", "path": "a", "start_line": 3.0}) == Call(
        "view_file", {"path": "a", "start_line": 3}
    )


class Text(str):
    def __str__(self) -> str:
        raise AssertionError("a method of the player's class was called")

    __eq__ = __hash__ = __len__ = __repr__ = __str__  # type: ignore[assignment]


def test_subclasses_of_text_are_read_without_calling_them() -> None:
    call = parse_action({"tool": "write_file", "path": Text("a.py"), "content": Text("x = 1\n")})
    assert call == WRITE
    assert all(type(v) is str for v in call.arguments.values())  # type: ignore[union-attr]


class Hostile:
    def __init__(self, error: BaseException) -> None:
        object.__setattr__(self, "error", error)

    def __getattribute__(self, name: str) -> Any:
        raise object.__getattribute__(self, "error")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __index__(self) -> int:
        raise SystemExit(3)


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Strange(metaclass=Meta):
    pass


def endless() -> Any:
    thing: Any = SimpleNamespace()
    thing.function = thing
    thing.name = thing
    thing.arguments = thing
    return thing


def recursive() -> list[Any]:
    thing: list[Any] = []
    thing.append(thing)
    return thing


HOLDS_ITSELF: dict[str, Any] = {"tool": "submit"}
HOLDS_ITSELF["self"] = HOLDS_ITSELF

GARBAGE: list[tuple[Any, str]] = [
    (None, "nothing"),
    (True, "true"),
    (7, "the number 7"),
    (10**5000, "bits"),
    (float("nan"), "the number nan"),
    (b"submit", "6 bytes"),
    ("", "not JSON"),
    ("submit", "not JSON"),
    ('"submit"', "holds only a text"),
    ("[" * 100_000, "not JSON"),
    ("[]", "a list of 0 items"),
    ("\ud800", "not JSON"),
    ("x" * 1_000_000, "not JSON"),
    ([{"tool": "submit"}], "a list of 1 item"),
    ({}, "no fields"),
    ({"tool": None}, "nothing"),
    ({"tool": "sumbit"}, "did you mean submit"),
    ({"tool": ["submit"]}, "a list"),
    ({"tool": "x" * 100_000}, "no tool named"),
    ({"tool": "view_file"}, "no argument 'path'"),
    ({"tool": "view_file", "path": None}, "nothing (null) as 'path'"),
    ({"tool": "view_file", "path": 3}, "the number 3 as 'path'"),
    ({"tool": "view_file", "path": "a", "start_line": "1"}, "as 'start_line'"),
    ({"tool": "view_file", "path": "a", "start_line": True}, "true as 'start_line'"),
    ({"tool": "view_file", "path": "a", "start_line": float("nan")}, "nan as 'start_line'"),
    ({"tool": "view_file", "path": "a", "start_line": 0}, "1 or more"),
    ({"tool": "view_file", "path": "a", "start_line": 10**400}, "smaller"),
    ({"tool": "submit", "now": True}, "unknown argument 'now'"),
    ({"tool": "write_file", "path": "a", "content": "\udfff"}, "lone surrogate (U+DFFF) at character 1"),
    ({1: 2}, "as the name of a field"),
    ({"function": 3}, "as 'function'"),
    ({"name": "submit", "arguments": [1]}, "as 'arguments'"),
    ({"name": "submit", "arguments": "{"}, "not JSON"),
    ({f"f{n}": n for n in range(1000)}, "1000 fields"),
    (HOLDS_ITSELF, "unknown argument 'self'"),
    (recursive(), "a list of 1 item"),
    (object(), "type object"),
    (Hostile(RuntimeError("x")), "type Hostile"),
    (Hostile(SystemExit(1)), "type Hostile"),
    (Hostile(RecursionError()), "type Hostile"),
    ({"tool": Hostile(RuntimeError())}, "type Hostile"),
    ({"tool": "view_file", "path": Hostile(RuntimeError())}, "type Hostile"),
    ({"tool": "view_file", "path": "a", "start_line": Hostile(RuntimeError())}, "SystemExit"),
    (Strange(), ""),
    ({"tool": "view_file", "path": Strange()}, "type Strange"),
    (endless(), "type SimpleNamespace as 'arguments'"),
    (lambda: None, "type function"),
    (np.zeros(3), "type ndarray"),
    ({"tool": "submit\x1b[2J"}, "\\u001b"),
]


@pytest.mark.parametrize("number", range(len(GARBAGE)))
def test_garbage_is_refused_in_words(number: int) -> None:
    action, expected = GARBAGE[number]
    refusal = parse_action(action)
    assert isinstance(refusal, Refusal)
    assert expected in refusal.message
    assert refusal.message.startswith("Invalid action: found ")
    assert len(refusal.message) <= 4000
    assert refusal.message == parse_action(action).message, "the same action in other words"  # type: ignore[union-attr]
    again = parse_action(refusal.canonical)
    assert again == refusal, "a recorded refusal does not play again"


def test_length_of_garbage_counts() -> None:
    assert parse_action("x" * 1000).chars == 1000


def test_keyboard_interrupt_is_the_users() -> None:
    with pytest.raises(KeyboardInterrupt):
        parse_action(Hostile(KeyboardInterrupt()))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["tool", "name", "function", "arguments", "input", "type", "path", "content"]),
            inner,
        )
        | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(plain)
def test_nothing_raises(action: Any) -> None:
    parsed = parse_action(action)
    assert parse_action(parsed.canonical).canonical == parsed.canonical
    parsed.canonical.encode("ascii")


@settings(max_examples=100, deadline=None)
@given(st.text(), st.text(st.characters(exclude_categories=["Cs"])))
def test_canonical_form_of_a_call_is_the_call(path: str, content: str) -> None:
    parsed = parse_action({"tool": "write_file", "path": path, "content": content})
    assert parse_action(parsed.canonical) == parsed
