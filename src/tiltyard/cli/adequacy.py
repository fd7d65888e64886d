"""The command adequacy: are the hidden tests of a pool any good?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import (
    Globs,
    Json,
    PoolSpec,
    Seed,
    Tags,
    WallName,
    Workers,
    announce,
    app,
    new_table,
    print_json,
    print_out,
    say,
)

if TYPE_CHECKING:
    from tiltyard.check.adequacy import AdequacyReport, Mutant, TaskAdequacy

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@app.command()
def adequacy(
    pool: PoolSpec,
    task: Globs = None,
    tag: Tags = None,
    mutants: Annotated[int, typer.Option("--mutants", min=1, help="Mutants of each task, at most.")] = 40,
    weak: Annotated[
        float, typer.Option("--weak", min=0.0, max=1.0, help="A task that scores less is weak.")
    ] = 0.9,
    workers: Workers = 1,
    seed: Seed = 0,
    wall: WallName = "auto",
    as_json: Json = False,
) -> None:
    """Change the references a little, and say which changes no hidden test notices.

    Each mutant is graded as a submission would be. One that passes is compared with the reference on many inputs: if none
    tells them apart it is counted as equivalent, else the input is shown. Exit status 1 if a task is weak or could not be
    measured. Needs libcst: `pip install 'tiltyard[adequacy]'`.

    Example: `tiltyard adequacy builtin --task median --mutants 100`
    """
    from tiltyard.check import adequacy as room
    from tiltyard.rollout.bar import Bar
    from tiltyard.workers import Interrupted

    announce(wall)
    code = 0
    try:
        report = room.adequacy(
            pool, tasks=task or (), tags=tag or (), mutants=mutants, weak=weak, wall=wall, workers=workers, seed=seed,
            progress=Bar(f"mutating {pool}"),
        )  # fmt: skip
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {len(report.tasks)} of {report.planned} tasks were measured")
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    raise typer.Exit(code or (0 if report.ok else 1))


def _show(report: AdequacyReport) -> None:
    from rich.markup import escape

    from tiltyard.check.adequacy.model import FATES

    for one in report.tasks:
        for mutant in one.of("survived"):
            _show_mutant(one, mutant)
    table = new_table("task", "score", "killed", "survived", "equivalent", "unmentioned", "")
    for one in sorted(report.tasks, key=lambda t: (t.score is not None, t.score or 0.0, t.task)):
        columns = (str(len(one.of(fate))) for fate in FATES)
        weak = "weak" if one in report.weak else ""
        score = "-" if one.score is None else f"{one.score:.2f}"
        note = one.problem or weak
        table.add_row(escape(one.task), score, *columns, str(len(one.findings)), escape(note))
    print_out(table)
    _show_findings(report)
    score = "-" if report.score is None else f"{report.score:.3f}"
    counts = ", ".join(f"{sum(len(t.of(f)) for t in report.tasks)} {f}" for f in FATES)
    print_out(
        f"{report.pool}: mutation score {score} ({counts}); {len(report.weak)} weak tasks (below {report.weak_below:g})"
    )
    say(f"{len(report.tasks)} tasks in {report.seconds:.1f} s, seed {report.seed}, wall {report.wall}")


def _show_mutant(one: TaskAdequacy, mutant: Mutant) -> None:
    from rich.text import Text

    text = Text()
    text.append(f"{one.task}: survived: {mutant.title}\n", style="bold")
    for line in mutant.diff.splitlines()[2:]:
        text.append(line + "\n", style=_COLOURS.get(line[:1], "") if sys.stdout.isatty() else "")
    if mutant.witness is not None:
        text.append(_witness(mutant.witness["call"], mutant.witness["reference"], mutant.witness["mutant"]))
    else:
        text.append("  no input could be tried on it\n")
    print_out(text if sys.stdout.isatty() else text.plain.rstrip("\n") + "\n")


def _witness(call: str, reference: str, mutant: str) -> str:
    lines = "\n".join(f"    {line}" for line in call.splitlines())
    return (
        f"  no test tells them apart; this would:\n{lines}\n  reference: {reference}\n  mutant:    {mutant}\n"
    )


def _show_findings(report: AdequacyReport) -> None:
    from rich.markup import escape

    if not any(one.findings for one in report.tasks):
        return
    table = new_table("task", "checked, but nothing tells the player", "test", "evidence")
    for one in report.tasks:
        for f in one.findings:
            table.add_row(escape(one.task), escape(f"{f.kind}: {f.what}"), escape(f.test), escape(f.evidence))
    print_out(table)
