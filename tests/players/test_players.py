"""The players that need no model, and the loop that plays an episode."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tiltyard.cells import Wall, make_wall
from tiltyard.env import CodeEnv
from tiltyard.errors import UsageError
from tiltyard.players import (
    MAKERS,
    Prepared,
    ReferencePlayer,
    ReplayPlayer,
    arun_episode,
    make_player,
    noop,
    random_player,
    reference_actions,
    run_episode,
)
from tiltyard.task import Files, Task, Test
from tiltyard.tools import Call, parse_action

TWO = Task(
    id="two",
    prompt="Write f, which uses helper.g.",
    start=Files(
        {
            "solution.py": "def f():\n    return 0\n",
            "helper.py": "def g():\n    return 0\n",
            "keep.py": "k = 1\n",
        }
    ),
    hidden=(Test("h1", "assert f() == 3"), Test("h2", "assert f() != 0")),
    reference=Files(
        {
            "solution.py": "from helper import g\nfrom pkg.more import m\n\n\ndef f():\n    return g() + m\n",
            "helper.py": "def g():\n    return 1\n",
            "pkg/more.py": "m = 2\n",
            "keep.py": "k = 1\n",
        }
    ),
    visible=(Test("v", "assert f() == 3"),),
    entry=("f",),
    protected=frozenset({"keep.py"}),
)


@pytest.fixture(scope="module")
def wall() -> Iterator[Wall]:
    made = make_wall(os.environ.get("TILTYARD_TEST_WALL", "auto"))
    yield made
    made.close()


@pytest.fixture
def env(wall: Wall) -> Iterator[CodeEnv]:
    with CodeEnv([TWO], wall=wall) as made:
        yield made


def test_noop(env: CodeEnv) -> None:
    result = run_episode(env, noop, seed=1)
    assert (result.reward, result.steps, result.terminated, result.truncated) == (0.0, 1, True, False)
    assert (result.task, result.void, result.truncated_by) == ("two", None, "")
    assert result.episode is env.episode


def test_reference_writes_what_differs(env: CodeEnv) -> None:
    assert [a.get("path") for a in reference_actions(TWO)] == [
        "helper.py",
        "pkg/more.py",
        "solution.py",
        None,
    ]
    result = run_episode(env, ReferencePlayer(), seed=1)
    assert (result.reward, result.steps) == (1.0, 4)


def test_reference_that_is_no_text() -> None:
    task = replace(TWO, reference=Files({"data.bin": b"\xff"}).over(TWO.reference))
    with pytest.raises(UsageError, match=r"data\.bin"):
        ReferencePlayer().begin(task, None)


def test_random_is_seeded_legal_and_scores_nothing(env: CodeEnv) -> None:
    actions = [random_player("", random.Random(s)) for s in range(200)]
    assert all(isinstance(parse_action(a), Call) for a in actions)
    assert {a["tool"] for a in actions} == {"view_file", "run_tests", "write_file", "submit"}
    for seed in range(6):
        first = run_episode(env, random_player, seed)
        assert first.reward == 0.0
        assert [s.action for s in run_episode(env, random_player, seed).episode.steps] == [
            s.action for s in first.episode.steps
        ]


def test_replay_plays_the_same_bytes(env: CodeEnv) -> None:
    first = run_episode(env, random_player, 3).episode
    player = ReplayPlayer([s.action for s in first.steps])
    for _ in range(2):
        again = run_episode(env, player, 3).episode
        assert again.steps == first.steps
        assert again.observation == first.observation


def test_replay_that_runs_out_submits(env: CodeEnv) -> None:
    assert run_episode(env, ReplayPlayer([{"tool": "list_files"}])).steps == 2


def test_make_player() -> None:
    assert set(MAKERS) == {"noop", "random", "reference"}
    assert make_player("noop") is noop
    assert make_player("reference") is not make_player("reference")
    assert isinstance(make_player("reference"), Prepared)
    assert not isinstance(noop, Prepared)
    with pytest.raises(UsageError, match=r"'lucky'.*noop, random, reference"):
        make_player("lucky")


class Async:
    """An async player with an async begin; each call really waits."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.loops: set[int] = set()

    async def begin(self, task: Task, seed: int | None) -> None:
        await asyncio.sleep(0)
        self.begun.append((task.id, seed))

    async def __call__(self, observation: str, rng: random.Random) -> Any:
        await asyncio.sleep(0.001)
        self.loops.add(id(asyncio.get_running_loop()))
        return {"tool": "list_files"} if rng.random() < 0.5 else {"tool": "submit"}


def test_async_player(env: CodeEnv) -> None:
    player = Async()
    result = run_episode(env, player, seed=2)
    assert result.terminated
    assert player.begun == [("two", 2)]
    assert len(player.loops) == 1, "one event loop for the episode"


def test_async_player_in_a_running_loop(env: CodeEnv, wall: Wall) -> None:
    async def both() -> list[Any]:
        with pytest.raises(UsageError, match="arun_episode"):
            run_episode(env, Async(), seed=2)
        with CodeEnv([TWO], wall=wall) as other:
            return await asyncio.gather(arun_episode(env, Async(), seed=2), arun_episode(other, noop, seed=2))

    first, second = asyncio.run(both())
    assert first.terminated
    assert second.steps == 1
    assert [s.action for s in first.episode.steps] == [
        s.action for s in run_episode(env, Async(), seed=2).episode.steps
    ]


def test_the_players_generator_is_not_the_environments(wall: Wall) -> None:
    tasks = [replace(TWO, id=f"t{n}") for n in range(9)]
    with CodeEnv(tasks, wall=wall) as env:
        drawn = []
        for draws in (0, 100):

            def player(observation: str, rng: random.Random, draws: int = draws) -> Any:
                [rng.random() for _ in range(draws)]
                return {"tool": "submit"}

            drawn.append(
                [run_episode(env, player, seed=4).task] + [run_episode(env, player).task for _ in range(4)]
            )
        assert drawn[0] == drawn[1]


def test_what_a_player_raises_is_the_callers(env: CodeEnv) -> None:
    def broken(observation: str, rng: random.Random) -> Any:
        raise LookupError("no model")

    with pytest.raises(LookupError, match="no model"):
        run_episode(env, broken)


def test_by_task_id(env: CodeEnv) -> None:
    assert run_episode(env, noop, task_id="two").task == "two"
