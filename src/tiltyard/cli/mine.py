"""The command mine: a repository's history becomes tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import Json, WallName, Workers, announce, app, new_table, print_json, print_out, say

if TYPE_CHECKING:
    from tiltyard.sources.mine import MineReport

EXAMPLES = 120
"""Characters of what is shown of an example."""
OUT = (
    "The pool to write or to add to: a folder, or a file that ends in `.jsonl` or `.jsonl.gz`. What was found so far is kept "
    "beside it, and the same command goes on from there."
)


@app.command()
def mine(
    repository: Annotated[
        Path, typer.Argument(metavar="REPO", help="A git repository: a work tree or a bare one.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="POOL", help=OUT)],
    rev: Annotated[str, typer.Option("--rev", help="The branch or commit whose history is read.")] = "HEAD",
    since: Annotated[
        str, typer.Option("--since", metavar="DATE", help="Only commits from this date on, like 2024-01-01.")
    ] = "",
    until: Annotated[str, typer.Option("--until", metavar="DATE", help="Only commits up to this date.")] = "",
    most: Annotated[
        int | None, typer.Option("--max", "-n", min=1, help="Stop when there are so many tasks.")
    ] = None,
    workers: Workers = 1,
    wall: WallName = "auto",
    python: Annotated[
        str, typer.Option("--python", metavar="3.X", help="The Python to use; default: what a commit allows.")
    ] = "",
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package", metavar="REQ", help="A package that the tests need beside what is declared."
        ),
    ] = None,
    no_env: Annotated[
        bool,
        typer.Option(
            "--no-environment", help="Use the cells as they are; look for no Python and no packages."
        ),
    ] = False,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Runs of the tests before and after each commit.")
    ] = 3,
    merges: Annotated[
        bool,
        typer.Option(
            "--merges/--no-merges", help="Also whole merges whose commits by themselves are no tasks."
        ),
    ] = True,
    max_lines: Annotated[
        int, typer.Option("--max-lines", min=1, help="Lines of source that a fix may change.")
    ] = 400,
    max_files: Annotated[
        int, typer.Option("--max-files", min=1, help="Source files that a fix may change.")
    ] = 12,
    keep_needs_prompt: Annotated[
        bool,
        typer.Option(
            "--keep-needs-prompt",
            help="Tasks whose commit does not say what is to be done go into the pool too, with the tag `needs_prompt`; "
            "else into a pool beside it.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Find tasks in a repository's history: commits that change source and tests, some of which fail before and pass after.

    Each candidate's tests are run on the commit before and on the commit itself, in an environment of its time, three times;
    flaky ones are named and left out. The prompt is what the message and the changelog say, without what gives the fix
    away. Environments are built with the network, once (`pip install 'tiltyard[repos]'`). Exit status 1 if there is no task.

    Example: `tiltyard mine ~/src/boltons --out pools/boltons --since 2020-01-01 --workers 2`
    """
    from tiltyard.rollout.bar import Bar
    from tiltyard.sources.mine import Bounds
    from tiltyard.sources.mine import mine as dig
    from tiltyard.workers import Interrupted

    announce(wall)
    code = 0
    try:
        report = dig(
            repository,
            out,
            rev=rev,
            since=since,
            until=until,
            most=most,
            workers=workers,
            wall=wall,
            python=python,
            extra=package or (),
            environment=not no_env,
            repeats=repeats,
            merges=merges,
            bounds=Bounds(lines=max_lines, files=max_files),
            keep_needs_prompt=keep_needs_prompt,
            progress=Bar(f"mining {repository.name}"),
        )
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {report.left} commits are left; the same command goes on from here")
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    raise typer.Exit(code or (0 if report.tasks or report.needs_prompt else 1))


def _show(report: MineReport) -> None:
    from rich.markup import escape

    table = new_table("commits", "what came of them", "for example")
    table.add_row(str(report.commits), f"in the history of {escape(report.repository)}", "")
    for stage, head in (("history", "  no candidate: "), ("tests", "  no task: ")):
        for step in (s for s in report.steps if s.stage == stage):
            table.add_row(str(-step.count), f"{head}{escape(step.why)}", escape(step.example[:EXAMPLES]))
    apart = [id for id in report.needs_prompt if id not in set(report.tasks)]
    for why, count in report.why_no_prompt.items():
        table.add_row(f"({count})", f"  a task that needs a prompt: {escape(why)}", "")
    table.add_row(
        str(len(report.tasks) + len(apart)), f"tasks, {len(report.needs_prompt)} of which need a prompt", ""
    )
    print_out(table)
    ways = ", ".join(f"{count} {way}" for way, count in report.ways.items())
    print_out(
        f"{report.candidates} candidates in {report.environments} environments; {report.flaky} flaky tests left out"
        + (f"; graded: {ways}" if ways else "")
    )
    for place, fresh in report.written.items():
        print_out(f"{place}: {fresh} new tasks")
    say(f"{report.examined} commits examined in {report.seconds:.1f} s, {report.resumed} of them before")
