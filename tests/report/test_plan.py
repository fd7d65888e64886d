"""The plan's simulation against closed forms and by hand; its measurement on real cells; the command."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, isclose
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.made import POOL, episode
from typer.testing import CliRunner

from tiltyard.cli import app
from tiltyard.errors import UsageError
from tiltyard.records import MessageRecord, Store
from tiltyard.report.costs import KINDS, Costs, Recorded, measure, quantile, recorded
from tiltyard.report.plan import Load, World, assumptions, default_tail, duration, plan


def costs(**seconds: Any) -> Costs:
    """Of the same seconds for every action, but for those that are given."""
    given = {kind: tuple(sorted(np.atleast_1d(seconds.get(kind, 0.1)).tolist())) for kind in KINDS}
    return Costs(given, 10, 5, "process", False, 1 << 30)


LOAD = Load(batch=8, group=4, turns=3, latency_p50=1.0, latency_p99=1.0)


def test_by_hand() -> None:
    # open 1, think 3, submit 2 on one core: the second opens from 1 to 2, asks at 5, waits until 6, ends at 8
    load = Load(batch=2, group=1, turns=1, latency_p50=3.0, latency_p99=3.0)
    world = World(load, costs(open=1.0, submit=2.0), 0, 0)
    assert world.play(1) == (8.0, 6.0)
    assert world.play(2) == (6.0, 6.0) == world.play(inf)
    # one cell: one episode after the other
    assert World(replace(load, cells=1), costs(open=1.0, submit=2.0), 0, 0).play(5) == (12.0, 6.0)


def test_what_waits_for_nothing_takes_its_own_time() -> None:
    found = plan(LOAD, costs(open=0.5, submit=0.7, view_file=0.1, write_file=0.1, run_tests=0.1), cores=1000)
    alone = 0.5 + 3 * 1.0 + 2 * 0.1 + 0.7
    assert isclose(found.episode_p50_s, alone) and isclose(found.episode_p99_s, alone)
    assert isclose(found.ideal_p99_s, alone) and isclose(found.rows[-1].step_p99_s, alone)
    assert isclose(found.core_seconds, 32 * (alone - 3.0)) and isclose(found.waiting_share, 3.0 / alone)
    assert found.enough and found.cells == 32


@pytest.mark.parametrize("cores", [1, 3, 7])
def test_without_a_model_the_cores_are_always_busy(cores: int) -> None:
    load = replace(LOAD, latency_p50=0.0, latency_p99=0.0)
    dice = np.random.default_rng(1)
    world = World(load, costs(**{kind: dice.exponential(size=50) for kind in KINDS}), 3, 0)
    seconds, worked = world.play(cores)
    assert isclose(worked, world.work.sum())
    # Graham's bound for any order: no core is idle while something waits
    assert worked / cores - 1e-9 <= seconds <= worked / cores + world.alone().max() + 1e-9
    assert cores > 1 or isclose(seconds, worked)


def test_the_slowest_episode_decides() -> None:
    slow = costs(submit=[0.1] * 99 + [50.0])
    found = plan(replace(LOAD, batch=128, group=8), slow)
    assert found.episode_p50_s < 5 < 50 < found.ideal_p50_s
    assert found.cores < 100  # more cores do not help the slowest one


def test_more_cores_until_they_are_enough() -> None:
    load = replace(LOAD, batch=32, group=8, turns=6)
    found = plan(load, costs(run_tests=0.4, submit=0.8))
    rows = {row.cores: row for row in found.rows}
    fewer = plan(load, costs(run_tests=0.4, submit=0.8), cores=max(1, found.cores // 4))
    assert found.enough and not fewer.enough
    assert fewer.rows[-1].step_p99_s > rows[found.cores].step_p99_s
    assert rows[found.cores].step_p99_s <= 1.05 * found.ideal_p99_s + 1e-9
    assert all(0 < row.busy <= 1 + 1e-9 for row in found.rows)


def test_hours_and_cells() -> None:
    load = replace(LOAD, steps=100, train_s=60.0, cells=8)
    found = plan(load, costs(), cores=50)
    (row,) = [row for row in found.rows if row.cores == 50]
    assert isclose(found.hours, 100 * (row.step_p50_s + 60) / 3600)
    assert found.cells == 8
    free = plan(replace(load, cells=None), costs(), cores=50)
    # 32 episodes through 8 cells: four times as long
    assert isclose(row.step_p50_s, 4 * free.rows[1].step_p50_s, rel_tol=0.02)


def test_a_plan_depends_on_nothing_but_what_it_is_given() -> None:
    dice = np.random.default_rng(2)
    some = costs(**{kind: dice.exponential(size=20) for kind in KINDS})
    load = replace(LOAD, latency_p99=4.0)
    assert plan(load, some, seed=1) == plan(load, some, seed=1) != plan(load, some, seed=2)
    json.dumps(plan(load, some).as_json(), allow_nan=False)
    assert len(assumptions(plan(load, replace(some, busy=True)))) == len(assumptions(plan(load, some))) + 1


def test_latencies_have_the_percentiles_that_were_asked_for() -> None:
    load = Load(batch=500, group=8, turns=20, latency_p50=3.0, latency_p99=default_tail(3.0))
    think = World(load, costs(), 0, 0).think
    assert isclose(np.quantile(think, 0.5), 3.0, rel_tol=0.02)
    assert isclose(np.quantile(think, 0.99), 3.0 * np.e, rel_tol=0.05)


def test_shares_of_turns() -> None:
    load = replace(LOAD, batch=500, turns=21, test_share=0.6)
    work = World(load, costs(run_tests=3.0, view_file=1.0, write_file=2.0, submit=9.0, open=8.0), 0, 0).work
    assert (work[:, 0] == 8.0).all() and (work[:, -1] == 9.0).all()
    middle = work[:, 1:-1]
    for seconds, wanted in ((3.0, 0.6), (1.0, 0.2), (2.0, 0.2)):
        assert isclose((middle == seconds).mean(), wanted, abs_tol=0.02)


def test_durations() -> None:
    read = [duration(t) for t in ("3s", "500ms", "2m", "2min", "1.5h", "3", " .5 s ")]
    assert read == [3.0, 0.5, 120.0, 120.0, 5400.0, 3.0, 0.5]
    for bad in ("", "3 parsecs", "-1s", "1e3", "inf", "٣s", "s"):
        with pytest.raises(UsageError, match="such as 3s"):
            duration(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 0},
        {"turns": 0},
        {"cells": 0},
        {"latency_p99": 0.5},
        {"latency_p50": 0.0},
        {"test_share": 1.5},
        {"batch": 10**7},
        {"latency_p99": inf},
    ],
)
def test_what_can_not_be_planned(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(LOAD, **change)
    with pytest.raises(UsageError, match="cores"):
        plan(LOAD, costs(), cores=0)


def test_costs_are_measured_on_real_cells() -> None:
    found = measure(POOL[:2], wall="process", seconds=0.0)
    assert found.episodes == 3 and found.tasks == 2 and found.wall == "process"
    for kind in KINDS:
        values = found.seconds[kind]
        assert len(values) >= 3 and values == tuple(sorted(values)) and values[0] > 0
    assert found.memory_bytes == max(task.limits.memory_bytes for task in POOL[:2])
    assert found.as_json()["kinds"]["submit"]["p99_ms"] >= found.as_json()["kinds"]["submit"]["p50_ms"]
    assert quantile([1, 2, 3, 4], 0.5) == 2 and quantile([1, 2, 3, 4], 0.99) == 4


def test_the_command() -> None:
    arguments = [
        "plan",
        "builtin",
        "--task",
        "median",
        "--wall",
        "process",
        "--measure",
        "0s",
        "--batch",
        "4",
    ]
    done = CliRunner().invoke(app, [*arguments, "--json", "--model-latency", "200ms", "--steps", "7"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["load"]["latency_p50"] == 0.2 and found["cells"] == 32 and found["costs"]["tasks"] == 1
    assert found["cores"] in {row["cores"] for row in found["rows"]} and len(found["assumptions"]) >= 6
    shown = CliRunner().invoke(app, [*arguments, "--cores", "3"])
    assert shown.exit_code == 0 and "3 cores" in shown.stdout and "assumed" in shown.stdout
    for option in ("--model-latency", "--measure", "--train-time"):
        bad = CliRunner().invoke(app, ["plan", option, "soon"])
        assert isinstance(bad.exception, UsageError) and option in str(bad.exception)


def test_turns_and_latency_from_transcripts(tmp_path: Path) -> None:
    def talk(*seconds: float) -> tuple[MessageRecord, ...]:
        return (
            *tuple(MessageRecord("assistant", seconds=s) for s in seconds),
            MessageRecord("user", seconds=99.0),
        )

    where = tmp_path / "s.sqlite"
    with Store(where) as store:
        store.add(episode(POOL[0], "openai:m", 1.0, messages=talk(1.0, 2.0, 3.0)))
        store.add(episode(POOL[0], "openai:m", 0.0, messages=talk(4.0, 0.0)))
        store.add(episode(POOL[0], "openai:n", 0.0, messages=talk(40.0)))
        store.add(episode(POOL[0], "random", 0.0))
        assert recorded(store, "openai:m") == Recorded(2.0, 4.0, 3, 4)
        assert recorded(store).latency_p99 == 40.0
        with pytest.raises(UsageError, match="--model-latency"):
            recorded(store, "random")
    arguments = ["plan", "--task", "median", "--wall", "process", "--measure", "0s", "-b", "4", "--json"]
    arguments += ["--from", str(where), "--player", "openai:m"]
    load = json.loads(CliRunner().invoke(app, arguments).stdout)["load"]
    assert (load["turns"], load["latency_p50"], load["latency_p99"]) == (3, 2.0, 4.0)
    load = json.loads(CliRunner().invoke(app, [*arguments, "-t", "9", "--model-latency", "1s"]).stdout)[
        "load"
    ]
    assert (load["turns"], load["latency_p50"]) == (9, 1.0) and load["latency_p99"] > 2.7
