"""The Chat Completions API, through the ``openai`` SDK: OpenAI, and every server that speaks it (vLLM, llama.cpp, …).

A call whose arguments are no JSON is sent back as an object that holds them: servers that render the conversation
with a template refuse one that they can't read.
Source: the SDK's own types, and https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.players.model.settings import ModelSettings, Reach
from tiltyard.players.model.wire import (
    MAX_CALLS,
    Nonsense,
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

SHOWN = 2000
"""Characters of unreadable arguments that are shown to the model again."""


def sdk() -> Any:
    """The SDK. Raises UsageError if it is not installed."""
    try:
        import openai
    except ImportError as error:
        raise UsageError(
            f"the player openai:… needs the openai SDK ({error}): pip install 'tiltyard[openai]'"
        ) from None
    return openai


class OpenAIApi:
    """An Api. The key is the SDK's affair (OPENAI_API_KEY); a server of one's own is asked without one if there is none."""

    def __init__(self, settings: ModelSettings, reach: Reach, system: str) -> None:
        self.settings = settings
        base = reach.base_url or os.environ.get("OPENAI_BASE_URL")
        made: dict[str, Any] = {"base_url": base} if base else {}
        if base and not os.environ.get("OPENAI_API_KEY"):
            made["api_key"] = "none"
        self.client = sdk().AsyncOpenAI(timeout=reach.timeout_s, max_retries=0, **made)
        self.fixed = {shell: _fixed(settings, shell, own=base is None) for shell in (False, True)}
        self.head = [{"role": "system", "content": system}] if system else []

    def user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}

    def results(self, answers: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        return [{"role": "tool", "tool_call_id": id, "content": text} for id, text in answers]

    async def ask(self, history: Sequence[dict[str, Any]], shell: bool = False) -> Reply:
        turn = sum(message["role"] == "assistant" for message in history)
        raw = await self.client.chat.completions.with_raw_response.create(
            model=self.settings.model,
            messages=[],  # they go as they are: the SDK would walk through all of them again at each turn
            extra_body={**self.fixed[shell], "messages": [*self.head, *history]},
        )
        return reply_of(body_of(raw.http_response), turn)

    async def close(self) -> None:
        await self.client.close()


def _fixed(settings: ModelSettings, shell: bool, *, own: bool) -> dict[str, Any]:
    """What all requests have in common. ``own``: OpenAI's own server, whose newer models know only the newer name of
    the token limit; other servers know only the older."""
    fixed: dict[str, Any] = {"max_completion_tokens" if own else "max_tokens": settings.max_tokens}
    if settings.protocol == "native":
        fixed["tools"] = schemas("openai", tools_of(shell))
    if settings.temperature is not None:
        fixed["temperature"] = settings.temperature
    if settings.effort is not None:
        fixed["reasoning_effort"] = settings.effort
    if settings.stop:
        fixed["stop"] = list(settings.stop)
    return {**fixed, **settings.options}


def reply_of(body: Mapping[str, Any], turn: int) -> Reply:
    """The answer in a chat completion of any shape. Raises Nonsense if there is none in it."""
    choices = items(body.get("choices"))
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict):
        raise Nonsense("the server answered without a message in 'choices'")
    found = items(message.get("tool_calls"))[:MAX_CALLS]
    ids = call_ids([call.get("id") for call in found], turn)
    calls = tuple(_call(call, id) for call, id in zip(found, ids, strict=True))
    text = _text(message.get("content"))
    stop = clean(choices[0].get("finish_reason"))
    refusal = clean(message.get("refusal"))
    echo: dict[str, Any] = {"role": "assistant", "content": text or refusal or ("" if calls else "(nothing)")}
    if calls:
        echo["tool_calls"] = [_echo(call) for call in calls]
    return Reply(
        text=text or refusal,
        reasoning=clean(message.get("reasoning_content")) or clean(message.get("reasoning")),
        calls=calls,
        stop_reason=stop,
        usage=_usage(body.get("usage")),
        echo=echo,
        cut=stop == "length",
        refused=stop == "content_filter" or bool(refusal and not text and not calls),
    )


def _text(content: Any) -> str:
    """A message's text; some servers send it in parts."""
    if isinstance(content, list):
        return "\n".join(clean(part.get("text")) for part in items(content) if part.get("type") == "text")
    return clean(content)


def _call(found: Mapping[str, Any], id: str) -> ToolCall:
    function = found.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else {}
    name, given = clean(inner.get("name")), inner.get("arguments")
    action = {"type": "function", "function": {"name": name, "arguments": given}}
    return ToolCall(id, name, plain(given), action)


def _echo(call: ToolCall) -> dict[str, Any]:
    given = call.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given) if given else {}
        except (ValueError, RecursionError):
            given = None
    arguments = plain(given) if isinstance(given, dict) else None
    if arguments is None:
        arguments = {"invalid_arguments": clean(str(call.arguments))[:SHOWN]}
    function = {"name": call.name or "unnamed", "arguments": json.dumps(arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _usage(found: Any) -> Usage:
    usage = found if isinstance(found, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    taken = count(usage.get("prompt_tokens"))
    return Usage(taken, count(usage.get("completion_tokens")), min(cached, taken))
