"""Commands about what the records teach: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.common import Json, Seed, app, check_writable, print_json, print_out, say, write_text


@app.command()
def report(
    store: Annotated[
        str,
        typer.Argument(
            metavar="STORE", help="A store that `run --store` wrote: a file, or a postgresql:// URL."
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write it as one self-contained page, with plots."),
    ] = None,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="Only this run; its id, or the beginning of it.")
    ] = "",
    player: Annotated[str, typer.Option("--player", "-p", metavar="PLAYER", help="Only this player.")] = "",
    cutoff: Annotated[
        str | None,
        typer.Option(
            "--cutoff", metavar="DATE", help="Compare solve rates on tasks from before and after this date."
        ),
    ] = None,
    group_size: Annotated[
        int | None,
        typer.Option(
            "--group-size",
            min=1,
            metavar="K",
            help="The k of signal and pass@k; default: the largest group played.",
        ),
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="POOL", help="The pool, where the records' own has moved.")
    ] = None,
    transcripts: Annotated[
        int, typer.Option("--transcripts", min=0, help="Never-solved tasks to show with transcripts.")
    ] = 20,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what a store's episodes teach about players and tasks, and which of them taught nothing.

    Example: `tiltyard report episodes.sqlite --html report.html --cutoff 2026-06`
    """
    from tiltyard import report as reporting

    if html is not None:  # what is missing is found before the work
        check_writable(html)
        from tiltyard.report.page import check, page

        check()
    found = reporting.report(
        store,
        run=run,
        player=player,
        cutoff=cutoff,
        group_size=group_size,
        pool=pool,
        unsolved_shown=transcripts,
        seed=seed,
    )
    if as_json:
        print_json(found.as_json())
    else:
        from tiltyard.report.terminal import render

        for thing in render(found):
            print_out(thing)
    if html is not None:
        write_text(html, page(found))
        say(f"the report is in {html}")
