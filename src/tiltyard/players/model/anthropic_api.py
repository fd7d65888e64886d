"""The Messages API, through the ``anthropic`` SDK.

The system prompt, the tools and the newest message are marked for the prompt cache, so that each turn pays for what is
new. Thinking is sent back as it came, which tool use requires.
Source: the SDK's own types, and https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.players.model.settings import ModelSettings, Reach
from tiltyard.players.model.wire import (
    MAX_CALLS,
    Reply,
    ToolCall,
    body_of,
    call_ids,
    clean,
    count,
    items,
    plain,
)
from tiltyard.records import Usage
from tiltyard.tools import schemas, tools_of

CACHE = {"type": "ephemeral"}
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def sdk() -> Any:
    """The SDK. Raises UsageError if it is not installed."""
    try:
        import anthropic
    except ImportError as error:
        raise UsageError(
            f"the player anthropic:… needs the anthropic SDK ({error}): pip install 'tiltyard[anthropic]'"
        ) from None
    return anthropic


class AnthropicApi:
    """An Api. The key is the SDK's affair (ANTHROPIC_API_KEY); a server of one's own is asked without one if there is
    none. Raises UsageError without both."""

    def __init__(self, settings: ModelSettings, reach: Reach, system: str) -> None:
        self.settings = settings
        base = reach.base_url or os.environ.get("ANTHROPIC_BASE_URL")
        made: dict[str, Any] = {"base_url": base} if base else {}
        if base and not any(os.environ.get(name) for name in KEYS):
            made["api_key"] = "none"
        self.client = sdk().AsyncAnthropic(timeout=reach.timeout_s, max_retries=0, **made)
        # the SDK itself would say so at the first request only
        if not any(getattr(self.client, name, None) for name in ("api_key", "auth_token", "credentials")):
            raise UsageError("the player anthropic:… needs a key; set ANTHROPIC_API_KEY")
        self.fixed = {shell: _fixed(settings, system, shell) for shell in (False, True)}

    def user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": [_block(text)]}

    def results(self, answers: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        blocks = [
            {"type": "tool_result", "tool_use_id": id, "content": [_block(text)]} for id, text in answers
        ]
        return [{"role": "user", "content": blocks}]

    async def ask(self, history: Sequence[dict[str, Any]], shell: bool = False) -> Reply:
        turn = sum(message["role"] == "assistant" for message in history)
        raw = await self.client.messages.with_raw_response.create(
            model=self.settings.model,
            max_tokens=self.settings.max_tokens,
            # the messages go as they are: the SDK would walk through all of them again at each turn; nor do all of its
            # versions take the rest
            messages=[],
            extra_body={**self.fixed[shell], "messages": _marked(history)},
        )
        return reply_of(body_of(raw.http_response), turn)

    async def close(self) -> None:
        await self.client.close()


def _block(text: str) -> dict[str, Any]:
    """A block of text; the API refuses one without a letter in it."""
    return {"type": "text", "text": text if text.strip() else "(nothing)"}


def _fixed(settings: ModelSettings, system: str, shell: bool) -> dict[str, Any]:
    """What all requests have in common."""
    fixed: dict[str, Any] = {}
    if system:
        fixed["system"] = [{"type": "text", "text": system, "cache_control": CACHE}]
    if settings.protocol == "native":
        fixed["tools"] = schemas("anthropic", tools_of(shell))
        fixed["tools"][-1]["cache_control"] = CACHE
    if settings.temperature is not None:
        fixed["temperature"] = settings.temperature
    if settings.effort is not None:
        fixed["output_config"] = {"effort": settings.effort}
    if settings.stop:
        fixed["stop_sequences"] = list(settings.stop)
    return {**fixed, **settings.options}


def _marked(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, the last block marked for the cache, and what belongs to one role in one message."""
    joined: list[dict[str, Any]] = []
    for message in history:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**message, "content": [*joined[-1]["content"], *message["content"]]}
        else:
            joined.append(message)
    content = list(joined[-1]["content"])
    content[-1] = {**content[-1], "cache_control": CACHE}
    joined[-1] = {**joined[-1], "content": content}
    return joined


def reply_of(body: Mapping[str, Any], turn: int) -> Reply:
    """The answer in a Messages response of any shape."""
    blocks = items(body.get("content"))
    uses = [block for block in blocks if block.get("type") == "tool_use"][:MAX_CALLS]
    ids = dict(zip(map(id, uses), call_ids([use.get("id") for use in uses], turn), strict=True))
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    echo: list[dict[str, Any]] = []
    if isinstance(body.get("content"), str):
        blocks = [{"type": "text", "text": body["content"]}]
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and (text := clean(block.get("text"))):
            texts.append(text)
            if text.strip():
                echo.append({"type": "text", "text": text})
        elif kind == "thinking":
            reasoning.append(clean(block.get("thinking")))
            echo.append(plain(block))
        elif kind == "redacted_thinking":
            echo.append(plain(block))
        elif id(block) in ids:
            call = _call(block, ids[id(block)])
            calls.append(call)
            given = call.arguments if isinstance(call.arguments, dict) else {}
            echo.append({"type": "tool_use", "id": call.id, "name": call.name or "unnamed", "input": given})
    echo = [block for block in echo if block]
    stop = clean(body.get("stop_reason"))
    return Reply(
        text="\n".join(texts),
        reasoning="\n".join(part for part in reasoning if part),
        calls=tuple(calls),
        stop_reason=stop,
        usage=_usage(body.get("usage")),
        echo={"role": "assistant", "content": echo or [_block("")]},
        cut=stop == "max_tokens",
        refused=stop == "refusal",
        full=stop == "model_context_window_exceeded",
        paused=stop == "pause_turn",
    )


def _call(block: Mapping[str, Any], id: str) -> ToolCall:
    name, given = clean(block.get("name")), block.get("input")
    return ToolCall(id, name, plain(given), {"type": "tool_use", "name": name, "input": given})


def _usage(found: Any) -> Usage:
    """Anthropic counts what the cache read and wrote apart from the input; a Usage has it as parts of it."""
    usage = found if isinstance(found, dict) else {}
    read, written = (
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("cache_creation_input_tokens")),
    )
    fresh = count(usage.get("input_tokens"))
    return Usage(fresh + read + written, count(usage.get("output_tokens")), read, written)
