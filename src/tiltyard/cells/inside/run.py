"""How a run begins in a cell, and the seam where walls differ: the *starter*.

A starter forks the first process of a run (its leader) with given standard streams and descriptors, looks now and
then whether the cell uses more than it may, and kills everything. ``ProcessStarter`` executes a fresh interpreter
with rlimits; a fork server's starter forks from warm memory and calls ``boot.become``. The helpers that set up a
forked child (streams, signals, rlimits) are shared. Nothing here raises for what a run does.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time

from . import bare, procs, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol

    class Starter(Protocol):
        """How a wall starts runs in a cell and ends them."""

        reborn: bool
        """Whether runs begin in another memory than they did in the cell when it was new."""

        def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
            """Fork the leader with these as its descriptors 0, 1, 2 and 3, 4, …; its pid. Raises StartError."""

        def excess(self, job: Job) -> str | None:
            """Called every few hundredths of a second while a job runs: why it must be killed, or None."""

        def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
            """Kill everything in the cell but the keeper, the pids in ``spare`` and what hangs below those.
            ``reap`` collects what has ended; False: no child is left. Returns False if something won't die."""


RESERVED = 8 << 30
"""Address space that may be reserved beyond the memory: each thread reserves 72 to 136 MiB and touches little of it.
RLIMIT_DATA counts what can be written and is private; memory that is shared is left to ``Starter.excess``."""


class StartError(Exception):
    """The leader could not begin. ``players``: the command is at fault, not the machine."""

    def __init__(self, text: str, *, players: bool) -> None:
        super().__init__(text)
        self.players = players


class Job:
    """What to start: see ``boot`` for ``kind`` (or ``command``: rest is an argv), with its limits (None: none).
    ``again``: a program that is not the only one of its cell."""

    __slots__ = (
        "again",
        "cpu_s",
        "disk_bytes",
        "disk_files",
        "env",
        "file_bytes",
        "kind",
        "memory_bytes",
        "open_files",
        "processes",
        "rest",
    )

    def __init__(
        self,
        kind: str,
        rest: Sequence[str],
        env: Mapping[str, str],
        *,
        cpu_s: float | None = None,
        memory_bytes: int | None = None,
        processes: int | None = None,
        open_files: int | None = None,
        file_bytes: int | None = None,
        disk_bytes: int | None = None,
        disk_files: int | None = None,
        again: bool | None = None,
    ) -> None:
        self.kind = kind
        self.rest = list(rest)
        self.env = dict(env)
        self.cpu_s = cpu_s
        self.memory_bytes = memory_bytes
        self.processes = processes
        self.open_files = open_files
        self.file_bytes = file_bytes
        self.disk_bytes = disk_bytes
        self.disk_files = disk_files
        self.again = again

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Job:
        """From a request of the cell's owner (trusted)."""
        limits = {name: header.get(name) for name in cls.__slots__ if name not in ("kind", "rest", "env")}
        return cls(header["kind"], header["rest"], header["env"], **limits)


# --------------------------------------------------------------------------------- in the forked child, any wall


def settle(workspace: int, stdio: Sequence[int], fds: Sequence[int]) -> None:
    """First steps of a forked child: own session, plain signals, the workspace (a descriptor) as current folder,
    ``stdio`` as 0, 1, 2 and ``fds`` as 3, 4, …, inheritable. Other descriptors are left (all are close-on-exec)."""
    os.setsid()
    bare.plain_signals()
    os.umask(0o022)
    os.fchdir(workspace)
    place([*stdio, *fds])


def place(fds: Sequence[int]) -> None:
    """Make ``fds`` the descriptors 0, 1, 2, …, inheritable; they may overlap with those numbers."""
    out_of_the_way = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(fds) + 3) for fd in fds]
    for n, fd in enumerate(out_of_the_way):
        os.dup2(fd, n, inheritable=True)
        os.close(fd)


def limit(job: Job) -> None:
    """Set the rlimits of a job on this process, soft and hard alike (a soft one can be raised, and the first process
    of a pid namespace ignores SIGXCPU). What the system doesn't have or is lower already stays as it is."""
    caps = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, None if job.cpu_s is None else max(1, -int(-job.cpu_s // 1))),
        (resource.RLIMIT_FSIZE, job.file_bytes),
        (resource.RLIMIT_NOFILE, job.open_files),
        (resource.RLIMIT_DATA, job.memory_bytes),
        (resource.RLIMIT_AS, None if job.memory_bytes is None else job.memory_bytes + RESERVED),
    ]
    for what, value in caps:
        if value is None:
            continue
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        try:
            resource.setrlimit(what, (value, value))
        except (ValueError, OSError):
            if procs.LINUX:  # macOS has no RLIMIT_AS that can be set; here it must not fail unseen
                raise


# --------------------------------------------------------------------------------------------- the process wall


class ProcessStarter:
    """Runs are fresh processes: a new interpreter, or a command, with rlimits.

    ``python`` is the argv of an interpreter up to and without the arguments of ``boot.launch``. ``watched`` is a
    descriptor of the folder whose use of disk counts; ``workspace``, one of the folder in which runs begin.
    """

    DISK_PAUSE_S = 0.25
    reborn = False

    def __init__(self, python: Sequence[str], watched: int, workspace: int = -1) -> None:
        self.python = list(python)
        self.workspace = workspace
        self.watched = watched
        self._next_disk = 0.0
        self._backstop = _process_backstop()
        self._groups: set[int] = set()

    def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
        is_command = job.kind == "command"
        argv = list(job.rest) if is_command else [*self.python, job.kind, str(len(fds)), *job.rest]
        self._next_disk = time.monotonic() + self.DISK_PAUSE_S
        told, tell = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(told)
            os.close(tell)
            raise StartError(f"no process can be started ({error.strerror})", players=False) from None
        if pid == 0:
            self._child(job, argv, stdio, fds, tell)
        os.close(tell)
        trouble = os.read(told, 4096)
        os.close(told)
        if trouble:
            os.waitpid(pid, 0)
            raise _start_error(trouble, argv[0], is_command)
        self._groups.add(pid)
        return pid

    def _child(
        self, job: Job, argv: list[str], stdio: Sequence[int], fds: Sequence[int], tell: int
    ) -> None:  # never returns
        step = "set up"
        try:
            tell = fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, len(fds) + 64)
            settle(self.workspace, stdio, fds)
            limit(job)
            if self._backstop is not None and job.processes is not None:
                most = self._backstop + job.processes
                hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
                most = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            step = "exec"
            os.execvpe(argv[0], argv, job.env)
        except OSError as error:
            os.write(tell, f"{step} {error.errno} {error.strerror}".encode())
        except BaseException as error:
            os.write(tell, f"{step} 0 {type(error).__name__}: {error}".encode()[:4096])
        finally:
            os._exit(127)

    def excess(self, job: Job) -> str | None:
        if job.processes is not None or job.memory_bytes is not None:
            enough = job.memory_bytes if job.memory_bytes is not None else 1 << 62
            most = job.processes if job.processes is not None else 1 << 30
            below = procs.descendants(most=most)
            tasks, memory = (len(below), 0) if len(below) > most else procs.tasks_and_memory(below, enough)
            if tasks > most:
                return f"more than {job.processes} processes and threads"
            if memory > enough:
                return f"more than {enough} bytes of memory"
        if job.disk_bytes is None or time.monotonic() < self._next_disk:
            return None
        return self._disk_excess(job.disk_bytes, job.disk_files or tree.MAX_SEEN)

    def _disk_excess(self, most_bytes: int, most_files: int) -> str | None:
        begin = time.monotonic()
        try:
            used, count = tree.usage(self.watched, most_files + 16)
        except OSError:
            used = count = 0
        end = time.monotonic()
        self._next_disk = end + max(self.DISK_PAUSE_S, 20 * (end - begin))  # at most a twentieth of the time
        if used > most_bytes:
            return f"more than {most_bytes} bytes of disk"
        return f"more than {most_files} files" if count > most_files else None

    def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
        if not procs.LINUX:  # orphans are not ours to reap there; the group of each leader is what finds them
            for pid in self._groups.difference(spare):
                procs.kill_group(pid)
        self._groups.intersection_update(spare)
        return procs.kill_descendants(reap, spare)


def _process_backstop() -> int | None:
    """How many processes and threads may exist before one more is refused to this user; None for root, whom the
    kernel does not count. RLIMIT_NPROC counts all that the user has on the machine, so it can't hold one cell to its
    number (``excess`` does); it only stops a fork bomb that outruns the keeper, far from starving other cells."""
    if os.getuid() == 0:
        return None
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read().split()[3].split(b"/")[1]) + 2048
    except (OSError, ValueError, IndexError):
        return None


_PLAYERS = frozenset(
    (
        errno.ENOENT,
        errno.EACCES,
        errno.ENOTDIR,
        errno.ENOEXEC,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EISDIR,
        errno.EPERM,
        errno.EINVAL,
        errno.ETXTBSY,
    )
)


def _start_error(trouble: bytes, command: str, is_command: bool) -> StartError:
    step, number, text = trouble.decode("utf-8", "replace").split(" ", 2)
    if step == "exec" and (int(number) == errno.E2BIG or (is_command and int(number) in _PLAYERS)):
        return StartError(f"{command!r} can't be run: {text}" if is_command else text, players=True)
    what = f"{command!r} can't be executed" if step == "exec" else "a run can't be set up"
    return StartError(f"{what} ({text})", players=False)
