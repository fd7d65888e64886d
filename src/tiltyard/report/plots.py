"""The plots of the page, as inline SVG. Colours are the page's own (CSS variables), so that they follow light and dark.

Needs matplotlib, from the extra `report`. The same data give the same bytes: no date, no random ids.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tiltyard.errors import UsageError
from tiltyard.report.markup import clean
from tiltyard.report.players import PlayerReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID = "#010203", "#010204", "#010205"
SERIES = tuple(f"#0203{n:02x}" for n in range(1, 9))
ALWAYS, MIXED, NEVER = "#010206", "#010207", "#010208"
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    ALWAYS: "--always",
    MIXED: "--mixed",
    NEVER: "--never",
}
VARIABLES |= {colour: f"--series-{n}" for n, colour in enumerate(SERIES, start=1)}
"""Colours that stand for the page's variables; nothing is ever shown in them."""
MAX_PLAYERS = 24
MAX_BARS = 60
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tiltyard",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
}


def check() -> None:
    """UsageError, naming the extra, where matplotlib is not there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"`report --html` draws with matplotlib, which is not there ({error}); pip install 'tiltyard[report]'"
        ) from None


def plots(players: Mapping[str, PlayerReport], k: int) -> dict[str, str]:
    """SVG by name, those that have something to show: ``rewards``, ``passes``, ``standings``, ``signal``."""
    check()
    import matplotlib

    some = list(players.values())[:MAX_PLAYERS]
    made = {}
    with matplotlib.rc_context(STYLE):
        for name, draw in (
            ("rewards", _rewards),
            ("passes", _passes),
            ("standings", _standings),
            ("signal", _signal),
        ):
            figure = draw(some, k)
            if figure is not None:
                made[name] = _svg(figure, name)
    return made


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # no pyplot: no global state, no backend, any thread

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _svg(figure: Figure, name: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    # ids are the same in every figure, and all figures stand in one page
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", text)
    return re.sub(r'<svg [^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', text, count=1)


def _label(name: str) -> str:
    # matplotlib reads what stands between two dollars as mathematics
    name = clean(name)
    short = name if len(name) <= 34 else name[:16] + "…" + name[-17:]
    return short.replace("$", r"\$")


def _colour(number: int) -> str:
    return SERIES[number % len(SERIES)]


def _rewards(players: Sequence[PlayerReport], k: int) -> Figure | None:
    shown = [p for p in players if p.reward is not None]
    if not shown:
        return None
    figure, axes = _figure(6.4, 0.7 + 0.36 * len(shown))
    for row, player in enumerate(shown):
        mean = player.reward
        assert mean is not None
        axes.plot([mean.low, mean.high], [row, row], color=_colour(row), linewidth=3, solid_capstyle="round")
        axes.plot([mean.value], [row], "o", color=_colour(row), markersize=7)
    axes.set_yticks(range(len(shown)), [_label(p.player) for p in shown])
    axes.invert_yaxis()
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("mean reward, 95% interval")
    axes.grid(axis="y", visible=False)
    return figure


def _passes(players: Sequence[PlayerReport], k: int) -> Figure | None:
    shown = [(n, p) for n, p in enumerate(players) if len(p.passes) > 1]
    if not shown:
        return None
    figure, axes = _figure(6.4, 3.4)
    for number, player in shown:
        at = [p.k for p in player.passes]
        axes.fill_between(
            at,
            [p.at.low for p in player.passes],
            [p.at.high for p in player.passes],
            color=_colour(number),
            alpha=0.15,
            linewidth=0,
        )
        axes.plot(
            at, [p.at.value for p in player.passes], "o-", color=_colour(number), label=_label(player.player)
        )
        axes.plot(at, [p.all.value for p in player.passes], ":", color=_colour(number), linewidth=1.2)
    largest = max(p.passes[-1].k for _, p in shown)
    if largest > 8:
        axes.set_xscale("log", base=2)
    ticks = sorted({point.k for _, p in shown for point in p.passes})
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("k   (solid: pass@k, any of k;  dotted: pass^k, all of k)")
    axes.set_ylabel("share of tasks")
    if len(shown) > 1:
        figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    return figure


def _standings(players: Sequence[PlayerReport], k: int) -> Figure | None:
    shown = [p for p in players if sum(p.standings.values()) > p.standings["untried"]]
    if not shown:
        return None
    figure, axes = _figure(6.4, 0.9 + 0.36 * len(shown))
    for row, player in enumerate(shown):
        left = 0
        for name, colour in (("always", ALWAYS), ("mixed", MIXED), ("never", NEVER)):
            count = player.standings[name]
            axes.barh(row, count, left=left, color=colour, height=0.62, label=name if row == 0 else None)
            left += count
    axes.set_yticks(range(len(shown)), [_label(p.player) for p in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel("tasks")
    axes.grid(axis="y", visible=False)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    return figure


def _signal(players: Sequence[PlayerReport], k: int) -> Figure | None:
    """Every task of each player as one point of a curve: how many of the tasks promise how much."""
    shown = [(n, p) for n, p in enumerate(players) if any(row.attempts for row in p.tasks)]
    if not shown or k < 2:
        return None
    figure, axes = _figure(6.4, 3.2)
    for number, player in shown:
        values = sorted((row.reward_signal for row in player.tasks if row.attempts), reverse=True)
        share = [100.0 * (n + 0.5) / len(values) for n in range(len(values))]
        axes.plot(share, values, color=_colour(number), linewidth=2, label=_label(player.player))
    axes.set_xlim(0, 100)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("tasks, most promising first, %")
    axes.set_ylabel(f"chance that {k} rewards differ")
    if len(shown) > 1:
        figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    return figure
