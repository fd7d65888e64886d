"""The command perturb: the tasks of a pool told otherwise, against contamination."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.cli import models
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
from tiltyard.errors import UsageError

if TYPE_CHECKING:
    from tiltyard.sources.perturb import PerturbReport

_WHY = 6
"""Reasons that the table shows for each kind; ``--json`` has all."""


@app.command()
def perturb(
    pool: PoolSpec,
    out: Annotated[
        Path, typer.Option("--out", metavar="POOL", help="A new folder, or a .jsonl or .jsonl.gz file.")
    ],
    kinds: Annotated[
        str,
        typer.Option(
            "--kinds",
            metavar="KIND,…",
            help="Some of rename, files, constants, reorder, prompt; each is done where it applies.",
        ),
    ] = "rename,prompt",
    count: Annotated[int, typer.Option("--count", min=1, help="Variants of each task.")] = 1,
    originals: Annotated[
        bool, typer.Option("--with-originals", help="Write each original before its variants.")
    ] = False,
    task: Globs = None,
    tag: Tags = None,
    workers: Workers = 1,
    seed: Seed = 0,
    wall: WallName = "auto",
    player: Annotated[
        str | None,
        typer.Option(
            "--player",
            metavar="anthropic:MODEL|openai:MODEL",
            help="A model that rewords the prompts, in place of the templates.",
        ),
    ] = None,
    base_url: models.BaseUrl = None,
    concurrency: models.Concurrency = 8,
    temperature: models.Temperature = None,
    effort: models.Effort = None,
    max_tokens: models.MaxTokens = 8192,
    model_option: models.ModelOption = None,
    prices: models.Prices = None,
    budget: models.Budget = None,
    request_timeout: models.Timeout = 600.0,
    retries: models.Retries = 8,
    as_json: Json = False,
) -> None:
    """Make tasks that are the same work under other names, constants, orders and words.

    A variant is kept if its reference scores 1 and its start 0; it carries the id and digest of its original, and
    `tiltyard report` compares the solve rates of both. Exit status 1 if no variant was made of some task. Needs libcst:
    `pip install 'tiltyard[adequacy]'`.

    Example: `tiltyard perturb builtin --out other.jsonl --kinds rename,prompt --seed 7`
    """
    from tiltyard.pool import load
    from tiltyard.rollout.bar import Bar
    from tiltyard.sources import perturb as room
    from tiltyard.workers import Interrupted

    wanted = tuple(kind.strip() for kind in kinds.split(",") if kind.strip())
    _check_out(out)
    words = None
    if player is not None:
        if "prompt" not in wanted:
            raise UsageError("--player rewords prompts; add prompt to --kinds")
        words = _words(
            player, concurrency, base_url=base_url, system=None, options=model_option, stop=None, prices=prices,
            budget=budget, request_timeout=request_timeout, retries=retries, protocol="code", temperature=temperature,
            effort=effort, max_tokens=max_tokens,
        )  # fmt: skip
    announce(wall)
    code = 0
    try:
        report = room.perturb(
            pool, tasks=task or (), tags=tag or (), kinds=wanted, seed=seed, count=count, wall=wall, workers=workers,
            words=words, progress=Bar(f"perturbing {pool}"),
        )  # fmt: skip
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {len(report.made)} of {report.planned} variants were tried")
    if report.tasks:
        _write(room.as_pool(load(pool), report, originals=originals), out)
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    raise typer.Exit(
        code or (0 if {one.of for one in report.made if one.task} == {one.of for one in report.made} else 1)
    )


def _words(player: str, concurrency: int, *, budget: float | None, **asked: Any) -> Any:
    from dataclasses import replace

    from tiltyard.players.model import ModelPlayer, is_model
    from tiltyard.rollout.bar import Bar
    from tiltyard.sources.perturb.by_model import SYSTEM, ModelWords

    if not is_model(player):
        raise UsageError(f"--player: found {player!r}; expected anthropic:MODEL or openai:MODEL")
    made = models.model_player(player, None, budget=budget, **asked)
    asker = ModelPlayer(
        replace(made.settings, system=SYSTEM), made.reach, price=made.price, budget_usd=budget
    )
    return ModelWords(asker, concurrency, Bar(f"rewording by {player}"), say)


def _check_out(path: Path) -> None:
    """What can't be written is found before the work."""
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        if path.exists():
            raise UsageError(f"--out: {path} exists; expected a new name")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"--out: there is no folder {path.absolute().parent}")
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(
            f"--out: {path} exists; expected a new name, an empty folder, or a name that ends in .jsonl"
        )


def _write(made: Any, path: Path) -> None:
    from tiltyard.pool import to_folder, to_jsonl

    if path.name.endswith((".jsonl", ".jsonl.gz")):
        to_jsonl(made, path)
    else:
        to_folder(made, path)
    say(f"{len(made)} tasks written to {path}")


def _show(report: PerturbReport) -> None:
    from rich.markup import escape

    table = new_table("kind", "in variants", "left out", "why")
    for kind, counts in report.by_kind.items():
        why = list(counts["why"].items())
        lines = [f"{n} × {reason}" for reason, n in why[:_WHY]]
        lines += [f"… and {len(why) - _WHY} other reasons"] if len(why) > _WHY else []
        table.add_row(kind, str(counts["made"]), str(counts["left_out"]), escape("\n".join(lines)))
    print_out(table)
    if report.dropped:
        fallen = new_table("variants that were not made", "how many")
        for reason, n in report.dropped.items():
            fallen.add_row(escape(reason), str(n))
        print_out(fallen)
    print_out(
        f"{report.pool}: {len(report.tasks)} of {report.planned} variants kept "
        f"(kinds {', '.join(report.kinds)}, seed {report.seed}, wall {report.wall})"
    )
    say(f"{len(report.made)} variants tried in {report.seconds:.1f} s")
