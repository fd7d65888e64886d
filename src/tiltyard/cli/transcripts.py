"""Commands that show and export what was played: show-episode, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiltyard.cli.common import Json, app, print_json, print_out, say

StorePath = Annotated[str, typer.Argument(metavar="STORE", help="A store that `run --store` wrote.")]


@app.command("show-episode")
def show_episode(
    store: StorePath,
    episode: Annotated[
        str, typer.Argument(metavar="EPISODE", help="An episode's id, or the beginning of one.")
    ],
    as_json: Json = False,
) -> None:
    """Print one episode readably: what was said and called, what came back and what was changed, and the verdict.

    Example: `tiltyard show-episode episodes.sqlite e-4m2k0vx7ta`
    """
    from tiltyard.records import Store
    from tiltyard.rollout.story import start_files, tell

    with Store(store, readonly=True) as opened:
        record = opened.episode(episode)
    if as_json:
        print_json(record.as_dict())
    else:
        print_out(tell(record, start_files(record)))


@app.command()
def export(
    store: StorePath,
    form: Annotated[
        str, typer.Option("--format", metavar="atif|parquet", help="ATIF as JSON Lines, or Parquet.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")],
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only the episodes of this run.")
    ] = None,
) -> None:
    """Write episodes to a file for other software: trajectories with messages, calls, results, tokens, rewards.

    Example: `tiltyard export episodes.sqlite --format atif --out episodes.jsonl`
    """
    from tiltyard.records import Store
    from tiltyard.rollout.export import export as write
    from tiltyard.rollout.resume import stored_run

    with Store(store, readonly=True) as opened:
        id = stored_run(opened, run).id if run is not None else None
        count = write(opened, form, out, run=id)
    say(f"{count} episodes in {out}")
