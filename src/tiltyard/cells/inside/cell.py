"""Inside a new cell: the steps from a bare fork to a keeper that serves, and from the keeper to a locked run.

``live`` is called in the first process of the cell's namespaces. It mounts the cell's folders and /proc, takes the
ids of the keeper, gives up every right that a keeper does not need, and serves the owner until it is gone.
``ForkStarter`` begins runs: forked from the keeper's warm memory, under the player's ids, in the cell's control group,
under the filter and Landlock, with no descriptor but its own and no capability at all. The player can neither signal
nor trace the keeper: it is the first process of its namespace, has other ids or more rights, and is not dumpable.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102

from __future__ import annotations

import fcntl
import gc
import os
import resource
import signal
import socket
import sys
import time

from . import boot, keeper, lock, procs, root, run, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, NoReturn

    from .cgroup import Group
    from .run import Job

PLAYER = 1000
"""The player's uid and gid as the cell sees them."""
KEEPER = 0
"""The keeper's, where the machine gives a second id to a cell; else it has the player's."""
ANSWER_S = 30.0
_NOT_PLAYERS = 2
"""The stall and the keeper: they are in a cell's control group, and counted there."""
_KEPT = (lock.CAP_KILL, lock.CAP_SETGID, lock.CAP_SETUID)
_WORKSPACE = root.WRITABLE[0]


class Locks:
    """What is the same for all cells of a server: the filter, Landlock's version, whether there is /proc and a
    second id for each cell."""

    def __init__(self, *, has_proc: bool, two_ids: bool) -> None:
        self.filter = lock.Filter(lock.filter_program())
        self.landlock = lock.landlock_abi()
        self.has_proc = has_proc
        self.two_ids = two_ids


def live(fd: int, locks: Locks, caps: Mapping[str, Any], group: Group | None) -> None:
    """Be the keeper of a cell with these caps (see ``CellLimits``), whose owner is at the other end of ``fd``, until
    the owner is gone. ``group``: the control group that this process is in."""
    lock.close_others([0, 1, 2, fd, *(group.fds if group is not None else ())])
    sock = socket.socket(fileno=fd)
    try:
        if group is not None:
            cap_group(group, caps)
        folder, landlock = _settle(locks, caps)
        starter = ForkStarter(folder, locks, landlock, caps, group)
        wire.send(sock, {"ready": True}, deadline=_soon(), fds=[os.pidfd_open(os.getpid())])
    except OSError as error:
        refuse(sock, error)
        return
    keeper.serve(sock, _WORKSPACE, starter, own_disk=True)


def cap_group(group: Group, caps: Mapping[str, Any]) -> None:
    """Set a cell's caps on its control group. OSError if the kernel refuses."""
    group.cap(caps["memory_bytes"] + caps["disk_bytes"], caps["processes"] + _NOT_PLAYERS)


def refuse(sock: socket.socket, error: OSError) -> None:
    """Tell the owner why there is no cell. Never raises: if it is gone, nobody asks."""
    try:
        wire.send(sock, {"error": "arena", "text": f"{error.strerror or error}"}, deadline=_soon())
    except wire.WireError:
        pass


def _settle(locks: Locks, caps: Mapping[str, Any]) -> tuple[int, int]:
    """Everything up to the last lock of the keeper. Returns descriptors: of the workspace, and Landlock's or -1."""
    lock.set_name("tiltyard-keeper")
    if locks.two_ids:
        os.setgroups([])
        os.setresgid(KEEPER, KEEPER, KEEPER)
        os.setresuid(KEEPER, KEEPER, KEEPER)
    _mount(locks, caps)
    lock.set_file_owner(PLAYER, PLAYER)
    lock.set_capabilities(_KEPT)
    lock.set_dumpable(False)
    lock.die_with_parent()  # here, for a change of ids undoes it
    lock.no_new_privileges()
    locks.filter.install()
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 16),
    ):
        resource.setrlimit(what, (most, most))
    landlock = -1
    if locks.landlock:
        landlock = lock.landlock_ruleset(locks.landlock, root.WRITABLE, ("/dev",))
        landlock = _high(landlock)
    os.chdir(_WORKSPACE)
    return _high(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)), landlock


def _high(fd: int) -> int:
    """The descriptor, moved out of the way of those that a run is given."""
    moved: int = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, wire.MAX_FDS + 16)
    os.close(fd)
    return moved


def _mount(locks: Locks, caps: Mapping[str, Any]) -> None:
    """One tmpfs, so that the caps on bytes and files hold for all writable folders together; and /proc."""
    more = len(root.WRITABLE) + 1
    options = f"mode=700,size={caps['disk_bytes']},nr_inodes={caps['disk_files'] + more}"
    lock.mount("cell", root.CELL, "tmpfs", lock.NOSUID | lock.NODEV, options)
    for path in root.WRITABLE:
        inner = root.CELL + path
        os.mkdir(inner, 0o755)
        if locks.two_ids:
            os.chown(inner, PLAYER, PLAYER)
        lock.mount(inner, path, None, lock.BIND)
    lock.mount("/empty", root.CELL, None, lock.BIND)  # one way to each folder
    if locks.has_proc:
        flags = lock.NOSUID | lock.NODEV | lock.NOEXEC
        try:
            lock.mount("proc", "/proc", "proc", flags, "hidepid=invisible,subset=pid")
        except OSError:  # a kernel before 5.8
            lock.mount("proc", "/proc", "proc", flags, "hidepid=2")


# ---------------------------------------------------------------- runs


class ForkStarter:
    """Begins runs by forking the keeper. See ``run.Starter``."""

    def __init__(
        self, workspace: int, locks: Locks, landlock: int, caps: Mapping[str, Any], group: Group | None
    ) -> None:
        self.workspace = workspace
        self.locks = locks
        self.landlock = landlock
        self.caps = dict(caps)
        self.group = group
        self.counted = group is not None and "memory" in group.controllers

    def start(self, job: Job, stdio: tuple[int, int, int], fds: Sequence[int]) -> int:
        if job.memory_bytes is not None and job.memory_bytes > self.caps["memory_bytes"]:
            self.caps["memory_bytes"] = job.memory_bytes
            if self.group is not None:
                cap_group(self.group, self.caps)
        told, tell = os.pipe()
        try:
            pid = lock.fork()
        except OSError as error:
            os.close(told)
            os.close(tell)
            raise run.StartError(f"no process can be started ({error.strerror})", players=False) from None
        if pid == 0:
            self._child(job, stdio, fds, tell)
        os.close(tell)
        trouble = os.read(told, 4096)
        os.close(told)
        if trouble:
            os.waitpid(pid, 0)
            raise run._start_error(trouble, job.rest[0], job.kind == "command")
        return pid

    def _child(self, job: Job, stdio: Sequence[int], fds: Sequence[int], tell: int) -> NoReturn:
        step = "set up"
        me = os.getpid()
        try:
            tell = _high(tell)
            run.settle(self.workspace, stdio, fds)
            lock.close_others([*range(3 + len(fds)), tell, self.landlock])
            lock.set_name("python3")
            self._become_player(job)
            if job.kind == "command":
                step = "exec"
                os.execvpe(job.rest[0], job.rest, job.env)
            os.close(tell)
            perform(job, list(range(3, 3 + len(fds))))
        except OSError as error:
            os.write(tell, f"{step} {error.errno} {error.strerror}".encode())
        except BaseException as error:
            os.write(tell, f"{step} 0 {type(error).__name__}: {error}".encode()[:4096])
        finally:
            os._exit(127 if os.getpid() == me else 1)

    def _become_player(self, job: Job) -> None:
        """From the keeper's rights to none. Nothing of this can be undone from inside. Other processes of the player
        can look into this one from the moment that it is dumpable: what is the keeper's must be gone by then."""
        if self.group is not None and "cpu" in self.group.controllers:
            os.nice(10)  # within the cell's own share: the keeper stays quick, however busy the player is
        run.limit(job)
        if job.processes is not None:
            most = job.processes + (
                0 if self.locks.two_ids else 1
            )  # the keeper has the same id, and is counted
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        if self.locks.two_ids:
            os.setresgid(PLAYER, PLAYER, PLAYER)
            os.setresuid(PLAYER, PLAYER, PLAYER)
        lock.set_capabilities(())
        lock.set_dumpable(True)
        _kill_me_first()
        if self.landlock >= 0:
            lock.landlock_restrict(self.landlock)
            os.close(self.landlock)

    def excess(self, job: Job) -> str | None:
        """The kernel holds the caps; but without a control group nothing adds a cell's memory up."""
        if self.counted or job.memory_bytes is None:
            return None
        if procs.tasks_and_memory(procs.descendants(), job.memory_bytes)[1] > job.memory_bytes:
            return f"more than {job.memory_bytes} bytes of memory"
        return None

    def kill(self, reap: Callable[[], bool], spare: Collection[int]) -> bool:
        """As the first process of the namespace: one signal reaches all, and none can fork past it."""
        if spare:
            return procs.kill_descendants(reap, spare)
        end = time.monotonic() + 20.0
        pause = 0.0002
        while reap():
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                pass
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.01)
        return True


def _kill_me_first() -> None:
    """When memory runs out, a run goes before anything else of this machine does."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # no /proc in this cell
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)


# ---------------------------------------------------------------- the end of a run, as an interpreter has it


def perform(job: Job, fds: list[int]) -> NoReturn:
    """Do the job in this process and end it as the interpreter would: code, message, exit handlers, streams."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(job.env)
    sys.orig_argv[:] = ["python", *job.rest]
    me = os.getpid()
    code = 0
    try:
        boot.become(job.kind, job.rest, fds)
    except SystemExit as end:
        code = _exit_code(end)
    except KeyboardInterrupt as error:
        _show(error)
        code = -signal.SIGINT
    except BaseException as error:
        _show(error)
        code = 1
    if os.getpid() != me and job.kind in ("program", "tool"):
        os._exit(code & 0xFF)
    code = _finish(code)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    try:
        sys.stdout.flush()
        print(end.code, file=sys.stderr)
    except Exception:
        pass
    return 1


def _show(error: BaseException) -> None:
    """The traceback, without the frames that are ours."""
    trace = error.__traceback__
    ours = (__file__, boot.__file__)
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _finish(code: int) -> int:
    """Threads joined, exit handlers run, streams flushed, the script's objects dropped: in the interpreter's order."""
    import atexit

    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    code = _flush(code)
    names = getattr(sys.modules.get("__main__"), "__dict__", {})
    for private in (True, False):
        for name in list(names):
            if (name[:1] == "_" and name[:2] != "__") == private and name != "__builtins__":
                names[name] = None
    gc.collect()
    return _flush(code)


def _flush(code: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:
            if stream is sys.stdout and code == 0:
                code = 120
    return code


def _soon() -> float:
    return time.monotonic() + ANSWER_S
