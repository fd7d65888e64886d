"""The report as one HTML file: no script, nothing loaded, readable in light and dark, and on paper.

A page shows what players wrote, so nothing in it may act: every text is escaped, and a policy in the page's head
forbids scripts and every connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from tiltyard import __version__
from tiltyard.report import words
from tiltyard.report.build import Report
from tiltyard.report.markup import Markup, esc, figure, fold, join, section, table, tag
from tiltyard.report.page_unsolved import never_solved
from tiltyard.report.players import PassAt, PlayerReport
from tiltyard.report.plots import check, plots

__all__ = ["check", "page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MAX_ROWS = 2000
"""Rows of the table of all tasks; ``--json`` has every one."""
MAX_LISTED = 100


def page(report: Report) -> str:
    """The page. UsageError without matplotlib (the extra `report`)."""
    drawn = plots(report.players, report.group_size)
    sections = [part for part in _sections(report, drawn) if part]
    style = files("tiltyard.report").joinpath("page.css").read_text("utf-8")
    names = [
        (part.split('id="', 1)[1].split('"')[0], part.split("<h2>", 1)[1].split("</h2>")[0])
        for part in sections
    ]
    head = tag(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        tag("title", "Tiltyard report"),
        Markup(f"<style>{style}</style>"),
    )
    nav = tag("nav", *(tag("a", Markup(title), href=f"#{id}") for id, title in names))
    top = tag("header", tag("h1", "What this pool taught"), _lead(report), _tiles(report), nav, cls="top")
    foot = tag("footer", f"tiltyard {__version__}, seed {report.seed}. Voids stand in no mean.")
    body = tag("body", top, tag("main", *sections), foot)
    return "<!doctype html>\n" + str(tag("html", head, body, lang="en")) + "\n"


def _lead(report: Report) -> Markup:
    scope = report.scope
    about = (f" of run {scope.run}" if scope.run else "") + (f" of {scope.player}" if scope.player else "")
    return tag(
        "p",
        f"{report.episodes:,} episodes{about} with {report.steps:,} steps in {report.runs} runs. Groups of "
        f"k = {report.group_size} ({words.group_words(report)}). Intervals are at 95%.",
        cls="lead",
    )


def _tiles(report: Report) -> Markup:
    tasks = {row.digest for p in report.players.values() for row in p.tasks}
    boxes: list[tuple[str, str]] = [
        (f"{len(report.players)}", "players" if len(report.players) != 1 else "player"),
        (f"{len(tasks):,}", "tasks"),
        (f"{report.never:,}", "tasks never solved"),
        (f"{sum(sum(p.voids.values()) for p in report.players.values()):,}", "void episodes, in no mean"),
        (f"{sum(f.count for f in report.flags):,}", "flags of the referee"),
        (f"{sum(sum(c.values()) for c in report.signs.counts.values()):,}", "signs of a known answer"),
    ]
    return tag(
        "div", *(tag("div", tag("b", n), tag("span", what), cls="tile") for n, what in boxes), cls="tiles"
    )


def _sections(report: Report, drawn: dict[str, str]) -> Iterator[Markup]:
    yield _rewards(report, drawn)
    yield _gradient(report, drawn)
    yield never_solved(report)
    yield _costs(report)
    yield _flags(report)
    yield _contamination(report)
    yield _voids(report)
    yield _tasks(report)
    yield _formulas(report)


def _rewards(report: Report, drawn: dict[str, str]) -> Markup:
    rows = [
        (
            p.player,
            f"{p.episodes:,}",
            str(sum(p.voids.values()) or ""),
            words.interval(p.reward),
            *(p.standings[name] or "" for name in ("always", "mixed", "never", "untried")),
        )
        for p in report.players.values()
    ]
    every = sorted({point.k for p in report.players.values() for point in p.passes})
    passes = []
    for p in report.players.values():
        by_k = {point.k: point for point in p.passes}
        cells = [_pass(by_k[k]) if k in by_k else esc("–") for k in every]
        passes.append((p.player, *cells))
    figures = [
        figure(drawn[name], caption)
        for name, caption in (
            (
                "rewards",
                "Mean reward. Interval by a bootstrap over tasks, for attempts at a task resemble each other.",
            ),
            ("passes", "Share of tasks that any (solid, with interval) or all (dotted) of k attempts solve."),
        )
        if name in drawn
    ]
    head = ("player", "episodes", "void", "mean reward", "always solved", "mixed", "never", "untried")
    return section(
        "rewards",
        "Rewards",
        tag("div", *figures, cls="pair"),
        table(head, rows),
        tag("h3", "pass@k"),
        tag(
            "p",
            "Over the tasks with at least k attempts that count; “all” is pass^k, solved by all of k.",
            cls="note",
        ),
        table(("player", *(f"k = {k}" for k in every)), passes) if every else "",
    )


def _pass(point: PassAt) -> Markup:
    low_high = tag("span", f"[{point.at.low:.2f}, {point.at.high:.2f}]", cls="muted")
    return join(
        [f"{point.at.value:.3f}", low_high, tag("span", f"all {point.all.value:.3f}", cls="muted")],
        Markup("<br>"),
    )


def _gradient(report: Report, drawn: dict[str, str]) -> Markup:
    k = report.group_size
    rows = []
    for p in report.players.values():
        n = p.no_gradient
        kinds = n.by_kind["sandboxes"]
        rows.append(
            (
                p.player,
                *map(words.percent, (n.groups, n.sandboxes, n.generations)),
                ", ".join(f"{name} {kinds[name]:,}" for name in kinds if kinds[name]),
                f"{words.percent(n.subsets)} ({n.subset_tasks} tasks)" if n.subsets is not None else "–",
                words.percent(n.expected),
            )
        )
    head = ["player", "groups", "sandboxes", "generations", "sandboxes by kind of group"]
    head += [f"groups of {k} among these attempts", f"expected of the next groups of {k}"]
    figures = [
        figure(drawn[name], caption)
        for name, caption in (
            ("standings", "Tasks solved always, sometimes, never. Only the middle ones teach."),
            (
                "signal",
                f"How likely a group of {k} carries signal, task by task, as far as the attempts tell.",
            ),
        )
        if name in drawn
    ]
    return section(
        "gradient",
        "What bought no gradient",
        tag(
            "p",
            "A group whose rewards are all equal has no advantages, an attempt that is alone or void has no group. "
            "What they took was spent for nothing.",
        ),
        table(head, rows),
        tag("div", *figures, cls="pair"),
    )


def _costs(report: Report) -> Markup:
    rows = []
    for p in report.players.values():
        invalid = f"{p.invalid_actions:,} ({words.percent(p.invalid_share)})" if p.invalid_actions else "0"
        about = "" if p.tokens_from == "server" or p.tokens is None else "~"
        rows.append(
            (
                p.player,
                words.spread(p.steps),
                about + words.spread(p.tokens),
                words.spread(p.seconds, "s"),
                invalid,
                words.money(p) or "–",
                _ended(p),
            )
        )
    head = ("player", "steps", "tokens", "time", "invalid actions", "cost", "ended by")
    note = "Mean · 99th percentile of an episode. Tokens with ~ are estimated as one for four characters."
    return section("costs", "What an episode takes", tag("p", note, cls="note"), table(head, rows, wide=(6,)))


def _ended(player: PlayerReport) -> Markup:
    model = ", ".join(f"{why} {n}" for why, n in player.player_ended.items())
    told = [tag("span", f"the model: {model}", cls="muted")] if model else []
    return join([words.ended(player), *told], "<br>")


def _flags(report: Report) -> Markup:
    if not report.flags:
        return Markup("")
    rows = [
        (flag, player, f"{count:,}", words.some(tasks, 24), words.FLAGS.get(flag, ""))
        for flag, player, count, tasks in words.flags_by_player(report)
    ]
    return section(
        "flags",
        "Flags: what was tried",
        tag(
            "p",
            "What the referee noticed on submissions. A flag alone takes nothing from a reward.",
            cls="note",
        ),
        table(
            ("flag", "player", "attempts", "on which tasks, how often", "meaning"),
            rows[:MAX_LISTED],
            wide=(3, 4),
        ),
    )


def _contamination(report: Report) -> Markup:
    parts: list[object] = []
    if report.cutoff is not None:
        cutoff = report.cutoff
        counts = ", ".join(f"{n} {side}" for side, n in cutoff.tasks.items() if n)
        rows: list[Sequence[object]] = []
        for name, d in cutoff.players.items():
            if d is None:
                rows.append((name, "–", "–", "no attempts on one side"))
                continue
            rows.append(
                (
                    name,
                    f"{d.before:.3f} ({d.tasks[0]} tasks)",
                    f"{d.after:.3f} ({d.tasks[1]} tasks)",
                    f"{d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}]",
                )
            )
        parts.append(tag("h3", f"Solve rates before and after {cutoff.date}"))
        parts.append(tag("p", f"Tasks by their date: {counts}.", cls="note"))
        parts.append(table(("player", "before", "after", "difference, after − before"), rows))
    parts += _perturbed(report)
    if report.signs.looked_at:
        parts.append(tag("h3", "Signs in transcripts"))
        parts.append(
            tag(
                "p",
                f"{report.signs.looked_at:,} of {report.signs.solved:,} solved attempts were looked at. "
                + "; ".join(f"{name}: {what}" for name, what in words.SIGNS.items())
                + ". Evidence, not a verdict.",
                cls="note",
            )
        )
        listed = report.signs.listed[:MAX_LISTED]
        if listed:
            head = ("sign", "player", "task", "episode", "evidence")
            parts.append(
                table(
                    head,
                    [(s.sign, s.player, s.task, tag("code", s.episode), s.evidence) for s in listed],
                    wide=(4,),
                )
            )
        else:
            parts.append(tag("p", "None was found."))
    return section("contamination", "Was it known before?", *parts) if parts else Markup("")


def _perturbed(report: Report) -> list[object]:
    """Tasks and their perturbed variants, paired."""
    if report.perturbed is None:
        return []
    head = ("player", "pairs", "original", "perturbed", "difference, perturbed − original", "p")
    rows = [(name, *words.paired(d)) for name, d in report.perturbed.players.items()]
    pairs = [
        (p.task, p.player, *(f"{c} of {n}" for n, c in (p.original, p.perturbed)), ", ".join(p.kinds))
        for p in report.perturbed.pairs[:MAX_ROWS]
    ]
    said = "The same tasks under other names, constants, orders or words. Each pair has the same weight; the p-value is that of sign flips."
    return [
        tag("h3", "Tasks told otherwise"),
        tag("p", said, cls="note"),
        table(head, rows),
        fold(
            f"{len(report.perturbed.pairs):,} pairs",
            table(("task", "player", "original", "perturbed", "kinds"), pairs),
        ),
    ]


def _voids(report: Report) -> Markup:
    rows = [(p.player, f"{n:,}", why[:400]) for p in report.players.values() for why, n in p.voids.items()]
    if not rows and not report.notes:
        return Markup("")
    return section(
        "voids",
        "Voids and notes",
        table(("player", "episodes", "reason"), rows[:MAX_LISTED], wide=(2,)) if rows else "",
        *(tag("p", note) for note in report.notes),
    )


def _tasks(report: Report) -> Markup:
    everyone = list(report.players.values())
    by_task: dict[tuple[str, str], dict[str, Markup]] = {}
    for p in everyone:
        for row in p.tasks:
            about = f"signal {words.signal_of(row)}, rewards {row.reward_signal:.2f}"
            cell = join(
                [
                    tag("span", row.standing, cls=f"tag {row.standing}"),
                    f" {row.solved} of {row.attempts}",
                    f", {row.voids} void" if row.voids else "",
                    Markup("<br>"),
                    tag("span", about, cls="muted"),
                ]
            )
            by_task.setdefault((row.task, row.digest), {})[p.player] = cell
    rows = [
        (
            join([task, Markup(" "), tag("span", digest[:8], cls="muted")]),
            *(cells.get(p.player, esc("–")) for p in everyone),
        )
        for (task, digest), cells in sorted(by_task.items())[:MAX_ROWS]
    ]
    more = len(by_task) - len(rows)
    return section(
        "tasks",
        "All tasks",
        tag(
            "p",
            f"Solved of attempts that count; the chance that a group of {report.group_size} holds solved and unsolved "
            "attempts, with its 95% credible interval, and that its rewards differ at all.",
            cls="note",
        ),
        fold(f"{len(by_task):,} tasks", table(("task", *(p.player for p in everyone)), rows)),
        tag("p", f"and {more:,} more in --json", cls="note") if more > 0 else "",
    )


def _formulas(report: Report) -> Markup:
    k = report.group_size
    said = [
        ("mean reward", "Over attempts that count. Percentile bootstrap over tasks; where all tasks have the same mean, the score interval with tasks as trials."),
        ("pass@k", "1 − C(n−c, k)/C(n, k), the mean over tasks. Chen et al. 2021, arXiv:2107.03374."),
        ("pass^k", "C(c, k)/C(n, k). Yao et al. 2024, arXiv:2406.12045."),
        (f"signal of a group of {k}", "E[1 − pᵏ − (1−p)ᵏ] over the posterior of p, Beta(½ + solved, ½ + unsolved), in closed form; its interval from the posterior's quantiles."),
        ("that rewards differ", "E[1 − Σ qᵥᵏ] over the Dirichlet posterior of the rewards seen, 0 and 1."),
        ("no gradient", "Groups are the attempts at one draw of a task in one run. Equal rewards have group-relative advantages of 0 (GRPO, arXiv:2402.03300); voids are no part of a baseline."),
        ("tasks told otherwise", "The mean over pairs of the difference of solve rates; percentile bootstrap over pairs; two-sided permutation test by flipping signs."),
        ("difference", "Newcombe 1998, method 10, with attempts divided by the design effect of tasks."),
    ]  # fmt: skip
    body: list[object] = []
    for name, text in said:
        body += [tag("dt", name), tag("dd", text)]
    return section("formulas", "How to read it", tag("dl", *body))
