"""``KeeperCell``: the one implementation of ``Cell``, speaking to the keeper of whatever wall made it.

A wall brings a keeper up, hands this its socket and ``bury``: a function that makes sure that the keeper and all that
is below it are dead and nothing is left of them; it is called once, must not raise, and must hold no reference to the
cell. It happens at ``close``, when the cell is garbage, at exit, and when the keeper is lost.

What comes from the keeper is not believed: with the weaker walls a player's process could have become it. Every
answer is bounded in size and time, checked in type, and any surprise is a lost cell.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

from tiltyard.cells.inside import wire
from tiltyard.cells.programs import has_program
from tiltyard.cells.protocol import (
    Capture,
    CellFileError,
    CellLimits,
    CellLost,
    Entry,
    Listing,
    NotPacked,
    PackedCell,
    Run,
    RunResult,
)
from tiltyard.cells.start import Changed, contents
from tiltyard.errors import ArenaError, UsageError
from tiltyard.images import ImageFiles
from tiltyard.task import path_problem

MAX_KEPT = 1 << 20
GRACE_S = 30.0
"""What a keeper may take beyond the time of a run, on a busy machine, before it is taken for dead."""
FILES_S = 90.0
NO_LIMIT = 1 << 62
"""In a field of ``CellLimits``: not limited. For walls and ``sandbox.run`` only."""
PIECE = 1 << 20
"""Bytes of a packed cell that are sent to a keeper at once."""
MAX_PIECE = 8 << 20
"""Those that are taken from one."""
COPY_S = 300.0
_MAX_MESSAGE = 2000

_CAPS = tuple(f.name for f in fields(CellLimits))

_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_inherited() -> None:
    """In a forked child: a copy of a socket would keep a cell alive after its owner's death."""
    for sock in list(_sockets):
        sock.close()
    _sockets.clear()


os.register_at_fork(after_in_child=_close_inherited)


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Ours and the keeper's end; ours is closed in every forked child. ArenaError if there are no descriptors."""
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise ArenaError(f"no socket for a cell can be had ({error.strerror})") from None
    _sockets.update((ours, theirs))
    return ours, theirs


def bury_cell(sock: socket.socket, bury: Callable[[], None], owner: int) -> None:
    if os.getpid() != owner:
        return
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    bury()
    sock.close()


class KeeperCell:
    """A cell, by its keeper's socket. ``env`` is the minimal environment of everything that runs in it."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        wall: str,
        limits: CellLimits,
        env: Mapping[str, str],
        bury: Callable[[], None],
    ) -> None:
        self._sock = sock
        self._wall = wall
        self._limits = limits
        self._env = dict(env)
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._next = 0
        self._programs: set[Program] = set()
        self.laid: ImageFiles | None = None
        """What lies below the workspace, where that is an overlay."""
        self.over = ""
        """The same, as ``PackedCell`` has it."""
        self._lost: str | None = None
        self._end = weakref.finalize(self, bury_cell, sock, bury, self._owner)

    @property
    def wall(self) -> str:
        return self._wall

    @property
    def limits(self) -> CellLimits:
        return self._limits

    def __repr__(self) -> str:
        return f"<{self._wall} cell, {self._lost or 'open'}>"

    def __enter__(self) -> KeeperCell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------- one question

    def _ask(
        self,
        request: dict[str, Any],
        block: bytes | memoryview = b"",
        *,
        within_s: float = FILES_S,
        max_block: int = 0,
        fds: Sequence[int] = (),
        runs: bool = False,
    ) -> tuple[dict[str, Any], bytes]:
        self._check_owner()  # before the lock, which in a forked child may be held by nobody
        with self._lock:
            self._check_open()
            self._next += 1
            request["id"] = self._next
            deadline = time.monotonic() + within_s
            try:
                wire.send(self._sock, request, block, deadline=deadline, fds=fds)
                answer, data, _ = wire.receive(self._sock, deadline=deadline, max_block=max_block)
                if answer.get("id") != self._next:
                    raise wire.WireError("an answer to nothing that was asked")
            except wire.WireError as error:
                self._lose(str(error), runs)
            except BaseException:  # Ctrl-C in the middle of a frame: what follows would be misread
                self._lost = "closed: a call was interrupted"
                self._end()
                raise
        if "error" in answer:
            self._raise(answer)
        return answer, data

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise UsageError(
                "this cell belongs to another process (it was opened before a fork); open a new one"
            )

    def _check_open(self) -> None:
        if self._lost is not None:
            raise CellLost(f"the cell is {self._lost}", during_run=False)
        if not self._end.alive:
            raise CellLost("the cell is closed", during_run=False)

    def _lose(self, why: str, runs: bool) -> NoReturn:
        if not self._end.alive:
            self._lost = "closed"
            raise CellLost("the cell was closed", during_run=False) from None
        during = runs or any(p.seen is None for p in self._programs)
        self._lost = f"lost: {why}"
        self._end()
        raise CellLost(f"the keeper of the cell is lost: {why}", during_run=during) from None

    def _raise(self, answer: dict[str, Any]) -> NoReturn:
        text = str(answer.get("text", ""))[:_MAX_MESSAGE]
        if answer["error"] == "file":
            raise CellFileError(text)
        raise ArenaError(f"the cell can't go on: {text}")

    def _bad(self, what: str, runs: bool = False) -> NoReturn:
        with self._lock:
            self._lose(f"it answered nonsense ({what})", runs)

    # --------------------------------------------------------------------------------------------- files

    def read(self, path: str, *, max_bytes: int) -> bytes:
        _check_path(path)
        return self._ask({"op": "read", "path": path, "max_bytes": max_bytes}, max_block=max_bytes)[1]

    def write(self, path: str, data: bytes) -> None:
        _check_path(path)
        if len(data) > self._limits.file_bytes:
            most = self._limits.file_bytes
            raise CellFileError(f"{path!r} would have {len(data)} bytes; a file may have at most {most}")
        room = {n: v for n, v in caps_of(self._limits).items() if n.startswith("disk")}
        self._ask({"op": "write", "path": path, **room}, data)

    def put(self, files: Mapping[str, bytes], *, fresh: bool = False, gone: Sequence[str] = ()) -> None:
        """Write several files at once, without the cap of one file. ``fresh``: nothing else was ever in the workspace.
        ``gone``: files that are to be removed before."""
        for path in (*files, *gone):
            _check_path(path)
        if files or gone:
            contents = list(files.items())
            manifest = [[path, len(data)] for path, data in contents]
            request = {"op": "put", "files": manifest, "fresh": fresh, "gone": list(gone)}
            self._ask(request, b"".join(data for _, data in contents))

    def list(self, *, max_entries: int) -> Listing:
        answer, _ = self._ask({"op": "list", "max_entries": max_entries})
        raw, left_out = answer.get("entries"), answer.get("left_out")
        if not isinstance(raw, list) or len(raw) > max_entries or type(left_out) is not int or left_out < -1:
            self._bad("a listing of the wrong shape")
        return Listing(tuple(map(self._entry, raw)), left_out)

    def _entry(self, raw: Any) -> Entry:
        match raw:
            case [str(path), str(kind), int(size)] if not isinstance(size, bool):
                return Entry(path, kind, size)
        self._bad("an entry of the wrong shape")

    def capture(self, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int) -> Capture:
        caps = {
            "max_file_bytes": max_file_bytes,
            "max_bytes": max_bytes,
            "max_files": max_files,
            "max_depth": max_depth,
        }
        answer, data = self._ask({"op": "capture", **caps}, max_block=max_bytes)
        self._programs.clear()  # all are dead now
        manifest, skipped = answer.get("files"), answer.get("skipped")
        if not isinstance(manifest, list) or len(manifest) > max_files or not isinstance(skipped, list):
            self._bad("a capture of the wrong shape")
        files: dict[str, bytes] = {}
        at = 0
        for item in manifest:
            match item:
                case [str(path), int(size)] if path_problem(path) is None and 0 <= size <= max_file_bytes:
                    files[path] = data[at : at + size]
                    at += size
                case _:
                    self._bad("a captured file of the wrong shape")
        if at != len(data):
            self._bad("a capture of the wrong size")
        kept, found = answer.get("kept", []), tuple(map(self._skipped, skipped))
        if self.laid is not None:
            return Capture(self._with_kept(self.laid, files, kept), found)
        if kept:
            self._bad("files that were never put there")
        return Capture(files, found)

    def _with_kept(self, laid: ImageFiles, changed: dict[str, bytes], kept: Any) -> Changed:
        """What was changed, with what lies below and is as it was: files, and folders with all that is in them."""
        if not isinstance(kept, list) or len(kept) > MAX_KEPT or not all(isinstance(p, str) for p in kept):
            self._bad("a list of what was kept of the wrong shape")
        names = set(kept)
        return Changed(laid, (path for path in laid if not names.isdisjoint(_upto(path))), changed)

    def _skipped(self, raw: Any) -> tuple[str, str]:
        match raw:
            case [str(path), str(reason)]:
                return path, reason
        self._bad("a skipped file of the wrong shape")

    # -------------------------------------------------------------------------------------------- copies

    def pack(self, *, max_bytes: int) -> PackedCell:
        """See ``Copying``."""
        pieces: list[bytes] = []
        left, end = max_bytes, time.monotonic() + COPY_S
        more: Any = True
        while more:
            request = {"op": "pack", "first": not pieces, "max_bytes": max_bytes}
            try:
                answer, piece = self._ask(request, max_block=MAX_PIECE)
            except CellFileError as error:
                raise NotPacked(f"the cell can't be packed: {error}") from None
            self._programs.clear()  # all are dead now
            more, left = answer.get("more"), left - len(piece)
            if type(more) is not bool or left < 0 or not piece or time.monotonic() > end:
                self._bad("a packed cell of the wrong shape")
            pieces.append(piece)
        return PackedCell(b"".join(pieces), self.over)

    def unpack(self, packed: PackedCell) -> None:
        """Lay out what another cell had, in this one, in which nothing was done yet. NotPacked: then it is good for
        nothing."""
        if self.over != packed.over:
            raise NotPacked(
                "the packed cell lies over other files than this one can: "
                f"found {self.over or 'none'}, expected {packed.over or 'none'}"
            )
        data = memoryview(packed.data)
        caps = caps_of(self._limits)
        room = {name: caps[name] for name in ("disk_bytes", "disk_files")}
        for at in range(0, max(1, len(data)), PIECE):
            request = {"op": "unpack", "last": at + PIECE >= len(data), **room}
            try:
                self._ask(request, data[at : at + PIECE])
            except CellFileError as error:
                raise NotPacked(f"a cell can't be opened from what was packed: {error}") from None

    # ---------------------------------------------------------------------------------------------- runs

    def run(self, run: Run) -> RunResult:
        kind, rest = job_of(run.argv)
        return self._run(kind, rest, run)

    def run_command(self, run: Run) -> RunResult:
        """As ``run``, but ``argv[0]`` is always a command, looked up on the PATH of its environment."""
        _check_words(run.argv)
        return self._run("command", run.argv, run)

    def _run(self, kind: str, rest: Sequence[str], run: Run) -> RunResult:
        _check_words([*run.env, *run.env.values()])
        cell = self._limits
        request = {
            "op": "run",
            **self._job(kind, rest, self._env | dict(run.env)),
            "cpu_s": cell.cpu_s if run.cpu_s is None else run.cpu_s,
            "file_bytes": cell.file_bytes if run.file_bytes is None else run.file_bytes,
            "output_bytes": run.output_bytes,
            "wall_s": run.wall_s,
            "quiet_s": run.quiet_s,
        }
        answer, data = self._ask(
            request, run.stdin, within_s=run.wall_s + GRACE_S, max_block=2 * run.output_bytes, runs=True
        )
        match answer:
            case {
                "rc": int(rc),
                "timed_out": bool(timed_out),
                "seconds": (int() | float()) as seconds,
                "out": int(cut),
                "dropped": [int(out_dropped), int(err_dropped)],
            } if 0 <= cut <= len(data):
                out, err = data[:cut], data[cut:]
                return RunResult(rc, out, err, timed_out, float(seconds), out_dropped, err_dropped)
        self._bad("a result of the wrong shape", runs=True)

    def _job(self, kind: str, rest: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
        return {"kind": kind, "rest": list(rest), "env": dict(env), **caps_of(self._limits)}

    def start(
        self,
        program: str,
        fds: Sequence[int],
        *,
        wall_s: float,
        memory_bytes: int | None = None,
        again: bool = False,
    ) -> Program:
        """See ``Cell.start``. ``again``: other programs have run in this cell, or will; on walls with a fork server
        each of them then begins in the same memory."""
        if not has_program(program):
            raise UsageError(f"no inside folder has a program {program!r}")
        if len(fds) > wire.MAX_FDS:
            raise UsageError(f"{len(fds)} descriptors for {program!r}; at most {wire.MAX_FDS} can be passed")
        job = self._job("program", [program], self._env)
        if again:
            job["again"] = True
        if memory_bytes is not None:
            job["memory_bytes"] = memory_bytes
        answer, _ = self._ask({"op": "start", **job, "wall_s": wall_s}, fds=fds)
        number = answer.get("program")
        if type(number) is not int:
            self._bad("a program without a number")
        started = Program(self, number)
        self._programs.add(started)
        return started

    def close(self) -> None:
        if os.getpid() == self._owner:
            self._end()


_AnyKeeperCell = TypeVar("_AnyKeeperCell", bound=KeeperCell)


def filled(cell: _AnyKeeperCell, files: Mapping[str, bytes]) -> _AnyKeeperCell:
    """The new cell with these files in its workspace; where they can't be put there, it is closed."""
    try:
        cell.put(contents(files), fresh=True)
    except BaseException:
        cell.close()
        raise
    return cell


def unpacked(cell: _AnyKeeperCell, packed: PackedCell) -> _AnyKeeperCell:
    """The new cell with what was packed in it; where that can't be had, it is closed."""
    try:
        cell.unpack(packed)
    except BaseException:
        cell.close()
        raise
    return cell


def _upto(path: str) -> Iterator[str]:
    """A path and those of the folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def close_all(cells: weakref.WeakSet[Any]) -> None:
    """Close what is still open of a wall's cells, without a lock: one could be left held in a forked child."""
    while True:
        try:
            still_open = list(cells)
            break
        except RuntimeError:  # another thread opened one meanwhile
            continue
    for cell in still_open:
        cell.close()


class Program:
    """A program that was started in a cell (``Started``)."""

    def __init__(self, cell: KeeperCell, number: int) -> None:
        self._cell = cell
        self._number = number
        self.seen: int | None = None
        """The exit status, as far as it is known here."""

    def poll(self) -> int | None:
        return self._poll(0.0)

    def wait(self, timeout_s: float) -> int | None:
        end = time.monotonic() + timeout_s
        while (rc := self._poll(max(0.0, min(0.1, end - time.monotonic())))) is None:
            if time.monotonic() >= end:
                return None
        return rc

    def kill(self) -> None:
        if self.seen is not None:
            return
        try:
            self._see(self._cell._ask({"op": "kill", "program": self._number})[0])
        except ArenaError:
            self._cell.close()  # then it is dead in any case
        if self.seen is None:
            self.seen = -9

    def _poll(self, wait_s: float) -> int | None:
        """Waits in slices, so that a ``kill`` from another thread gets its turn."""
        if self.seen is None:
            self._see(self._cell._ask({"op": "poll", "program": self._number, "wait_s": wait_s})[0])
        return self.seen

    def _see(self, answer: dict[str, Any]) -> None:
        rc = answer.get("rc")
        if rc is not None and type(rc) is not int:
            self._cell._bad("an exit status of the wrong shape", runs=True)
        self.seen = rc
        if rc is not None:
            self._cell._programs.discard(self)


def caps_of(limits: CellLimits) -> dict[str, Any]:
    """As a job carries them: None for what is not limited."""
    caps = {name: getattr(limits, name) for name in _CAPS}
    return {name: None if value >= NO_LIMIT else value for name, value in caps.items()}


def job_of(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The kind and the rest of a job (see ``inside.boot``) for a ``Run.argv``. CellFileError if it can't be run."""
    if not argv:
        raise CellFileError("there is no command to run")
    _check_words(argv)
    first, rest = argv[0], list(argv[1:])
    if first.startswith("@"):
        if not has_program(first[1:]):
            raise CellFileError(f"there is no program {first!r}")
        return "tool", [first[1:], *rest]
    if first != "python":
        return "command", list(argv)
    if not rest or rest[0] == "-":
        return "stdin", rest[1:]
    if rest[0] in ("-c", "-m"):
        if len(rest) < 2:
            raise CellFileError(f"python {rest[0]} needs one more argument")
        return ("code" if rest[0] == "-c" else "module"), rest[1:]
    if rest[0].startswith("-"):
        raise CellFileError(f"python {rest[0]} can't be run; give a script, -c CODE or -m MODULE")
    return "script", rest


def _check_path(path: str) -> None:
    if (problem := path_problem(path)) is not None:
        raise CellFileError(
            f"{problem}: {path!r}; give a path like 'solution.py' or 'pkg/core.py'"[:_MAX_MESSAGE]
        )


def _check_words(words: Sequence[str]) -> None:
    for word in words:
        if not isinstance(word, str) or "\0" in word:
            raise CellFileError(
                f"{word!r} can't be an argument; it must be text without NUL characters"[:_MAX_MESSAGE]
            )
