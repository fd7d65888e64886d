"""The report as data: counts by hand, voids apart, the same from any database, the real thing end to end."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from math import comb, isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event
from tests.report.made import POOL, act, episode, lively, model_run, play, submit

from tiltyard import report as reporting
from tiltyard import rollout
from tiltyard.errors import UsageError
from tiltyard.estimates import Posterior, expected_signal, group_advantages
from tiltyard.records import Store
from tiltyard.report.gather import Scope, gather
from tiltyard.report.players import Spread, ks


def report(store: Any, **more: Any) -> reporting.Report:
    """With the pool at hand: to load it costs half a second each time."""
    return reporting.report(store, **{"pool": POOL, **more})


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "s.sqlite") as store:
        yield store


def table(rows: list[list[float | None]]) -> Callable[[Any, int], float | None]:
    """Shares by task (in the pool's order) and attempt."""
    return lambda task, attempt: rows[POOL.ids.index(task.id)][attempt]


def test_a_small_run_by_hand(store: Store) -> None:
    outcomes: list[list[float | None]] = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0.5, None], [None] * 4]
    play(store, "me", table(outcomes), tasks=4)
    found = report(store)
    me = found.players["me"]
    half = round(len(POOL[2].hidden) / 2) / len(POOL[2].hidden)
    assert (found.episodes, found.runs, found.steps, found.group_size, found.group_from) == (
        16,
        1,
        48,
        4,
        "runs",
    )
    assert me.episodes == 16 and me.counted == 11 and me.voids == {"the server was overloaded": 5}
    assert me.reward is not None and isclose(me.reward.value, (4 + 1 + half) / 11) and me.reward.tasks == 3
    assert me.standings == {"always": 1, "mixed": 1, "never": 1, "untried": 1}
    # pass@1: (1 + 0 + 1/3) / 3; pass@4: only the first two tasks have four attempts that count
    assert isclose(me.passes[0].at.value, (4 / 3) / 3) and me.passes[0].at.tasks == 3
    assert isclose(me.passes[3].at.value, 0.5) and me.passes[3].at.tasks == 2
    assert isclose(me.passes[1].at.value, (1 + 0 + (1 - comb(2, 2) / comb(3, 2))) / 3)
    mixed = me.tasks[2]
    assert (mixed.attempts, mixed.solved, mixed.voids, mixed.standing) == (3, 1, 1, "mixed")
    assert isclose(mixed.signal, expected_signal(Posterior.of(3, 1), 4))
    assert mixed.signal_low < mixed.signal < mixed.signal_high
    untried = me.tasks[3]
    assert untried.mean_reward is None and untried.standing == "untried"
    waste = me.no_gradient
    assert waste.by_kind["groups"] == {"mixed": 1, "equal": 2, "alone": 0, "void": 1}
    assert waste.by_kind["sandboxes"] == {"mixed": 3, "equal": 8, "alone": 0, "void": 5}
    assert waste.groups == 0.75 and waste.sandboxes == 1 - 3 / 16 and waste.generations == 1 - 9 / 48
    assert waste.subsets == 1.0 and waste.subset_tasks == 2
    assert me.ended == {"submit": 11} and me.steps == Spread(3, 3, 3, 3, 33)
    assert found.never == 1 and found.unsolved[0].task == POOL[1].id


def test_what_bought_no_gradient_is_what_has_no_advantage(store: Store) -> None:
    play(store, "me", lively(4), tasks=40, attempts=6)
    waste = report(store).players["me"].no_gradient
    groups: dict[tuple[str, int], list[float]] = {}
    for record in store.episodes():
        reward = float("nan") if record.reward is None else record.reward
        groups.setdefault((record.run, record.number - record.attempt), []).append(reward)
    advantages = group_advantages(list(groups.values()))
    idle = np.isnan(advantages).all(axis=1) | (np.nan_to_num(advantages) == 0).all(axis=1)
    assert waste.groups is not None and isclose(waste.groups, idle.mean())
    assert waste.by_kind["groups"]["mixed"] == (~idle).sum() > 5


def test_voids_change_no_mean(tmp_path: Path) -> None:
    found = []
    for name, void in (("with", None), ("without", "leave out")):
        with Store(tmp_path / name) as store:
            for n, share in enumerate([1.0, 0.0, None, 0.5, None]):
                if share is not None or void is None:
                    store.add(replace(episode(POOL[0], "me", share), number=n))
            found.append(report(store).players["me"])
    assert found[0].voids and not found[1].voids
    for name in ("reward", "passes", "steps", "tokens", "seconds", "ended", "invalid_actions"):
        assert getattr(found[0], name) == getattr(found[1], name)


def test_groups_are_told_apart_by_run_and_draw(store: Store) -> None:
    # two draws of the same task in one run, alternating in the order of storing
    for n, share in ((2, 1.0), (0, 0.0), (3, 1.0), (1, 0.0)):
        run = (
            store.runs()[0].id if store.runs() else play(store, "other", lambda *_: 1.0, tasks=1, attempts=2)
        )
        store.add(replace(episode(POOL[5], "me", share), run=run, number=100 + n, attempt=n % 2))
    store.add(episode(POOL[5], "me", 0.0))
    store.add(episode(POOL[5], "me", 1.0))
    me = report(store).players["me"]
    assert me.no_gradient.by_kind["groups"] == {"mixed": 0, "equal": 2, "alone": 2, "void": 0}
    assert me.no_gradient.groups == 1.0 and me.no_gradient.subsets is not None


def test_a_void_that_was_played_again_makes_no_larger_group(store: Store) -> None:
    run = play(store, "me", table([[None, 1.0, 0.0]]), tasks=1, attempts=3)
    store.add(replace(episode(POOL[0], "me", 1.0), run=run, number=0, attempt=0))  # as --resume does
    found = report(store)
    assert found.group_size == 3
    assert found.players["me"].no_gradient.by_kind["sandboxes"] == {
        "mixed": 3,
        "equal": 0,
        "alone": 0,
        "void": 1,
    }


def test_by_run_player_and_group_size(store: Store) -> None:
    first = play(store, "me", lambda *_: 1.0, tasks=2, attempts=2)
    second = play(store, "you", lambda *_: 0.0, tasks=3, attempts=1)
    assert list(report(store).players) == ["me", "you"]
    assert report(store, run=first[:6]).scope.run == first
    assert list(report(store, run=second).players) == ["you"]
    assert report(store, player="you").episodes == 3
    only = report(store, run=second)
    assert (only.group_size, only.group_from) == (8, "default")
    assert only.players["you"].no_gradient.groups is None
    asked = report(store, group_size=2)
    assert (asked.group_size, asked.group_from) == (2, "asked")
    assert [p.k for p in asked.players["me"].passes] == [1, 2]
    for bad, match in (
        ({"run": "r-zzz"}, "no run 'r-zzz'.*newest"),
        ({"run": "r-"}, "several runs"),
        ({"player": "they"}, "the players of this store are me, you"),
        ({"player": "me", "run": second}, "in run"),
        ({"cutoff": "yesterday"}, "--cutoff"),
        ({"group_size": 0}, "a group of 0"),
    ):
        with pytest.raises(UsageError, match=match):
            report(store, **bad)  # type: ignore[arg-type]


def test_an_empty_store_and_none(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no episode in this store"):
        report(store)
    with pytest.raises(UsageError, match="there is no store"):
        report(tmp_path / "nothing")


def test_a_task_that_was_changed_is_another_one(store: Store) -> None:
    store.add(episode(POOL[0], "me", 1.0))
    store.add(replace(episode(POOL[0], "me", 0.0), task_digest="0" * 64))
    found = report(store)
    assert len(found.players["me"].tasks) == 2
    assert any("several versions" in note for note in found.notes)
    assert any("not in the pool as they were played" in note for note in found.notes)
    moved = replace(episode(POOL[0], "me", 0.0), pool_spec="/no/such/pool.jsonl", task_digest="1" * 64)
    store.add(moved)
    notes = report(store, pool=None).notes
    assert any("/no/such/pool.jsonl can't be loaded" in note and "--pool" in note for note in notes)


def test_costs_and_endings(store: Store) -> None:
    model_run(store, "openai:m", 3, attempts=4, tasks=20)
    me = report(store).players["openai:m"]
    records = [r for r in store.episodes() if r.reward is not None]
    assert me.models == ("m",) and me.tokens_from == "server"
    assert me.usage["input_tokens"] == sum(r.usage.input_tokens for r in records)
    assert me.cost_usd is not None and isclose(
        me.cost_usd, sum(r.usage.cost_usd or 0 for r in store.episodes())
    )
    assert me.invalid_actions == sum(step.invalid for r in records for step in r.steps) > 0
    assert me.ended == {
        "submit": sum(not r.truncated for r in records),
        "steps": sum(r.truncated_by == "steps" for r in records),
    }
    assert me.seconds is not None and isclose(me.seconds.total, sum(r.seconds for r in records))
    assert me.steps is not None and me.steps.most == max(len(r.steps) for r in records)


def test_tokens_are_estimated_where_no_server_counted(store: Store) -> None:
    record = replace(
        episode(POOL[0], "me", 1.0), observation="o" * 10, steps=(act("list_files", "x" * 9), submit(1.0))
    )
    store.add(record)
    me = report(store).players["me"]
    chars = 10 + sum(len(s.action) + len(s.observation) for s in record.steps)
    assert me.tokens_from == "estimate" and me.tokens is not None and me.tokens.total == -(-chars // 4)


def test_flags_say_what_was_tried_where(store: Store) -> None:
    for flags in (("frames", "proc"), ("frames",), ()):
        store.add(replace(episode(POOL[1], "me", 1.0), flags=flags))
    store.add(replace(episode(POOL[2], "you", 1.0), flags=("frames",)))
    rows = [(f.flag, f.player, f.task, f.count) for f in report(store).flags]
    assert rows == [
        ("frames", "me", POOL[1].id, 2),
        ("frames", "you", POOL[2].id, 1),
        ("proc", "me", POOL[1].id, 1),
    ]


# -- one report, whatever it is read from --------------------------------------------------------------------------


def test_the_same_run_in_sqlite_and_postgresql_gives_equal_reports(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for where in (str(tmp_path / "s.sqlite"), postgres_url):
        numbers = itertools.count()
        monkeypatch.setattr(
            "tiltyard.records.store.new_id", lambda kind, numbers=numbers: f"{kind}-{next(numbers):010d}"
        )
        with Store(where) as store:
            model_run(store, "openai:m", 5, attempts=4, skill=0.4)
            play(store, "random", lambda task, attempt: 0.0, tasks=20)
            play(store, "Ünï\0", lively(1), tasks=5)
            store.add(episode(POOL[0], "me", 0.1 + 0.2))
        found.append(report(where, cutoff="2026-10").as_json())
    assert json.dumps(found[0], sort_keys=True) == json.dumps(found[1], sort_keys=True)
    assert found[0]["episodes"] == 65 * 4 + 80 + 20 + 1 and found[0]["never_solved"]["tasks"] > 0


def test_the_order_of_storing_changes_nothing(tmp_path: Path) -> None:
    shares, records = lively(2), []
    for n, task in enumerate(POOL[:15]):
        for attempt in range(4):
            record = episode(task, "me", shares(task, attempt), seconds=0.1 * attempt + 0.01 * n)
            records.append(replace(record, number=4 * n + attempt, attempt=attempt))
    found = []
    for turn in range(2):
        with Store(tmp_path / str(turn)) as store:
            run = play(store, "me", lambda *_: 1.0, tasks=0)
            for record in records:
                store.add(replace(record, run=run))
            random.Random(turn).shuffle(records)
            out = report(store).as_json()["players"]["me"]
            for row in out["tasks"]:
                row.pop("best")
            found.append(out)
    assert found[0] == found[1]


def test_counting_reads_no_step_no_observation_and_no_verdict(store: Store) -> None:
    model_run(store, "openai:m", 6, attempts=2, tasks=10)
    said: list[str] = []
    event.listen(store._engine, "before_cursor_execute", lambda *a: said.append(a[2].lower()))
    with store.snapshot() as connection:
        gather(connection, Scope())
    assert said and all("from episodes" in sql for sql in said if sql.startswith("select"))
    for name in ("observation", "verdict", "settings", "steps.", "messages"):
        assert not any(name in sql for sql in said), name


def test_a_store_that_others_write_to_meanwhile(store: Store) -> None:
    play(store, "me", lively(7), tasks=5)
    with store.snapshot() as connection:
        before = gather(connection, Scope()).episodes
        play(store, "me", lively(8), tasks=5)
        assert gather(connection, Scope()).episodes == before == 20
    assert report(store).episodes == 40


def test_an_older_store_is_brought_up_to_date(tmp_path: Path) -> None:
    where = tmp_path / "s.sqlite"
    with Store(where) as store:
        play(store, "me", lively(7), tasks=3)
        wanted = report(store).as_json()
        with store._engine.begin() as connection:
            connection.exec_driver_sql("update episodes set step_count = 0, text_chars = 0")
            connection.exec_driver_sql("delete from tiltyard_schema where version >= 3")
    assert report(where).as_json() == wanted


def test_numbers_are_finite_json(store: Store) -> None:
    play(store, "me", lambda *_: None, tasks=2)
    found = json.loads(json.dumps(report(store).as_json(), allow_nan=False))
    me = found["players"]["me"]
    assert me["reward"] is None and me["steps"] is None and me["passes"] == []
    assert me["no_gradient"]["groups"] == 1.0 and me["no_gradient"]["expected"] is None
    assert found["never_solved"] == {"tasks": 0, "shown": []}


def test_which_k_are_shown() -> None:
    assert ks(1) == [1] and ks(4) == [1, 2, 3, 4] and ks(8) == list(range(1, 9))
    assert ks(40) == [*range(1, 9), 16, 32, 40] and ks(64) == [*range(1, 9), 16, 32, 64]


# -- the real thing ------------------------------------------------------------------------------------------------


def test_real_players_on_real_tasks(tmp_path: Path) -> None:
    where = str(tmp_path / "s.sqlite")
    for player in ("noop", "reference"):
        rollout.run(POOL[:2], player, attempts=2, workers=0, wall="process", store=where, pool_spec="builtin")
    found = report(where, pool=None)
    noop, reference = found.players["noop"], found.players["reference"]
    assert noop.reward is not None and noop.reward.value == 0.0 and noop.standings["never"] == 2
    assert (
        reference.reward is not None and reference.reward.value == 1.0 and reference.standings["always"] == 2
    )
    assert noop.no_gradient.groups == reference.no_gradient.groups == 1.0
    # noop is the only one that could have failed; what its verdicts say is shown
    assert found.never == 2 and found.unsolved[0].tests and found.unsolved[0].graded == 2
    assert all(t.failed == t.of for task in found.unsolved for t in task.tests if t.reasons)
    # the reference is a yardstick: that it equals itself is no sign of anything
    assert not found.signs.counts and found.signs.looked_at == 0
