"""Where an episode's time goes: spans around what the owner asks of walls, cells and the examiner.

Nothing in the other rooms knows of this and nothing is paid when it is off: a wall is wrapped in one that takes the
time and passes everything on, and the reading of the examiner's reports is exchanged for one that notes when they
come, for as long as a profile is being taken. What a span does not spend in those below it is Python on our side, or
waiting that no span names.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiltyard.bench.lanes import Lane, lane_wall
from tiltyard.bench.lesson import ACTIONS
from tiltyard.cells.protocol import Capture, Cell, CellLimits, Listing, Run, RunResult, Started, Wall
from tiltyard.referee import calls

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of span. ``path`` is its name with those around it; times in ms for one episode."""

    path: Path
    calls: float
    total_ms: float
    self_ms: float

    def as_json(self) -> dict[str, Any]:
        return {
            "path": list(self.path),
            "calls": self.calls,
            "total_ms": self.total_ms,
            "self_ms": self.self_ms,
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """Rows in the order in which they first happened, parents before children. ``owner_ms`` is the processor time that
    the owner's process spent on one episode."""

    wall: str
    episodes: int
    owner_ms: float
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes,
            "owner_cpu_ms": self.owner_ms,
            "spans": [row.as_json() for row in self.rows],
        }


class Spans:
    """Takes times, in one thread. ``with spans("name")`` is a span; spans may lie in one another."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._seconds: dict[Path, float] = {}
        self._calls: dict[Path, int] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._stack.append(name)
        path = tuple(self._stack)
        self._seconds.setdefault(path, 0.0)
        self._calls[path] = self._calls.get(path, 0) + 1
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[path] += time.perf_counter() - begun
            self._stack.pop()

    def rows(self, episodes: int) -> tuple[Row, ...]:
        """What was taken, for one of ``episodes``."""
        inner = dict.fromkeys(self._seconds, 0.0)
        for path, seconds in self._seconds.items():
            if len(path) > 1:
                inner[path[:-1]] += seconds
        per = 1e3 / episodes
        return tuple(
            Row(path, self._calls[path] / episodes, round(s * per, 4), round((s - inner[path]) * per, 4))
            for path, s in self._seconds.items()
        )


def profile(name: str, episodes: int) -> Profile:
    """Play ``episodes`` lesson episodes in a lane and say where their time went. ArenaError as the lane's."""
    spans = Spans()
    lane = Lane(name, SpannedWall(lane_wall(name), spans))
    try:
        lane.play()  # warm; what it took is thrown away with its spans
        spans.__init__()  # type: ignore[misc]
        begun = time.process_time()
        with _reports_in(spans):
            for _ in range(episodes):
                with spans("episode"):
                    with spans("reset"):
                        lane.reset()
                    for action in ACTIONS:
                        with spans(action["tool"]):
                            lane.act(action)
        owner_ms = round((time.process_time() - begun) * 1e3 / episodes, 4)
    finally:
        lane.close()
    return Profile(name, episodes, owner_ms, spans.rows(episodes))


class SpannedWall:
    """A wall, with spans around what is asked of it and of its cells."""

    def __init__(self, wall: Wall, spans: Spans) -> None:
        self._wall, self._spans = wall, spans

    @property
    def name(self) -> str:
        return self._wall.name

    @property
    def weaknesses(self) -> tuple[str, ...]:
        return self._wall.weaknesses

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        with self._spans("open a cell"):
            return SpannedCell(self._wall.open(files, limits), self._spans)

    def close(self) -> None:
        self._wall.close()


class SpannedCell:
    """A cell, likewise."""

    def __init__(self, cell: Cell, spans: Spans) -> None:
        self._cell, self._spans = cell, spans

    @property
    def wall(self) -> str:
        return self._cell.wall

    def read(self, path: str, *, max_bytes: int) -> bytes:
        with self._spans("cell.read"):
            return self._cell.read(path, max_bytes=max_bytes)

    def write(self, path: str, data: bytes) -> None:
        with self._spans("cell.write"):
            self._cell.write(path, data)

    def list(self, *, max_entries: int) -> Listing:
        with self._spans("cell.list"):
            return self._cell.list(max_entries=max_entries)

    def run(self, run: Run) -> RunResult:
        with self._spans(f"cell.run {run.argv[0]}"):
            return self._cell.run(run)

    def start(
        self, program: str, fds: Sequence[int], *, wall_s: float, memory_bytes: int | None = None
    ) -> Started:
        with self._spans(f"start the {program}"):
            return self._cell.start(program, fds, wall_s=wall_s, memory_bytes=memory_bytes)

    def capture(self, *, max_file_bytes: int, max_bytes: int, max_files: int, max_depth: int) -> Capture:
        with self._spans("cell.capture"):
            return self._cell.capture(
                max_file_bytes=max_file_bytes, max_bytes=max_bytes, max_files=max_files, max_depth=max_depth
            )

    def close(self) -> None:
        with self._spans("cell.close"):
            self._cell.close()


@contextlib.contextmanager
def _reports_in(spans: Spans) -> Iterator[None]:
    """While in it, waiting for the examiner's reports is spans of its own."""
    plain = calls._Reports.next
    begun: weakref.WeakSet[Any] = weakref.WeakSet()

    def spanned(self: Any, *arguments: Any) -> Any:
        name = "tests" if self in begun else "load"
        begun.add(self)
        with spans(name):
            return plain(self, *arguments)

    calls._Reports.next = spanned  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        calls._Reports.next = plain  # type: ignore[method-assign]
