"""What a bench run came to: as JSON, as tables for a terminal, and as text for a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiltyard.bench.floors import NAMES as FLOOR_NAMES
from tiltyard.bench.instead import NAMES as INSTEAD_NAMES
from tiltyard.bench.samples import SamplesReport
from tiltyard.bench.spans import Profile
from tiltyard.bench.stats import Timing
from tiltyard.bench.targets import Ratio

Rows = list[tuple[str, ...]]
NOTHING = "-"
MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Everything that one run found. ``absent`` says of each wall and measure that is missing, why."""

    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    walls: Mapping[str, Mapping[str, Timing]] = field(default_factory=dict)
    floors: Mapping[str, Timing] = field(default_factory=dict)
    instead: Mapping[str, Timing] = field(default_factory=dict)
    ratios: tuple[Ratio, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    samples: SamplesReport | None = None

    @property
    def missed(self) -> tuple[str, ...]:
        """Names of the ratios that were measured and do not meet their targets."""
        found = [*self.ratios, *(self.samples.ratios if self.samples else ())]
        return tuple(ratio.name for ratio in found if ratio.met is False)

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard bench --json`` prints. Times in ms."""
        found: dict[str, Any] = {
            "machine": dict(self.machine),
            "settings": dict(self.settings),
            "walls": {wall: _timings(measures) for wall, measures in self.walls.items()},
            "floors": _timings(self.floors),
            "instead": _timings(self.instead),
            "ratios": {ratio.name: ratio.as_json() for ratio in self.ratios},
            "absent": dict(self.absent),
        }
        if self.profiles:
            found["profile"] = {profile.wall: profile.as_json() for profile in self.profiles}
        if self.samples is not None:
            found["samples"] = self.samples.as_json()
        return found

    def sections(self) -> list[tuple[str, tuple[str, ...], Rows]]:
        """All tables: title, columns, rows."""
        found: list[tuple[str, tuple[str, ...], Rows]] = []
        lanes = [(wall, measures) for wall, measures in self.walls.items() if measures]
        if lanes:
            columns = ("median / p99, ms", *(wall for wall, _ in lanes))
            names = list(dict.fromkeys(name for _, measures in lanes for name in measures))
            plain = [name for name in names if not name.startswith("steady")]
            rows: Rows = [(name, *(_ms(m.get(name)) for _, m in lanes)) for name in plain]
            found.append(("One at a time, and many at once", columns, rows))
            rates = [n for n in names if n.startswith(("episode", "steady"))]
            rows = [(name, *(_rate(m.get(name)) for _, m in lanes)) for name in rates]
            found.append(("Episodes a second", ("a second", *(wall for wall, _ in lanes)), rows))
        head = ("", "median, ms", "p99, ms", "n")
        for title, names_of, timings in (
            ("Floors", FLOOR_NAMES, self.floors),
            ("What people use instead", INSTEAD_NAMES, self.instead),
        ):
            if timings:
                found.append((title, head, [(names_of[name], *_cells(t)) for name, t in timings.items()]))
        for profile in self.profiles:
            title = (
                f"Where an episode's time goes: {profile.wall}"
                f" ({profile.episodes} episodes, {profile.owner_ms:.2f} ms of the owner's processor time each)"
            )
            found.append((title, ("span", "calls", "ms", "own ms", "share"), _profile_rows(profile)))
        if self.samples is not None:
            found += self.samples.sections()
        every = [*self.ratios, *(self.samples.ratios if self.samples else ())]
        if every:
            rows = [(r.name, _number(r.value), r.target, _met(r)) for r in every]
            found.append(("Ratios", ("ratio", "value", "target", "met"), rows))
        return found

    def notes(self) -> list[str]:
        """What a reader must know beside the figures."""
        said = [f"{what}: {why}" for what, why in self.absent.items()]
        if self.machine.get("busy"):
            said.append(
                f"the machine was busy (load {self.machine['load_at_start']} on {self.machine['cores']} processors"
                " when the run began): these figures are not its best"
            )
        if self.samples is not None:
            said += [*self.samples.explained, *self.samples.different[:MAX_SHOWN]]
            if (more := len(self.samples.different) - MAX_SHOWN) > 0:
                said.append(f"and {more} more samples whose outcomes differ; --json has them all")
        return said

    def table(self) -> Any:
        """For rich: all tables, with the machine above and the notes below."""
        from rich import box
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table

        parts: list[Any] = [escape(self.headline())]
        for title, columns, rows in self.sections():
            table = Table(title=escape(title), box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
            for number, column in enumerate(columns):
                table.add_column(escape(column), justify="left" if number == 0 else "right", no_wrap=True)
            for row in rows:
                table.add_row(*map(escape, row))
            parts.append(table)
        parts += [escape(f"- {note}") for note in self.notes()]
        return Group(*parts)

    def headline(self) -> str:
        """The machine in one line."""
        m = self.machine
        return (
            f"tiltyard {m['tiltyard']}, Python {m['python']}, {m['system']}, {m['processor']},"
            f" {m['cores']} processors, {m['memory_gib']} GiB, as {m['user']}, {m['date']}"
        )

    def markdown(self) -> str:
        """The same for a page."""
        parts = [self.headline() + "."]
        if command := self.settings.get("command"):
            parts.append(f"```\n{command}\n```")
        for title, columns, rows in self.sections():
            marks = [":--", *(["--:"] * (len(columns) - 1))]
            lines = [f"### {title}", "", _line(columns), _line(marks), *(_line(row) for row in rows)]
            parts.append("\n".join(lines))
        if notes := self.notes():
            parts.append("\n".join(f"- {note}" for note in notes))
        return "\n\n".join(parts) + "\n"


def _timings(timings: Mapping[str, Timing]) -> dict[str, Any]:
    return {name: timing.as_json() for name, timing in timings.items()}


def _ms(timing: Timing | None) -> str:
    return NOTHING if timing is None else f"{_number(timing.median_ms)} / {_number(timing.p99_ms)}"


def _rate(timing: Timing | None) -> str:
    return NOTHING if timing is None else _number(timing.per_second)


def _cells(timing: Timing) -> tuple[str, str, str]:
    return _number(timing.median_ms), _number(timing.p99_ms), str(timing.n)


def _number(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return NOTHING
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _met(ratio: Ratio) -> str:
    return {True: "yes", False: "NO", None: f"not judged: {ratio.why}"}[ratio.met]


def _profile_rows(profile: Profile) -> Rows:
    """Depth first: a span is followed by those in it."""
    whole = sum(row.total_ms for row in profile.rows if len(row.path) == 1)
    order = {row.path: number for number, row in enumerate(profile.rows)}

    def place(path: tuple[str, ...]) -> list[int]:
        return [order[path[:depth]] for depth in range(1, len(path) + 1)]

    return [
        (
            ". " * (len(row.path) - 1) + row.path[-1],
            f"{row.calls:g}",
            _number(row.total_ms),
            _number(row.self_ms),
            f"{100 * row.total_ms / whole:.0f} %" if whole else NOTHING,
        )
        for row in sorted(profile.rows, key=lambda row: place(row.path))
    ]


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
