"""The command that grades predictions in SWE-bench's format: grade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import (
    Globs,
    Json,
    WallName,
    Workers,
    announce,
    app,
    check_writable,
    chosen_pool,
    new_table,
    print_json,
    print_out,
    say,
    write_text,
)

if TYPE_CHECKING:
    from tiltyard.check import GradeReport


@app.command()
def grade(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            help="JSON Lines, a JSON list, or a JSON object by id, of `instance_id`, `model_name_or_path`, `model_patch`.",
        ),
    ],
    pool: Annotated[
        str,
        typer.Option("--pool", metavar="POOL", help="The tasks, such as `swebench:FILE` with --repos DIR."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write SWE-bench's report there, as JSON."),
    ] = None,
    workers: Workers = 1,
    wall: WallName = "auto",
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="Keep what was graded here, and go on from it next time."
        ),
    ] = None,
    task: Globs = None,
    as_json: Json = False,
) -> None:
    """Grade predictions: each patch on its task's pristine start, in fresh cells, with the task's own tests.

    Exit status 1 if the arena failed at some of them.

    Example: `tiltyard grade predictions.jsonl --pool swebench:rows.jsonl --repos clones --out report.json`
    """
    from tiltyard.check import grade as graded
    from tiltyard.check import read_predictions
    from tiltyard.rollout.bar import Bar
    from tiltyard.workers import Interrupted

    if out is not None:
        check_writable(out)
    given = read_predictions(predictions)
    chosen = chosen_pool(pool, task, None, None)
    announce(wall)
    code = 0
    try:
        report = graded(
            [one for one in given if not task or one.id in chosen.ids],
            chosen,
            wall=wall,
            workers=workers,
            state=state,
            progress=Bar(f"grading {predictions.name}"),
        )
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        again = f"; the same command goes on from {state}" if state else "; with --state FILE it could go on"
        say(f"interrupted: {len(report.results)} of {report.planned} predictions were graded{again}")
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    if out is not None:
        write_text(out, json.dumps(report.as_json(), indent=2) + "\n")
        say(f"report written to {out}")
    if report.unknown:
        some = ", ".join(report.unknown[:3])
        say(f"{len(report.unknown)} predictions are of no task of {report.pool}, such as {some}")
    raise typer.Exit(code or (1 if report.ids("error") else 0))


def _show(report: GradeReport) -> None:
    from rich.markup import escape

    if report.results:
        table = new_table("task", "outcome", "reason")
        for one in report.results:
            table.add_row(escape(one.id), one.outcome, escape(one.reason))
        print_out(table)
    resolved, all_graded = len(report.ids("resolved")), len(report.results)
    counts = ", ".join(
        f"{len(ids)} {name}"
        for name, ids in (
            ("unresolved", report.ids("unresolved")),
            ("empty", report.ids("empty")),
            ("errors", report.ids("error")),
            ("tasks without a prediction", report.incomplete),
        )
        if ids
    )
    print_out(f"{report.pool}: {resolved} of {all_graded} resolved" + (f"; {counts}" if counts else ""))
    if report.resumed:
        say(f"{report.resumed} of them known from before")
