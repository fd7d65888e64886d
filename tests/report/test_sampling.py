"""Draws by signal: deterministic, learning from the store alone, exploring, resumed as they were drawn."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.made import POOL, episode, play
from typer.testing import CliRunner

from tiltyard import rollout
from tiltyard.cli import app
from tiltyard.errors import UsageError
from tiltyard.records import Store
from tiltyard.rollout.sampling import by_signal, history
from tiltyard.rollout.slots import plan
from tiltyard.task import Task

TASKS = POOL[:40].tasks
ALWAYS, MIXED, NEVER = TASKS[:10], TASKS[10:20], TASKS[20:30]  # and ten that were never tried


def known(n: int) -> dict[str, Counter[float]]:
    """``n`` attempts at each of 30 tasks."""
    found = {t.digest: Counter({1.0: n}) for t in ALWAYS}
    found |= {t.digest: Counter({1.0: n // 2, 0.0: n - n // 2}) for t in MIXED}
    return found | {t.digest: Counter({0.0: n}) for t in NEVER}


def drawn(tasks: Any, counts: Any, draws: int, seed: int = 0, **more: Any) -> Counter[str]:
    return Counter(tasks[n].id for n in by_signal(tasks, counts, draws=draws, group=8, seed=seed, **more))


def share(counts: Counter[str], some: tuple[Task, ...]) -> float:
    return sum(counts[t.id] for t in some) / counts.total()


def test_mixed_and_unknown_tasks_are_drawn_and_settled_ones_seldom() -> None:
    counts = drawn(TASKS, known(64), 400)
    assert share(counts, MIXED) > 0.45
    assert share(counts, TASKS[30:]) > 0.08  # what was never tried promises something too
    assert share(counts, ALWAYS) + share(counts, NEVER) < 0.2
    many = drawn(TASKS, known(64), 3000)
    assert all(many[t.id] for t in TASKS)  # and yet nothing is given up
    # the fewer attempts, the less is settled
    early = drawn(TASKS, known(2), 400)
    assert share(early, ALWAYS) + share(early, NEVER) > 2 * (share(counts, ALWAYS) + share(counts, NEVER))


def test_exploring_is_what_finds_the_settled_again() -> None:
    settled = (*ALWAYS, *NEVER)
    none, much = (drawn(TASKS, known(500), 800, explore=e) for e in (0.0, 0.5))
    assert share(none, settled) < 0.02 < 0.15 < share(much, settled)


def test_partial_rewards_are_signal_too() -> None:
    counts = {TASKS[0].digest: Counter({0.25: 20, 0.5: 20})} | {
        t.digest: Counter({0.5: 40}) for t in TASKS[1:]
    }
    assert drawn(TASKS, counts, 80, explore=0.0).most_common(1)[0][0] == TASKS[0].id


def test_the_same_seed_draws_the_same_in_any_order_of_the_pool() -> None:
    first = [TASKS[n].id for n in by_signal(TASKS, known(8), draws=100, group=8, seed=3)]
    turned = TASKS[::-1]
    assert [turned[n].id for n in by_signal(turned, known(8), draws=100, group=8, seed=3)] == first
    assert first[:50] == [TASKS[n].id for n in by_signal(TASKS, known(8), draws=50, group=8, seed=3)]
    assert first != [TASKS[n].id for n in by_signal(TASKS, known(8), draws=100, group=8, seed=4)]
    windows = [first[n : n + 10] for n in range(0, 100, 10)]
    assert all(len(set(window)) == 10 for window in windows)


def test_tiny_pools_and_bad_numbers() -> None:
    assert by_signal(TASKS[:1], {}, draws=5, group=8, seed=0) == [0] * 5
    assert set(by_signal(TASKS[:3], {}, draws=60, group=1, seed=0)) == {0, 1, 2}
    for draws in (0, 10**9):
        with pytest.raises(UsageError, match="draws by signal"):
            by_signal(TASKS, {}, draws=draws, group=8, seed=0)
    with pytest.raises(UsageError, match="no task"):
        by_signal((), {}, draws=1, group=8, seed=0)


def test_the_state_is_what_the_store_holds_of_this_player(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        play(store, "me", lambda task, attempt: None if attempt == 0 else float(attempt == 1), tasks=2)
        play(store, "you", lambda *_: 1.0, tasks=2)
        store.add(replace(episode(POOL[0], "me", 1.0), task_digest="0" * 64))
        found = history(store, "me")
    assert found == {
        POOL[0].digest: {0.0: 2, 1.0: 1},
        POOL[1].digest: {0.0: 2, 1.0: 1},
        "0" * 64: {1.0: 1},
    }


def test_slots_of_draws() -> None:
    slots = plan(["a", "b", "c"], episodes=3, attempts=2, seed=0, drawn=[2, 0, 2])
    assert [(s.number, s.task, s.draw, s.attempt) for s in slots] == [
        (0, "c", 0, 0),
        (1, "c", 0, 1),
        (2, "a", 0, 0),
        (3, "a", 0, 1),
        (4, "c", 1, 0),
        (5, "c", 1, 1),
    ]
    assert len({s.seed for s in slots}) == 6


def test_a_run_by_signal_and_its_resumption(tmp_path: Path) -> None:
    where = str(tmp_path / "s.sqlite")
    few = POOL[:8]
    mixed = few.ids[5]
    with Store(where) as store:
        shares = {task.id: (lambda a: float(a % 2)) if task.id == mixed else (lambda a: 0.0) for task in few}
        play(store, "noop", lambda task, attempt: shares[task.id](attempt), tasks=8, attempts=60)

    def run(**more: Any) -> Any:
        given = {"episodes": 4, "attempts": 2, "seed": 5, "sample": "signal", "store": where}
        return rollout.run(few, "noop", workers=0, wall="process", pool_spec="builtin", **{**given, **more})

    summary = run()
    assert len(summary.results) == 8 and {r.task for r in summary.results if r.task == mixed}
    with Store(where) as store:
        (head,) = [r for r in store.runs() if r.id == summary.run]
        assert head.settings["sample"] == "signal" and len(head.settings["drawn"]) == 4
        tasks = [few.ids[n] for n in head.settings["drawn"] for _ in range(2)]
        assert [r.task for r in store.episodes(run=summary.run)] == tasks
        # half of it is lost; the store has changed since, and the same draws are played
        with store._engine.begin() as connection:
            connection.exec_driver_sql(f"delete from episodes where run = '{summary.run}' and number >= 4")
        play(store, "noop", lambda *_: 1.0, tasks=8, attempts=30)
    again = run(resume=summary.run, episodes=None, sample="plan")
    assert [r.task for r in again.results] == tasks and again.digest == summary.digest
    with pytest.raises(UsageError, match="--store"):
        run(store=None)
    with pytest.raises(UsageError, match="--episodes"):
        run(episodes=None)
    with pytest.raises(UsageError, match="expected plan or signal"):
        run(sample="luck")


def test_the_option(tmp_path: Path) -> None:
    arguments = [
        "run",
        "builtin",
        "-p",
        "noop",
        "-n",
        "2",
        "--sample",
        "signal",
        "--wall",
        "process",
        "--json",
    ]
    done = CliRunner().invoke(
        app, [*arguments, "--store", str(tmp_path / "s"), "--task", "median", "--task", "trie"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["episodes"] == 2
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, UsageError) and "--store" in str(done.exception)
