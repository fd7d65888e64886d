"""Commands about tasks: validate, tasks, show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiltyard.cli.common import (
    FromFile,
    Globs,
    Json,
    PoolSpec,
    Reward,
    Tags,
    TaskId,
    WallName,
    Workers,
    announce,
    app,
    check_writable,
    chosen_pool,
    new_table,
    print_json,
    print_out,
    reward_rule,
    say,
    write_text,
)

if TYPE_CHECKING:
    from tiltyard.check import ValidationReport


@app.command()
def validate(
    pool: PoolSpec,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Gradings of the start and of the reference.")
    ] = 5,
    workers: Workers = 1,
    wall: WallName = "auto",
    reward: Reward = None,
    fit: Annotated[
        Path | None,
        typer.Option(
            "--fit", metavar="FILE", help="Write the fit tasks' ids here, for `run --tasks-from FILE`."
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FILE", help="Keep what was found here, and go on from it next time."
        ),
    ] = None,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes",
            help="The reference without comments, reformatted, with other locals, noisy and twice as slow must score 1 too "
            "(needs `tiltyard[adequacy]`).",
        ),
    ] = False,
    drop_flaky: Annotated[
        bool,
        typer.Option(
            "--drop-flaky",
            help="Leave out tests that end in different ways, or need an order, and judge the rest; --settled writes the "
            "tasks without them.",
        ),
    ] = False,
    settled: Annotated[
        Path | None,
        typer.Option(
            "--settled",
            metavar="PATH",
            help="Write the tasks there (a new folder, or a .jsonl file) with what their suites leave open: the tests that "
            "count, and the way in which they run.",
        ),
    ] = None,
    task: Globs = None,
    tag: Tags = None,
    as_json: Json = False,
) -> None:
    """Say of each task whether it is fit to teach: the start scores 0, the reference 1, always the same.

    Exit status 1 if any task is unfit (the task is at fault) or void (the arena failed).

    Example: `tiltyard validate humaneval:HumanEval.jsonl.gz --repeats 5 --state state.jsonl --fit fit.txt`
    """
    from tiltyard import check
    from tiltyard.rollout.bar import Bar
    from tiltyard.workers import Interrupted

    if fit is not None:
        check_writable(fit)
    announce(wall)
    code = 0
    try:
        report = check.validate(
            pool,
            tasks=task or (),
            tags=tag or (),
            repeats=repeats,
            wall=wall,
            workers=workers,
            reward=reward_rule(reward),
            probes=probes,
            drop_flaky=drop_flaky,
            state=state,
            progress=Bar(f"validating {pool}"),
            reading=Bar(f"reading {pool}"),
        )
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        again = (
            f"; the same command goes on from {state}"
            if state
            else "; with --state FILE it could go on later"
        )
        say(f"interrupted: {len(report.tasks)} of {report.planned} tasks were looked at{again}")
    if as_json:
        print_json(report.as_json())
    else:
        _show_validation(report)
    if fit is not None:
        write_text(fit, "".join(f"{id}\n" for id in report.fit))
        say(f"{len(report.fit)} fit tasks listed in {fit}")
    if settled is not None and not code:
        _write_settled(pool, task, tag, settled, report, wall)
    raise typer.Exit(code or (0 if report.ok else 1))


@app.command()
def tasks(
    pool: PoolSpec, task: Globs = None, tag: Tags = None, tasks_from: FromFile = None, as_json: Json = False
) -> None:
    """List the tasks of a pool.

    Example: `tiltyard tasks builtin --tag bugfix`
    """
    from rich.markup import escape

    from tiltyard.pool import summary

    chosen = chosen_pool(pool, task, tag, tasks_from)
    facts = summary(chosen)
    if as_json:
        print_json(facts)
        return
    table = new_table("task", "grading", "hidden", "visible", "tags", "title")
    for one in facts:
        row = (one["id"], one["grading"], str(one["hidden"]), str(one["visible"]), ", ".join(one["tags"]))
        table.add_row(*map(escape, (*row, one["title"])))
    print_out(table)
    print_out(f"{len(chosen)} tasks in {chosen.name}, version {chosen.version}, digest {chosen.digest[:12]}")


@app.command()
def show(
    pool: PoolSpec,
    task: TaskId,
    hidden: Annotated[bool, typer.Option("--hidden", help="The hidden tests and the reference too.")] = False,
    as_json: Json = False,
) -> None:
    """Show one task: its prompt, files, visible tests and limits.

    Example: `tiltyard show builtin median`
    """
    from tiltyard.pool import describe

    facts = describe(chosen_pool(pool, None, None, None)[task], hidden=hidden, listed=True)
    if as_json:
        print_json(facts)
    else:
        print_out(_described(facts))


def _write_settled(
    pool: str,
    task: list[str] | None,
    tag: list[str] | None,
    path: Path,
    report: ValidationReport,
    wall: str,
) -> None:
    """The fit tasks, with their tests and ways filled in."""
    from tiltyard import check
    from tiltyard.pool import Pool, load_lenient, to_folder, to_jsonl

    chosen, _ = load_lenient(pool, tasks=task or (), tags=tag or ())  # built before, so this is quick
    fit = {*report.fit}
    tasks = tuple(task for task in chosen if task.id in fit)
    made = check.settled(Pool(chosen.name, chosen.version, tasks), wall, report)
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        to_jsonl(made, path)
    else:
        to_folder(made, path)
    say(f"{len(made)} fit tasks written to {path}")


def _show_validation(report: ValidationReport) -> None:
    from rich.markup import escape

    bad = [task for task in report.tasks if task.outcome != "fit"]
    if bad:
        table = new_table("task", "outcome", "reason")
        for task in bad:
            table.add_row(escape(task.task), task.outcome, escape(task.reason))
        print_out(table)
    if report.flaky:
        table = new_table("task", "tests that end in different ways")
        for id, names in report.flaky.items():
            table.add_row(escape(id), escape(", ".join(names)))
        print_out(table)
    if report.ordered:
        table = new_table("task", "tests that need the order of their suite, in which every grading runs it")
        for id, names in report.ordered.items():
            table.add_row(escape(id), escape(", ".join(names)))
        print_out(table)
    counts = ", ".join(f"{count} {kind}" for kind, count in report.summary.items())
    print_out(f"{report.pool}: {counts} ({report.repeats} repeats, wall {report.wall})")
    if report.ways:
        print_out("suites: " + ", ".join(f"{count} {way}" for way, count in report.ways.items()))
    say(f"{len(report.tasks)} tasks in {report.seconds:.1f} s, {report.resumed} of them known from before")


def _described(facts: dict[str, Any]) -> str:
    """A task for people to read."""
    meta = facts["metadata"]
    said = [f"{key}: {meta[key]}" for key in ("source", "created", "difficulty", "license") if meta[key]]
    head = [f"{facts['id']} ({facts['grading']}, reward {facts['reward']})", *said]
    parts = ["\n".join(head), facts["prompt"].strip("\n")]
    if image := facts.get("image"):
        total = sum(file["bytes"] for file in facts["start"].values())
        parts.append(f"--- start: {len(facts['start'])} files, {total} bytes, image {image}")
    for title in ("reference",) if image else ("start", "reference"):
        for path, text in facts.get(title, {}).items():
            note = ", protected" if title == "start" and path in facts["protected"] else ""
            body = text if isinstance(text, str) else f"({text['bytes']} bytes)"
            parts.append(f"--- {title}: {path}{note}\n" + body.rstrip("\n"))
    if facts.get("removed"):
        parts.append("--- the reference removes " + ", ".join(facts["removed"]))
    for title in ("visible", "hidden"):
        tests = facts[title]
        if isinstance(tests, int):
            parts.append(f"--- {tests} hidden tests")
            continue
        for test in tests:
            rest = {key: value for key, value in test.items() if key not in ("id", "code") and value}
            parts.append(
                f"--- {title} test {test['id']}\n" + (test.get("code") or json.dumps(rest)).strip("\n")
            )
    limits = ", ".join(f"{name} {value}" for name, value in facts["limits"].items())
    return "\n\n".join([*parts, f"--- limits\n{limits}"])
