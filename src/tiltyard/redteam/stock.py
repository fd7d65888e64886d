"""What an exploit left on this machine: processes, files, mounts, control groups, shared memory.

A stock is taken before and after; what is new is named. Exact where a thing is ours alone (processes below this one,
our private temporary folder, control groups of our own servers). Where others make things too (/tmp, /dev/shm), an
entry counts only if it bears a mark of a known exploit, or if it comes again when the case is played again: the machine
is shared, and nobody is blamed for a neighbour's file.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tiltyard.cells.inside.procs import descendants

MARKS = ("arena", "redteam-drop")
"""Parts of the names that exploits of known corpora give to what they leave behind."""
_CANARY = re.compile(r"canary-[0-9a-f]{12}")
"""What a name bears besides, where an exploit says which play it belongs to: its canary's folder."""
PATIENCE_S = 5.0
MAX_NAMED = 5
_SYSV = ("shm", "sem", "msg")
_PR_SET_CHILD_SUBREAPER = 36


def become_reaper() -> None:
    """Orphans of what this process started come to this process, so that none gets lost. Linux; else a no-op."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Stock:
    """What there is now. ``places``: by shared folder, the entries with what tells whether they were changed."""

    places: Mapping[str, Mapping[str, tuple[int, int, int]]] = field(default_factory=dict)
    sysv: frozenset[str] = frozenset()
    mounts: frozenset[str] = frozenset()


def take(root: Path) -> Stock:
    """Take stock. ``root`` is the run's own folder; what lies in it is not looked at here."""
    return Stock(
        places={place: _entries(place) for place in shared_places(root)},
        sysv=_sysv(),
        mounts=_mounts(root),
    )


def shared_places(root: Path) -> list[str]:
    """Folders of this machine in which code without a wall would leave things."""
    home = os.path.expanduser("~")  # noqa: PTH111  (it may name no folder at all)
    candidates = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue", str(root.parent), home]
    return [place for place in dict.fromkeys(candidates) if Path(place).is_dir()]


def _entries(place: str) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                found[entry.name] = (facts.st_ino, facts.st_mtime_ns, facts.st_uid)
    return found


def _sysv() -> frozenset[str]:
    """System V memory, semaphores and queues of the user that we are."""
    found: set[str] = set()
    me = str(os.geteuid())
    for kind in _SYSV:
        with contextlib.suppress(OSError, ValueError):
            head, *lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
            owner, number = head.split().index("cuid"), head.split().index(f"{kind}id")
            found |= {f"{kind} {parts[number]}" for line in lines if (parts := line.split())[owner] == me}
    return frozenset(found)


def _mounts(private: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        points = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
        return frozenset(point for point in points if point.startswith(str(private)))
    return frozenset()


def left(
    before: Stock, after: Stock, again: Iterable[str] = (), canaries: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """(what was left for certain, what might be a neighbour's) in words, in places that are not ours alone. ``again``
    are possible ones of an earlier play of the same case: what is in both is certain. ``canaries`` are the names of
    our canaries' folders: what names another one was left by another run at the same time."""
    ours = set(canaries)
    certain = [f"System V {what} was left" for what in sorted(after.sysv - before.sysv)]
    certain += [f"a mount was left at {point}" for point in sorted(after.mounts - before.mounts)]
    possible: list[str] = []
    earlier = set(again)
    for place, entries in after.places.items():
        known = before.places.get(place, {})
        for name, facts in sorted(entries.items()):
            if known.get(name) == facts or name.startswith("tiltyard"):
                continue
            if (named := _CANARY.search(name)) is not None and named[0] not in ours:
                continue
            text = f"{name!r} was left in {place}"
            if marked(name) or text in earlier:
                certain.append(text)
            elif name not in known and facts[2] == os.geteuid():
                possible.append(text)
    return certain[:MAX_NAMED], possible


def marked(name: str) -> bool:
    """Whether a name bears the mark of a known exploit."""
    return any(mark in name for mark in MARKS)


def remove_marked(since: Stock) -> None:
    """Take away what exploits have left in shared places under marked names and was not there before."""
    for place, known in since.places.items():
        for name in _entries(place):
            if marked(name) and name not in known:
                with contextlib.suppress(OSError):
                    (Path(place) / name).unlink()


def survivors(known: Iterable[int] = ()) -> list[str]:
    """Processes below this one that are still alive after a moment, beside ``known``; they are killed, and named.

    Call it where every cell is closed and no child is waited for by anyone else: what has ended is collected here."""
    spare = set(known)
    end = time.monotonic() + PATIENCE_S
    while (alive := _living(spare)) and time.monotonic() < end:
        time.sleep(0.02)
    names = [f"a process was left: {_name(pid)}" for pid in sorted(alive)]
    for pid in alive:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE_S
    while _living(spare) and time.monotonic() < until:
        time.sleep(0.02)
    return names[:MAX_NAMED]


def _living(spare: set[int]) -> set[int]:
    with contextlib.suppress(OSError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return {pid for pid in descendants() if pid not in spare and not _ended(pid)}


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (OSError, IndexError):
        return True


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
        return words[-80:] or Path(f"/proc/{pid}/comm").read_text().strip()
    return "one that ended meanwhile"


def groups_of(pids: Iterable[int]) -> list[str]:
    """Control groups of servers of these process ids that are still there after a moment."""
    wanted = tuple(f"tiltyard-{pid}-" for pid in pids)
    end = time.monotonic() + PATIENCE_S
    while wanted:
        found = [
            f"a control group was left: {at}/{name}"
            for at, names, _ in os.walk("/sys/fs/cgroup")
            for name in names
            if name.startswith(wanted)
        ]
        if not found or time.monotonic() > end:
            return found[:MAX_NAMED]
        time.sleep(0.05)
    return []


def left_in(private: Path) -> list[str]:
    """What lies in the private temporary folder after everything in it should be gone; it is not removed here."""
    end = time.monotonic() + PATIENCE_S
    while (names := sorted(_entries(str(private)))) and time.monotonic() < end:
        time.sleep(0.02)
    return [f"{name!r} was left in the temporary folder" for name in names[:MAX_NAMED]]


class PrivateTemp:
    """A temporary folder that is this process's alone: what lies in it was left by what this process played."""

    def __init__(self, root: Path) -> None:
        self.path = root / "tmp"
        self.path.mkdir()
        self.path.chmod(0o1777)
        self._before = (os.environ.get("TMPDIR"), tempfile.tempdir)
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.path)

    def close(self) -> None:
        variable, folder = self._before
        if variable is None:
            os.environ.pop("TMPDIR", None)
        else:
            os.environ["TMPDIR"] = variable
        tempfile.tempdir = folder
