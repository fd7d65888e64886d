"""What every wall promises, and the words for it. Everything above this room speaks to cells through this page only.

A :class:`Wall` opens cells. A :class:`Cell` is one box: a workspace folder, processes, limits; owned by exactly one
episode or one grading. Its first process, the *keeper*, does the file tools from inside (no link is ever followed out
of the workspace), starts runs, and takes everything with it when it dies. A cell is used by one thread at a time;
different cells may be used from different threads. All bytes that come out of a cell are bounded.

Who is to blame: :class:`CellFileError` is the player's mistake and is shown to it. :class:`CellLost` says that the
box is gone: ``during_run`` is True if that happened while a player's code was running in it (then the player may have
done it, and it is never void), False if the arena lost it (then it is void). Any other failure is an ``ArenaError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tiltyard.errors import ArenaError, PlayerError


class CellFileError(PlayerError):
    """A file tool can't do what the player asked; the message names the path and what to do, and no host path."""


class CellLost(ArenaError):
    """The cell's keeper is gone or does not answer. See ``during_run`` in the module's first lines."""

    def __init__(self, message: str, *, during_run: bool) -> None:
        super().__init__(message)
        self.during_run = during_run


class NotPacked(ArenaError):
    """A cell can't be packed, or not be opened again from what was packed; the message says why. The cell that was to be
    packed goes on."""


@dataclass(frozen=True, slots=True)
class CellLimits:
    """Caps of one cell. Bytes and counts. What a wall can't enforce it lists in ``Wall.weaknesses``."""

    cpu_s: float = 60.0
    memory_bytes: int = 1 << 30
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 16 << 20
    disk_bytes: int = 64 << 20
    disk_files: int = 4096


@dataclass(frozen=True, slots=True)
class Run:
    """One run of something in a cell, in the workspace as current folder.

    ``argv[0]`` may be ``"python"``: the cell's own interpreter, then a script path in the workspace (or ``-c CODE``)
    and its arguments; or ``"@NAME"``: the program NAME of an ``inside`` folder (see ``Cell.start``); or a command.
    ``env`` is added to the minimal environment (PATH, HOME, LANG, PYTHONHASHSEED=0, PYTHONDONTWRITEBYTECODE=1).
    ``output_bytes`` caps each stream: the first and the last half are kept, the middle is read and dropped.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    wall_s: float = 10.0
    cpu_s: float | None = None
    """None: the cell's limit."""
    file_bytes: int | None = None
    output_bytes: int = 256 << 10
    env: Mapping[str, str] = field(default_factory=dict)
    quiet_s: float | None = None
    """How long it may print nothing before it is stopped like one that is out of time; None: as long as it likes."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. ``rc`` is the exit status, or minus the signal that killed it (-9 after ``timed_out``).

    ``stdout`` and ``stderr`` hold what was kept; where something was dropped (``*_dropped`` bytes), it is missing at
    ``len(stdout) - tail`` with ``tail = output_bytes // 2``. ``seconds`` is wall-clock: never put it into an
    observation. Every process that the run started is dead when the result is returned, also those that left its
    process group.
    """

    rc: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float
    stdout_dropped: int = 0
    stderr_dropped: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in the workspace. ``kind``: file, folder, link, fifo, socket, device or other. ``path`` is text that
    is safe to show: bytes that are no UTF-8, and control characters, are escaped."""

    path: str
    kind: str
    size: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries sorted by path; ``left_out`` counts those beyond the cap (-1: more than could be counted)."""

    entries: tuple[Entry, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """What was taken out of the workspace after every process in the cell was dead.

    ``files`` are regular files with one hard link, within the caps. ``skipped`` names everything else with a short
    reason, both safe to show: ("data", "fifo"), ("big.bin", "larger than 16777216 bytes").
    """

    files: Mapping[str, bytes]
    skipped: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PackedCell:
    """All that lies in a cell's writable folders, to open cells from: plain data, good in every process. ``data`` is for
    keepers only: it was made where a player's code ran, and nothing outside a cell looks into it."""

    data: bytes = field(repr=False)
    over: str = ""
    """What its workspace lies over, if that is an overlay: then ``data`` has only what was changed."""


class Started(Protocol):
    """A program that runs in a cell beside the keeper (the solution's host, the examiner)."""

    def poll(self) -> int | None:
        """The exit status or minus the signal, or None while it runs."""

    def wait(self, timeout_s: float) -> int | None:
        """As poll, after waiting for at most timeout_s seconds."""

    def kill(self) -> None:
        """Kill it and everything that it started. Returns when all are dead. May be called at any time, twice too."""


@runtime_checkable
class Cell(Protocol):
    """One locked box. See the module's first lines."""

    @property
    def wall(self) -> str: ...

    def read(self, path: str, *, max_bytes: int) -> bytes:
        """The bytes of a regular file. CellFileError: no such file, not a regular file, a link on the way, too big."""

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a regular file, making folders on the way. Nothing is ever written through a link.
        What is in the way (a FIFO, a link, …) is replaced; a folder in the way is a CellFileError."""

    def list(self, *, max_entries: int) -> Listing:
        """Everything in the workspace but its own ``.git``, by path, not following links."""

    def run(self, run: Run) -> RunResult:
        """Run it to its end or to its time limit. CellFileError if argv names no program that exists."""

    def start(
        self, program: str, fds: Sequence[int], *, wall_s: float, memory_bytes: int | None = None
    ) -> Started:
        """Start an inside program (``"solution"``, ``"examiner"``), with ``fds`` as its descriptors 3, 4, …

        The caller closes its own copies. stdin and stdout are /dev/null. The program's own environment is the
        minimal one and its current folder the workspace. It is killed after ``wall_s``."""

    def capture(self, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int) -> Capture:
        """Kill every process but the keeper, then take the files out, but for the workspace's own ``.git``."""

    def close(self) -> None:
        """End the cell and everything in it. May be called twice, from any thread, and never raises."""


class Copyable(Cell, Protocol):
    """A cell of a wall that is ``Copying``."""

    def pack(self, *, max_bytes: int) -> PackedCell:
        """Kill every process but the keeper, then take all that lies in the cell, and leave it as it is. NotPacked: it
        takes more than ``max_bytes``, or has something that can't be copied."""


@runtime_checkable
class Copying(Protocol):
    """A wall whose cells are ``Copyable``. A copy has all that the first one had, byte for byte: see ``inside.pack`` for
    what that is, and for what no copy has (inode numbers, and the times at which an inode was made or changed). Its runs
    begin in the same memory."""

    def unpack(self, files: Mapping[str, bytes], limits: CellLimits, packed: PackedCell) -> Cell:
        """A new cell with all that ``packed`` has. ``files`` and ``limits`` are those with which the first one was
        opened; its disk was then the same. NotPacked: the bytes are none that ``pack`` made, the cell's limits are too
        small for them, or its workspace can't lie here over what it lay over (no overlay can be had). ArenaError as for
        ``open``."""


class Wall(Protocol):
    """A kind of cell. Safe to use from several threads; holds nothing that a forked child could share by mistake."""

    @property
    def name(self) -> str:
        """``process``, ``namespace`` or ``container``."""

    @property
    def weaknesses(self) -> tuple[str, ...]:
        """What this wall does not protect from here, in plain words; () if nothing is known."""

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        """A new cell with these files in its workspace. Raises ArenaError, with the reason, if it can't be had.

        An image (``tiltyard.images``) is shared, not copied, where the wall can; its cell has a ``.git`` of one commit.
        No other ``.git`` is ever put into a workspace."""

    def close(self) -> None:
        """Give back what the wall itself holds (a fork server); cells that are open die with it. Never raises."""
