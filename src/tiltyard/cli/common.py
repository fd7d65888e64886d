"""What commands share: the app, the options that several have, and how a result and a message are printed."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tiltyard.errors import UsageError

if TYPE_CHECKING:
    from tiltyard.errors import Problem
    from tiltyard.pool import Pool

F = TypeVar("F", bound=Callable[..., Any])
NAMED = 5
"""Rows that can't be built here, of which the reason is shown; the others are counted."""

REPOS = Annotated[
    Path | None,
    typer.Option(
        "--repos",
        metavar="DIR",
        help="For `swebench:FILE`: the folder with the repositories of its rows, as clones or bare ones "
        "(DIR/OWNER__NAME, DIR/NAME.git, …); default: $TILTYARD_REPOS.",
    ),
]
_OF_POOLS = frozenset({"pool", "pools", "repo_or_pool"})


class App(typer.Typer):
    """Every command that takes a pool takes ``--repos`` too, without having to say so."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[F], F]:
        register = super().command(*args, **kwargs)

        def decorate(function: F) -> F:
            takes_pool = _OF_POOLS & set(inspect.signature(function).parameters)
            register(with_repos(function) if takes_pool else function)
            return function

        return decorate


def with_repos(function: Callable[..., Any]) -> Callable[..., Any]:
    """The command with an option ``--repos``, which holds wherever a pool is loaded while it runs."""
    signature = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("repos", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=REPOS)

    def command(*args: Any, repos: Path | None = None, **kwargs: Any) -> Any:
        before = os.environ.get("TILTYARD_REPOS")
        if repos is not None:
            if not repos.expanduser().is_dir():
                raise UsageError(
                    f"--repos: {repos} is no folder; expected one with the repositories of the rows"
                )
            os.environ["TILTYARD_REPOS"] = str(repos.expanduser().absolute())
        try:
            return function(*args, **kwargs)
        finally:
            if repos is not None:
                os.environ.pop("TILTYARD_REPOS")
                os.environ |= {} if before is None else {"TILTYARD_REPOS": before}

    functools.update_wrapper(command, function)
    parameters = [*signature.parameters.values(), option]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


app = App(
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
        "`classeval:FILE`, `bigcodebench:FILE`, `exercism:DIR` or `swebench:FILE` (with `--repos DIR`).",
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
    str,
    typer.Option(
        "--wall",
        help="The kind of cell: `auto` (the strongest that works), or one that `tiltyard doctor` names; "
        "`container:HOW` for a mode, an engine, a runtime (docs/walls.md).",
    ),
]
Reward = Annotated[
    str | None,
    typer.Option("--reward", metavar="fraction|all", help="The reward rule, in place of each task's own."),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        "-w",
        min=1,
        help="Worker processes, at most: more than there are processors work where these would be idle.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed of everything that is drawn.")]


def chosen_pool(spec: str, globs: list[str] | None, tags: list[str] | None, ids_from: Path | None) -> Pool:
    from dataclasses import replace

    from tiltyard.pool import load
    from tiltyard.rollout.bar import Bar

    pool = load(spec, tasks=globs or (), tags=tags or (), progress=Bar(f"reading {spec}"))
    say_left_out(pool.left_out)
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


def say_left_out(problems: Sequence[Problem]) -> None:
    """Name the rows that can't be built here: a pool must not become smaller in silence."""
    if not problems:
        return
    say(f"{len(problems)} rows can't be built here and are left out:")
    for problem in problems[:NAMED]:
        say(f"  - {problem}")
    if len(problems) > NAMED:
        say(f"  … and {len(problems) - NAMED} more; `tiltyard validate` names them all")


def reward_rule(rule: str | None) -> Any:
    from tiltyard.task import REWARD_RULES

    if rule is not None and rule not in REWARD_RULES:
        raise UsageError(f"--reward: found {rule!r}; expected {' or '.join(REWARD_RULES)}")
    return rule


def announce(name: str) -> None:
    """Name the wall in use and what it does not protect from, before anything runs behind it."""
    from tiltyard.cells import WALLS, make_wall, probe_wall

    wall = make_wall(name)
    if name == "auto" and wall.name == WALLS[-1]:
        for better in WALLS[:-1]:
            say(f"no {better} wall: {probe_wall(better)}")
    try:
        say(
            f"wall: {wall.name if name == 'auto' else name}"
            + ("; it does not protect from:" if wall.weaknesses else "")
        )
        for weakness in wall.weaknesses:
            say(f"  - {weakness}")
    finally:
        wall.close()


def print_json(value: Any) -> None:
    # allow_nan=False: NaN is no JSON, and would be a void that was taken for a reward
    write_out(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_out(thing: Any) -> None:
    """A text or a table to stdout. Nothing is cut off at the terminal's width."""
    from rich.console import Console

    if isinstance(thing, str):
        write_out(thing + "\n")
        return
    # where stdout is no terminal, a width that was made up must not fold or cut a task's id
    terminal = sys.stdout.isatty()
    console = Console(file=StringIO(), force_terminal=terminal, width=None if terminal else 10_000)
    console.print(thing)
    write_out(console.file.getvalue())  # type: ignore[attr-defined]


def write_out(text: str) -> None:
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


def say(text: str) -> None:
    with suppress(OSError):  # what is said on the way is never worth a run
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def new_table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        numeric = column in ("episodes", "mean reward", "void", "hidden", "visible")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=number == 0)
    return table


def mean_text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def check_writable(path: Path) -> None:
    """A list that can't be written is found before the hours that it takes to make it."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; expected the name of a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} can't be written; check that its folder is there, and the permissions")


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None
