"""Copies of an episode: what goes on from one is, byte for byte, what would have come without it; nothing is shared but
the wall, and nothing is left."""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import pickle
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from env_tasks import ADD, DOUBLE, SOLVE

from tiltyard.cells import Cell, CellLimits, CellLost, Wall
from tiltyard.env import CodeEnv, Snapshot
from tiltyard.env.code_env import OVER
from tiltyard.errors import ArenaError, UsageError
from tiltyard.records import EpisodeRecord, StepRecord
from tiltyard.task import Files, Limits

TASKS = [ADD, DOUBLE]
SUBMIT = {"tool": "submit"}
RUN = {"tool": "run_tests"}
LIST = {"tool": "list_files"}
VIEW = {"tool": "view_file", "path": "solution.py"}


def write(content: str, path: str = "solution.py") -> dict[str, str]:
    return {"tool": "write_file", "path": path, "content": content}


# What a run of the tests leaves in the workspace and beside it, and what it sees of all that in the next run. No copy of
# regular files alone would bring it back.
HOSTILE = """\
import os, stat
def see(where):
    found = []
    for base, folders, files in os.walk(where):
        found += [(os.path.join(base, n), oct(os.lstat(os.path.join(base, n)).st_mode)) for n in folders + files]
    return [row for row in found if "tiltyard" not in row[0]]
if not os.path.lexists("pipe"):
    os.mkfifo("pipe")
    os.symlink("nowhere", "dangling")
    os.symlink("solution.py", "link")
    os.mkdir("empty")
    os.makedirs("shut/inner")
    open("shut/inner/file", "w").write("inside")
    open("hidden.bin", "wb").write(bytes(range(256)))
    os.link("hidden.bin", "hard")
    open("locked", "w").write("locked")
    os.chmod("locked", 0)
    os.chmod("shut", 0)
    print("made")
else:
    print(sorted(see(".")))
def add(a, b):
    return a - b
"""

PREFIXES: dict[str, list[Any]] = {
    "nothing": [],
    "refusals": ["garbage", {"tool": "nope"}, {"tool": "view_file", "path": "../x"}],
    "looks": [VIEW, LIST, {"tool": "view_file", "path": "no.py"}],
    "files": [
        write("a = 1\n", "pkg/one.py"),
        write("b = 1\n", "two.py"),
        write("a = 2\n", "pkg/one.py"),
        write("x = 2\n", "lib.py"),
        {"tool": "replace_text", "path": "solution.py", "old": "return 0", "new": "return a * b"},
    ],
    "a run": [SOLVE, RUN, VIEW],
    "hostile": [write(HOSTILE), RUN, LIST, {"tool": "view_file", "path": "locked"}, write("c = 1\n", "pipe")],
}
ENDS: dict[str, list[Any]] = {
    "submit": [SUBMIT],
    "look": [LIST, VIEW, RUN, LIST, SUBMIT],
    "solve": [SOLVE, RUN, {"tool": "view_file", "path": "hidden.bin"}, SUBMIT],
}
READ_DIR = "import os\nprint(os.listdir('.'), os.listdir('pkg') if os.path.isdir('pkg') else '')\ndef add(a, b): return 0\n"
ENDS["order of folders"] = [write(READ_DIR), RUN, SUBMIT]


def play(env: CodeEnv, actions: list[Any]) -> list[Any]:
    return [env.step(action) for action in actions]


def digest(env: CodeEnv) -> str:
    """Of the record of the episode, as a recorder makes it."""
    episode = env.episode
    steps = tuple(
        StepRecord(
            s.action,
            s.observation,
            s.reward,
            s.terminated,
            s.truncated,
            s.info.get("truncated_by", ""),
            s.info["invalid_action"],
        )
        for s in episode.steps
    )
    last = episode.steps[-1].info if episode.steps else {}
    return EpisodeRecord(
        episode.task.id,
        episode.task.digest,
        "test",
        0,
        episode.observation,
        steps,
        episode.reward,
        last.get("verdict"),
    ).digest


def whole(wall: Wall, prefix: list[Any], end: list[Any]) -> tuple[list[Any], str]:
    """The end of an episode that was never copied."""
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(seed=3, task_id="add")
        play(env, prefix)
        return play(env, end), digest(env)


# -- the same as without ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["copied", "played again"])
@pytest.mark.parametrize("name", PREFIXES)
def test_what_follows_is_what_would_have_come_without(wall: Wall, name: str, how: str) -> None:
    prefix = PREFIXES[name]
    used = wall if how == "copied" else Counting(wall)
    with CodeEnv(TASKS, wall=used) as env, CodeEnv(TASKS, wall=used) as other:
        env.reset(seed=3, task_id="add")
        play(env, prefix)
        snapshot = env.snapshot()
        assert (snapshot.packed is not None) == (how == "copied" and name != "nothing")
        for end in ENDS.values():
            expected = whole(wall, prefix, end)
            other.restore(snapshot)
            assert (play(other, end), digest(other)) == expected
            (fork,) = env.fork(1)
            with fork:
                assert (play(fork, end), digest(fork)) == expected
        expected = whole(wall, prefix, ENDS["look"])
        assert (play(env, ENDS["look"]), digest(env)) == expected, "the copies changed what they were made of"
        env.restore(snapshot)
        assert (play(env, ENDS["look"]), digest(env)) == expected


def test_the_hostile_workspace_is_all_there(wall: Wall) -> None:
    """Guards the test above: the next run does see what the first one left."""
    end, _ = whole(wall, PREFIXES["hostile"], [RUN])
    for thing in ("dangling", "./link", "./empty", "./hard"):
        assert thing in end[0][0]


def test_restore_shows_where_the_episode_stands(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env, CodeEnv(TASKS, wall=wall, render_mode="ansi") as other:
        first = env.reset(seed=1, task_id="add")
        at_start = env.snapshot()
        observation, *_, info = env.step(SOLVE)
        later = env.snapshot()
        assert other.restore(at_start) == first
        assert other.restore(later) == (observation, info)
        assert other.episode.steps == env.episode.steps
        assert (other.episode.seed, other.episode.tokens) == (1, env.episode.tokens)
        assert other.task is other.pool["add"]
        assert other.render() == f"> {env.episode.steps[0].action}\n{observation}"
        assert other.step(VIEW)[4]["steps"] == 2


def test_nothing_that_can_change_is_shared(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(task_id="add")
        env.step(SOLVE)
        snapshot = env.snapshot()
        before = pickle.dumps(snapshot)
        (fork,) = env.fork(1)
        with fork:
            fork.episode.steps[0].info["tool"] = "changed"
            _, info = fork.restore(snapshot)
            info["tool"] = "changed"
            env.episode.steps[0].info["extra"] = 1
            fork.step(LIST)
            assert pickle.dumps(snapshot) == before
            assert "extra" not in fork.episode.steps[0].info
            assert fork.episode.steps[0].info["tool"] == "write_file"


def test_the_next_episode_is_the_same_too(wall: Wall) -> None:
    tasks = [replace(ADD, id=f"add{n}") for n in range(20)]
    with CodeEnv(tasks, wall=wall) as env:
        env.reset(seed=5)
        forks = env.fork(2)
        drawn = [[e.reset()[1]["task_id"] for _ in range(6)] for e in (env, *forks)]
        assert drawn[0] == drawn[1] == drawn[2]
        assert [f.np_random_seed for f in forks] == [5, 5]
        for fork in forks:
            fork.close()


def test_any_generator(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env, CodeEnv(TASKS, wall=wall) as other:
        env.np_random = np.random.Generator(np.random.MT19937(4))
        env.reset(task_id="add")
        other.restore(pickle.loads(pickle.dumps(env.snapshot())))
        assert other.np_random.integers(1 << 40) == env.np_random.integers(1 << 40)


def test_caps_count_the_prefix(wall: Wall) -> None:
    with CodeEnv([ADD], max_steps=3, wall=wall) as env:
        env.reset()
        play(env, [VIEW, VIEW])
        (fork,) = env.fork(1)
        with fork:
            *_, truncated, info = fork.step(VIEW)
            assert (truncated, info["truncated_by"], info["steps"]) == (True, "steps", 3)
    with CodeEnv([ADD], wall=wall, limits={"tokens": 700}) as env:
        env.reset()
        env.step("x" * 1000)
        env.restore(env.snapshot())
        assert env.step("x" * 1400)[4]["truncated_by"] == "tokens"


# -- the clock ----------------------------------------------------------------------------------------------------


def test_time_goes_on_from_where_it_was(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall, limits={"episode_s": 1000.0}) as env:
        env.reset()
        env.step(VIEW)
        snapshot = replace(env.snapshot(), elapsed_s=999.0)
        env.restore(snapshot)
        for _ in range(3):
            assert env.snapshot().elapsed_s == 999.0, "it stands until the next step"
        env.restore(replace(snapshot, elapsed_s=1000.5))
        *_, truncated, info = env.step(VIEW)
        assert (truncated, info["truncated_by"]) == (True, "time")
        assert env.snapshot().elapsed_s >= 1000.5


def test_what_the_arena_plays_again_costs_no_time(wall: Wall) -> None:
    slow = "import time\ntime.sleep(0.6)\ndef add(a, b):\n    return a + b\n"
    with CodeEnv([ADD], wall=Counting(wall)) as env:
        env.reset()
        play(env, [write(slow), RUN])
        snapshot = replace(env.snapshot(), elapsed_s=100.0)
        env.restore(snapshot)
        begun = time.monotonic()
        assert env.step({"tool": "view_file", "path": "no.py"})[4]["invalid_action"] is True
        took = time.monotonic() - begun
        assert took > 0.5, "the run was not played again"
        assert env.snapshot().elapsed_s - 100.0 < took - 0.5


# -- forks --------------------------------------------------------------------------------------------------------


class Counting:
    """A real wall that counts its cells, whose cells fail where they are told to, and can't be copied."""

    name = "process"
    weaknesses = ()

    def __init__(self, wall: Wall, **fail: Any) -> None:
        self._wall, self.fail, self.cells = wall, fail, list[Any]()

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        if len(self.cells) >= self.fail.get("most", 1 << 30):
            raise ArenaError("the disk is full")
        self.cells.append(_Cell(self._wall.open(files, limits), self.fail))
        return self.cells[-1]  # type: ignore[no-any-return]

    def close(self) -> None:
        pass

    @property
    def open_now(self) -> int:
        return sum(not cell.closed for cell in self.cells)


class _Cell:
    def __init__(self, cell: Cell, fail: dict[str, Any]) -> None:
        self._cell, self._fail, self.closed = cell, fail, False

    def close(self) -> None:
        self.closed = True
        self._cell.close()

    def __getattr__(self, name: str) -> Any:
        errors = self._fail.get(name)
        if errors and (error := errors.pop(0)) is not None:
            return _raising(error)
        return getattr(self._cell, name)


def _raising(error: Exception) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


def test_forks_cost_nothing_until_they_are_used(wall: Wall) -> None:
    counting = Counting(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        play(env, [SOLVE, RUN])
        assert len(counting.cells) == 1
        forks = env.fork(8)
        assert len(counting.cells) == 1
        assert forks[5].step(VIEW)[0] == env.step(VIEW)[0]
        assert len(counting.cells) == 2
        env.close()
        assert counting.open_now == 1, "a fork does not end with what it was made from"
        assert forks[5].step(SUBMIT)[1] == forks[0].step(SUBMIT)[1] == 1.0
        for fork in forks:
            fork.close()
        assert counting.open_now == 0


def test_eight_ways_on_at_once(wall: Wall) -> None:
    prefix = PREFIXES["hostile"]

    def way(n: int) -> list[Any]:
        body = "return a + b" if n % 2 else f"return {n}"
        return [
            write(f"def add(a, b):\n    {body}\n"),
            write(f"{n}\n", f"own{n}.txt"),
            RUN,
            LIST,
            "garbage" * n,
            SUBMIT,
        ]

    expected = [whole(wall, prefix, way(n)) for n in range(8)]
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(seed=3, task_id="add")
        play(env, prefix)
        forks = env.fork(8)
        start = threading.Barrier(8)

        def one(n: int) -> tuple[list[Any], str]:
            start.wait(60)
            with forks[n] as fork:
                return play(fork, way(n)), digest(fork)

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(one, range(8))) == expected


def test_forks_of_forks_share_a_named_wall() -> None:
    with CodeEnv([ADD], wall="process", max_steps=9, reward="all", render_mode="ansi") as env:
        env.reset()
        env.step(SOLVE)
        (one,) = env.fork(1)
        one.step(RUN)
        two, three = one.fork(2)
        assert one._held.wall is env._held.wall is three._held.wall
        env.close()
        one.close()
        assert (two.limits.steps, two.render_mode, two.wall_name) == (9, "ansi", "process")
        assert len(two.episode.steps) == 2
        assert two.step(SUBMIT)[1] == 1.0
        two.close()
        assert three.reset()[1]["steps"] == 0, "a fork is an environment like any other"
        three.close()


def test_tree_search(wall: Wall) -> None:
    """Depth 3, from snapshots, in one environment: only one of 27 leaves is the solution."""
    steps = [
        [("return 0", new) for new in ("return x", "return 1", "total = x")],
        [("x", new) for new in ("y", "b", "a")],
        [("total = a", new) for new in ("return a - b", "total = 0", "return a + b")],
    ]
    seen: dict[tuple[int, ...], float] = {}
    with CodeEnv([ADD], wall=wall) as env:
        env.reset()

        def search(path: tuple[int, ...], at: Snapshot) -> None:
            if len(path) == len(steps):
                env.restore(at)
                assert [s.info["tool"] for s in env.episode.steps] == ["replace_text"] * 3
                seen[path] = env.step(SUBMIT)[1]
                return
            for n, (old, new) in enumerate(steps[len(path)]):
                env.restore(at)
                env.step({"tool": "replace_text", "path": "solution.py", "old": old, "new": new})
                search((*path, n), env.snapshot())

        search((), env.snapshot())
    assert len(seen) == 27
    assert [path for path, reward in seen.items() if reward == 1.0] == [(2, 2, 2)]


# -- another process ----------------------------------------------------------------------------------------------


def _elsewhere(name: str, data: bytes, end: list[Any]) -> tuple[list[Any], str]:
    with CodeEnv(TASKS, wall=name) as env:
        env.restore(pickle.loads(data))
        return play(env, end), digest(env)


@pytest.mark.parametrize("name", ["files", "hostile"])
def test_goes_on_in_another_process(wall: Wall, name: str) -> None:
    prefix, end = PREFIXES[name], ENDS["look"]
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(seed=3, task_id="add")
        play(env, prefix)
        data = pickle.dumps(env.snapshot())
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        assert processes.apply(_elsewhere, (wall.name, data, end)) == whole(wall, prefix, end)


def test_goes_on_behind_another_wall(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(seed=3, task_id="add")
        play(env, PREFIXES["files"])
        assert _elsewhere("process", pickle.dumps(env.snapshot()), ENDS["look"])[0] == play(env, ENDS["look"])


def test_is_plain_data(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env:
        env.reset(seed=3, task_id="add")
        play(env, [SOLVE, RUN])
        snapshot = env.snapshot()
        assert pickle.loads(pickle.dumps(snapshot)) == snapshot
        with pytest.raises(AttributeError):
            snapshot.tokens = 0  # type: ignore[misc]
        text = repr(snapshot)
        for secret in ("a + b == 3", "assert add(-1, 5) == 4", "/tmp"):
            assert secret not in text
        assert len(pickle.dumps(snapshot)) < 10_000
        json.dumps([s.info for s in snapshot.steps])


# -- what can't be done -------------------------------------------------------------------------------------------


def test_before_reset_and_after_close(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall) as env:
        for call in (env.snapshot, lambda: env.fork(2)):
            with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
                call()
        env.reset()
        snapshot = env.snapshot()
        env.close()
        with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
            env.snapshot()
        env.restore(snapshot)
        assert env.step(SUBMIT)[2] is True, "a closed environment is usable again"


def test_after_the_end(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall) as env:
        env.reset()
        last = env.step(SUBMIT)
        snapshot = env.snapshot()
        env.reset()
        assert env.restore(snapshot) == (last[0], last[4])
        assert env.episode.over
        assert env.step(SOLVE)[:4] == (OVER, 0.0, True, False)
        (fork,) = env.fork(1)
        with fork:
            assert fork.step(SOLVE)[0] == OVER


def test_wrong_snapshots(wall: Wall) -> None:
    def of(task: Any, **kwargs: Any) -> Snapshot:
        with CodeEnv([task], wall=wall, **kwargs) as other:
            other.reset()
            return other.snapshot()

    with CodeEnv([ADD], wall=wall) as env:
        env.reset()
        env.step(SOLVE)
        wrong: list[tuple[Any, str]] = [
            (of(DOUBLE), "'double', which is not in the pool"),
            (of(replace(ADD, prompt="Another.")), "another task"),
            (of(ADD, max_steps=3), "other limits"),
            (of(ADD, limits={"run_s": 1.0}), "other limits"),
            (of(ADD, reward="all"), "another reward rule"),
            ({"task_id": "add"}, "type dict"),
            (None, "type NoneType"),
        ]
        for snapshot, message in wrong:
            with pytest.raises(UsageError, match=message):
                env.restore(snapshot)
        assert "a + b" in env.step(VIEW)[0], "the present episode is untouched"
        env.restore(of(ADD, limits=Limits(), reward="fraction", max_steps=12))


@pytest.mark.parametrize("k", [0, -1, 1.0, True, "2", None])
def test_wrong_numbers_of_forks(wall: Wall, k: Any) -> None:
    with CodeEnv([ADD], wall=wall) as env:
        env.reset()
        with pytest.raises(UsageError, match="1 or more"):
            env.fork(k)


# -- the arena fails, the player cheats ----------------------------------------------------------------------------


def test_no_cell_for_a_fork_is_void(wall: Wall) -> None:
    counting = Counting(wall, most=1)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        env.step(SOLVE)
        for end in (VIEW, SUBMIT):
            (fork,) = env.fork(1)
            with fork:
                _, reward, _, _, info = fork.step(end)
                assert math.isnan(reward)
                assert "the disk is full" in info["void"]


@pytest.mark.parametrize("at", ["in the prefix", "after it"])
def test_a_cell_that_is_lost_on_the_way_is_made_again(wall: Wall, at: str) -> None:
    counting = Counting(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        play(env, [SOLVE, LIST, RUN])
        (fork,) = env.fork(1)
        with fork:
            gone = CellLost("the keeper is gone", during_run=False)
            counting.fail["list"] = [gone] if at == "in the prefix" else [None, gone]
            assert fork.step(LIST)[0] == env.step(LIST)[0]
            assert counting.fail["list"] == []
            assert fork.step(SUBMIT)[1] == 1.0
        assert counting.open_now == 1


CHANCE = "import time\nprint(time.time_ns())\ndef add(a, b):\n    return a + b\n"


def test_what_comes_out_different_is_void(wall: Wall) -> None:
    """Code that shows the clock can't be brought back by playing it again: that is said, and never taken for the same
    episode."""
    with CodeEnv([ADD], wall=Counting(wall)) as env:
        env.reset()
        play(env, [VIEW, write(CHANCE), RUN])
        for end in (LIST, SUBMIT):
            (fork,) = env.fork(1)
            with fork:
                _, reward, _, _, info = fork.step(end)
                assert math.isnan(reward)
                assert "goes on from a snapshot" in info["void"] or "a cell was lost" in info["void"]
                assert "step 3 of the episode came out different" in info["void"]
        assert env.step(SUBMIT)[1] == 1.0


def test_who_destroys_the_cell_gets_no_void_for_a_clock_that_was_shown(wall: Wall) -> None:
    counting = Counting(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        play(env, [write(CHANCE), RUN])
        counting.fail["run"] = [CellLost("the keeper is gone", during_run=True)]
        observation, reward, _, truncated, info = env.step(RUN)
        assert (reward, truncated, info["truncated_by"]) == (0.0, True, "cell")
        assert "void" not in info
        assert "destroyed" in observation


# -- nothing is left ----------------------------------------------------------------------------------------------


def test_forks_are_closed_when_forgotten(wall: Wall) -> None:
    counting = Counting(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        env.step(SOLVE)
        forks = env.fork(3)
        for fork in forks:
            fork.step(VIEW)
        gone = [weakref.ref(fork) for fork in forks]
        assert counting.open_now == 4
        del forks, fork
        gc.collect()
        assert [ref() for ref in gone] == [None] * 3
        assert counting.open_now == 1


def test_restoring_gives_the_cell_before_back(wall: Wall) -> None:
    counting = Counting(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        env.step(SOLVE)
        snapshot = env.snapshot()
        for _ in range(5):
            env.step(VIEW)
            env.restore(snapshot)
            assert counting.open_now == 0
        env.step(VIEW)
        assert counting.open_now == 1
    assert counting.open_now == 0


def test_a_fork_that_fails_leaves_none(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    with CodeEnv([replace(ADD, start=Files({**ADD.start, "x.py": ""}))], wall=wall) as env:
        env.reset()
        made: list[CodeEnv] = []
        restore = CodeEnv.restore

        def failing(self: CodeEnv, snapshot: Snapshot) -> Any:
            made.append(self)
            if len(made) == 3:
                raise ArenaError("no more")
            return restore(self, snapshot)

        monkeypatch.setattr(CodeEnv, "restore", failing)
        with pytest.raises(ArenaError, match="no more"):
            env.fork(4)
        assert len(made) == 3
        assert all(fork._held.wall is None and fork._episode is None for fork in made)
