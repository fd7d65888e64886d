"""Runs with the real environment, referee and cells."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tiltyard import cells
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import load
from tiltyard.records import Store
from tiltyard.rollout import Interrupted, RunSummary, run
from tiltyard.rollout.runs import spec_of


def lesson(id, ref="return a + b", stub="raise NotImplementedError"):
    return {
        "id": id,
        "prompt": f"Write {id}(a, b), the sum.",
        "stub": f"def {id}(a, b):\n    {stub}\n",
        "ref": f"def {id}(a, b):\n    {ref}\n",
        "visible": [f"assert {id}(1, 2) == 3"],
        "hidden": [f"assert {id}(1, 2) == 3", f"assert {id}(0, 0) == 0", f"assert {id}(-1, 1) == 0"],
        "meta": {"source": "test", "created": "2026-11", "difficulty": None},
    }


POOL = [lesson(f"add{n}") for n in range(6)]
SUBMIT = {"tool": "submit"}


def write(task, body):
    return {"tool": "write_file", "path": "solution.py", "content": f"def {task}(a, b):\n    {body}\n"}


def test_reference_noop_and_random():
    summary = run(POOL, "reference")
    assert summary.as_json() == {
        "pool": "tasks",
        "player": "reference",
        "wall": summary.wall,
        "episodes": 6,
        "mean_reward": 1.0,
        "void": 0,
        "digest": summary.digest,
        "tasks": {f"add{n}": {"episodes": 1, "mean_reward": 1.0, "void": 0} for n in range(6)},
    }
    assert summary.wall in ("namespace", "process")
    assert run(POOL, "noop").total.mean_reward == 0.0
    random = run(POOL, "random", episodes=12)
    assert random.total.episodes == 12 and random.total.mean_reward == 0.0
    assert len({result.steps for result in random.results}) > 1


@pytest.mark.parametrize("player", ["random", "reference"])
def test_one_worker_or_eight_give_the_same(player, tmp_path):
    def played(workers):
        with Store(tmp_path / f"{player}{workers}") as store:
            summary = run(POOL, player, episodes=20, attempts=2, workers=workers, seed=5, store=store)
            records = list(store.episodes())
        assert [r.digest for r in summary.results] == [r.digest for r in records]
        assert not summary.voids
        return summary, [(r.task, r.seed, r.attempt, r.reward, r.digest) for r in records]

    one, one_records = played(1)
    eight, eight_records = played(8)
    here = run(POOL, player, episodes=20, attempts=2, workers=0, seed=5)
    assert one_records == eight_records and len(one_records) == 40
    assert not here.voids
    assert one.digest == eight.digest == here.digest
    assert run(POOL, player, episodes=20, attempts=2, seed=6).digest != one.digest


def test_what_is_stored(tmp_path):
    summary = run(load(POOL), "reference", store=tmp_path / "s", seed=3, reward="all", pool_spec="/x/y.jsonl")
    with Store(tmp_path / "s", readonly=True) as store:
        (head,) = store.runs()
        records = list(store.episodes(run=summary.run))
    assert head.id == summary.run and head.finished and head.seed == 3 and head.pool_spec == "/x/y.jsonl"
    assert head.settings == {"reward": "all", "episodes": None, "attempts": 1, "workers": 1}
    assert [r.id for r in records] == [r.id for r in summary.results]
    record = records[0]
    assert record.task == "add0" and record.player == "reference" and record.run_seed == 3
    assert record.reward == 1.0 and record.terminated and record.void is None
    assert [a["tool"] for a in record.actions] == ["write_file", "submit"]
    assert "Write add0(a, b), the sum." in record.observation
    assert record.verdict["passed"] == record.verdict["total"] == 3
    assert record.pool_digest == load(POOL).digest and record.task_digest == load(POOL)["add0"].digest
    assert record.wall == summary.wall and record.seconds > 0 and record.started
    assert record.versions["python"] and record.settings == {"reward": "all"}


def test_the_reward_rule():
    def half(observation, rng):
        return write("add0", "return 0") if "Wrote" not in observation else SUBMIT

    assert run(POOL[:1], half).total.mean_reward == pytest.approx(2 / 3)
    assert run(POOL[:1], half, reward="all").total.mean_reward == 0.0


def test_a_player_that_is_async():
    async def player(observation, rng):
        await asyncio.sleep(0)
        return SUBMIT

    assert run(POOL[:2], player).as_json()["player"] == "player"
    assert run(POOL[:2], player).total.mean_reward == 0.0


def test_a_truncated_episode_is_worth_nothing_and_no_void(tmp_path):
    summary = run(POOL[:1], lambda observation, rng: {"tool": "list_files"}, store=tmp_path / "s")
    assert summary.total.mean_reward == 0.0 and summary.results[0].truncated
    with Store(tmp_path / "s") as store:
        (record,) = store.episodes()
    assert record.truncated_by == "steps" and record.verdict is None and len(record.steps) == 12


# -- players that fail ---------------------------------------------------------------------------------------------


class Fails:
    """Fails at add1 in the way it is told, plays noop elsewhere."""

    def __init__(self, how):
        self.how = how

    def begin(self, task, seed):
        self.task = task.id
        if self.how == "begin" and task.id == "add1":
            raise KeyError("no such thing")

    def __call__(self, observation, rng):
        if self.task != "add1":
            return SUBMIT
        match self.how:
            case "raise":
                raise ValueError("a bug\nin two lines")
            case "exit":
                sys.exit(3)
            case "interrupt":
                raise KeyboardInterrupt
            case "await":
                return self.later()
            case "unreadable":
                raise Unreadable
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "vanish":
                os._exit(0)

    async def later(self):
        raise LookupError("later")


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "the player raised ValueError: a bug in two lines"),
        ("begin", "the player raised KeyError: 'no such thing'"),
        ("exit", "the player raised SystemExit: 3"),
        ("interrupt", "the player raised KeyboardInterrupt"),
        ("await", "the player raised LookupError: later"),
        ("unreadable", "the player raised Unreadable: (its message can't be read)"),
        ("die", "the worker died (killed by SIGKILL, out of memory?)"),
        ("vanish", "the worker died (exit status 0)"),
    ],
)
def test_a_failing_player_costs_its_episode_and_not_the_run(how, reason, workers, tmp_path):
    summary = run(POOL, Fails(how), workers=workers, store=tmp_path / "s")
    assert {r.task: r.void for r in summary.results if r.void} == {"add1": reason}
    assert summary.total.as_json() == {"episodes": 6, "mean_reward": 0.0, "void": 1}
    assert summary.tasks["add1"].as_json() == {"episodes": 1, "mean_reward": None, "void": 1}
    assert dict(summary.voids) == {reason: 1}
    with Store(tmp_path / "s") as store:
        (void,) = (record for record in store.episodes() if record.void)
    assert void.task == "add1" and void.void == reason and void.reward is None


def test_only_voids_have_no_mean():
    summary = run(POOL[:1], lambda observation, rng: 1 / 0)
    assert summary.as_json()["mean_reward"] is None


def test_what_was_done_before_a_player_raised_is_kept(tmp_path):
    def player(observation, rng):
        if "solution.py" in observation and "Tools:" not in observation:
            raise ValueError
        return {"tool": "list_files"}

    run(POOL[:1], player, store=tmp_path / "s")
    with Store(tmp_path / "s") as store:
        (record,) = store.episodes()
    assert [a["tool"] for a in record.actions] == ["list_files"] and record.void


# -- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"player": "chess"}, "expected one of noop"),
        ({"workers": -1}, "workers"),
        ({"episodes": 0}, "episodes"),
        ({"attempts": 0}, "attempts"),
        ({"seed": -1}, "seed"),
        ({"wall": "paper"}, "paper"),
        ({"reward": "most"}, "fraction or all"),
        ({"player": "replay:x"}, "replay:STORE#EPISODE"),
        ({"player": "replay:/nowhere/s#e-1"}, "/nowhere"),
        ({"store": "/nowhere/s"}, "/nowhere"),
    ],
)
def test_what_can_t_be_run(options, message):
    with pytest.raises(UsageError, match=message):
        run(POOL, **{"player": "noop", **options})


def test_a_wall_that_fails_in_the_worker_makes_voids_and_not_zeros(monkeypatch):
    def broken(self, files, limits):
        raise ArenaError("the disk is full")

    monkeypatch.setattr("tiltyard.cells.process.ProcessWall.open", broken)
    summary = run(POOL[:2], "reference", wall="process")
    assert dict(summary.voids) == {"the disk is full": 2} and summary.total.mean_reward is None


def test_spec_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").touch()
    assert spec_of("builtin") == "builtin"
    assert spec_of("p.jsonl") == str(tmp_path / "p.jsonl")
    assert spec_of("humaneval:x/y.gz") == f"humaneval:{tmp_path}/x/y.gz"
    assert spec_of(Path("p.jsonl")) == str(tmp_path / "p.jsonl")
    assert spec_of(POOL) == "" == spec_of(load(POOL))


# -- signals and death ---------------------------------------------------------------------------------------------

SLOW = """
import json, os, sys, time
from pathlib import Path
from test_rollout import POOL, SUBMIT
from tiltyard.rollout import Interrupted, run

def player(observation, rng):
    Path(sys.argv[2], str(os.getpid())).touch()
    deaf = sys.argv[3] == "deaf"
    while True:
        try:
            time.sleep(600 if deaf else 0.05)
        except BaseException:
            if not deaf:
                raise
        if not deaf:
            return SUBMIT

try:
    run(POOL, player, episodes=10_000, workers=2, store=sys.argv[1])
except Interrupted as stopped:
    print(json.dumps(stopped.partial.as_json() | {"exit": stopped.exit_code, "planned": stopped.partial.planned}))
"""


def slow(tmp_path, how):
    pids = tmp_path / "pids"
    pids.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW), tmp_path / "s.sqlite", pids, how],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, pids


def wait_for(condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def stored(tmp_path):
    if not (tmp_path / "s.sqlite").exists():
        return 0
    with Store(tmp_path / "s.sqlite") as store:
        return store.count()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_cleanly_and_keeps_what_was_finished(tmp_path, number, code):
    process, pids = slow(tmp_path, "quick")
    wait_for(lambda: stored(tmp_path) >= 3)
    os.killpg(process.pid, number)  # the whole group, as a terminal does it
    out, _ = process.communicate(timeout=120)
    partial = json.loads(out)
    assert partial["exit"] == code and partial["planned"] == 10_000
    assert 3 <= partial["episodes"] < 10_000 and partial["void"] == 0 and partial["mean_reward"] == 0.0
    assert stored(tmp_path) == partial["episodes"]
    with Store(tmp_path / "s.sqlite") as store:
        assert not store.runs()[0].finished
    left = [int(path.name) for path in pids.iterdir()]
    assert len(left) == 2
    wait_for(lambda: not any(map(runs, left)))


def test_a_second_signal_stops_a_player_that_hears_nothing(tmp_path):
    process, pids = slow(tmp_path, "deaf")
    wait_for(lambda: len(list(pids.iterdir())) == 2)
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert '"exit": 130' in out and '"episodes": 0' in out
    assert time.monotonic() - begun < 60
    assert not any(runs(int(path.name)) for path in pids.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the workers of a killed process")
def test_a_run_that_is_killed_loses_the_episodes_in_flight_at_most(tmp_path):
    process, pids = slow(tmp_path, "quick")
    wait_for(lambda: stored(tmp_path) >= 3)
    process.kill()
    process.communicate(timeout=120)
    with Store(tmp_path / "s.sqlite") as store:
        records = list(store.episodes())
    assert len(records) >= 3 and all(record.steps and record.reward == 0.0 for record in records)
    wait_for(lambda: not any(runs(int(path.name)) for path in pids.iterdir()))


def test_no_episode_is_played_behind_a_weaker_wall_than_was_announced(monkeypatch):
    # the announced wall fails later on, in a worker: that is a void, and no reason to take the next one
    if cells.probe_wall("namespace") is not None:
        pytest.skip("there is only one wall here")
    asked = []

    def probe(name):
        asked.append(name)
        return None if name == "process" or len(asked) <= 2 else "an accident"

    monkeypatch.setattr(cells, "probe_wall", probe)
    summary = run(POOL[:2], "reference", workers=0)
    assert summary.wall == "namespace" and summary.total.void == 2
    assert "namespace wall can't be had here: an accident" in str(summary.voids)


def test_stopping_from_another_thread_is_not_needed_to_run_in_one():
    found = []
    thread = threading.Thread(target=lambda: found.append(run(POOL, "noop", workers=2)))
    thread.start()
    thread.join(120)
    assert isinstance(found[0], RunSummary) and found[0].total.episodes == 6


def test_interrupted_is_a_keyboard_interrupt():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert Interrupted(None, None).exit_code == 130
    assert Interrupted(None, signal.SIGTERM).exit_code == 143
