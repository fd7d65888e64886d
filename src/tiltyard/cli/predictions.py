"""The command that writes predictions in SWE-bench's format: predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.common import app, check_writable, say, write_text
from tiltyard.cli.transcripts import StorePath
from tiltyard.errors import UsageError


@app.command()
def predictions(
    store: StorePath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write, as JSON Lines.")
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="The run whose episodes are meant; default: the only one there is."
        ),
    ] = None,
    attempt: Annotated[
        int, typer.Option("--attempt", min=0, help="Which of several attempts at a task, from 0.")
    ] = 0,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="model_name_or_path; default: the model or the player."),
    ] = None,
) -> None:
    """Write what was handed in as predictions: one a task, its patch the diff between the start and the submission.

    Example: `tiltyard predictions episodes.sqlite --out predictions.jsonl`
    """
    from tiltyard.check import prediction_rows
    from tiltyard.records import Store
    from tiltyard.rollout.resume import stored_run

    check_writable(out)
    with Store(store, readonly=True) as opened:
        id: str | None = None
        if run is not None:
            id = stored_run(opened, run).id
        else:
            runs = opened.runs()
            if len(runs) > 1:
                some = ", ".join(one.id for one in runs[-4:])
                raise UsageError(f"{store} has {len(runs)} runs; choose one with --run, such as {some}")
            id = runs[0].id if runs else None
        rows, notes = prediction_rows(list(opened.episodes(run=id)), name or "", attempt)
    write_text(out, "".join(json.dumps(row) + "\n" for row in rows))
    say(f"{len(rows)} predictions in {out}")
    for what, count in notes.items():
        say(f"  {count} episodes {what}")
    if rows and not any(row["model_patch"] for row in rows):
        say("  every patch is empty: nothing was changed, or these are no repository tasks")
