"""The processes under this one: finding them, counting what they use, killing every one of them.

On Linux this process becomes the reaper of its descendants, so that one which leaves its group, its session or its
parent still hangs below it, and "no child left" (ECHILD) proves that nothing is left. Elsewhere a look at the table
of processes has to do: children are followed by parent and by process group, and one that left both is missed.
"""

# pathlib would cost each fresh interpreter some milliseconds:
# ruff: noqa: PTH115, PTH208
from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

LINUX = sys.platform.startswith("linux")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 4, 36, 38


def become_reaper() -> None:
    """Make this process the reaper of all its descendants; none of them can gain rights by a setuid program, and
    none with the same uid can read or trace this process. No-op where the system has no such thing."""
    if not LINUX:
        return
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_NO_NEW_PRIVS, 1), (_PR_SET_DUMPABLE, 0)):
        if prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0 and option == _PR_SET_CHILD_SUBREAPER:
            raise OSError(ctypes.get_errno(), "the keeper can't become the reaper of its processes")


def descendants(spare: Collection[int] = (), *, most: int = 1 << 30) -> set[int]:
    """Pids below this process, without those in ``spare`` and what hangs below them. Stops looking after ``most``."""
    me = os.getpid()
    try:
        below = _children(me)
    except OSError:  # no such file in this kernel, or no /proc
        return _descendants_by_table(me, spare)
    found: set[int] = set()
    todo = [p for p in below if p not in spare]
    while todo and len(found) <= most:
        pid = todo.pop()
        if pid in found:
            continue
        found.add(pid)
        try:
            todo.extend(p for p in _children(pid) if p not in spare)
        except OSError:
            pass  # ended meanwhile; its children are ours now and are seen in the next round
    return found


def _children(pid: int) -> list[int]:
    """Children of every thread of a process."""
    found: list[int] = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", "rb", buffering=0) as file:
            found.extend(map(int, _whole(file.fileno()).split()))
    return found


def _whole(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _descendants_by_table(me: int, spare: Collection[int]) -> set[int]:
    table = list(_table())
    groups = {group for pid, parent, group in table if parent == me and pid not in spare}
    found: set[int] = set()
    grew = True
    while grew:
        grew = False
        for pid, parent, group in table:
            if pid in found or pid in spare or pid == me:
                continue
            if parent == me or parent in found or (group in groups and group not in spare):
                found.add(pid)
                grew = True
    return found


def _table() -> Iterable[tuple[int, int, int]]:
    """(pid, parent, process group) of every process."""
    if LINUX:
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    fields = _stat(int(name))
                except OSError:
                    continue
                yield int(name), int(fields[1]), int(fields[2])
        return
    import subprocess

    ps = subprocess.Popen(["/bin/ps", "-axo", "pid=,ppid=,pgid="], stdout=subprocess.PIPE)
    for line in ps.communicate(timeout=10)[0].splitlines():
        pid, parent, group = map(int, line.split())
        if pid != ps.pid:
            yield pid, parent, group


def _stat(pid: int) -> list[bytes]:
    """Fields of /proc/PID/stat from the state on (the name before it may hold anything)."""
    with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
        return _whole(file.fileno()).rpartition(b")")[2].split()


def tasks_and_memory(pids: Iterable[int], enough: int) -> tuple[int, int]:
    """Threads of these processes together, and their memory in bytes: resident pages, each counted once for each
    process that has it, unless that makes more than ``enough``; then shared pages are shared out (and it is slow)."""
    pids = list(pids)
    tasks = memory = 0
    if not LINUX:
        return len(pids), 0
    for pid in pids:
        try:
            fields = _stat(pid)
        except OSError:
            continue
        tasks += int(fields[17])
        memory += int(fields[21]) * _PAGE
    if memory > enough:
        memory = sum(map(_proportional, pids))
    return tasks, memory


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            for line in _whole(file.fileno()).splitlines():
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def kill_descendants(
    reap: Callable[[], bool], spare: Collection[int] = (), *, within_s: float = 20.0
) -> bool:
    """Kill everything below this process but ``spare`` and what hangs below those. ``reap`` collects what has ended
    and says whether any child is left. False if something still lives after ``within_s``: it hangs in the kernel."""
    end = time.monotonic() + within_s
    pause = 0.0005
    boosted = False
    try:
        while reap():
            found = _strike(spare)
            if not found and spare:
                return True
            if found > CROWD and not boosted:
                boosted = _boost()
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.02) if found <= CROWD else 0.0005
        return True
    finally:
        if boosted:
            _unboost()


CROWD = 16
"""Processes from which on it is no family but perhaps a bomb, and speed matters."""


def _strike(spare: Collection[int]) -> int:
    """Kill what is found in one walk; how many that were. A process with a SIGKILL pending can't fork any more, so
    its children, read after that, are all that it ever has; orphans come to this process and are met in the next
    walk. Each is looked at once, so the walk is faster than a bomb. Whole groups go at once, before they are read."""
    me = os.getpid()
    found: set[int] = set()
    groups = {os.getpgid(0)}
    try:
        todo = [p for p in _children(me) if p not in spare]
    except OSError:
        found = descendants(spare)
        for pid in found:
            _signal(pid, signal.SIGKILL)
        return len(found)
    in_crowd = len(todo) > CROWD
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        found.add(pid)
        if in_crowd or len(found) > CROWD:
            _kill_group_of(pid, groups)
        _signal(pid, signal.SIGKILL)
        try:
            todo.extend(p for p in _children(pid) if p not in spare)
        except OSError:
            pass  # ended meanwhile
    return len(found)


def _kill_group_of(pid: int, known: set[int]) -> None:
    try:
        group = os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return
    if group not in known:
        known.add(group)
        kill_group(group)


def kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _boost() -> bool:
    """Go before all others, where that is allowed: a bomb takes the processor from who should stop it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (AttributeError, OSError):
        return False
    return True


def _unboost() -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pass


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def sweep(mark: bytes, *, within_s: float = 10.0) -> None:
    """Kill every process of the system whose environment or current folder has ``mark`` in it: the net below the
    keeper, for when a keeper was killed. Misses one that has cleared its environment and gone elsewhere."""
    if not LINUX:
        return
    end = time.monotonic() + within_s
    clean = 0
    while clean < 2 and time.monotonic() < end:
        found = [pid for pid in _all_pids() if pid != os.getpid() and _marked(pid, mark)]
        for pid in found:
            _signal(pid, signal.SIGSTOP)
        for pid in found:
            _signal(pid, signal.SIGKILL)
        clean = 0 if found else clean + 1
        if found:
            time.sleep(0.005)


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _marked(pid: int, mark: bytes) -> bool:
    try:
        if os.readlink(f"/proc/{pid}/cwd".encode()).startswith(mark):
            return True
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return mark in os.read(file.fileno(), 1 << 20)
    except OSError:
        return False
