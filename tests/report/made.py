"""Runs that were never played, for reports: real tasks of the bundled pool, made-up outcomes by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from tiltyard.pool import load
from tiltyard.records import EpisodeRecord, RunRecord, StepRecord, Store, Usage
from tiltyard.task import Task

POOL = load("builtin")


def act(tool: str, observation: str = "", **arguments: object) -> StepRecord:
    return StepRecord(json.dumps({"tool": tool, **arguments}), observation)


def submit(reward: float | None) -> StepRecord:
    return StepRecord('{"tool": "submit"}', "Submitted. The episode is over.", reward, terminated=True)


def verdict(task: Task, passed: int, reason: str = "assertion failed") -> dict[str, object]:
    outcomes = [
        {"id": test.id, "passed": n < passed, "reason": "" if n < passed else reason}
        for n, test in enumerate(task.hidden)
    ]
    return {
        "reward": passed / len(task.hidden),
        "passed": passed,
        "total": len(task.hidden),
        "graded": task.grading,
        "flags": [],
        "void": None,
        "outcomes": outcomes,
    }


def episode(task: Task, player: str, share: float | None, **more: object) -> EpisodeRecord:
    """One attempt that passes this share of the hidden tests; None is a void."""
    passed = 0 if share is None else round(share * len(task.hidden))
    reward = None if share is None else passed / len(task.hidden)
    record = EpisodeRecord(
        task=task.id,
        task_digest=task.digest,
        player=player,
        seed=1,
        run_seed=0,
        observation=task.prompt,
        steps=(
            act("view_file", "…", path=task.main),
            act("write_file", "Wrote.", path=task.main, content="x"),
            submit(reward),
        ),
        reward=reward,
        void="the server was overloaded" if share is None else None,
        verdict=None if share is None else verdict(task, passed),
        wall="process",
        pool="builtin",
        pool_version="1",
        pool_digest=POOL.digest,
        pool_spec="builtin",
        started="2026-11-30T00:00:00+00:00",
        seconds=1.5,
    )
    return replace(record, **more)  # type: ignore[arg-type]


def play(
    store: Store,
    player: str,
    shares: Callable[[Task, int], float | None],
    *,
    tasks: int = 12,
    attempts: int = 4,
    **more: object,
) -> str:
    """A run: ``attempts`` at each of the first ``tasks`` tasks; ``shares(task, attempt)`` says what they come to."""
    head = RunRecord(
        "builtin", "1", POOL.digest, player, "process", 0, pool_spec="builtin", started="2026-11-30"
    )
    run = store.add_run(head)
    for n, task in enumerate(POOL[:tasks]):
        for attempt in range(attempts):
            record = episode(task, player, shares(task, attempt), **more)
            store.add(replace(record, run=run, number=n * attempts + attempt, attempt=attempt))
    store.finish_run(run)
    return run


def lively(seed: int, skill: float = 0.6) -> Callable[[Task, int], float | None]:
    """Outcomes of a player that solves some tasks always, some never, and is void now and then."""
    dice = random.Random(seed)
    rates = {task.id: min(1.0, max(0.0, dice.gauss(skill, 0.45))) for task in POOL}

    def share(task: Task, attempt: int) -> float | None:
        if dice.random() < 0.02:
            return None
        return 1.0 if dice.random() < rates[task.id] else dice.choice((0.0, 0.25, 0.5, 0.75))

    return share


def model_run(
    store: Store, player: str, seed: int, *, attempts: int = 8, skill: float = 0.6, tasks: int = 65
) -> str:
    """A livelier one, with tokens, costs, invalid actions, cuts and flags."""
    dice, shares = random.Random(seed), lively(seed, skill)
    head = RunRecord(
        "builtin", "1", POOL.digest, player, "namespace", 0, pool_spec="builtin", started="2026-11-30"
    )
    run = store.add_run(head)
    for record in _episodes(player, dice, shares, attempts, tasks):
        store.add(replace(record, run=run))
    store.finish_run(run)
    return run


def _episodes(
    player: str, dice: random.Random, shares: Callable[[Task, int], float | None], attempts: int, tasks: int
) -> Iterator[EpisodeRecord]:
    for n, task in enumerate(POOL[:tasks]):
        for attempt in range(attempts):
            share = shares(task, attempt)
            blind = dice.random() < 0.1
            reference = task.reference[next(iter(task.reference))].decode()
            wrote = (
                reference
                if share == 1.0 and dice.random() < 0.05
                else f"def {task.id}(*args):\n    return args\n"
            )
            steps = [] if blind else [act("view_file", "1: …", path=task.main)]
            steps += [
                act("write_file", "Wrote it.", path=task.main, content=wrote),
                act("run_tests", "3 passed"),
            ]
            steps += [replace(act("list_files", "no such tool"), invalid=True)] if dice.random() < 0.2 else []
            cut = share is not None and share < 1 and dice.random() < 0.2
            last = (
                replace(act("run_tests", "…"), truncated=True, truncated_by="steps") if cut else submit(None)
            )
            record = episode(task, player, 0.0 if cut else share)
            last = replace(last, reward=record.reward)
            usage = Usage(dice.randint(4000, 30000), dice.randint(200, 4000), 3000, 0, dice.random() / 20)
            yield replace(
                record,
                steps=(*steps, last),
                number=n * attempts + attempt,
                attempt=attempt,
                seconds=dice.lognormvariate(3, 0.7),
                model=player.partition(":")[2],
                usage=usage,
                verdict=None if cut else record.verdict,
                flags=("took_liberties",) if dice.random() < 0.03 else (),
                ended_by="steps" if cut else "submit",
            )
