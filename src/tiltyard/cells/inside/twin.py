"""Runs, and the keeper's *twin*: a process that stays as it was born, from which every run of a cell is forked.

The order of a program's sets and the addresses that it prints follow from the state of its memory. A keeper's depends
on all that it has done, down to how its messages were cut; so before it is asked for anything it forks its twin, which
does nothing but wait for a byte and fork: each run begins in the same memory, in a copy of a cell, too. What is to be
run, the fork itself reads
from a socket. Runs are children of the keeper (CLONE_PARENT), which sees their ends. A program (see ``boot``) that is
the only one of its cell, started before any run, is forked from the keeper itself.

A run has the player's ids, the filter, Landlock, its rlimits, no capability, and no descriptor but its own. Where the
machine has only one id for a cell, a player can kill the twin; the keeper then makes another.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import resource
import select
import struct
import time

from . import bare, lock, perform, procs, run, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, NoReturn

    from .bare import Socket
    from .cgroup import Group
    from .run import Job

PLAYER = 1000
"""The player's uid and gid as the cell sees them."""
KEEPER = 0
"""The keeper's, where the machine gives a second id to a cell; else it has the player's."""
NOT_PLAYERS = 8
"""Room in a cell's control group for those that are counted with the player's: the stall, the keeper, its twin, the one
that kills what a run leaves behind."""
ANSWER_S = 10.0
_PID = struct.Struct("i")
_SIZE = struct.Struct("Q")
_STDIO = 3


class Steps:
    """Calls on the way to a run that are the same for all, made ready before any fork (see ``lock.Prepared``).
    ``two_ids``: whether the player's user id is not the keeper's."""

    def __init__(self, two_ids: bool = False) -> None:
        self.two_ids = two_ids
        self.be_twin = (lock.dying_with_parent(), lock.naming("tiltyard-twin"))
        self.be_python = lock.naming("python3")
        self.die_with_parent = lock.dying_with_parent()
        ids = lock.becoming(PLAYER, PLAYER) if two_ids else []
        self.be_player = (*ids, lock.holding(()), lock.dumpable(True))


class Locks(Steps):
    """What is the same for all cells of a server: the filter, Landlock's version, whether there is a second
    id for each cell, what is stashed away (see ``root.build``), and whether there are trees (see ``overlay``)."""

    def __init__(self, *, two_ids: bool, stashed: Sequence[str], trees: bool = False) -> None:
        super().__init__(two_ids)
        self.filter = lock.Filter(lock.filter_program())
        self.landlock = lock.landlock_abi()
        self.stashed = tuple(stashed)
        self.trees = trees


def cap_group(group: Group, caps: Mapping[str, Any]) -> None:
    """Set a cell's caps on its control group. OSError if the kernel refuses."""
    group.cap(caps["memory_bytes"] + caps["disk_bytes"], caps["processes"] + NOT_PLAYERS)


def high(fd: int) -> int:
    """The descriptor, moved out of the way of those that a run is given."""
    moved: int = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, wire.MAX_FDS + 16)
    os.close(fd)
    return moved


# ---------------------------------------------------------------- in the keeper


class _Silent(Exception):
    """Nothing comes from what should begin: the twin is dead, or stopped."""


class ForkStarter:
    """Begins and ends runs. See ``run.Starter``. ``workspace`` is a descriptor, ``landlock`` that of a ruleset or -1,
    ``caps`` the cell's, ``group`` the control group that it is in."""

    def __init__(
        self, workspace: int, locks: Locks, landlock: int, caps: Mapping[str, Any], group: Group | None
    ) -> None:
        self.workspace = workspace
        self.locks = locks
        self.landlock = landlock
        self.caps = dict(caps)
        self.group = group
        self.counted = group is not None and "memory" in group.controllers
        """Whether the kernel adds the cell's memory up."""
        self.kills = group.memory_kills() if group is not None else 0
        self.twin = 0
        """Its pid, or 0."""
        self.sock: Socket | None = None
        self.bell = -1
        self.reborn = False
        """Whether a twin was lost: the next one is forked from a keeper that has done things."""

    def make_twin(self) -> None:
        ours, theirs = bare.pair()
        ours.settimeout(ANSWER_S)
        hear, ring = os.pipe()
        pid = lock.fork()
        if pid == 0:
            _live(self, high(hear), bare.Socket(fileno=high(theirs.detach())))
        theirs.close()
        os.close(hear)
        self.twin, self.sock, self.bell = pid, ours, ring

    def _lose_twin(self) -> None:
        if self.sock is not None:
            self.sock.close()
            os.close(self.bell)
            self.sock = None
            self.reborn = True
            try:
                os.kill(self.twin, bare.SIGKILL)
            except ProcessLookupError:
                pass
            self.twin = 0

    def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
        if job.memory_bytes is not None and job.memory_bytes > self.caps["memory_bytes"]:
            self.caps["memory_bytes"] = job.memory_bytes
            if self.group is not None:
                cap_group(self.group, self.caps)
        try:
            for _ in range(2):
                try:
                    if job.kind == "program" and not job.again:
                        return self._fork(job, [*stdio, *fds])
                    return self._ask_twin(job, [*stdio, *fds])
                except _Silent:
                    self._lose_twin()
        except OSError as error:
            raise run.StartError(f"no process can be started ({error.strerror})", players=False) from None
        raise run.StartError("no process can be started: none that is forked answers", players=False)

    def _fork(self, job: Job, fds: list[int]) -> int:
        told, tell = os.pipe()
        try:
            try:
                if lock.fork() == 0:
                    run.settle(self.workspace, (), ())
                    perform.interpreters_signals()
                    _run(self, job, tell, fds)
            finally:
                os.close(tell)
            return _begun(told, job)
        finally:
            os.close(told)

    def _ask_twin(self, job: Job, fds: list[int]) -> int:
        if self.sock is None:
            self.make_twin()
        assert self.sock is not None
        told, tell = os.pipe()
        try:
            try:
                os.write(self.bell, b"!")
                _send_job(self.sock, job, [tell, *fds])
            except OSError:
                raise _Silent from None
            finally:
                os.close(tell)
            return _begun(told, job)
        finally:
            os.close(told)

    def excess(self, job: Job) -> str | None:
        """The kernel holds the caps. Where it adds a cell's memory up and kills for it, it kills one process after the
        other: one is enough to end the run. Where it does not add up, that is done here."""
        if job.memory_bytes is None:
            return None
        if self.counted:
            before, self.kills = self.kills, self.group.memory_kills() if self.group is not None else 0
            over = self.kills > before
        else:
            below = procs.descendants((self.twin,))
            over = procs.tasks_and_memory(below, job.memory_bytes)[1] > job.memory_bytes
        return f"more than {job.memory_bytes} bytes of memory" if over else None

    def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
        """One signal reaches all, and none can fork past it: the kernel sends it to every process of the namespace
        that the sender may signal. Only where some must live are processes looked for one by one."""
        if spare:
            return procs.kill_descendants(reap, {*spare, self.twin})
        end = time.monotonic() + 20.0
        pause = 0.0002
        while reap() and not self._alone():
            if self.locks.two_ids:
                _kill_as_player()
            else:
                _signal_all()
                self._lose_twin()  # it has the player's id
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True

    def _alone(self) -> bool:
        """Whether nothing but the twin is left: what has lost its parent is a child of this process."""
        try:
            fd = os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return os.read(fd, 4096).split() == ([b"%d" % self.twin] if self.twin else [])
        finally:
            os.close(fd)


def _send_job(sock: Socket, job: Job, fds: Sequence[int]) -> None:
    """For ``_take_job``. Both ends are ours: the interpreter's own format will do, which is the quickest to read."""
    data = marshal.dumps({name: getattr(job, name) for name in job.__slots__})
    head = _SIZE.pack(len(data)) + data
    sent = bare.send_fds(sock, head, fds)
    sock.sendall(head[sent:])


def _take_job(sock: Socket) -> tuple[Job, list[int]]:
    size, fds, _ = bare.receive_fds(sock, _SIZE.size, wire.MAX_FDS, bare.WAIT_ALL)
    data = sock.recv(_SIZE.unpack(size)[0], bare.WAIT_ALL)
    return run.Job.from_header(marshal.loads(data)), fds


def _begun(told: int, job: Job) -> int:
    """The pid of a run that has begun, from what it says until it is the player's. Raises StartError with its trouble,
    and _Silent if nothing comes."""
    said = b""
    poll = select.poll()
    poll.register(told, select.POLLIN)
    deadline = time.monotonic() + ANSWER_S
    while True:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise _Silent
        part = os.read(told, 4096)
        if not part:
            break
        said += part
    pid, trouble = said[: _PID.size], said[_PID.size :]
    if len(pid) < _PID.size:
        raise _Silent
    if trouble:
        raise run._start_error(trouble, job.rest[0], job.kind == "command")
    found: int = _PID.unpack(pid)[0]
    return found


def _signal_all() -> None:
    try:
        os.kill(-1, bare.SIGKILL)
    except ProcessLookupError:
        pass


def _kill_as_player() -> None:
    """A child with the player's ids signals all that it can: the player's processes, and not the twin."""
    try:
        pid = lock.fork()
    except OSError:
        return  # until what is dying is dead; the caller tries again
    if pid == 0:
        try:
            os.setresuid(PLAYER, PLAYER, PLAYER)
            _signal_all()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


# ---------------------------------------------------------------- in the twin, and in what it forks


def _live(cell: ForkStarter, bell: int, mail: Socket) -> NoReturn:
    """Fork a run for each byte, until the keeper is gone. Until the first one comes hardly a page is touched, which would
    be copied: many a cell never runs anything."""
    try:
        lock.carry_out(cell.locks.be_twin)
        settled = False
        while os.read(bell, 1):
            if not settled:
                _settle(cell, bell, mail)
                settled = True
            try:
                if lock.clone(lock.PARENT) == 0:
                    _begin(cell, mail)
            except OSError as error:
                _say_no(mail, error)
    finally:
        os._exit(0)


def _settle(cell: ForkStarter, bell: int, mail: Socket) -> None:
    lock.close_others([0, 1, 2, bell, mail.fileno(), cell.workspace, cell.landlock])
    run.settle(cell.workspace, (), ())
    perform.interpreters_signals()


def _say_no(mail: Socket, error: OSError) -> None:
    _, fds = _take_job(mail)
    os.write(fds[0], _PID.pack(0) + f"fork {error.errno} {error.strerror}".encode())
    for at in fds:
        os.close(at)


def _begin(cell: ForkStarter, mail: Socket) -> NoReturn:
    try:
        job, fds = _take_job(mail)
        os.setsid()
        _run(cell, job, fds[0], fds[1:])
    finally:
        os._exit(1)


def _run(cell: ForkStarter, job: Job, tell: int, fds: list[int]) -> NoReturn:
    """Become the player's process, and do the job. Says its pid on ``tell``, and what went wrong until it began. The
    process has a session of its own, an interpreter's signals, and the workspace as its current folder."""
    step = "set up"
    me = os.getpid()
    try:
        tell = high(tell)
        os.write(tell, _PID.pack(me))
        run.place(fds)
        lock.close_others([*range(len(fds)), tell, cell.landlock])
        cell.locks.be_python()
        become_player(cell, job)
        if job.kind == "command":
            for number in (bare.SIGPIPE, bare.SIGXFSZ):
                bare.on_signal(number, bare.DEFAULT)
            step = "exec"
            os.execvpe(job.rest[0], job.rest, job.env)
        os.close(tell)
        perform.perform(job, list(range(_STDIO, len(fds))))
    except OSError as error:
        os.write(tell, f"{step} {error.errno} {error.strerror}".encode())
    except BaseException as error:
        os.write(tell, f"{step} 0 {type(error).__name__}: {error}".encode()[:4096])
    finally:
        os._exit(127 if os.getpid() == me else 1)


def become_player(cell: ForkStarter, job: Job) -> None:
    """From the keeper's rights to none. Nothing of this can be undone from inside. Other processes of the player can
    look into this one from the moment that it is dumpable: what is the keeper's must be gone by then."""
    if cell.group is not None and "cpu" in cell.group.controllers:
        os.nice(10)  # within the cell's own share: the keeper stays quick, however busy the player is
    run.limit(job)
    if job.processes is not None:
        most = job.processes + (
            0 if cell.locks.two_ids else 2
        )  # the keeper and its twin have the same id, and count
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    lock.carry_out(cell.locks.be_player)
    _kill_me_first()
    if cell.landlock >= 0:
        lock.landlock_restrict(cell.landlock)
        os.close(cell.landlock)


def _kill_me_first() -> None:
    """When memory runs out, a run goes before anything else of this machine does."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)
