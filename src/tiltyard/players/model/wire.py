"""What the two APIs have in common: a turn's answer, and taking plain, bounded data out of whatever a server sends.

Promises: nothing that a server sends, valid JSON of any shape, raises here or can't be sent back. A Reply holds text
that any database and terminal takes, and ``echo``, the message by which the model is shown what it said.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tiltyard.records import Usage

MAX_BODY = 64 << 20
"""Bytes of one answer of a server."""
MAX_CALLS = 256
"""Tool calls of one answer that are looked at."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it. ``action`` is what the environment is given for it; it may be nonsense."""

    id: str
    name: str
    arguments: Any
    action: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``stop_reason`` is the server's word; ``cut`` says that the answer hit its token limit, ``refused``
    that the model or its server declined, ``full`` that the conversation no longer fits, ``paused`` that it wants to
    be asked again to go on."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    stop_reason: str
    usage: Usage
    echo: dict[str, Any]
    cut: bool = False
    refused: bool = False
    full: bool = False
    paused: bool = False


class Nonsense(Exception):
    """The server's answer is none. The message says what was found; it may be worth another try."""


class Api(Protocol):
    """One conversation format. ``history`` is a list of that format's messages."""

    def user(self, text: str) -> dict[str, Any]: ...
    def results(self, answers: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        """The messages that answer calls: (call id, observation) for each."""

    async def ask(self, history: Sequence[dict[str, Any]], shell: bool = False) -> Reply:
        """One request; ``shell``: with the tool ``bash`` too. Raises what the SDK raises, and Nonsense."""

    async def close(self) -> None: ...


def body_of(response: Any) -> dict[str, Any]:
    """The JSON object in an answer. Raises Nonsense."""
    content: bytes = response.content
    if len(content) > MAX_BODY:
        raise Nonsense(f"the server answered with {len(content)} bytes; at most {MAX_BODY} are read")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Nonsense(f"the server answered with what is no JSON: {brief(content)}") from None
    if not isinstance(body, dict):
        raise Nonsense(f"the server answered with JSON that is no object: {brief(content)}")
    if body.get("error"):
        raise Nonsense(f"the server answered with an error: {brief(json.dumps(body['error']).encode())}")
    return body


def brief(content: bytes) -> str:
    """The beginning of a body, in one line."""
    line = " ".join(content[:300].decode("utf-8", "replace").split())
    return repr(line if len(line) <= 120 else line[:119] + "…")


def clean(text: Any) -> str:
    """Text that can be encoded: lone surrogates become question marks. "" for what is no text."""
    if not isinstance(text, str):
        return ""
    return text.encode("utf-8", "replace").decode()


def count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def plain(value: Any) -> Any:
    """The value, if it can be sent back and stored as JSON; else None."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return value
    except UnicodeEncodeError:
        return json.loads(clean(text))
    except (TypeError, ValueError, RecursionError):
        return None


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; [] for what is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def call_ids(wanted: Sequence[Any], turn: int) -> list[str]:
    """An id for each call: the server's own, or one that is made where it has none or gave one twice."""
    out: list[str] = []
    for n, id in enumerate(wanted):
        usable = isinstance(id, str) and 0 < len(id) <= 200 and id.isprintable() and id not in out
        out.append(clean(id) if usable else f"call_{turn}_{n}")
    return out
