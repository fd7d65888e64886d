"""Commands that play episodes, and look at those that were played: run, demo, play, replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.cli import models
from tiltyard.cli.common import (
    FromFile,
    Globs,
    Json,
    PoolSpec,
    Reward,
    Seed,
    Tags,
    TaskId,
    WallName,
    Workers,
    announce,
    app,
    chosen_pool,
    mean_text,
    new_table,
    print_json,
    print_out,
    reward_rule,
    say,
    write_out,
)
from tiltyard.errors import UsageError

if TYPE_CHECKING:
    from tiltyard.records import RunRecord
    from tiltyard.rollout import RunSummary
    from tiltyard.rollout.demo import Comparison
    from tiltyard.rollout.summary import Tally


@app.command()
def run(
    pool: PoolSpec,
    player: Annotated[
        str | None,
        typer.Option(
            "--player",
            "-p",
            help="`noop`, `random`, `reference` (the default), `replay:STORE#EPISODE`, `anthropic:MODEL` or "
            "`openai:MODEL`.",
            show_default=False,
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option("--episodes", "-n", min=1, help="Draw this many tasks by seed; default: each once."),
    ] = None,
    attempts: Annotated[int, typer.Option("--attempts", "-k", min=1, help="Attempts at each of them.")] = 1,
    workers: Workers = 1,
    seed: Seed = 0,
    wall: WallName = "auto",
    reward: Reward = None,
    store: Annotated[  # not a Path, which would make sqlite:/ of sqlite:///
        str | None,
        typer.Option(
            "--store",
            metavar="PATH",
            help="Keep every episode in this store: a file (SQLite), or a postgresql:// URL.",
        ),
    ] = None,
    task: Globs = None,
    tag: Tags = None,
    tasks_from: FromFile = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with this run of the store: play what is missing or void, as it was begun.",
        ),
    ] = None,
    sample: Annotated[
        str,
        typer.Option(
            "--sample",
            metavar="plan|signal",
            help="How --episodes are drawn: each task equally often, or those whose groups promise to differ, by what "
            "--store knows of the player.",
        ),
    ] = "plan",
    as_json: Json = False,
    base_url: models.BaseUrl = None,
    concurrency: models.Concurrency = 8,
    system: models.System = None,
    protocol: models.Protocol = "native",
    temperature: models.Temperature = None,
    effort: models.Effort = None,
    max_tokens: models.MaxTokens = 8192,
    max_turns: models.MaxTurns = 50,
    max_total_tokens: models.MaxTotal = None,
    stop: models.StopAt = None,
    model_option: models.ModelOption = None,
    prices: models.Prices = None,
    budget: models.Budget = None,
    request_timeout: models.Timeout = 600.0,
    retries: models.Retries = 8,
) -> None:
    """Play many episodes and show what came out.

    Ctrl-C once stops cleanly and keeps what was finished; twice stops at once.

    Example: `tiltyard run builtin --player random --episodes 100 --workers 2 --store episodes.sqlite`
    """
    from tiltyard import rollout
    from tiltyard.players.model import is_model
    from tiltyard.rollout.bar import Bar
    from tiltyard.rollout.runs import spec_of

    chosen = chosen_pool(pool, task, tag, tasks_from)
    begun = _begun(store, resume)
    name = player or (begun.player if begun is not None else "reference")
    plays: Any = name
    if is_model(name):
        plays = models.model_player(
            name,
            begun.settings.get("model") if begun is not None and begun.player == name else None,
            base_url=base_url,
            system=system,
            options=model_option,
            stop=stop,
            prices=prices,
            budget=budget,
            request_timeout=request_timeout,
            retries=retries,
            protocol=protocol,
            temperature=temperature,
            effort=effort,
            max_tokens=max_tokens,
            max_turns=max_turns,
            max_total_tokens=max_total_tokens,
        )
    announce(wall)
    code = 0
    try:
        summary = rollout.run(
            chosen,
            plays,
            episodes=episodes,
            attempts=attempts,
            workers=workers,
            seed=seed,
            wall=wall,
            reward=reward_rule(reward),
            store=store,
            progress=Bar(f"{name} on {chosen.name}"),
            pool_spec=spec_of(pool),
            concurrency=concurrency,
            resume=resume,
            sample=sample,
        )
    except rollout.Interrupted as interrupted:
        summary, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {len(summary.results)} of {summary.planned} episodes were finished")
    if as_json:
        print_json(summary.as_json())
    else:
        _show_run(summary)
    count = len(summary.results)
    say(f"{count} episodes in {summary.seconds:.2f} s ({count / max(summary.seconds, 1e-9):.1f}/s)")
    for reason, count in list(summary.voids.items())[:5]:
        say(f"void {count}x: {reason}")
    for line in models.what_it_took(summary):
        say(line)
    if store is not None:
        where = _place(store)
        say(f"stored as run {summary.run} in {where}; tiltyard replay {where} lists its episodes")
        if len(summary.results) < summary.planned or summary.total.void:
            say(f"--store {where} --resume {summary.run} plays what is missing or void")
    if code == 0 and summary.results and summary.total.void == len(summary.results):
        code = 1
    raise typer.Exit(code)


@app.command()
def demo(
    pool: PoolSpec = "builtin",
    workers: Workers = 2,
    seed: Seed = 0,
    wall: WallName = "auto",
    task: Globs = None,
    tag: Tags = None,
    as_json: Json = False,
) -> None:
    """Play a pool with a player that does nothing, a random one and the reference, and compare them.

    Exit status 1 if one of them earns what it should not.

    Example: `tiltyard demo`
    """
    from tiltyard.rollout.bar import Bar
    from tiltyard.rollout.demo import compare

    chosen = chosen_pool(pool, task, tag, None)
    announce(wall)
    found = compare(
        chosen,
        workers=workers,
        seed=seed,
        wall=wall,
        progress=lambda player: Bar(f"{player} on {chosen.name}"),
    )
    if as_json:
        print_json(found.as_json())
    else:
        _show_comparison(found)
    raise typer.Exit(0 if found.as_expected else 1)


@app.command()
def play(
    pool: PoolSpec,
    task: TaskId,
    seed: Seed = 0,
    wall: WallName = "auto",
    reward: Reward = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="PATH", help="Keep the episode in this store.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a task yourself, at the terminal or from a script on stdin. `help` lists the commands.

    Example: `tiltyard play builtin median`, or `printf 'test\\nsubmit\\n' | tiltyard play builtin median`
    """
    from tiltyard.rollout.person import Left, play_as_person
    from tiltyard.rollout.runs import spec_of

    chosen = chosen_pool(pool, None, None, None)
    chosen[task]  # an id that is not there is said before anything else
    announce(wall)
    try:
        record = play_as_person(chosen, task, seed, wall, reward_rule(reward), spec_of(pool), store)
    except Left as left:
        say(f"{left}; nothing was handed in")
        raise typer.Exit(1) from None
    if as_json:
        print_json(record.as_dict())
    else:
        print_out(_ending(record))
    if store is not None:
        say(f"stored as {record.id} in {_place(store)}")


@app.command()
def replay(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A store that `run --store` wrote.")],
    episode: Annotated[
        str | None,
        typer.Argument(metavar="EPISODE", help="An episode's id, or the beginning of one; none: list them."),
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="POOL", help="The pool, where the record's own has moved.")
    ] = None,
    wall: WallName = "auto",
    as_json: Json = False,
) -> None:
    """Play a recorded episode again and compare byte for byte. Exit status 1 if anything differs.

    Example: `tiltyard replay episodes.sqlite e-4m2k0vx7ta`
    """
    from tiltyard import rollout

    if episode is None:
        _list_episodes(store, as_json)
        return
    result = rollout.replay(store, episode, pool=pool, wall=wall)
    if as_json:
        print_json(result.as_json())
    elif result.same:
        record = result.recorded
        print_out(
            f"{record.id} ({record.task}, {record.player}): the same, {len(record.steps)} steps, digest {record.digest}"
        )
    else:
        print_out(f"{result.recorded.id} differs: {result.difference}")
    raise typer.Exit(0 if result.same else 1)


def _begun(store: str | None, resume: str | None) -> RunRecord | None:
    """The run that goes on, if one does."""
    from tiltyard.records import Store
    from tiltyard.rollout.resume import stored_run

    if resume is None:
        return None
    if store is None:
        raise UsageError("--resume needs the store of the run: --store PATH")
    with Store(store, readonly=True) as opened:
        return stored_run(opened, resume)


def _place(store: str) -> str:
    from tiltyard.records.store import place_name

    return place_name(store)


def _show_run(summary: RunSummary) -> None:
    from rich.markup import escape

    table = new_table("task", "episodes", "mean reward", "void")
    for id, tally in summary.tasks.items():
        table.add_row(escape(id), str(tally.episodes), mean_text(tally.mean_reward), str(tally.void or ""))
    total = summary.total
    table.add_section()
    table.add_row(
        "all", str(total.episodes), mean_text(total.mean_reward), str(total.void or ""), style="bold"
    )
    print_out(table)
    print_out(f"{summary.player} on {summary.pool}, wall {summary.wall}, digest {summary.digest[:16]}")


def _show_comparison(found: Comparison) -> None:
    from rich.markup import escape

    table = new_table("task", *(run.player for run in found.runs))
    for id in found.runs[0].tasks:
        table.add_row(escape(id), *(_reward_of(run.tasks[id]) for run in found.runs))
    table.add_section()
    table.add_row("mean of all", *(_reward_of(run.total) for run in found.runs), style="bold")
    print_out(table)
    first = found.runs[0]
    print_out(
        f"{first.total.episodes} tasks of {first.pool}, wall {first.wall}; 1.000: every hidden test passed"
    )


def _reward_of(tally: Tally) -> str:
    return (
        f"{mean_text(tally.mean_reward)} ({tally.void} void)" if tally.void else mean_text(tally.mean_reward)
    )


def _list_episodes(where: str, as_json: bool) -> None:
    from tiltyard.records import Store

    with Store(where, readonly=True) as store:
        facts = (
            {
                "id": record.id,
                "run": record.run,
                "task": record.task,
                "player": record.player,
                "steps": len(record.steps),
                "reward": record.reward,
                "void": record.void,
                "digest": record.digest,
            }
            for record in store.episodes()
        )
        if as_json:
            print_json(list(facts))
            return
        for one in facts:  # a line at a time: a store may hold millions
            reward = "void" if one["void"] is not None else f"{one['reward']:.3f}"
            write_out(
                f"{one['id']}  {reward:>5}  {one['steps']:>3} steps  {one['player']:<9}  {one['task']}\n"
            )


def _ending(record: Any) -> str:
    if record.void is not None:
        return f"void: {record.void}"
    if record.truncated:
        return f"reward {record.reward:.3f}: the episode was cut by its {record.truncated_by} limit"
    verdict = record.verdict or {}
    failed = [f"  {o['id']}: {o['reason']}" for o in verdict.get("outcomes", ()) if not o["passed"]]
    head = f"reward {record.reward:.3f}: {verdict.get('passed')} of {verdict.get('total')} hidden tests pass"
    return "\n".join([head, *failed])
