"""A model's server on loopback that speaks the real wire protocols: Anthropic Messages and OpenAI Chat Completions.

What it says is decided by a ``brain``: a function of the request (:class:`Asked`) that returns an answer: :class:`Say`
(text, thinking, tool calls), :class:`Fail` (a status with the API's own error body), :class:`Raw` (any bytes),
:class:`Cut` (an answer whose connection is cut in its middle), :class:`Drop` (closed without a word), or
:class:`Slow` (another one, later). It runs in a thread of its own, on a port of its own.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request. ``turn`` counts the model's answers in it; ``seen`` how often these very bytes came before."""

    api: str
    body: dict[str, Any]
    headers: dict[str, str]
    turn: int
    seen: int
    n: int

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]

    @property
    def prompt(self) -> str:
        """The first message of the user."""
        return next(_text(m["content"]) for m in self.messages if m["role"] == "user")

    @property
    def last(self) -> str:
        """All text of the newest message."""
        return _text(self.messages[-1]["content"])


@dataclass(frozen=True)
class Say:
    """``calls``: (name, arguments) each; arguments are an object, or anything at all."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    thinking: str = ""
    stop: str | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Fail:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = ""
    message: str = "injected"


@dataclass(frozen=True)
class Raw:
    content: bytes
    status: int = 200
    type: str = "application/json"


@dataclass(frozen=True)
class Cut:
    answer: Any


@dataclass(frozen=True)
class Drop:
    pass


@dataclass(frozen=True)
class Slow:
    seconds: float
    answer: Any


Brain = Callable[[Asked], Any]
_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        inner = block.get("text", block.get("content", ""))
        parts.append(_text(inner) if inner else "")
    return "\n".join(parts)


class ModelServer:
    """``gather``: answer nobody before so many requests are in flight at once (or a minute is over)."""

    def __init__(self, brain: Brain, *, gather: int = 0) -> None:
        self.brain, self.gather = brain, gather
        self.requests: list[Asked] = []
        self.in_flight = self.most_in_flight = 0
        self.seen: dict[bytes, int] = {}
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.thread.start()
        assert self.ready.wait(60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def base(self, api: str) -> str:
        """What an SDK wants as base URL."""
        return self.url if api == "anthropic" else f"{self.url}/v1"

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(60)

    async def _serve(self) -> None:
        self.loop, self.over, self.gathered = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self.over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._request(reader, writer):
                pass
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if self.in_flight >= self.gather:
            self.gathered.set()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.gathered.wait(), 60)
            asked = self._asked(path, headers, content)
            answer = self.brain(asked)
            while isinstance(answer, Slow):
                await asyncio.sleep(answer.seconds)
                answer = answer.answer
        finally:
            self.in_flight -= 1
        return await self._answer(asked, answer, writer)

    def _asked(self, path: str, headers: dict[str, str], content: bytes) -> Asked:
        api = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai"}[path.partition("?")[0]]
        body = json.loads(content)
        seen = self.seen.get(content, 0)
        self.seen[content] = seen + 1
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        asked = Asked(api, body, headers, turn, seen, len(self.requests))
        self.requests.append(asked)
        return asked

    async def _answer(self, asked: Asked, answer: Any, writer: asyncio.StreamWriter) -> bool:
        if isinstance(answer, Drop):
            return False
        cut = isinstance(answer, Cut)
        answer = answer.answer if cut else answer
        headers: dict[str, str] = {}
        if isinstance(answer, Raw):
            status, kind, content = answer.status, answer.type, answer.content
        elif isinstance(answer, Fail):
            status, kind, headers = answer.status, "application/json", answer.headers
            content = json.dumps(_error(asked.api, answer)).encode()
        else:
            status, kind = 200, "application/json"
            say = _message if asked.api == "anthropic" else _completion
            content = json.dumps(say(asked, answer)).encode()
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(
            ("\r\n".join(lines) + "\r\n\r\n").encode() + (content[: len(content) // 2] if cut else content)
        )
        await writer.drain()
        return not cut


def _error(api: str, fail: Fail) -> dict[str, Any]:
    kind = fail.kind or _KINDS.get(fail.status, "api_error")
    inner = {"type": kind, "message": fail.message}
    if api == "anthropic":
        return {"type": "error", "error": inner}
    return {"error": {**inner, "code": kind, "param": None}}


def _message(asked: Asked, say: Say) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if say.thinking:
        blocks.append({"type": "thinking", "thinking": say.thinking, "signature": "c2ln"})
    if say.text:
        blocks.append({"type": "text", "text": say.text})
    for n, (name, arguments) in enumerate(say.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{asked.turn}_{n}", "name": name, "input": arguments})
    return {
        "id": f"msg_{asked.n}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": blocks,
        "stop_reason": say.stop or ("tool_use" if say.calls else "end_turn"),
        "stop_sequence": None,
        "usage": say.usage
        or {
            "input_tokens": 10,
            "cache_read_input_tokens": 100 * asked.turn,
            "cache_creation_input_tokens": 20,
            "output_tokens": 5,
        },
    }


def _completion(asked: Asked, say: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.thinking:
        message["reasoning_content"] = say.thinking
    if say.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{asked.turn}_{n}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for n, (name, arguments) in enumerate(say.calls)
        ]
    return {
        "id": f"chatcmpl-{asked.n}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": say.stop or ("tool_calls" if say.calls else "stop"),
            }
        ],
        "usage": say.usage
        or {
            "prompt_tokens": 30 + 100 * asked.turn,
            "completion_tokens": 5,
            "total_tokens": 35 + 100 * asked.turn,
            "prompt_tokens_details": {"cached_tokens": 100 * asked.turn},
        },
    }


@contextmanager
def serving(brain: Brain, *, gather: int = 0) -> Iterator[ModelServer]:
    server = ModelServer(brain, gather=gather)
    try:
        yield server
    finally:
        server.close()
