"""A recorded episode as a story to read: what the model said and called, what came back, what it changed, the verdict.

Promises: nothing that a player or a model wrote can act on the terminal, and nothing is left out but the middle of
what is very long. A file's changes are shown against what it was before: what the task starts with (where the task can
be had), or what was written last.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from tiltyard.errors import TiltyardError
from tiltyard.pool import load
from tiltyard.records import EpisodeRecord, MessageRecord, StepRecord, Usage
from tiltyard.tools.text import cut_middle, safe

MAX_SHOWN = 20_000
"""Characters of one text."""
_COLOURS = {"system": "dim", "user": "cyan", "assistant": "bold green", "tool": "cyan", "note": "yellow"}


def start_files(record: EpisodeRecord) -> dict[str, str] | None:
    """The text files that the episode's task begins with, or None where the task can't be had or has changed."""
    if not record.pool_spec:
        return None
    try:
        task = load(record.pool_spec)[record.task]
    except (TiltyardError, OSError):
        return None
    if task.digest != record.task_digest:
        return None
    return {path: data.decode("utf-8", "replace") for path, data in task.start.items()}


def tell(record: EpisodeRecord, start: Mapping[str, str] | None) -> Text:
    """The whole story, with colours."""
    story = Text()
    for part in (_head(record), *_events(record, start), _ending(record)):
        story.append_text(part)
        story.append("\n\n")
    story.rstrip()
    return story


def _head(record: EpisodeRecord) -> Text:
    head = _line(f"{record.id or 'episode'}  {safe(record.task)}", "bold")
    run = f", run {record.run}" if record.run else ""
    place = f"attempt {record.attempt}, seed {record.seed}, wall {record.wall}{run}"
    head.append(f"\n{safe(record.player)} on {safe(record.pool)}, {place}", "dim")
    head.append(f"\n{record.started}, {record.seconds:.1f} s", "dim")
    return head


def _events(record: EpisodeRecord, start: Mapping[str, str] | None) -> Iterator[Text]:
    files = _Files(start)
    if not record.messages:
        yield _said("user", "observation", record.observation)
        for n in range(len(record.steps)):
            yield _step(record, n, files)
        return
    turn = 0
    for message in record.messages:
        if message.role == "assistant":
            turn += 1
            yield _turn(message, turn)
            if message.reasoning:
                yield Text(_body(message.reasoning), "dim italic")
            if message.text:
                yield Text(_body(message.text))
            for call in message.calls:
                yield _call(record, call, files)
        elif message.role == "tool" or message.step is not None:
            yield _said(message.role, f"answer{_at(message.step)}", message.text)
        else:
            yield _said(message.role, message.role, message.text)


def _at(step: int | None) -> str:
    return f" to step {step + 1}" if step is not None else ""


def _turn(message: MessageRecord, turn: int) -> Text:
    facts = [f"{message.seconds:.1f} s", usage_text(message.usage)]
    if message.retries:
        facts.append(f"{message.retries} retries")
    if message.stop_reason:
        facts.append(safe(message.stop_reason))
    return _heading("assistant", f"turn {turn}", " · ".join(facts))


def usage_text(usage: Usage) -> str:
    """``1,530 in (1,200 cached), 85 out, $0.0031``."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out{cost}"


def _line(text: str, style: str) -> Text:
    """A text of which the style ends with it: what is added has one of its own."""
    return Text().append(text, style)


def _said(role: str, title: str, text: str) -> Text:
    return _heading(role, title).append("\n" + _body(text))


def _heading(role: str, title: str, facts: str = "") -> Text:
    line = _line(f"── {title} ", _COLOURS.get(role, ""))
    return line.append(facts, "dim")


def _body(text: str) -> str:
    return cut_middle(safe(text), MAX_SHOWN)


def _call(record: EpisodeRecord, call: Mapping[str, Any], files: _Files) -> Text:
    """A call of a model: as the environment understood it, or as it came where it was not carried out."""
    step = call.get("step")
    if isinstance(step, int) and 0 <= step < len(record.steps):
        return _action(record.steps[step], f"step {step + 1}", files)
    arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
    line = _line("▶ not carried out: ", "yellow")
    return line.append(_body(f"{call.get('name')} {arguments}"))


def _step(record: EpisodeRecord, n: int, files: _Files) -> Text:
    step = record.steps[n]
    return _action(step, f"step {n + 1}", files).append("\n" + _body(step.observation))


def _action(step: StepRecord, where: str, files: _Files) -> Text:
    action = json.loads(step.action)
    tool = action.pop("tool", "")
    line = _line(f"▶ {where}: ", "magenta").append(safe(tool) or "no action", "bold magenta")
    if step.seconds >= 0.05:
        line.append(f"  {step.seconds:.2f} s", "dim")
    if step.invalid:
        line.append("  invalid", "red")
    shown = {key: value for key, value in action.items() if key not in ("content", "old", "new")}
    if shown:
        line.append("  " + _body(" ".join(f"{key}={value}" for key, value in shown.items())))
    if tool in ("write_file", "replace_text"):
        change = files.change(tool, action, done=not step.invalid)
        if change:
            line.append("\n").append_text(change)
    return line


class _Files:
    """What is in the files, as far as it is known."""

    def __init__(self, start: Mapping[str, str] | None) -> None:
        self.known = start is not None
        self.files = dict(start or {})

    def change(self, tool: str, action: Mapping[str, Any], *, done: bool) -> Text:
        """The change that an action makes as a diff; what it makes is remembered if it was ``done``."""
        path = str(action.get("path", "")).removeprefix("./")
        before = self.files.get(path)
        if tool == "write_file":
            old, new = before or "", str(action.get("content", ""))
        elif before is not None and before.count(str(action.get("old"))) == 1:
            old, new = before, before.replace(str(action.get("old")), str(action.get("new", "")))
        else:
            return diff(str(action.get("old", "")), str(action.get("new", "")), path)
        if done:
            self.files[path] = new
        made = before is None and self.known
        return diff(
            old, new, path, made="new file" if made else "" if before is not None else "before: not known"
        )


def diff(old: str, new: str, path: str, made: str = "") -> Text:
    """A unified diff in colours."""
    head = _line(f"{safe(path)}{f' ({made})' if made else ''}", "bold")
    if old == new:
        return head.append("  nothing changed", "dim")
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3))[2:]
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in cut_middle(safe("\n".join(lines)), MAX_SHOWN).split("\n"):
        head.append("\n" + line, styles.get(line[:1], ""))
    return head


def _ending(record: EpisodeRecord) -> Text:
    if record.void is not None:
        end = _line("── void ", "bold yellow").append(safe(record.void))
    else:
        assert record.reward is not None
        colour = "green" if record.reward == 1 else "red" if record.reward == 0 else "yellow"
        end = _line(f"── reward {record.reward:.3f} ", f"bold {colour}").append(_why(record))
    for outcome in (record.verdict or {}).get("outcomes", ()):
        if not outcome["passed"]:
            end.append("\n  failed ", "red").append(safe(f"{outcome['id']}: {outcome['reason']}"))
    if record.flags:
        end.append("\n  flags ", "yellow").append(safe(", ".join(record.flags)))
    if record.model:
        ended = f", ended by {record.ended_by}" if record.ended_by else ""
        facts = f"{record.turns} turns, {len(record.steps)} steps, {usage_text(record.usage)}{ended}"
        end.append(f"\n{safe(record.model)}: {facts}", "dim")
        if record.usage.cost_usd is None:
            end.append(", cost unknown", "dim")
    return end.append(f"\ndigest {record.digest}", "dim")


def _why(record: EpisodeRecord) -> str:
    if record.truncated:
        return f"the episode was cut by its limit: {record.truncated_by}"
    verdict = record.verdict or {}
    return f"{verdict.get('passed', 0)} of {verdict.get('total', 0)} hidden tests pass"
