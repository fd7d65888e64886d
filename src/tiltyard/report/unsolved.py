"""The tasks that no one solved: what the best attempts did, which hidden tests failed and why, and whether the player
was told of what those check. Such a task teaches nothing, and is either too hard, or wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, select

from tiltyard.records import schema
from tiltyard.report.gather import Key, Scope, rows_of
from tiltyard.report.mentions import Clue, clues
from tiltyard.report.players import PlayerReport, is_yardstick
from tiltyard.task import Task

MAX_VERDICTS = 200
"""Attempts of a task whose failed tests are counted."""
MAX_TESTS = 40
MAX_TEXT = 4000
"""Characters of one action or observation that are shown."""
MAX_STEPS = 60


@dataclass(frozen=True, slots=True)
class FailedTest:
    """A hidden test that failed in ``failed`` of ``of`` graded attempts, with the reasons, and what it checks."""

    id: str
    failed: int
    of: int
    reasons: Mapping[str, int]
    clues: tuple[Clue, ...]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of a transcript; long texts are cut, and say by how much. ``said`` is what a model wrote with it."""

    said: str
    action: str
    observation: str
    invalid: bool
    truncated_by: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """An attempt to look at. ``steps_left_out`` counts those in the middle that are not shown."""

    episode: str
    player: str
    reward: float
    steps: tuple[ShownStep, ...]
    steps_left_out: int


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A task that none of ``players`` solved in ``attempts``. ``known`` says whether the task itself could be had, so
    that what its tests check could be looked up."""

    task: str
    digest: str
    players: tuple[str, ...]
    attempts: int
    best_reward: float
    graded: int
    tests: tuple[FailedTest, ...]
    tests_left_out: int
    known: bool
    transcripts: tuple[Transcript, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def contenders(players: Iterable[str]) -> list[str]:
    """The players that attempt: all that are no yardsticks; if there are none, those that may at least fail."""
    names = list(players)
    real = [name for name in names if not is_yardstick(name)]
    return real or [name for name in names if name in ("noop", "random")]


def never_solved(players: Mapping[str, PlayerReport]) -> list[tuple[Key, list[str]]]:
    """Tasks that were attempted and that no contender solved, with who attempted them."""
    tried: dict[Key, list[str]] = {}
    solved: set[Key] = set()
    for name in contenders(players):
        for row in players[name].tasks:
            if row.attempts:
                tried.setdefault((row.task, row.digest), []).append(name)
            if row.solved:
                solved.add((row.task, row.digest))
    return [(key, tried[key]) for key in sorted(tried) if key not in solved]


def unsolved(
    connection: Connection,
    scope: Scope,
    players: Mapping[str, PlayerReport],
    tasks: Mapping[str, Task],
    *,
    most: int,
) -> tuple[Unsolved, ...]:
    """The first ``most`` never-solved tasks, those with the most attempts first, then by the best reward."""
    rows = {(p.player, row.task, row.digest): row for p in players.values() for row in p.tasks}

    def facts(item: tuple[Key, list[str]]) -> tuple[int, float, Key]:
        key, names = item
        mine = [rows[name, *key] for name in names]
        return -sum(r.attempts for r in mine), -max(_best(r.mean_reward) for r in mine), key

    return tuple(
        _unsolved(connection, scope, key, names, rows, tasks.get(key[1]))
        for key, names in sorted(never_solved(players), key=facts)[:most]
    )


def _best(reward: float | None) -> float:
    return 0.0 if reward is None else reward


def _unsolved(
    connection: Connection,
    scope: Scope,
    key: Key,
    names: list[str],
    rows: Mapping[Any, Any],
    task: Task | None,
) -> Unsolved:
    graded, tests, left_out = _tests(connection, scope, key, names, task)
    best = [id for name in names for id in rows[name, *key].best[:1]]
    transcripts = sorted(
        (_transcript(connection, id) for id in best), key=lambda t: (-t.reward, t.player, t.episode)
    )
    return Unsolved(
        task=key[0],
        digest=key[1],
        players=tuple(names),
        attempts=sum(rows[name, *key].attempts for name in names),
        best_reward=max((t.reward for t in transcripts), default=0.0),
        graded=graded,
        tests=tests,
        tests_left_out=left_out,
        known=task is not None,
        transcripts=tuple(transcripts[:2]),
    )


def _tests(
    connection: Connection, scope: Scope, key: Key, names: list[str], task: Task | None
) -> tuple[int, tuple[FailedTest, ...], int]:
    table = schema.episodes.c
    wanted = scope.of(select(table.verdict)).where(
        table.task == key[0],
        table.task_digest == key[1],
        table.player.in_(names),
        table.reward.is_not(None),
        table.verdict.is_not(None),
    )
    order = (table.run.nulls_first(), table.number, table.id)
    graded, failed, reasons = 0, Counter[str](), dict[str, Counter[str]]()
    for (verdict,) in rows_of(connection, wanted.order_by(*order).limit(MAX_VERDICTS)):
        graded += 1
        for outcome in verdict.get("outcomes", ()):
            if not outcome["passed"]:
                failed[outcome["id"]] += 1
                reasons.setdefault(outcome["id"], Counter())[outcome["reason"]] += 1
    hidden = {test.id: test for test in task.hidden} if task is not None else {}
    ordered = sorted(failed, key=lambda id: (-failed[id], id))
    found = tuple(
        FailedTest(
            id,
            failed[id],
            graded,
            dict(sorted(reasons[id].items(), key=lambda item: (-item[1], item[0]))[:4]),
            clues(task, hidden[id]) if task is not None and id in hidden else (),
        )
        for id in ordered[:MAX_TESTS]
    )
    return graded, found, max(0, len(ordered) - MAX_TESTS)


def _transcript(connection: Connection, id: str) -> Transcript:
    episode, steps = schema.episodes.c, schema.steps.c
    head = connection.execute(select(episode.player, episode.reward).where(episode.id == id)).one()
    wanted = select(steps.n, steps.action, steps.observation, steps.invalid, steps.truncated_by)
    rows = list(rows_of(connection, wanted.where(steps.episode == id).order_by(steps.n)))
    left_out = max(0, len(rows) - MAX_STEPS)
    if left_out:
        half = MAX_STEPS // 2
        rows = rows[:half] + rows[-half:]
    said = _said(connection, id)
    shown = tuple(
        ShownStep(
            cut(said.get(row.n, "")),
            cut(readable(row.action)),
            cut(row.observation),
            bool(row.invalid),
            row.truncated_by,
        )
        for row in rows
    )
    return Transcript(id, head.player, float(head.reward), shown, left_out)


def _said(connection: Connection, id: str) -> dict[int, str]:
    """By step, what the model wrote in the turn that it came from; with the first step, where a turn made several."""
    table = schema.messages.c
    wanted = select(table.text, table.reasoning, table.calls)
    wanted = wanted.where(table.episode == id, table.role == "assistant").order_by(table.n)
    found: dict[int, str] = {}
    for row in rows_of(connection, wanted):
        steps = [call["step"] for call in row.calls if isinstance(call.get("step"), int)]
        text = "\n\n".join(part for part in (row.reasoning.strip(), row.text.strip()) if part)
        if steps and text:
            found[min(steps)] = text
    return found


def cut(text: str) -> str:
    """The text, or its ends with a note of what was left out between them."""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def readable(action: str) -> str:
    """An action for reading: the tool with its short arguments, then the long ones as they are."""
    try:
        call = json.loads(action)
    except (ValueError, RecursionError):
        return action
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
        return action
    short, long = [], []
    for name, value in call.items():
        if name == "tool":
            continue
        text = str(value)
        if len(text) > 60 or "\n" in text:
            long.append(f"{name}:\n{text.rstrip()}")
        else:
            short.append(f"{name}={text!r}")
    return "\n".join([f"{call['tool']}({', '.join(short)})", *long])
