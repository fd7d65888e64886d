"""One nursery for the servers of several processes: each has its own server, and nothing of it depends on the others."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells.namespace import NamespaceWall, nursery, probe
from tiltyard.cells.protocol import CellLimits, Run

WHY_NOT = probe() if sys.platform == "linux" else "namespaces are a thing of Linux"
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"no namespace wall here: {WHY_NOT}")
LONG = 60.0
LAYOUT = b"print([id(object()), id(open), list({object() for _ in range(30)})[0] is None, hash('a')])\n"


def forked(*acts: Callable[[], Any]) -> list[Any]:
    """What each of these gives in a fork of this process, all at the same time; None for one that failed."""
    ends = []
    for act in acts:
        hear, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(hear)
                os.write(tell, json.dumps(act()).encode())
            finally:
                os._exit(0)
        os.close(tell)
        ends.append((pid, hear))
    found = []
    for pid, hear in ends:
        with open(hear, "rb") as file:
            said = file.read()
        os.waitpid(pid, 0)
        found.append(json.loads(said) if said else None)
    return found


def in_a_fork(test: Callable[[], None]) -> Callable[[], None]:
    """The test, in a process that has no servers: in this one, walls of other tests may be open, and share theirs."""

    @functools.wraps(test)
    def run() -> None:
        def body() -> bool:
            try:
                assert probe() is None
                test()
            except BaseException:
                traceback.print_exc()
                return False
            return True

        assert forked(body) == [True]

    return run


def look() -> dict[str, Any]:
    """A cell of a wall of its own: what a run in it sees, and which processes stand above it."""
    wall = NamespaceWall()
    try:
        with wall.open({"a.py": LAYOUT}, CellLimits()) as cell:
            said = cell.run(Run(("python", "a.py"), wall_s=LONG))
        warden = wall._server()._process.pid
        cores = sorted(os.sched_getaffinity(warden))
        return {"said": said.stdout.decode(), "rc": said.rc, "warden": warden, "cores": cores}
    finally:
        wall.close()


def named(name: str) -> list[int]:
    """Children of this process, and theirs, of that name, that live."""
    found, todo = [], [os.getpid()]
    while todo:
        pid = todo.pop()
        try:
            todo += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
            stat = Path(f"/proc/{pid}/stat").read_text()
            if (
                stat[stat.index("(") + 1 : stat.rindex(")")] == name
                and stat.rpartition(")")[2].split()[0] != "Z"
            ):
                found.append(pid)
        except OSError:
            continue
    return found


def nurses() -> list[int]:
    return named("tiltyard-nurse")


def eventually(what: Callable[[], bool], within_s: float = 30.0) -> bool:
    end = time.monotonic() + within_s
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@in_a_fork
def test_forked_processes_have_a_server_each_from_one_nursery_which_ends() -> None:
    with nursery():
        assert eventually(lambda: len(nurses()) == 1)
        before = nurses()
        first, second = forked(look, look)
        assert first["warden"] != second["warden"]
        assert nurses() == before
    assert first["rc"] == second["rc"] == 0
    assert eventually(lambda: not nurses())
    assert eventually(lambda: not Path(f"/proc/{first['warden']}").exists())


@in_a_fork
def test_a_run_begins_in_the_same_memory_with_and_without_it() -> None:
    alone = look()
    with nursery():
        shared = forked(look, look, look)
        here = look()
    assert {found["said"] for found in (alone, here, *shared)} == {alone["said"]}


@in_a_fork
def test_a_server_runs_where_its_owner_may() -> None:
    cores = sorted(os.sched_getaffinity(0))

    def pinned() -> dict[str, Any]:
        os.sched_setaffinity(0, {cores[-1]})
        return look()

    with nursery():
        here, there = forked(look, pinned)
    assert here["cores"] == cores
    assert there["cores"] == cores[-1:]


@in_a_fork
def test_without_it_all_goes_on() -> None:
    """Killed at any time, it costs its servers nothing, and who wants one gets another."""
    with nursery():
        wall = NamespaceWall()
        with wall.open({"a.py": LAYOUT}, CellLimits()) as cell:
            (only,) = nurses()
            os.kill(only, signal.SIGKILL)
            assert eventually(lambda: not nurses())
            assert cell.run(Run(("python", "a.py"), wall_s=LONG)).rc == 0
        wall.close()
        assert [found["rc"] for found in (look(), *forked(look, look))] == [0, 0, 0]
    assert eventually(lambda: not nurses())


@in_a_fork
def test_a_server_ends_with_its_owner_and_no_other_does() -> None:
    def die() -> None:
        wall = NamespaceWall()
        wall.open({}, CellLimits())
        os.kill(os.getpid(), signal.SIGKILL)

    with nursery():
        wall = NamespaceWall()
        with wall.open({"a.py": LAYOUT}, CellLimits()) as cell:
            forked(die)
            mine = wall._server()._process.pid
            assert eventually(lambda: named("tiltyard-warden") == [mine])
            assert cell.run(Run(("python", "a.py"), wall_s=LONG)).rc == 0
        wall.close()


def test_another_user_has_a_nursery_of_its_own() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")

    def other() -> dict[str, Any]:
        os.setresgid(4242, 4242, 4242)
        os.setresuid(4242, 4242, 4242)
        return look()

    with nursery():
        (found,) = forked(other)
    if found is None:
        pytest.skip("an ordinary user can't have the namespace wall here, or can't read this interpreter")
    assert found["rc"] == 0
