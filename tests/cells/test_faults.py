"""What machines and people do to an arena: no room, no processes, no memory, a clock that jumps, impatience; and the ways
in which programs use it: threads of an event loop, processes of every start method. Kills are in ``test_soak``."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import LONG, eventually, find, none_left
from tests.leftovers import folders

import tiltyard
from tiltyard.cells import Cell, CellLimits, Run, Wall, make_wall
from tiltyard.cells.inside import cgroup
from tiltyard.errors import ArenaError

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc, or needs what Linux has")
PACKAGE = Path(tiltyard.__file__).parent
SEARCHED = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])


def works(cell: Cell) -> bool:
    return cell.run(Run(("python", "-c", "print(6 * 7)"), wall_s=LONG)).stdout == b"42\n"


def script(code: str, *args: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SEARCHED, **env},
    )


def ended(process: subprocess.Popen[str]) -> str:
    """What a script said; it must end well, and in time."""
    out, err = process.communicate(timeout=5 * LONG)
    assert process.returncode == 0, err
    return out


# --------------------------------------------------------------------------------------------------- no room


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    size = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(size, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here (that takes root)")
    with (tmp_path / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@linux
def test_a_full_tmp_is_void_at_worst_and_passes(
    wall: Wall, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = make_wall(wall.name, hash_seed=91)  # one that has to start all that it needs
    try:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(full_disk))
            try:
                with fresh.open({"a": b"x" * 1000}, CellLimits()) as cell:  # type: ignore[attr-defined]
                    works(cell)
            except ArenaError as error:
                assert "No space left" in str(error)
            else:
                assert wall.name != "process", "whose cells are folders of this disk"
        with fresh.open({}, CellLimits()) as cell:  # type: ignore[attr-defined]
            assert works(cell)
    finally:
        fresh.close()


# ---------------------------------------------------------------------------------------------- no processes

NO_PROCESSES = """
import json, os, resource, sys
from tiltyard.cells import CellLimits, Run, make_wall
from tiltyard.errors import ArenaError
name, most = sys.argv[1:]
HARD = resource.getrlimit(resource.RLIMIT_NPROC)[1]
def allow(more):
    '''So many processes more than there are; None: as many as one likes.'''
    if most:
        with open(os.path.dirname(most) + '/pids.current') as file: now = int(file.read())
        with open(most, 'w') as file: file.write('max' if more is None else str(now + more))
    else:
        mine = 0
        for pid in os.listdir('/proc'):
            try: mine += len(os.listdir(f'/proc/{pid}/task')) if pid.isdigit() and os.stat(f'/proc/{pid}').st_uid == os.getuid() else 0
            except OSError: pass
        resource.setrlimit(resource.RLIMIT_NPROC, (HARD if more is None else mine + more, HARD))
def once(wall):
    cell = wall.open({}, CellLimits())
    try: return cell.run(Run(('python', '-c', 'print(42)'), wall_s=60)).stdout == b'42\\n'
    finally: cell.close()
wall, seen = make_wall(name), []
assert once(wall)
for more in (0, 1, 2, 3, 4, 6):
    wall.close()  # so that a fork server has to be started, too
    allow(more)
    try: seen.append('works' if once(wall) else 'wrong')
    except ArenaError as error: seen.append('arena')
    except BaseException as error: seen.append(repr(error))
    allow(None)
wall.close()  # a fork server that was started under a limit keeps it
assert once(wall)
wall.close()
print(json.dumps(seen))
"""


@pytest.fixture
def pids_group() -> Iterator[str]:
    """The ``pids.max`` of a group of this test's own; "" where limits of a user do the same (who is not root)."""
    if os.geteuid() != 0:
        yield ""
        return
    places = [place for place in cgroup.find(("pids",))[0] if "pids" in place.controllers]
    if not places:
        pytest.skip("root's processes can be counted in control groups only, and there are none here")
    path = Path(places[0].path) / f"tiltyard-{os.getpid()}-faults-{secrets.token_hex(4)}"
    # locked, or servers of other tests take it, and what is below, for nobody's
    lock = cgroup._make_and_lock(str(path))
    try:
        yield str(path / "pids.max")
    finally:
        os.close(lock)

    def gone() -> bool:
        try:
            path.rmdir()
        except OSError:
            return not path.exists()
        return True

    assert eventually(gone)


@linux
def test_out_of_processes_is_void_and_passes(wall: Wall, pids_group: str) -> None:
    enter = f"open({str(Path(pids_group).parent / 'cgroup.procs')!r}, 'w').write('0')\n" if pids_group else ""
    seen = json.loads(ended(script(enter + NO_PROCESSES, wall.name, pids_group)))
    assert set(seen) <= {"works", "arena"} and "arena" in seen, seen


# ------------------------------------------------------------------------------------------------- no memory


@linux
def test_memory_pressure_ends_runs_and_not_the_arena(wall: Wall) -> None:
    """All that belongs to the owner is in one small group: what is killed there is the code that asks for too much."""
    places = [place for place in cgroup.find(("memory",))[0] if "memory" in place.controllers]
    if not places:
        pytest.skip("memory is counted in control groups, and there are none to be had here")
    home = cgroup.Home(places, f"{os.getpid()}-{secrets.token_hex(4)}")
    try:
        group = cgroup.Group(home, "pressed")
        group.cap(200 << 20, 1000)
        doors = [f"{place.path}/{home.name}/pressed/cgroup.procs" for place in places]
        code = f"""
        for door in {doors!r}: open(door, 'w').write('0')
        import sys
        from tiltyard.cells import CellLimits, CellLost, Run, make_wall
        wall = make_wall(sys.argv[1])
        bomb = "x = []\\nwhile True: x.append(bytes(range(256)) * 4096)"
        for _ in range(3):
            cell = wall.open({{}}, CellLimits(memory_bytes=400 << 20))
            try: assert cell.run(Run(('python', '-c', bomb), wall_s=60)).rc != 0
            except CellLost as lost: assert lost.during_run
            cell.close()
        cell = wall.open({{}}, CellLimits())
        assert cell.run(Run(('python', '-c', 'print(42)'), wall_s=60)).stdout == b'42\\n'
        cell.close(); wall.close()
        print('fine')
        """
        assert ended(script(code, wall.name)) == "fine\n"
    finally:
        home.remove()


# ------------------------------------------------------------------------------------------------ the clock

THE_TIME_OF_DAY = {
    "cells/collect.py": "how old a container is that nobody owns",
    "cells/inside/cgroup.py": "how old a folder of groups is, which is locked while somebody has it",
    "cli/environments.py": "when something was used, for people",
    "environments/keep.py": "when something was used",
    "players/model/failures.py": "a server's Retry-After may be a date",
    "records/store.py": "when an episode was stored",
    "bench/machine.py": "the date of a measurement",
}
"""Who may ask what time it is: nobody who waits."""


def test_a_clock_that_jumps_moves_no_deadline() -> None:
    """Deadlines, durations and caps are of the monotonic clock, which never jumps. A new use of the other is found here."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).as_posix()
        if where.startswith("pool/builtin"):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                asked = f"{node.value.id}.{node.attr}"
                if asked in ("time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow",
                             "datetime.today", "date.today"):  # fmt: skip
                    found.add(where)
    assert found == set(THE_TIME_OF_DAY)


JUMPS = """
import random, sys, time
import tiltyard.cells
clock = time.time
time.time = lambda: clock() + random.Random().choice((-1e9, -3600, 0, 3600, 1e9))
time.time_ns = lambda: int(time.time() * 1e9)
from tiltyard import CodeEnv
from tiltyard.players import ReferencePlayer, run_episode
env = CodeEnv("builtin", wall=sys.argv[1])
for seed in range(4):
    result = run_episode(env, ReferencePlayer(), seed=seed)
    assert result.reward == 1.0, result
env.close()
print('fine')
"""


def test_an_owner_whose_clock_jumps_plays_on(wall: Wall) -> None:
    assert ended(script(JUMPS, wall.name)) == "fine\n"


# --------------------------------------------------------------------------------------------- impatience

IMPATIENT = """
import sys
from tiltyard.cells import CellLimits, Run, make_wall
wall = make_wall(sys.argv[1])
cells = [wall.open({{}}, CellLimits()) for _ in range(3)]
print('open', flush=True)
cells[1].run(Run(('sh', '-c', 'setsid sleep {marker} & sleep {marker}'), wall_s=1000))
"""


@linux
@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_ctrl_c_twice_leaves_nothing(wall: Wall, pause: float) -> None:
    marker = f"4{secrets.randbelow(10**9):09}"
    before = folders()
    owner = script(IMPATIENT.format(marker=marker), wall.name)
    assert owner.stdout is not None and owner.stdout.readline() == "open\n"
    assert eventually(lambda: len(find(f"sleep\0{marker}")) == 2)
    owner.send_signal(signal.SIGINT)
    time.sleep(pause)
    owner.send_signal(signal.SIGINT)
    _, err = owner.communicate(timeout=LONG)
    assert owner.returncode not in (0, None)
    assert none_left(marker)
    mine = f"-{owner.pid}-"
    assert eventually(lambda: not {left for left in folders() - before if mine in left})
    assert "KeyboardInterrupt" in err or owner.returncode == -signal.SIGINT


# ------------------------------------------------------------------------------------------ event loops, processes


def test_cells_of_an_event_loop(wall: Wall) -> None:
    def play(n: int) -> str:
        with wall.open({"n": str(n).encode()}, CellLimits()) as cell:  # type: ignore[attr-defined]
            return (
                cell.run(Run(("python", "-c", "print(open('n').read())"), wall_s=LONG))
                .stdout.decode()
                .strip()
            )

    async def everyone() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(play, n) for n in range(8)))

    assert asyncio.run(everyone()) == [str(n) for n in range(8)]


PROCESSES = """
import multiprocessing, sys
from tiltyard.cells import CellLimits, Run, make_wall

def play(name, n, wall=None):
    mine = wall if wall is not None else make_wall(name)
    cell = mine.open({"n": str(n).encode()}, CellLimits())
    said = cell.run(Run(("python", "-c", "print(open('n').read())"), wall_s=60)).stdout.decode().strip()
    cell.close()
    mine.close()
    sys.exit(0 if said == str(n) else 3)

if __name__ == "__main__":
    name = sys.argv[1]
    wall = make_wall(name)
    ours = wall.open({"x": b"ours"}, CellLimits())
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        # a child that was forked has the parent's wall, and must not share its server
        children = [context.Process(target=play, args=(name, n, wall if method == "fork" else None)) for n in range(3)]
        for child in children: child.start()
        for child in children: child.join()
        print(method, [child.exitcode for child in children])
        assert ours.read("x", max_bytes=9) == b"ours"
    ours.close()
    wall.close()
"""


def test_processes_of_every_start_method_have_cells_of_their_own(wall: Wall, tmp_path: Path) -> None:
    path = tmp_path / "many.py"
    path.write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, str(path), wall.name],
        capture_output=True,
        text=True,
        timeout=5 * LONG,
        env={**os.environ, "PYTHONPATH": SEARCHED},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{method} [0, 0, 0]\n" for method in ("spawn", "forkserver", "fork"))
