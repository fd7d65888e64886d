"""Many episodes of a model at once: all accounted for, whatever the server does, and however the run ends."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.players.model_server import Asked, Brain, Cut, Drop, Fail, ModelServer, Raw, Say, Slow, serving

from tiltyard import rollout
from tiltyard.errors import UsageError
from tiltyard.players.model import ModelPlayer, ModelSettings, Price, Reach
from tiltyard.records import Store
from tiltyard.workers import Interrupted

PRICE = Price("*", 1.0, 10.0, 0.1, 1.0)
RIGHT, WRONG = "def f(x):\n    return 2 * x\n", "def f(x):\n    return 3 * x\n"


def tasks(count: int) -> list[dict[str, Any]]:
    """Tiny ones, told apart by their prompts: 'Task 7.'"""
    return [
        {
            "id": f"t{n:02}",
            "prompt": f"Task {n}.",
            "start": {"solution.py": "def f(x):\n    return 0\n"},
            "hidden": ["assert f(2) == 4"],
            "reference": {"solution.py": RIGHT},
        }
        for n in range(count)
    ]


def number(asked: Asked) -> int:
    return int(asked.prompt.split("Task ", 1)[1].split(".", 1)[0])


def solver(asked: Asked) -> Any:
    """Two turns."""
    if asked.turn == 0:
        return Say("", (("view_file", {"path": "solution.py"}),))
    return Say("", (("write_file", {"path": "solution.py", "content": RIGHT}), ("submit", {})))


def a_player(server: ModelServer, api: str = "openai", **more: Any) -> ModelPlayer:
    settings = more.pop("settings", {})
    reach = Reach(server.base(api), backoff_s=more.pop("backoff_s", 0.001), retries=more.pop("retries", 8))
    return ModelPlayer(ModelSettings(api, "m-1", **settings), reach, price=PRICE, **more)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


FAILURES = (
    Fail(429, {"retry-after": "0.01"}),
    Fail(500),
    Drop(),
    Fail(529),
    Cut(Say("", (("submit", {}),))),
    Raw(b"{not json"),
    Fail(503),
)


def unreliable(brain: Brain) -> Brain:
    """Every fifth request fails, in one way after the other; the same bytes never more than four times. Task 19 always
    fails."""
    failed: Counter[str] = Counter()

    def answer(asked: Asked) -> Any:
        if number(asked) == 19:
            return Fail(529)
        body = json.dumps(asked.body)
        if asked.n % 5 == 0 and failed[body] < 4:
            failed[body] += 1
            return FAILURES[asked.n // 5 % len(FAILURES)]
        return brain(asked)

    return answer


def test_200_episodes_100_at_a_time_with_a_server_that_fails(tmp_path: Path) -> None:
    def brain(asked: Asked) -> Any:
        if number(asked) == 18 and asked.turn:
            return Say("", (("write_file", {"path": "solution.py", "content": WRONG}), ("submit", {})))
        return solver(asked)

    pool = tasks(20)
    with serving(unreliable(brain), gather=100) as server, Store(tmp_path / "s.sqlite") as store:
        summary = rollout.run(pool, a_player(server), attempts=10, concurrency=100, store=store)
        assert server.most_in_flight >= 100
        assert [result.number for result in summary.results] == list(range(200))
        assert {task: (t.episodes, t.mean_reward, t.void) for task, t in summary.tasks.items()} == {
            **{f"t{n:02}": (10, 1.0, 0) for n in range(18)},
            "t18": (10, 0.0, 0),
            "t19": (10, None, 10),
        }
        assert all("529" in reason for reason in summary.voids)
        assert {"429", "500", "503", "529", "connection", "nonsense"} <= set(summary.retries)
        assert store.count(summary.run) == 200
        records = list(store.episodes(run=summary.run))
        assert [record.digest for record in records] == [result.digest for result in summary.results]
        assert all(record.usage.cost_usd for record in records if record.void is None)
        for record in random.Random(1).sample(records[:190], 5):
            assert rollout.replay(store, record.id, pool=pool).difference == ""


def test_the_same_for_any_number_at_once() -> None:
    with serving(unreliable(solver)) as server:
        digests = {
            rollout.run(tasks(4), a_player(server), attempts=2, concurrency=c, seed=3).digest for c in (1, 8)
        }
    assert len(digests) == 1


def test_a_run_in_a_running_event_loop() -> None:
    async def go(server: ModelServer) -> rollout.RunSummary:
        return rollout.run(tasks(2), a_player(server), concurrency=2)

    with serving(solver) as server:
        assert asyncio.run(go(server)).total.mean_reward == 1.0


def test_a_machine_that_gives_a_process_few_open_files(tmp_path: Path) -> None:
    script = """
import resource, sys
from tiltyard.rollout.crowd import _room_for_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 600))
_room_for_files(500)
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (500, 600)
_room_for_files(601)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "UsageError: so many episodes at once need about 601 open files" in done.stderr, done.stderr


@pytest.mark.parametrize("count", [0, -1, 1001, True])
def test_an_impossible_number_at_once(count: Any) -> None:
    with serving(solver) as server, pytest.raises(UsageError, match="from 1 to 1000"):
        rollout.run(tasks(2), a_player(server), concurrency=count)


def test_what_is_tried_again_is_shown() -> None:
    class Shown:
        def __init__(self) -> None:
            self.notes: list[str] = []
            self.ended = 0

        def begin(self, total: int) -> None:
            self.total = total

        def advance(self, result: Any) -> None:
            self.ended += 1

        def note(self, text: str) -> None:
            self.notes.append(text)

        def end(self) -> None:
            pass

    shown = Shown()
    with serving(lambda a: Fail(429, {"retry-after": "0"}) if a.seen == 0 else solver(a)) as server:
        rollout.run(tasks(1), a_player(server), progress=shown)
    assert shown.total == shown.ended == 1
    assert any("429 1" in note and "1 waiting" in note for note in shown.notes)
    assert shown.notes[-1].startswith("$0.000")


# -- how a run ends ----------------------------------------------------------------------------------------------------


def test_the_budget_ends_it_cleanly_and_what_is_missing_is_played_later(tmp_path: Path) -> None:
    one = 65e-6 * 2  # of an episode: 30 + 30 fresh, 100 cached, 10 out
    with serving(solver) as server, Store(tmp_path / "s.sqlite") as store:
        first = rollout.run(tasks(6), a_player(server, budget_usd=3 * one), concurrency=1, store=store)
        assert "budget" in first.ended_early and 1 <= len(first.results) < 6
        assert first.usage is not None and first.usage.cost_usd is not None
        assert first.usage.cost_usd <= 3 * one
        assert store.runs()[0].finished == ""
        again = rollout.run(tasks(6), a_player(server), concurrency=2, store=store, resume=first.run)
        assert again.run == first.run and len(again.results) == 6 and again.total.mean_reward == 1.0
        assert store.count() == 6 and store.runs()[0].finished


def test_an_episode_that_the_budget_cuts_is_void(tmp_path: Path) -> None:
    with serving(solver) as server, Store(tmp_path / "s.sqlite") as store:
        summary = rollout.run(tasks(3), a_player(server, budget_usd=1e-9), concurrency=1, store=store)
        (void,) = store.episodes()
        assert summary.total.void == 1 and void.void is not None and "budget" in void.void
        assert void.usage.cost_usd and len(void.messages) == 4  # what it said and cost until then is kept
        again = rollout.run(tasks(3), a_player(server), concurrency=1, store=store, resume=summary.run)
        assert again.total.void == 0 and again.total.mean_reward == 1.0 and len(again.results) == 3


def test_a_key_that_is_refused_ends_it_before_anything_is_kept(tmp_path: Path) -> None:
    with serving(lambda asked: Fail(401)) as server, Store(tmp_path / "s.sqlite") as store:
        with pytest.raises(UsageError, match="401"):
            rollout.run(tasks(50), a_player(server), concurrency=4, store=store)
        assert store.count() == 0 and len(server.requests) <= 4


def test_a_key_that_is_taken_away_ends_it_and_keeps_what_there_is(tmp_path: Path) -> None:
    with (
        serving(lambda a: Fail(401) if number(a) > 3 else solver(a)) as server,
        Store(tmp_path / "s.sqlite") as store,
    ):
        summary = rollout.run(tasks(50), a_player(server), concurrency=1, store=store)
        assert "401" in summary.ended_early and summary.total.mean_reward == 1.0
        assert [result.reward for result in summary.results] == [1.0] * 4 + [None]


def test_a_full_store_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiltyard.errors import ArenaError

    with serving(solver) as server, Store(tmp_path / "s.sqlite") as store:

        def full(record: Any) -> str:
            raise ArenaError("the disk is full")

        monkeypatch.setattr(store, "add", full)
        with pytest.raises(ArenaError, match="disk is full"):
            rollout.run(tasks(8), a_player(server), concurrency=4, store=store)


def test_resuming_what_does_not_fit(tmp_path: Path) -> None:
    with serving(solver) as server, Store(tmp_path / "s.sqlite") as store:
        run = rollout.run(tasks(2), a_player(server), concurrency=2, store=store).run

        def resume(pool: Any, player: Any, id: str = run, where: Any = store) -> Any:
            return rollout.run(pool, player, store=where, resume=id)

        with pytest.raises(UsageError, match="other tasks"):
            resume(tasks(3), a_player(server))
        with pytest.raises(UsageError, match="is one of openai:m-1, not of noop"):
            resume(tasks(2), "noop")
        with pytest.raises(UsageError, match=r"temperature = None, and goes on with 0\.5"):
            resume(tasks(2), a_player(server, settings={"temperature": 0.5}))
        with pytest.raises(UsageError, match="no run 'r-nowhere'"):
            resume(tasks(2), a_player(server), "r-nowhere")
        with pytest.raises(UsageError, match="from its store"):
            resume(tasks(2), a_player(server), where=None)
        asked = len(server.requests)
        assert len(resume(tasks(2), a_player(server), run[2:6]).results) == 2
        assert len(server.requests) == asked  # nothing was left to play


def test_a_run_of_another_player_is_resumed_too(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        run = rollout.run(tasks(3), "reference", workers=0, attempts=2, seed=5, store=store)
        gone = next(store.episodes(run=run.run))
        with sqlite3.connect(store.where) as raw:
            for table, column in (("steps", "episode"), ("episodes", "id")):
                raw.execute(f"delete from {table} where {column} = ?", (gone.id,))
        raw.close()
        again = rollout.run(tasks(3), "reference", workers=0, store=store, resume=run.run)
        assert again.digest == run.digest and store.count() == 6


# -- killed and interrupted, as its user meets it ----------------------------------------------------------------------


@pytest.fixture
def pool_file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks(12)))
    return path


class Command:
    """``tiltyard run`` as a process, with its words collected."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tiltyard", "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=120)
        return self.process.returncode, out


@pytest.fixture
def commands() -> Iterator[Any]:
    made: list[Command] = []

    def start(*arguments: str) -> Command:
        made.append(Command(*arguments))
        return made[-1]

    yield start
    for command in made:
        command.process.kill()
        command.process.wait()


def until(condition: Any, command: Command) -> None:
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end and command.process.poll() is None:
        time.sleep(0.02)
    assert condition() or command.process.poll() is None, command.end()


def stored(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        with Store(path, readonly=True) as store:
            return store.count()
    except UsageError:  # the first moment of a store: a file, and nothing in it
        return 0


KILLS = int(os.environ.get("TILTYARD_TEST_KILLS", "3"))


def test_killed_at_any_moment_it_keeps_every_finished_episode_and_goes_on(
    pool_file: Path, tmp_path: Path, commands: Any
) -> None:
    store, chance = tmp_path / "s.sqlite", random.Random()
    with serving(lambda a: Slow(chance.random() * 0.05, solver(a))) as server:
        model = [
            "--player",
            "openai:m-1",
            "--base-url",
            server.base("openai"),
            "-c",
            "3",
            "--store",
            str(store),
        ]
        resume: list[str] = []
        for kill in range(KILLS):
            command = commands(str(pool_file), *model, *resume)
            before = stored(store)
            wanted = min(before + 1 + kill % 3, 12)
            until(lambda wanted=wanted: stored(store) >= wanted, command)
            time.sleep(chance.random() * 0.1)
            command.process.kill()
            command.end()
            assert stored(store) >= wanted
            with Store(store) as opened:
                (run,) = opened.runs()
                resume = ["--resume", run.id]
                records = list(opened.episodes())
            assert len({record.number for record in records}) == len(records)
            for record in records:  # whole, or not there
                assert record.reward == 1.0 and record.turns == 2 and record.steps[-1].terminated
        code, words = commands(str(pool_file), *model, *resume).end()
    assert code == 0, words
    with Store(store, readonly=True) as opened:
        assert [record.number for record in opened.episodes()] == list(range(12))
        assert len(opened.runs()) == 1 and opened.runs()[0].finished


def test_ctrl_c_once_keeps_what_was_finished(pool_file: Path, tmp_path: Path, commands: Any) -> None:
    store = tmp_path / "s.sqlite"
    with serving(lambda a: solver(a) if number(a) < 5 else Slow(3600, Say("late"))) as server:
        model = ["--player", "openai:m-1", "--base-url", server.base("openai"), "--store", str(store)]
        command = commands(str(pool_file), *model, "-c", "2")
        until(lambda: stored(store) == 5, command)
        command.process.send_signal(signal.SIGINT)
        code, words = command.end()
        assert code == 130 and "5 of 12 episodes were finished" in words and "--resume r-" in words
        assert stored(store) == 5
        server.brain = solver
        with Store(store) as opened:
            run = opened.runs()[0].id
        code, words = commands(str(pool_file), "--store", str(store), "--resume", run, *model[2:4]).end()
        assert code == 0 and "openai:m-1 on" in words, words
        assert stored(store) == 12


def test_asked_to_stop_twice_it_does_not_wait() -> None:
    def brain(asked: Asked) -> Any:
        if asked.n == 1:
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
        return Slow(3600, Say("late"))

    with serving(brain) as server, pytest.raises(Interrupted) as stopped:
        rollout.run(tasks(4), a_player(server), concurrency=2)
    assert stopped.value.exit_code == 143
    assert stopped.value.partial.results == () and stopped.value.partial.planned == 4
