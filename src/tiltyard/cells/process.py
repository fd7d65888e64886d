"""The ``process`` wall: limits, and no locks. For machines that have nothing better.

A cell is a temporary folder, a keeper process, and what runs below it: fresh interpreters with rlimits, each watched
for processes, memory and disk, all of them killed when a run ends, also those that left their group or session. The
code runs as the user who runs the arena. ``ProcessWall.weaknesses`` says what that means.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO

from tiltyard.cells.client import KeeperCell, close_all, filled, socket_pair, unpacked
from tiltyard.cells.inside import procs, tree, wire
from tiltyard.cells.programs import Interpreter
from tiltyard.cells.protocol import CellLimits, PackedCell
from tiltyard.cells.siblings import Siblings
from tiltyard.errors import ArenaError, UsageError

START_S = 60.0
END_S = 15.0
PATH = "/usr/local/bin:/usr/bin:/bin"

WEAKNESSES = (
    "no file system wall: code can read and write whatever its user can, the arena's own files and other cells too",
    "no network wall: code can reach every network and every local server that its user can",
    "same user: code can signal, trace and kill other processes of its user, the arena's too",
    "no filter of system calls: code can call what the kernel lets its user call, io_uring and new namespaces too",
    "the count of processes, memory and disk of a cell are watched, not enforced: a burst gets through for a moment",
    "CPU time is limited for each process, not for a cell as a whole",
    "code that kills its keeper, clears its environment and leaves the workspace can outlive its cell",
    "code can see the machine: its processes, users, clock, and the real path of its workspace",
)
WEAKNESSES_ELSEWHERE = (
    "processes that leave their process group and their parent are not found on this system",
    "memory and the number of threads are not limited on this system",
)


class ProcessWall:
    """Cells of this kind; holds nothing but the list of those that are open."""

    def __init__(self, *, hash_seed: int = 0, python: str | None = None) -> None:
        self._hash_seed = hash_seed
        self._interpreter = interpreter(python)
        self._cells: weakref.WeakSet[KeeperCell] = weakref.WeakSet()
        self._siblings: Siblings[ProcessWall] = Siblings()

    @property
    def name(self) -> str:
        return "process"

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return WEAKNESSES if procs.LINUX else WEAKNESSES + WEAKNESSES_ELSEWHERE

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> KeeperCell:
        return filled(self._new_cell(limits), files)

    def unpack(self, files: Mapping[str, bytes], limits: CellLimits, packed: PackedCell) -> KeeperCell:
        """See ``protocol.Copying``. A cell in which something names the folder that it lies in can't be packed: a copy
        lies in another one."""
        return unpacked(self._new_cell(limits), packed)

    def _new_cell(self, limits: CellLimits) -> KeeperCell:
        base = f"{_temp_folder()}/tiltyard-{secrets.token_hex(8)}"
        cell = bring_up(
            self._interpreter,
            limits,
            minimal_env(base, self._hash_seed, self._interpreter),
            base=base,
            workspace=None,
            wall=self.name,
        )
        self._cells.add(cell)
        return cell

    def with_python(self, python: str) -> ProcessWall:
        """This wall with another interpreter and its packages: see ``tiltyard.cells.siblings``."""
        return self._siblings.get(python, lambda: ProcessWall(hash_seed=self._hash_seed, python=python))

    def close(self) -> None:
        self._siblings.close()
        close_all(self._cells)


def interpreter(python: str | None) -> Interpreter:
    """The interpreter for what runs in cells: this one, with nothing but the standard library, or the one at
    ``python`` with the packages that are installed for it. UsageError if there is none."""
    if python is None:
        if not sys.executable:
            raise ArenaError("this program has no sys.executable; name an interpreter with python=")
        return Interpreter(sys.executable)
    if not os.access(python, os.X_OK) or not Path(python).is_file():
        raise UsageError(
            f"python={python!r} is no program that can be executed; give the path of an interpreter"
        )
    path = os.path.abspath(python)  # noqa: PTH100  (a venv's link must stay one)
    config = Path(path).parent.parent / "pyvenv.cfg"
    stamp = os.stat(python).st_mtime_ns  # noqa: PTH116
    return Interpreter(path, site=True, venv=config.is_file(), safe_path=_knows_safe_path(path, stamp))


@lru_cache(maxsize=256)
def _knows_safe_path(path: str, stamp: int) -> bool:
    """Whether this interpreter is 3.11 or newer. One that does not answer is left to fail where it is used."""
    ask = "import sys; print(sys.version_info >= (3, 11))"
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", ask], capture_output=True, timeout=START_S, check=False, cwd="/", env={}
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return done.stdout.strip() != b"False"


def _temp_folder() -> str:
    try:
        return os.path.realpath(tempfile.gettempdir())
    except OSError as error:
        raise ArenaError(f"no folder for temporary files can be had ({error.strerror}); set TMPDIR") from None


def minimal_env(base: str, hash_seed: int, python: Interpreter) -> dict[str, str]:
    return {
        "PATH": python.search_path(PATH),
        "HOME": f"{base}/home",
        "TMPDIR": f"{base}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def bring_up(
    python: Interpreter,
    limits: CellLimits,
    env: Mapping[str, str],
    *,
    base: str,
    workspace: str | None,
    wall: str,
    player: tuple[int, int] | None = None,
    elsewhere: bool = False,
) -> KeeperCell:
    """Start a keeper. ``base`` is the folder that it makes and removes ("": none), with the workspace in it, unless
    ``workspace`` is a folder that exists and stays. ``elsewhere``: code runs in a
    box that shows it the workspace only; ``player``: then, as root, whose the files are (uid, gid). Raises ArenaError with the system's words."""
    ours, theirs = socket_pair()
    try:
        with theirs, _said() as said:
            keeper = _spawn(theirs.fileno(), said)
            bury = _burial(keeper, base)
            try:
                request = {
                    "base": base,
                    "workspace": workspace,
                    "python": python.argv(),
                    "player": player,
                    "elsewhere": elsewhere,
                }
                _shake_hands(ours, theirs, request, said)
            except BaseException:
                ours.close()
                bury()
                raise
    except BaseException:
        ours.close()
        raise
    return KeeperCell(ours, wall=wall, limits=limits, env=env, bury=bury)


def _said() -> IO[bytes]:
    """Where a keeper's last words go while it comes up."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise ArenaError(
            f"no temporary file can be made ({error.strerror}: {tempfile.gettempdir()})"
        ) from None


def _spawn(fd: int, said: IO[bytes]) -> subprocess.Popen[bytes]:
    command = Interpreter(sys.executable).argv()
    if not sys.dont_write_bytecode:  # else each keeper and each run would compile what they begin with
        command = tuple(word for word in command if word != "-B")
    argv = [*command, "tool", "0", "keeper", str(fd), str(os.getpid())]
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            cwd="/",
            env={"PATH": PATH, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
            pass_fds=[fd],
            start_new_session=True,
        )
    except OSError as error:
        raise ArenaError(f"a keeper can't be started: {sys.executable}: {error.strerror}") from None


def _shake_hands(
    ours: socket.socket, theirs: socket.socket, request: Mapping[str, object], said: IO[bytes]
) -> None:
    deadline = time.monotonic() + START_S
    try:
        theirs.close()
        wire.send(ours, dict(request), deadline=deadline)
        answer, _, _ = wire.receive(ours, deadline=deadline, max_block=0)
    except wire.WireError as error:
        said.seek(0)
        words = said.read(4096).decode("utf-8", "replace").strip()
        raise ArenaError(f"a keeper did not come up ({error}): {words or 'it said nothing'}") from None
    if "ready" not in answer:
        raise ArenaError(f"a cell can't be made: {str(answer.get('text', 'no reason given'))[:2000]}")


def _burial(keeper: subprocess.Popen[bytes], base: str) -> Callable[[], None]:
    def bury() -> None:
        rc = _wait(keeper)
        if base and (rc != 0 or os.path.lexists(base)):
            procs.sweep(os.fsencode(base))
            tree.remove(base)

    return bury


def _wait(keeper: subprocess.Popen[bytes]) -> int:
    """The keeper's exit status; after a while it is killed."""
    try:
        fd = os.pidfd_open(keeper.pid)
    except (AttributeError, OSError):  # no such thing here, or it was collected already
        try:
            return keeper.wait(END_S)
        except subprocess.TimeoutExpired:
            pass
    else:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        ended = poll.poll(
            END_S * 1000
        )  # returns at once when it ends, where Popen.wait would sleep and look again
        os.close(fd)
        if ended:
            return keeper.wait()
    keeper.kill()
    return keeper.wait()
