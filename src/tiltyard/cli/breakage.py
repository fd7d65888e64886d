"""The command break: working code with good tests becomes tasks, by breaking it on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.cli import models
from tiltyard.cli.common import (
    Globs,
    Json,
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
    from tiltyard.sources.breakage import BreakReport

WHAT = "The folder of a repository (git, bare git, or plain code with tests), or a pool as `tiltyard tasks` takes it."
OUT = "The pool to write: a new folder, or a file that ends in `.jsonl` or `.jsonl.gz`."


@app.command("break")
def break_(
    what: Annotated[str, typer.Argument(metavar="REPO|POOL", help=WHAT)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="POOL", help=OUT)],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Tasks to make, at most.")] = 50,
    kinds: Annotated[
        str,
        typer.Option(
            "--kinds", metavar="A,B", help="Kinds of changes; default: all. `--kinds help` lists them."
        ),
    ] = "",
    breaks: Annotated[
        int, typer.Option("--breaks", min=1, max=5, help="From 1 up to so many changes in one task.")
    ] = 1,
    rev: Annotated[str, typer.Option("--rev", help="The commit of a git repository.")] = "HEAD",
    no_env: Annotated[
        bool,
        typer.Option(
            "--no-environment", help="Use the cells as they are; look for no Python and no packages."
        ),
    ] = False,
    package: Annotated[
        list[str] | None,
        typer.Option(
            "--package", metavar="REQ", help="A package that the tests need beside what is declared."
        ),
    ] = None,
    python: Annotated[str, typer.Option("--python", metavar="3.X", help="The Python to use.")] = "",
    task: Globs = None,
    tag: Tags = None,
    workers: Workers = 1,
    seed: Seed = 0,
    wall: WallName = "auto",
    player: Annotated[
        str | None,
        typer.Option(
            "--player", metavar="anthropic:MODEL|openai:MODEL", help="A model that writes the bugs."
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
    """Break working code on purpose, and write a pool of tasks to mend it.

    Each change is one of the kinds (or a model's), natural to look at, in code that tests reach. It becomes a task if some
    tests fail and not all, the same ones in another order and under another hash seed, and if the difference can be told as
    a call with what it gives and should give: that is the prompt. The original code is the reference. The same seed gives the
    same pool. Exit status 1 if fewer tasks were made than `--count`. Needs `pip install 'tiltyard[adequacy]'`.

    Example: `tiltyard break ~/src/boltons --out broken --count 100 --workers 2`
    """
    from tiltyard.rollout.bar import Bar
    from tiltyard.sources.breakage import breakage
    from tiltyard.workers import Interrupted

    if kinds.strip() == "help":
        _show_kinds()
        return
    _check_out(out)
    bugs = _bugs(player, seed, concurrency, base_url, temperature, effort, max_tokens, model_option, prices, budget,
                 request_timeout, retries)  # fmt: skip
    announce(wall)
    code = 0
    try:
        report = breakage(
            what, count=count, seed=seed, kinds=[k.strip() for k in kinds.split(",") if k.strip()], breaks=breaks,
            workers=workers, wall=wall, tasks=task or (), tags=tag or (), rev=rev, environment=not no_env,
            packages=package or (), python=python, bugs=bugs, progress=Bar,
        )  # fmt: skip
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        say(f"interrupted: {len(report.tasks)} of {count} tasks were made")
    _write(report, out)
    if as_json:
        print_json(report.as_json() | {"out": str(out)})
    else:
        _show(report, out)
    raise typer.Exit(code or (0 if len(report.tasks) == count else 1))


def _check_out(out: Path) -> None:
    if out.name.endswith((".jsonl", ".jsonl.gz")):
        if out.exists():
            raise UsageError(f"--out: {out} exists; expected a new name")
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out: {out} exists; expected a new name or an empty folder")


def _bugs(
    player: str | None, seed: int, concurrency: int, base_url: str | None, temperature: float | None, effort: str | None,
    max_tokens: int, model_option: list[str] | None, prices: Path | None, budget: float | None, request_timeout: float,
    retries: int,
) -> Any:  # fmt: skip
    if player is None:
        return None
    from tiltyard.players.model import is_model

    if not is_model(player):
        raise UsageError(f"--player: found {player!r}; expected anthropic:MODEL or openai:MODEL")
    from dataclasses import replace

    from tiltyard.players.model import ModelPlayer
    from tiltyard.rollout.bar import Bar
    from tiltyard.sources.breakage.bugs import SYSTEM, ModelBugs

    made = models.model_player(
        player, None, base_url=base_url, system=None, options=model_option, stop=None, prices=prices, budget=budget,
        request_timeout=request_timeout, retries=retries, protocol="code", temperature=temperature, effort=effort,
        max_tokens=max_tokens,
    )  # fmt: skip
    settings = replace(made.settings, system=SYSTEM)
    asker = ModelPlayer(settings, made.reach, price=made.price, budget_usd=budget)
    return ModelBugs(asker, seed, concurrency, say, Bar(f"asking {player}"))


def _write(report: BreakReport, out: Path) -> None:
    from tiltyard.pool import Pool
    from tiltyard.pool.dump import to_folder, to_jsonl

    if not report.tasks:
        return
    if out.name.endswith((".jsonl", ".jsonl.gz")):
        to_jsonl(report.tasks, out)
    else:
        name = out.name or "broken"
        pool = Pool(name, "1", report.tasks)
        to_folder(Pool(name, pool.digest[:12], report.tasks), out)


def _show(report: BreakReport, out: Path) -> None:
    from rich.markup import escape

    from tiltyard.sources.breakage import FATES

    unfit = [source for source in report.sources if source.problem]
    if unfit:
        table = new_table("left out", "why")
        for source in unfit:
            table.add_row(escape(source.name), escape(source.problem))
        print_out(table)
    tried = sum(report.fates.values())
    table = new_table("breaks", "number", "share", "why")
    table.add_row("tried", str(tried), "", f"of {sum(s.candidates for s in report.sources)} that there are")
    for fate, why in FATES.items():
        if report.fates[fate]:
            table.add_row(fate, str(report.fates[fate]), f"{report.fates[fate] / tried:.0%}", why)
    print_out(table)
    kinds = ", ".join(f"{kind} {n}" for kind, n in report.kinds.most_common())
    ready = [source for source in report.sources if not source.problem]
    tests = sum(source.tests for source in ready)
    sources = "1 source" if len(ready) == 1 else f"{len(ready)} sources"
    print_out(f"{len(report.tasks)} tasks of {sources} with {tests} tests ({kinds or 'none'})")
    if report.tasks:
        print_out(f"written to {out}, the best hidden first")
    for reason, number in report.voids.most_common(3):
        say(f"void {number}x: {reason}")
    say(f"{report.seconds:.1f} s, seed {report.seed}")


def _show_kinds() -> None:
    from tiltyard.mutate import OPERATORS

    table = new_table("kind", "what it does")
    for name, what in OPERATORS.items():
        table.add_row(name, what)
    print_out(table)
