"""The report in a terminal: tables of rich, everything that matters on a screen or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from tiltyard.report import words
from tiltyard.report.build import Report
from tiltyard.report.markup import clean

MAX_ROWS = 15
"""Of tasks, flags and signs; the page and ``--json`` have all."""

TEXTS = (
    "player",
    "on",
    "task",
    "episode",
    "evidence",
    "meaning",
    "reason",
    "ended by",
    "hidden test",
    "checks",
    "look at",
)
"""Columns that are no numbers."""


def render(report: Report) -> Iterator[Any]:
    """Texts and tables, to be printed one after the other."""
    yield (
        f"{report.episodes:,} episodes with {report.steps:,} steps in {report.runs} runs; "
        f"groups of k = {report.group_size} ({words.group_words(report)})"
    )
    yield _rewards(report)
    if any(len(p.passes) > 1 for p in report.players.values()):
        yield _passes(report)
    yield _costs(report)
    yield _gradient(report)
    if (voids := _voids(report)) is not None:
        yield voids
    yield from _mixed(report)
    if report.flags:
        yield _flags(report)
    yield from _unsolved(report)
    if report.cutoff is not None:
        yield _cutoff(report)
    yield from _perturbed(report)
    yield from _signs(report)
    for note in report.notes:
        yield f"note: {clean(note)}"


def plain(text: str) -> Text:
    """Text that came from a player or a machine, as text and nothing else: no markup, no emoji for ``:m:``."""
    return Text(clean(text))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        left = number == 0 or column in TEXTS
        table.add_column(column, justify="left" if left else "right", overflow="fold", no_wrap=number == 0)
    return table


def _rewards(report: Report) -> Table:
    table = _table(
        "Rewards", "player", "episodes", "void", "mean reward", "always", "mixed", "never", "untried"
    )
    for p in report.players.values():
        standings = [str(p.standings[name] or "") for name in ("always", "mixed", "never", "untried")]
        voids = sum(p.voids.values())
        table.add_row(
            plain(p.player), f"{p.episodes:,}", str(voids or ""), words.interval(p.reward), *standings
        )
    return table


def _passes(report: Report) -> Table:
    every = sorted({point.k for p in report.players.values() for point in p.passes})
    table = _table(
        "pass@k: solved by any of k attempts (pass^k: by all)", "player", *(f"k = {k}" for k in every)
    )
    for p in report.players.values():
        by_k = {point.k: point for point in p.passes}
        cells = [f"{by_k[k].at.value:.3f} ({by_k[k].all.value:.3f})" if k in by_k else "–" for k in every]
        table.add_row(plain(p.player), *cells)
    return table


def _costs(report: Report) -> Table:
    table = _table(
        "What an episode takes (mean · 99th percentile)",
        "player",
        "steps",
        "tokens",
        "time",
        "invalid actions",
        "cost",
        "ended by",
    )
    for p in report.players.values():
        about = "" if p.tokens_from == "server" else "~"
        invalid = f"{p.invalid_actions:,} ({words.percent(p.invalid_share)})" if p.invalid_actions else "0"
        tokens = words.spread(p.tokens)
        table.add_row(
            plain(p.player),
            words.spread(p.steps),
            about + tokens if p.tokens else tokens,
            words.spread(p.seconds, "s"),
            invalid,
            words.money(p),
            plain(words.ended(p)),
        )
    return table


def _gradient(report: Report) -> Table:
    k = report.group_size
    table = _table(
        "What bought no gradient: rewards all equal, alone, or void",
        "player",
        "groups",
        "sandboxes",
        "generations",
        f"groups of {k} among these attempts",
        f"expected of the next groups of {k}",
    )
    for p in report.players.values():
        n = p.no_gradient
        cells = [n.groups, n.sandboxes, n.generations, n.subsets, n.expected]
        table.add_row(plain(p.player), *map(words.percent, cells))
    return table


def _voids(report: Report) -> Table | None:
    rows = [(p.player, why, n) for p in report.players.values() for why, n in p.voids.items()]
    if not rows:
        return None
    table = _table("Voids: the arena failed; in no mean", "player", "episodes", "reason")
    for player, why, n in sorted(rows, key=lambda row: -row[2])[:MAX_ROWS]:
        table.add_row(plain(player), str(n), plain(why[:200]))
    return table


def _mixed(report: Report) -> Iterator[Any]:
    rows = [(p.player, row) for p in report.players.values() for row in p.tasks if row.standing == "mixed"]
    if not rows:
        return
    rows.sort(key=lambda item: (-item[1].signal, item[1].task, item[0]))
    k = report.group_size
    table = _table(
        "Mixed tasks, which teach",
        "task",
        "player",
        "solved",
        "mean reward",
        f"signal of a group of {k}, 95%",
    )
    for player, row in rows[:MAX_ROWS]:
        table.add_row(
            plain(row.task),
            plain(player),
            f"{row.solved} of {row.attempts}",
            words.number(row.mean_reward),
            words.signal_of(row),
        )
    yield table
    if len(rows) > MAX_ROWS:
        yield f"and {len(rows) - MAX_ROWS} more; --html and --json have all"


def _flags(report: Report) -> Table:
    table = _table("Flags: what was tried", "flag", "player", "attempts", "on", "meaning")
    for flag, player, count, tasks in words.flags_by_player(report)[:MAX_ROWS]:
        table.add_row(
            plain(flag), plain(player), str(count), plain(words.some(tasks)), words.FLAGS.get(flag, "")
        )
    return table


def _unsolved(report: Report) -> Iterator[Any]:
    if not report.never:
        return
    table = _table(
        f"Never solved: {report.never} tasks", "task", "attempts", "best reward", "failed tests", "look at"
    )
    shown = report.unsolved[:MAX_ROWS]
    for task in shown:
        failed = len(task.tests) + task.tests_left_out
        first = task.transcripts[0].episode if task.transcripts else ""
        table.add_row(
            plain(task.task), str(task.attempts), words.number(task.best_reward), str(failed), first
        )
    if report.never > len(shown):
        table.caption = f"and {report.never - len(shown)} more"
    yield table
    yield from _nowhere(report)


def _nowhere(report: Report) -> Iterator[Any]:
    """What failed tests check that the player was told nowhere: the first thing to look at."""
    table = _table(
        "Checked by failed hidden tests, found in nothing that the player was shown",
        "task",
        "hidden test",
        "checks",
    )
    for task in report.unsolved:
        for test in task.tests:
            hidden = [c for c in test.clues if c.untold]
            if hidden and len(table.rows) < MAX_ROWS:
                table.add_row(
                    plain(task.task),
                    plain(test.id),
                    plain("; ".join(f"{c.kind} {c.what}" for c in hidden)),
                )
    if table.rows:
        yield table
        yield "a heuristic over the tests' text; whether it is fair is for a person to say"


def _cutoff(report: Report) -> Table:
    cutoff = report.cutoff
    assert cutoff is not None
    counts = ", ".join(f"{n} {side}" for side, n in cutoff.tasks.items() if n)
    table = _table(
        f"Solve rates before and after {cutoff.date} ({counts})",
        "player",
        "before",
        "after",
        "difference, 95%",
    )
    for name, d in cutoff.players.items():
        if d is None:
            table.add_row(plain(name), "–", "–", "no attempts on one side")
            continue
        table.add_row(
            plain(name),
            f"{d.before:.3f} ({d.tasks[0]} tasks)",
            f"{d.after:.3f} ({d.tasks[1]} tasks)",
            f"{d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}]",
        )
    return table


def _perturbed(report: Report) -> Iterator[Any]:
    if report.perturbed is None:
        return
    table = _table(
        "Told otherwise: solve rates on tasks and on their perturbed variants, paired",
        "player",
        "pairs",
        "original",
        "perturbed",
        "difference, 95%",
        "p",
    )
    for name, d in report.perturbed.players.items():
        table.add_row(plain(name), *words.paired(d))
    yield table
    if worst := [p for p in report.perturbed.pairs if p.difference is not None and p.difference < 0]:
        table = _table(
            "What was solved less often when it was told otherwise", "task", "player", "original", "perturbed"
        )
        for pair in worst[:MAX_ROWS]:
            counts = (f"{c} of {n}" for n, c in (pair.original, pair.perturbed))
            table.add_row(plain(pair.task), plain(pair.player), *counts)
        yield table


def _signs(report: Report) -> Iterator[Any]:
    if not report.signs.counts:
        return
    table = _table(
        f"Signs that an answer was known ({report.signs.looked_at} of {report.signs.solved} solved attempts looked at)",
        "sign",
        "player",
        "task",
        "episode",
        "evidence",
    )
    for sign in report.signs.listed[:MAX_ROWS]:
        table.add_row(*map(plain, (sign.sign, sign.player, sign.task, sign.episode, sign.evidence)))
    yield table
    counts = "; ".join(
        f"{player}: " + ", ".join(f"{name} {n}" for name, n in by_sign.items())
        for player, by_sign in report.signs.counts.items()
    )
    yield f"in all: {clean(counts)}. Evidence, not a verdict"
