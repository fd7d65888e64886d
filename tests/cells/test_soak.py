"""Cells by the thousand, and violent ends at random moments: nothing grows, nothing is left, the next episode works.

Short here; `make soak` sets TILTYARD_SOAK_CELLS=20000 and TILTYARD_SOAK_KILLS=1000.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.leftovers import folders, mounts

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import CellLimits, Run, Wall

CELLS = int(os.environ.get("TILTYARD_SOAK_CELLS", "60"))
KILLS = int(os.environ.get("TILTYARD_SOAK_KILLS", "6"))
SAME = ("fds", "children", "zombies", "mounts", "groups")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes stock through /proc")

OWNER = """
import json, os, sys
from tiltyard import CodeEnv
from tiltyard.players import ReferencePlayer, run_episode
env = CodeEnv([{"id": "t", "prompt": "p", "stub": "", "ref": "def f(x): return x\\n", "visible": ["assert f(1) == 1"],
    "hidden": ["assert f(2) == 2", "assert f(3) == 3"], "meta": {"source": "", "created": "2026", "difficulty": None}}],
    wall=sys.argv[1])
seed = 0
while True:
    result = run_episode(env, ReferencePlayer(), seed=seed)
    print(json.dumps(result.reward if result.reward == result.reward else None), flush=True)
    seed += 1
"""


def stock() -> dict[str, int]:
    """What this process and all below it hold: resident kilobytes, descriptors, processes (zombies too), mounts, control
    groups."""
    status = Path("/proc/self/status").read_text()
    rss = int(status.partition("VmRSS:")[2].split()[0])
    everyone = family(os.getpid())
    return {
        "rss": rss,
        "fds": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(everyone) - 1,
        "zombies": len(everyone - alive(everyone)),
        "mounts": len(mounts()),
        "groups": len(
            [mark for mark in folders() if mark.startswith("control group") and named(mark) & everyone]
        ),
    }


def use(wall: Wall, n: int) -> None:
    cell = wall.open({"solution.py": b"print('cell')"}, CellLimits())
    try:
        assert cell.run(Run(("python", "solution.py"), wall_s=60)).stdout == b"cell\n", n
    finally:
        cell.close()


def at_rest() -> dict[str, int]:
    """Stock once what has just ended is reaped: no zombies, and nothing that comes or goes meanwhile."""
    end = time.monotonic() + 20
    last, now = stock(), stock()
    while (now["zombies"] or any(now[k] != last[k] for k in SAME)) and time.monotonic() < end:
        time.sleep(0.05)
        last, now = now, stock()
    return now


def test_many_cells_one_after_the_other(wall: Wall) -> None:
    for n in range(20):
        use(wall, n)
    before = at_rest()
    for n in range(CELLS if wall.name == "namespace" else max(20, CELLS // 20)):
        use(wall, n)
    after = at_rest()
    # what other tests of this process left to go by itself may go meanwhile: nothing grows
    assert {k: after[k] - before[k] for k in SAME if after[k] > before[k]} == {}, (before, after)
    assert after["rss"] < before["rss"] + 20_000


def family(pid: int) -> set[int]:
    """A process and all that descends from it."""
    found, todo = {pid}, [pid]
    while todo:
        try:
            for task in Path(f"/proc/{todo.pop()}/task").iterdir():
                for child in map(int, (task / "children").read_text().split()):
                    if child not in found:
                        found.add(child)
                        todo.append(child)
        except OSError:
            continue
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that still run (not: wait to be reaped)."""
    found = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.add(pid)
    return found


def named(mark: str) -> set[int]:
    """The process that a control group is named after."""
    return {int(pid) for pid in re.findall(r"tiltyard-(\d+)-", mark)}


def test_a_kill_at_a_random_moment_leaves_nothing_and_the_next_episode_works(wall: Wall) -> None:
    rng = random.Random(KILLS)
    marks = folders()
    dead: set[int] = set()
    for n in range(KILLS):
        owner = subprocess.Popen([sys.executable, "-c", OWNER, wall.name], stdout=subprocess.PIPE, text=True)
        assert owner.stdout is not None
        try:
            assert owner.stdout.readline() == "1.0\n"
            time.sleep(rng.random() / 4)
            everyone = family(owner.pid)
            # in three of four rounds a child dies first: a fork server, a keeper, what runs in a cell
            if n % 4 and len(everyone) > 1:
                os.kill(rng.choice(sorted(everyone - {owner.pid})), signal.SIGKILL)
                rewards = [json.loads(owner.stdout.readline()) for _ in range(4)]
                assert rewards[-1] == 1.0, f"round {n}: {rewards}"
                assert 0.0 not in rewards, f"round {n}: a death of ours became a zero: {rewards}"
                everyone |= family(owner.pid)
            owner.kill()
        finally:
            owner.kill()
            owner.wait()
            owner.stdout.close()
        end = time.monotonic() + 20  # one second on an idle machine; never a test of how busy this one is
        while (left := alive(everyone)) and time.monotonic() < end:
            time.sleep(0.02)
        assert not left, f"round {n}"
        dead |= everyone
    # where a fork server's warden and its owner died together, the next server's start takes away what they left
    time.sleep(1.5)
    successor = make_wall(wall.name, hash_seed=4242)  # one that has no server yet
    try:
        use(successor, KILLS)
        end = time.monotonic() + 20
        while (new := {m for m in folders() - marks if named(m) & dead}) and time.monotonic() < end:
            time.sleep(0.1)
        assert not new
    finally:
        successor.close()
