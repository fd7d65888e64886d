"""Copies of an episode whose cell is copied: nothing is played again, and nothing of chance comes out different."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from env_tasks import ADD, DOUBLE, SOLVE

from tiltyard.cells import Cell, CellLimits, CellLost, Copying, PackedCell, Wall
from tiltyard.env import CodeEnv, Snapshot, walls

TASKS = [ADD, DOUBLE]
SUBMIT = {"tool": "submit"}
RUN = {"tool": "run_tests"}
LIST = {"tool": "list_files"}
CHANCE = """\
import os, time
with open("chance", "a") as file:
    print(os.urandom(16).hex(), time.time_ns(), file=file)
print(open("chance").read())
def add(a, b):
    return a + b
"""
LOOK = "print(open('chance').read())\ndef add(a, b):\n    return a + b\n"
ADDRESSES = """\
class A:
    pass
found = [A() for _ in range(100)]
print([id(a) for a in found][:20], [id(a) for a in set(found)][:20])
def add(a, b):
    return a + b
"""


def write(content: str, path: str = "solution.py") -> dict[str, str]:
    return {"tool": "write_file", "path": path, "content": content}


def view(path: str) -> dict[str, str]:
    return {"tool": "view_file", "path": path}


def do(env: CodeEnv, *actions: Any) -> str:
    """The last observation; none of them may be void."""
    observation = ""
    for action in actions:
        observation, *_, info = env.step(action)
        assert "void" not in info, info["void"]
    return observation


class Watched:
    """A real wall that counts how its cells were opened, and whose cells fail where they are told to."""

    weaknesses = ()

    def __init__(self, wall: Wall) -> None:
        self.wall, self.name = wall, wall.name
        self.opened, self.unpacked, self.packs = 0, 0, 0
        self.fail: dict[str, list[Exception | None]] = {}

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        self.opened += 1
        return _Cell(self, self.wall.open(files, limits))  # type: ignore[return-value]

    def unpack(self, files: Mapping[str, bytes], limits: CellLimits, packed: PackedCell) -> Cell:
        assert isinstance(self.wall, Copying)
        self.unpacked += 1
        return _Cell(self, self.wall.unpack(files, limits, packed))  # type: ignore[return-value]

    def close(self) -> None:
        pass


class _Cell:
    def __init__(self, wall: Watched, cell: Any) -> None:
        self._wall, self._cell = wall, cell

    def pack(self, *, max_bytes: int) -> PackedCell:
        self._wall.packs += 1
        packed: PackedCell = self._cell.pack(max_bytes=max_bytes)
        return packed

    def __getattr__(self, name: str) -> Any:
        errors = self._wall.fail.get(name)
        error = errors.pop(0) if errors else None
        if error is None:
            return getattr(self._cell, name)

        def failing(*_: Any, **__: Any) -> Any:
            raise error

        return failing


@pytest.fixture
def watched(wall: Wall) -> Watched:
    return Watched(wall)


@pytest.fixture
def env(watched: Watched) -> Iterator[CodeEnv]:
    with CodeEnv(TASKS, wall=watched, max_steps=60) as made:
        made.reset(seed=3, task_id="add")
        yield made


# ------------------------------------------------------------------------------------------------------------- chance


def test_what_was_random_stays_what_it_was(env: CodeEnv, watched: Watched) -> None:
    said = do(env, write(CHANCE), RUN, RUN)
    chance = do(env, view("chance"))
    forks = env.fork(3)
    try:
        for fork in forks:
            assert do(fork, view("chance")) == chance
            seen = do(fork, write(LOOK), RUN)
            assert all(word in seen for word in said.split() if len(word) == 32)
        assert (watched.opened, watched.unpacked, watched.packs) == (1, 3, 1)
        assert [fork.step(SUBMIT)[1] for fork in forks] == [1.0] * 3
    finally:
        for fork in forks:
            fork.close()
    assert do(env, view("chance")) == chance
    assert env.step(SUBMIT)[1] == 1.0


def test_a_submission_straight_after_a_fork(env: CodeEnv) -> None:
    do(env, write(CHANCE), RUN)
    (fork,) = env.fork(1)
    with fork:
        assert fork.step(SUBMIT)[1] == 1.0


def test_nothing_is_run_again(env: CodeEnv) -> None:
    count = "n = open('count', 'a'); n.write('x'); n.close()\ndef add(a, b):\n    return a + b\n"
    do(env, write(count), RUN, RUN)
    (fork,) = env.fork(1)
    with fork:
        assert do(fork, view("count")) == do(env, view("count"))


def test_forks_do_not_see_each_others_writes(env: CodeEnv) -> None:
    do(env, write(CHANCE), RUN)
    forks = env.fork(8)
    start = threading.Barrier(8)

    def one(n: int) -> tuple[str, float]:
        start.wait(60)
        with forks[n] as fork:
            do(fork, write(f"{n}\n", f"own{n}.txt"), write(f"{n}\n", "chance"))
            do(fork, write(f"def add(a, b):\n    return {'a + b' if n % 2 else n}\n"), RUN)
            listed = do(fork, LIST, LIST)
            assert do(fork, view("chance")).count(str(n)) >= 1
            return listed, float(fork.step(SUBMIT)[1])

    with ThreadPoolExecutor(8) as threads:
        ends = list(threads.map(one, range(8)))
    for n, (listed, reward) in enumerate(ends):
        assert [f"own{k}.txt" in listed for k in range(8)] == [k == n for k in range(8)]
        assert (reward == 1.0) == (n % 2 == 1)
    assert "own" not in do(env, LIST)


def _elsewhere(name: str, data: bytes) -> tuple[str, float]:
    with CodeEnv(TASKS, wall=name, max_steps=60) as env:
        env.restore(pickle.loads(data))
        return do(env, view("chance")), float(env.step(SUBMIT)[1])


def test_goes_on_in_another_process(env: CodeEnv, wall: Wall) -> None:
    do(env, write(CHANCE), RUN)
    data = pickle.dumps(env.snapshot())
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        assert processes.apply(_elsewhere, (wall.name, data)) == (do(env, view("chance")), 1.0)


def test_runs_of_a_fork_begin_in_the_same_memory(wall: Wall) -> None:
    if wall.name != "namespace":
        pytest.skip("the process wall's interpreters have random addresses")
    with CodeEnv(TASKS, wall=wall, max_steps=60) as env:
        env.reset(task_id="add")
        do(env, *[write("x" * 500 * n, f"file{n}") for n in range(9)], LIST)
        early = env.fork(2)
        expected = do(env, write(ADDRESSES), RUN)
        late = env.fork(2)
        for fork in early + late:
            with fork:
                assert do(fork, write(ADDRESSES), RUN) == expected
        assert do(env, RUN) == expected


# -------------------------------------------------------------------------------------------- what a snapshot holds


def test_a_snapshot_holds_what_lies_in_the_cell(env: CodeEnv, watched: Watched) -> None:
    assert env.snapshot().packed is None, "no cell was open"
    do(env, "garbage")
    assert env.snapshot().packed is None
    do(env, write("x" * 5000, "some.txt"))
    packed = env.snapshot().packed
    assert packed is not None
    assert 5000 < len(packed.data) < 10_000
    assert repr(packed) == "PackedCell(over='')"
    assert "packed" not in repr(env.snapshot())
    env.step(SUBMIT)
    assert env.snapshot().packed is None, "an episode that is over has no cell"
    assert watched.packs == 2


def test_a_fork_that_was_not_used_is_forked_without_a_cell(env: CodeEnv, watched: Watched) -> None:
    do(env, write(CHANCE), RUN)
    (one,) = env.fork(1)
    with one:
        do(one, "garbage")
        assert one.snapshot().packed is not None
        (two,) = one.fork(1)
        with two:
            assert (watched.opened, watched.unpacked, watched.packs) == (1, 0, 1)
            assert do(two, view("chance")) == do(env, view("chance"))
            assert two.step(SUBMIT)[1] == 1.0


def test_snapshots_of_one_environment_are_of_their_moments(env: CodeEnv) -> None:
    taken: list[Snapshot] = []
    for n in range(4):
        do(env, write(f"{n}", "n.txt"), write(CHANCE), RUN)
        taken.append(env.snapshot())
    for n in (2, 0, 3, 1):
        env.restore(taken[n])
        assert f"{n}" in do(env, view("n.txt"))
        assert len(do(env, view("chance")).strip().splitlines()) >= n + 1
        do(env, write("gone", "n.txt"))


def test_protected_files_stay_protected(env: CodeEnv) -> None:
    do(env, write(CHANCE), RUN)
    (fork,) = env.fork(1)
    with fork:
        assert fork.step(write("x = 2\n", "lib.py"))[4]["invalid_action"] is True
        assert "x = 1" in do(fork, view("lib.py"))


def test_the_room_that_is_left_is_known(wall: Wall) -> None:
    limits = {"disk_bytes": 300_000}
    with CodeEnv(TASKS, wall=wall, limits=limits) as env:
        env.reset(task_id="add")
        do(env, write("x" * 200_000, "big.txt"))
        (fork,) = env.fork(1)
        with fork:
            observation, *_, info = fork.step(write("x" * 150_000, "more.txt"))
            assert info["invalid_action"] is True
            assert "space" in observation
            do(fork, write("x" * 30_000, "less.txt"))


# --------------------------------------------------------------------------------------- where actions are played again


def test_a_cell_that_is_too_big_is_played_again(
    env: CodeEnv, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walls, "MAX_PACKED", 500)
    do(env, write("y" * 2000, "some.txt"), SOLVE, RUN)
    (fork,) = env.fork(1)
    with fork:
        assert do(fork, LIST) == do(env, LIST)
        assert fork.step(SUBMIT)[1] == 1.0
    assert (watched.unpacked, watched.packs) == (0, 1)
    assert env.snapshot().packed is None


def test_a_cell_that_is_lost_is_opened_again_from_what_was_packed(env: CodeEnv, watched: Watched) -> None:
    do(env, write(CHANCE), RUN)
    (fork,) = env.fork(1)
    with fork:
        before = do(fork, write("later\n", "later.txt"), view("chance"))
        watched.fail["list"] = [CellLost("the keeper is gone", during_run=False)]
        assert "later.txt" in do(fork, LIST)
        assert do(fork, view("chance")) == before
        assert watched.unpacked == 2
        assert watched.fail["list"] == []
        assert fork.step(SUBMIT)[1] == 1.0


def test_bytes_that_can_not_be_opened_are_no_end(env: CodeEnv, watched: Watched) -> None:
    do(env, SOLVE, RUN)
    snapshot = env.snapshot()
    for data in (b"", b"nonsense", b"\0" * 5000):
        env.restore(replace(snapshot, packed=PackedCell(data)))
        assert "a + b" in do(env, view("solution.py"))
        assert env.step(SUBMIT)[1] == 1.0
    assert watched.unpacked == 3


def test_where_neither_goes_the_reason_has_both(env: CodeEnv) -> None:
    do(env, write(CHANCE), RUN)
    snapshot = env.snapshot()
    env.restore(replace(snapshot, packed=PackedCell(b"nonsense")))
    void = env.step(LIST)[4]["void"]
    assert "can't be opened" in void
    assert "step 2 of the episode came out different" in void


def test_a_cell_that_is_lost_while_it_is_packed_is_made_again(env: CodeEnv) -> None:
    do(env, SOLVE, RUN)
    cell: Any = env._held.cell
    cell._cell.close()
    assert env.snapshot().packed is None
    assert "a + b" in do(env, view("solution.py"))
    assert env.step(SUBMIT)[1] == 1.0
