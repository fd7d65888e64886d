"""Cells that are made ready before they are wanted: nobody can tell them from others, and nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import LONG, eventually, said
from test_copies import ADDRESSES
from test_nursery import named
from test_soak import family

from tiltyard.cells.namespace import NamespaceWall, _order, probe
from tiltyard.cells.protocol import CellLimits
from tiltyard.cells.servers import OPEN_S
from tiltyard.errors import ArenaError

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or probe() is not None, reason=f"no namespace wall here: {probe()}"
)

USUAL, OTHER = CellLimits(), CellLimits(memory_bytes=300 << 20)


@pytest.fixture
def wall() -> Iterator[NamespaceWall]:
    """One with a server of its own."""
    own = NamespaceWall(hash_seed=os.getpid() % 4000 + 100_000)
    yield own
    own.close()


def use(wall: NamespaceWall, limits: CellLimits = USUAL, code: str = "print(6 * 7)") -> str:
    with wall.open({"a.txt": b"here"}, limits) as cell:
        return said(cell, code)


def keepers() -> set[int]:
    return set(named("tiltyard-keeper"))


def ready(wall: NamespaceWall, others: set[int]) -> int:
    """The keeper that waits, once it does."""
    assert wall._server()._ahead._coming is not None
    assert eventually(lambda: len(keepers() - others) == 1)
    time.sleep(0.05)
    return (keepers() - others).pop()


def test_the_third_alike_is_there_before_it_is_asked_for(wall: NamespaceWall) -> None:
    others = keepers()
    use(wall)
    assert wall._server()._ahead._coming is None
    use(wall)
    keeper = ready(wall, others)
    with wall.open({"a.txt": b"here"}, USUAL) as cell:
        assert Path(f"/proc/{keeper}").exists()
        assert cell.read("a.txt", max_bytes=9) == b"here"
        assert eventually(lambda: len(keepers() - others) == 2)  # and the next one
    assert eventually(lambda: keeper not in keepers())
    wall.close()
    assert eventually(lambda: keepers() == others)


def test_a_run_in_it_begins_in_the_same_memory(wall: NamespaceWall) -> None:
    assert len({use(wall, code=ADDRESSES) for _ in range(5)}) == 1


def test_it_is_for_who_wants_the_same_limits(wall: NamespaceWall) -> None:
    others = keepers()
    for _ in range(2):
        use(wall)
    ready(wall, others)
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    assert use(wall, OTHER, code) == str(OTHER.memory_bytes)
    assert len(keepers() - others) == 1  # it still waits
    assert use(wall, OTHER, code) == str(OTHER.memory_bytes)
    assert use(wall, OTHER, code) == str(OTHER.memory_bytes)  # the habit is another one now
    assert eventually(lambda: len(keepers() - others) == 1)
    assert use(wall, USUAL, code) == str(USUAL.memory_bytes)


@pytest.mark.parametrize("who", ["keeper", "stall", "server"])
def test_one_that_was_killed_is_made_again(wall: NamespaceWall, who: str) -> None:
    others = keepers()
    for _ in range(2):
        use(wall)
    keeper = ready(wall, others)
    pid = keeper
    for _ in range(("keeper", "stall", "server").index(who)):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: keeper not in keepers())
    assert [use(wall) for _ in range(4)] == ["42"] * 4


def test_it_makes_room_for_who_needs_it(wall: NamespaceWall) -> None:
    for _ in range(2):
        use(wall)
    server = wall._server()
    server.has["most"] = server._made  # no more than there are
    cells = []
    with pytest.raises(ArenaError, match="can hold no more"):
        while True:
            cells.append(wall.open({}, OTHER))
    assert len(cells) == server._made
    for cell in cells:
        cell.close()
    assert use(wall) == "42"


def test_it_makes_room_for_a_program(wall: NamespaceWall) -> None:
    for _ in range(2):
        use(wall)
    server = wall._server()
    server.has["most"] = server._made
    cells = [wall.open({}, OTHER) for _ in range(server._made - 1)]
    order = _order(OTHER, alone=True)
    server.ask(order).forget()
    for cell in cells:
        cell.close()


def test_an_interruption_while_stalls_are_made_delays_nobody(
    wall: NamespaceWall, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, write, send = wall._server(), os.write, socket.send_fds

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    for what, name in ((os, "write"), (socket, "send_fds")):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(what, name, interrupted)
            wall.open({}, USUAL)
    assert (os.write, socket.send_fds) == (write, send) and server._made == 0
    begun = time.monotonic()
    assert [use(wall) for _ in range(3)] == ["42"] * 3
    assert time.monotonic() - begun < OPEN_S / 2  # nobody waited until that was over


def test_walls_share_it_and_a_forked_child_has_its_own(wall: NamespaceWall) -> None:
    others = keepers()
    sibling = NamespaceWall(hash_seed=wall._key.hash_seed)
    try:
        for one in (wall, sibling):
            use(one)
        ready(sibling, others)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = 0 if [use(wall) for _ in range(3)] == ["42"] * 3 else 2
                wall.close()
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert use(wall) == use(sibling) == "42"
    finally:
        sibling.close()


KILLED = """
import json, os, sys, time
from tiltyard.cells import CellLimits, make_wall
wall = make_wall("namespace")
for _ in range(3): wall.open({}, CellLimits()).close()
print(json.dumps(wall._server()._process.pid), flush=True)
time.sleep(1000)
"""


def test_nothing_is_left_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        warden = json.loads(owner.stdout.readline())
    below = family(warden)
    assert len(below) > 3
    owner.kill()
    owner.wait(LONG)
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
