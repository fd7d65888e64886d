"""Commands about runs to come: plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiltyard.cli.common import (
    FromFile,
    Globs,
    Json,
    Seed,
    Tags,
    WallName,
    announce,
    app,
    chosen_pool,
    new_table,
    print_json,
    print_out,
    say,
)
from tiltyard.errors import UsageError

if TYPE_CHECKING:
    from tiltyard.report.costs import Recorded
    from tiltyard.report.plan import Plan


@app.command()
def plan(
    pool: Annotated[str, typer.Argument(metavar="POOL", help="The pool, as for `run`.")] = "builtin",
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Tasks in a training step.")] = 256,
    group: Annotated[int, typer.Option("--group", "-g", min=1, help="Attempts at each of them.")] = 8,
    turns: Annotated[
        int | None, typer.Option("--turns", "-t", min=1, help="Actions of an episode; default: 12.")
    ] = None,
    model_latency: Annotated[
        str | None,
        typer.Option(
            "--model-latency", metavar="TIME", help="The median time of one answer: 3s, 500ms; default: 3s."
        ),
    ] = None,
    model_latency_p99: Annotated[
        str | None,
        typer.Option(
            "--model-latency-p99", metavar="TIME", help="Its 99th percentile; default: 2.7 times the median."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STORE",
            help="Take turns and latency from the transcripts of this store instead.",
        ),
    ] = None,
    player: Annotated[
        str, typer.Option("--player", "-p", metavar="PLAYER", help="With --from: of this player only.")
    ] = "",
    steps: Annotated[int, typer.Option("--steps", "-s", min=1, help="Training steps of the run.")] = 100,
    train_time: Annotated[
        str, typer.Option("--train-time", metavar="TIME", help="What the trainer takes a step beside it.")
    ] = "0s",
    test_share: Annotated[
        float, typer.Option("--test-share", min=0, max=1, help="Share of turns that run the visible tests.")
    ] = 0.33,
    cells: Annotated[
        int | None, typer.Option("--cells", min=1, help="Open cells at most; default: one an episode.")
    ] = None,
    cores: Annotated[
        int | None,
        typer.Option("--cores", min=1, help="Look at this many cores; default: as many as are enough."),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", metavar="TIME", help="How long to measure this pool on this machine.")
    ] = "10s",
    wall: WallName = "auto",
    task: Globs = None,
    tag: Tags = None,
    tasks_from: FromFile = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say how many cells, cores and hours a training run needs, from what this pool costs on this machine.

    Example: `tiltyard plan builtin --batch 256 --group 8 --turns 12 --model-latency 3s --steps 500`
    """
    from tiltyard.report.costs import measure as measured
    from tiltyard.report.plan import Load, default_tail, duration
    from tiltyard.report.plan import plan as planned

    known = _recorded(store, player) if store is not None else None
    p50 = known.latency_p50 if known is not None else 3.0
    if model_latency is not None:
        p50 = _duration("--model-latency", model_latency)
    p99 = default_tail(p50) if known is None or model_latency is not None else known.latency_p99
    if model_latency_p99 is not None:
        p99 = _duration("--model-latency-p99", model_latency_p99)
    load = Load(
        batch=batch,
        group=group,
        turns=turns or (known.turns if known is not None else 12),
        latency_p50=p50,
        latency_p99=p99,
        steps=steps,
        train_s=_duration("--train-time", train_time),
        cells=cells,
        test_share=test_share,
    )
    how_long = _duration("--measure", measure)
    chosen = chosen_pool(pool, task, tag, tasks_from)
    announce(wall)
    say(f"measuring {chosen.name} for {duration(measure):g} s …")
    found = planned(load, measured(chosen, wall=wall, seconds=how_long, seed=seed), cores=cores, seed=seed)
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)


def _recorded(where: str, player: str) -> Recorded:
    from tiltyard.report import open_store
    from tiltyard.report.costs import recorded

    with open_store(where) as store:
        return recorded(store, player)


def _duration(option: str, text: str) -> float:
    from tiltyard.report.plan import duration

    try:
        return duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _show(found: Plan) -> None:
    from tiltyard.report.plan import assumptions
    from tiltyard.report.words import count, seconds

    load, costs = found.load, found.costs
    table = new_table("action", "p50", "p99", "measured")
    for kind, facts in costs.as_json()["kinds"].items():
        p50, p99 = (seconds(facts[name] / 1e3) for name in ("p50_ms", "p99_ms"))
        table.add_row(kind, p50, p99, f"{facts['n']:,}")
    print_out(table)
    print_out(f"{costs.episodes} episodes on {costs.tasks} tasks, wall {costs.wall}, one at a time")
    table = new_table("cores", "a step, p50", "a step, p99", "cores busy", f"{load.steps:,} steps")
    for row in found.rows:
        hours = seconds(3600 * row.hours)
        style = "bold" if row.cores == found.cores else None
        table.add_row(
            f"{row.cores:,}",
            seconds(row.step_p50_s),
            seconds(row.step_p99_s),
            f"{row.busy:.0%}",
            hours,
            style=style,
        )
    print_out(table)
    enough = (
        "are enough" if found.enough else "are not enough: a step takes more than 5% longer than it could"
    )
    lines = [
        f"{found.cells:,} cells, {found.cores:,} cores ({enough}), {seconds(3600 * found.hours)} for {load.steps:,} steps "
        f"of {load.episodes:,} episodes",
        f"with cores without end a step takes {seconds(found.ideal_p50_s)} (p99 {seconds(found.ideal_p99_s)}); an episode "
        f"{seconds(found.episode_p50_s)} (p99 {seconds(found.episode_p99_s)}), {found.waiting_share:.0%} of it the model's; "
        "the slowest one decides",
        f"{count(found.core_seconds)} core seconds of the arena a step; memory at most "
        f"{found.cells * costs.memory_bytes / (1 << 30):,.0f} GiB, the tasks' own limits",
        f"assumed ({found.simulated} steps simulated):",
        *(f"  - {line}" for line in assumptions(found)),
    ]
    print_out("\n".join(lines))
