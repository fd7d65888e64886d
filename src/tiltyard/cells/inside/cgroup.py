"""Memory, processes and CPU of a cell, counted by the kernel: control groups, of either version, where they can be had.

:func:`find` looks for hierarchies in which this process may make groups; :class:`Home` is one arena's folder in each,
with a group for each cell below it. A home is locked (``flock``) as long as its maker lives, so that
:func:`sweep` can tell a home whose maker was killed from one in use. Nothing here ever moves a process that it was
not told to move, or touches a group that is not named ``tiltyard-…``.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH102, PTH106, PTH110, PTH112, PTH116, PTH120, PTH208

from __future__ import annotations

import fcntl
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

WANTED = ("memory", "pids", "cpu")
PREFIX = "tiltyard-"
_SLACK = 32 << 20
"""What the kernel charges to a cell besides its own pages: page tables, dentries, sockets."""


class Place:
    """A folder in which groups can be made: ``version`` 1 or 2, and the controllers that come with it."""

    def __init__(self, path: str, version: int, controllers: tuple[str, ...]) -> None:
        self.path = path
        self.version = version
        self.controllers = controllers

    def __repr__(self) -> str:
        return f"Place({self.path!r}, v{self.version}, {'+'.join(self.controllers)})"


def find(wanted: Iterable[str] = WANTED) -> tuple[list[Place], dict[str, str]]:
    """Places that together give as many of the ``wanted`` controllers as can be had, and why not for the others. There
    is one place for each controller of version 1, and one for all of version 2: a process has one group there."""
    places: list[Place] = []
    missing: dict[str, str] = {}
    mounts, own = _mounts(), _own_groups()
    for name in wanted:
        if name in mounts:
            base, root = mounts[name]
            path = _below(base, root, own.get(name, "/"))
            reason = _trouble(path)
            together = next((place for place in places if place.path == path), None)
            if reason:
                missing[name] = reason
            elif together is not None:
                together.controllers += (name,)
            else:
                places.append(Place(path, 1, (name,)))
        else:
            missing[name] = "no control group file system is mounted that has it"
    others = tuple(name for name in missing if name not in mounts)
    if others and "" in mounts:
        base, root = mounts[""]
        place, reasons = _place_v2(others, base, _below(base, root, own.get("", "/")))
        places += [place] if place is not None else []
        missing = {name: reasons.get(name, why) for name, why in missing.items()}
        missing = {
            name: why for name, why in missing.items() if place is None or name not in place.controllers
        }
    return places, missing


def _place_v2(wanted: tuple[str, ...], base: str, path: str) -> tuple[Place | None, dict[str, str]]:
    """Of the groups from ``path`` up to ``base``: the nearest that hands most of the ``wanted`` controllers down to the
    groups below it. One with processes in it can't. Also, why the others can't be had."""
    offered = _read(f"{base}/cgroup.controllers").split()
    reasons = {
        name: "no group above this process hands it down (Delegate=yes in its unit does)"
        if name in offered
        else f"the kernel offers it in no group here (what it offers: {' '.join(offered) or 'nothing'})"
        for name in wanted
    }
    steps: list[tuple[str, tuple[str, ...]]] = []
    while True:
        given = _read(f"{path}/cgroup.subtree_control").split()
        if path == base and not os.path.exists(
            f"{path}/cgroup.type"
        ):  # the true root can, and needs only be told
            given += [
                name for name in wanted if name in offered and name not in given and _enable(path, name)
            ]
        steps.append((path, tuple(name for name in wanted if name in given)))
        if path == base or len(path) <= len(base):
            break
        path = os.path.dirname(path)
    for path, names in sorted(steps, key=lambda step: -len(step[1])):
        if not names:
            break
        trouble = _trouble(path)
        if not trouble:
            return Place(path, 2, names), reasons
        reasons |= dict.fromkeys(names, trouble)
    return None, reasons


def _enable(path: str, controller: str) -> bool:
    try:
        _write(f"{path}/cgroup.subtree_control", f"+{controller}")
    except OSError:
        return False
    return True


def _trouble(path: str) -> str:
    """ "" if a group can be made, and entered, below ``path``; tried by making one."""
    trial = f"{path}/{PREFIX}try-{os.getpid()}"
    try:
        os.mkdir(trial)
    except OSError as error:
        return f"no group can be made in {path} ({error.strerror})"
    try:
        os.close(os.open(f"{trial}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
        return ""
    except OSError as error:
        return f"no process can be moved into a group in {path} ({error.strerror})"
    finally:
        os.rmdir(trial)


def _mounts() -> dict[str, tuple[str, str]]:
    """Controller ("" for version 2) to where it is mounted, and which group is at the top of that mount."""
    found: dict[str, tuple[str, str]] = {}
    for line in _read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        where = (fields[4].replace("\\040", " "), fields[3])
        for name in ("",) if kind[0] == "cgroup2" else kind[2].split(","):
            found.setdefault(name, where)
    return found


def _own_groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _below(base: str, root: str, path: str) -> str:
    """The folder of group ``path`` in a mount at ``base`` whose top is group ``root``; the top if it is elsewhere."""
    if root != "/" and (path + "/").startswith(root + "/"):
        path = path[len(root) :]
    full = base + path.rstrip("/")
    return full if "/.." not in path and os.path.isdir(full) else base


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str, dir_fd: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


# ---------------------------------------------------------------- one arena's groups


class Home:
    """One locked folder in each place; made by who outlives the cells, and removed by it with :meth:`remove`."""

    def __init__(self, places: Iterable[Place], name: str) -> None:
        self.places = list(places)
        self.name = f"{PREFIX}{name}"
        self.fds: list[int] = []
        try:
            for place in self.places:
                self.fds.append(self._make(place))
        except OSError:
            self.remove()
            raise

    @classmethod
    def handed_over(cls, places: Iterable[Place], fds: Iterable[int]) -> Home:
        """One that another process has made, by its descriptors alone: groups can be made in it."""
        home = cls((), "")
        home.places, home.fds = list(places), list(fds)
        return home

    def _make(self, place: Place) -> int:
        fd = _make_and_lock(f"{place.path}/{self.name}")
        if place.version == 2:
            _write("cgroup.subtree_control", " ".join(f"+{c}" for c in place.controllers), fd)
        return fd

    @property
    def controllers(self) -> tuple[str, ...]:
        return tuple(c for place in self.places for c in place.controllers)

    def remove(self) -> None:
        """Take all groups away; every process in them must be dead, or about to be. Never raises."""
        for place in self.places:
            _remove(f"{place.path}/{self.name}", within_s=10.0)
        for fd in self.fds:
            os.close(fd)
        self.fds = []


def _make_and_lock(path: str) -> int:
    """The descriptor of a new folder. Who sweeps meanwhile may take it for one of the dead, lock it and take it away, if
    this process was kept from running for so long: then it is made again."""
    while True:
        os.mkdir(path)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.stat(path).st_ino == os.fstat(fd).st_ino:
                return fd
        except FileNotFoundError:
            pass
        except OSError:
            os.close(fd)
            raise
        os.close(fd)


class Group:
    """The group of one cell, in every place of a home: capped by :meth:`cap`, entered by :meth:`enter`.

    It lives by descriptors alone, so that it can be used where the files can't be seen or opened any more. Kept and
    used again by the next cell: making one costs more than setting its caps.
    """

    def __init__(self, home: Home, name: str) -> None:
        self._doors: list[int] = []
        self._memory: list[int] = []
        self._pids: list[int] = []
        self._events: list[int] = []
        self.controllers = home.controllers
        for fd, place in zip(home.fds, home.places):  # noqa: B905  (Python 3.9)
            try:
                os.mkdir(name, dir_fd=fd)
            except FileExistsError:
                pass  # from a stall that was killed
            self._doors.append(os.open(f"{name}/cgroup.procs", _KNOB, dir_fd=fd))
            if "memory" in place.controllers:
                self._memory = _memory_knobs(fd, name, place.version)
                events = "memory.events" if place.version == 2 else "memory.oom_control"
                self._events = [os.open(f"{name}/{events}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=fd)]
            if "pids" in place.controllers:
                self._pids = [os.open(f"{name}/pids.max", _KNOB, dir_fd=fd)]

    @property
    def fds(self) -> list[int]:
        """The descriptors that this object lives by."""
        return [*self._doors, *self._memory, *self._pids, *self._events]

    def enter(self) -> None:
        """Move the calling process, which must have one thread, into the group. What it forks is born there."""
        for door in self._doors:
            os.write(door, b"0")

    def memory_kills(self) -> int:
        """How many processes the kernel has killed in this group, ever, because its memory was full."""
        for fd in self._events:
            for line in os.pread(fd, 4096, 0).splitlines():
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
        return 0

    def cap(self, memory_bytes: int, processes: int) -> None:
        """Memory of everything in the group together (files in memory too, so add the disk's cap), and processes and
        threads. OSError if the kernel refuses."""
        most = f"{memory_bytes + _SLACK}".encode()
        for knob in self._memory[1:]:
            os.write(knob, b"-1")  # memory may not be above memory and swap, at any moment
        for knob in self._memory:
            os.write(knob, most)
        for knob in self._pids:
            os.write(knob, f"{processes}".encode())


_KNOB = os.O_WRONLY | os.O_CLOEXEC


def _memory_knobs(fd: int, name: str, version: int) -> list[int]:
    """Descriptors to write a cap on memory to. Swap is capped with it, or not to be had at all."""
    if version == 2:
        try:
            _write(f"{name}/memory.swap.max", "0", fd)
        except FileNotFoundError:
            pass  # the kernel does not count swap
        return [os.open(f"{name}/memory.max", _KNOB, dir_fd=fd)]
    knobs = [os.open(f"{name}/memory.limit_in_bytes", _KNOB, dir_fd=fd)]
    try:
        knobs.append(os.open(f"{name}/memory.memsw.limit_in_bytes", _KNOB, dir_fd=fd))
    except FileNotFoundError:
        pass
    return knobs


# ---------------------------------------------------------------- what a killed arena left


JUST_MADE_S = 1.0


def sweep(places: Iterable[Place]) -> int:
    """Remove the homes whose makers are dead; how many. Never raises."""
    removed = 0
    for place in places:
        try:
            names = os.listdir(place.path)
        except OSError:
            continue
        for name in names:
            if name.startswith(PREFIX):
                removed += _remove_if_abandoned(f"{place.path}/{name}")
    return removed


def _remove_if_abandoned(path: str) -> bool:
    """Whether it was, and is gone. It is locked until then: nobody can take it for their own meanwhile."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if time.time() - os.fstat(fd).st_mtime < JUST_MADE_S:
            return False  # just made: its maker has not locked it yet
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _remove(path, within_s=1.0)
    except OSError:
        return False
    finally:
        os.close(fd)


def _remove(path: str, within_s: float) -> bool:
    end = time.monotonic() + within_s
    while True:
        try:
            for entry in os.scandir(path):
                if entry.is_dir(follow_symlinks=False):
                    os.rmdir(entry.path)
            os.rmdir(path)
            return True
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)  # what was killed, or removed, is still on its way out
