"""The options of ``run`` for players that are language models, and the player that they make."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.errors import UsageError

if TYPE_CHECKING:
    from tiltyard.players.model import ModelPlayer
    from tiltyard.rollout import RunSummary

PANEL = "Models (--player anthropic:MODEL or openai:MODEL)"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, **more)


BaseUrl = Annotated[
    str | None,
    _option(
        "--base-url", metavar="URL", help="Another server of that API, such as http://127.0.0.1:8080/v1."
    ),
]
Concurrency = Annotated[
    int, _option("--concurrency", "-c", min=1, help="Episodes in flight at once, all in one process.")
]
System = Annotated[
    Path | None,
    _option("--system", metavar="FILE", help="The system prompt, in place of the protocol's own."),
]
Protocol = Annotated[
    str,
    _option(
        "--protocol",
        metavar="native|text|code",
        help="Tool calls of the API; fenced blocks, for a model without them; or one block of code that is handed in.",
    ),
]
Temperature = Annotated[float | None, _option("--temperature", help="Default: the server's.")]
Effort = Annotated[str | None, _option("--effort", metavar="WORD", help="Such as `low` or `high`.")]
MaxTokens = Annotated[int, _option("--max-tokens", min=1, help="Tokens of one answer.")]
MaxTurns = Annotated[int, _option("--max-turns", min=1, help="Answers in one episode.")]
MaxTotal = Annotated[
    int | None, _option("--max-total-tokens", min=1, help="Tokens of one episode, in and out together.")
]
StopAt = Annotated[
    list[str] | None, _option("--stop", metavar="TEXT", help="An answer ends before it; may be repeated.")
]
ModelOption = Annotated[
    list[str] | None,
    _option(
        "--model-option",
        metavar="KEY=JSON",
        help="Added to each request, such as top_p=0.9; may be repeated.",
    ),
]
Prices = Annotated[
    Path | None, _option("--prices", metavar="FILE", help="A price table that goes before the shipped one.")
]
Budget = Annotated[
    float | None, _option("--budget", metavar="USD", help="End the run cleanly when this is spent.")
]
Timeout = Annotated[float, _option("--request-timeout", metavar="S", help="Seconds for one answer.")]
Retries = Annotated[
    int, _option("--retries", min=0, help="How often a request that failed is tried again, later each time.")
]


def model_player(
    name: str,
    stored: dict[str, Any] | None,
    *,
    base_url: str | None,
    system: Path | None,
    options: Sequence[str] | None,
    stop: Sequence[str] | None,
    prices: Path | None,
    budget: float | None,
    request_timeout: float,
    retries: int,
    **asked: Any,
) -> ModelPlayer:
    """The player that was asked for. ``stored``: the settings of a run that goes on, which are taken as they are."""
    from tiltyard.players.model import ModelPlayer, ModelSettings, Reach, model_settings, price_of

    if stored is not None:
        settings = ModelSettings.from_dict(stored)
    else:
        settings = model_settings(
            name, system=_text(system), stop=tuple(stop or ()), options=_options(options or ()), **asked
        )
    reach = Reach(base_url, timeout_s=request_timeout, retries=retries)
    return ModelPlayer(settings, reach, price=price_of(settings.model, prices), budget_usd=budget)


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--system: {path} can't be read: {error}") from None


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if not mark or not key:
            raise UsageError(f"--model-option: found {pair!r}; expected KEY=JSON, such as top_p=0.9")
        try:
            found[key] = json.loads(value)
        except ValueError:
            raise UsageError(
                f"--model-option {key}: found {value!r}, which is not JSON; a text needs quotes: {key}='\"…\"'"
            ) from None
    return found


def what_it_took(summary: RunSummary) -> list[str]:
    """Lines for the end of a model's run: tokens, cost, retries, and why it ended early."""
    usage = summary.usage
    if usage is None:
        return []
    cost = "cost unknown (no price; see --prices)" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    cached = f" ({usage.cache_read_tokens:,} from the cache)" if usage.cache_read_tokens else ""
    turns = sum(result.turns for result in summary.results)
    lines = [f"{turns} turns, {usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, {cost}"]
    if summary.retries:
        counts = ", ".join(f"{kind} {n}" for kind, n in sorted(summary.retries.items(), key=lambda i: -i[1]))
        lines.append(f"requests that were tried again: {counts}")
    if summary.ended_early:
        lines.append(
            f"ended early: {summary.ended_early}; {len(summary.results)} of {summary.planned} episodes were played"
        )
    return lines
