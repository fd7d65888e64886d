"""A corpus in a folder: ``cases/``, ``controls/`` and ``tasks/``, as docs/redteam.md describes them.

Nothing of a corpus is executed here: JSON is parsed, the tests are read as literals. What is malformed is one
UsageError with every problem; what is well-formed but of a kind that is unknown stays a case, and is skipped later with
the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tiltyard.errors import TaskError, UsageError
from tiltyard.images import Images
from tiltyard.pool.repository import without_history
from tiltyard.redteam.case import Case
from tiltyard.redteam.folder_tasks import read_task
from tiltyard.task import Files, Task

ABOUT = "exploit.json"
ACTIONS = "actions.json"
MAX_FILES = 1000
MAX_BYTES = 64 << 20
_TEXTS = ("name", "kind", "task", "class", "mechanism", "source", "expected", "fixture", "min_python")


@dataclass(frozen=True)
class Corpus:
    """``tasks`` by id. ``honest`` controls must score 1,
    ``wrong`` ones 0. ``timed`` tasks judge how long a call takes, so an honest solution may miss by chance."""

    name: str
    cases: tuple[Case, ...]
    tasks: Mapping[str, Task]
    honest: tuple[Case, ...] = ()
    wrong: tuple[Case, ...] = ()
    timed: frozenset[str] = frozenset()
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By task: texts that no player may ever see, beside the hidden tests themselves."""


def read_corpus(folder: Path | str) -> Corpus:
    """The corpus in ``folder``. UsageError names every file and field that is wrong."""
    root = Path(folder)
    if not (root / "cases").is_dir():
        raise UsageError(f"{root} has no folder 'cases'; expected a corpus with cases/ and tasks/")
    problems: list[str] = []
    cases = list(_cases(root / "cases", problems))
    controls = list(_cases(root / "controls", problems)) if (root / "controls").is_dir() else []
    tasks: dict[str, Task] = {}
    timed: set[str] = set()
    secrets: dict[str, tuple[str, ...]] = {}
    for id in dict.fromkeys(case.task for case in (*cases, *controls)):
        at = root / "tasks" / id
        if not at.is_dir() or "/" in id or id in (".", ".."):
            problems.append(f"{root / 'tasks'}: found no task {id!r}, which a case needs")
            continue
        try:
            read = read_task(at)
        except (TaskError, UsageError) as error:
            problems.append(str(error))
            continue
        tasks[id], secrets[id] = (
            _with_needs(read.task, [case for case in cases if case.task == id]),
            read.secrets,
        )
        if read.timed:
            timed.add(id)
    names = [case.name for case in cases]
    problems += [f"two cases are named {name!r}" for name in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        raise UsageError("\n".join(problems))
    if not cases:
        raise UsageError(f"{root / 'cases'} holds no case; expected folders with {ABOUT}")
    honest = tuple(case for case in controls if case.name.startswith("honest"))
    wrong = tuple(case for case in controls if not case.name.startswith("honest"))
    return Corpus(root.name, tuple(cases), tasks, honest, wrong, frozenset(timed), secrets)


def _with_needs(task: Task, cases: list[Case]) -> Task:
    """The task with what its cases take for granted: a shell, and a git history. A fixture's history holds the fix;
    what a workspace of an image has in its place is one commit of the start, whatever script the corpus names."""
    if any("bash" in case.tools for case in cases):
        task = replace(task, shell=True)
    if any(case.fixture for case in cases):
        task = replace(task, start=Images().add(without_history(task.start)))
    return task


def _cases(folder: Path, problems: list[str]) -> Iterator[Case]:
    for at in sorted(p for p in folder.iterdir() if p.is_dir()):
        try:
            yield _case(at)
        except UsageError as error:
            problems.append(str(error))


def _case(at: Path) -> Case:
    about = _json(at / ABOUT, dict)
    for name in _TEXTS:
        if not isinstance(about.get(name, ""), str):
            raise UsageError(f"{at / ABOUT}, {name}: found {about[name]!r}; expected a text")
    for name in ("name", "kind", "task", "class"):
        if not about.get(name):
            raise UsageError(f"{at / ABOUT}, {name}: found nothing; expected a text")
    delete = about.get("delete", [])
    if not isinstance(delete, list) or not all(isinstance(path, str) for path in delete):
        raise UsageError(f"{at / ABOUT}, delete: found {delete!r}; expected a list of paths")
    episodes = about.get("episodes", 1)
    if isinstance(episodes, bool) or not isinstance(episodes, int) or not 1 <= episodes <= 10:
        raise UsageError(f"{at / ABOUT}, episodes: found {episodes!r}; expected a number from 1 to 10")
    actions: list[Any] = []
    if about["kind"] == "tool":
        actions = _json(at / ACTIONS, list)
        if not actions or not all(isinstance(action, dict) and "tool" in action for action in actions):
            raise UsageError(f"{at / ACTIONS}: expected a list of objects that each have a 'tool'")
    return Case(
        name=about["name"],
        kind=about["kind"],
        task=about["task"],
        about=about["class"],
        mechanism=about.get("mechanism", ""),
        source=about.get("source", ""),
        files=files_of(at, leave_out=(ABOUT, ACTIONS)),
        actions=tuple(actions),
        delete=tuple(delete),
        episodes=episodes,
        armed=bool(about.get("armed", False)),
        min_python=_version(at, about.get("min_python", "")),
        fixture=about.get("fixture", ""),
    )


def _version(at: Path, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(".")) if text else ()
    except ValueError:
        raise UsageError(
            f"{at / ABOUT}, min_python: found {text!r}; expected a version like '3.12'"
        ) from None


def files_of(folder: Path, leave_out: tuple[str, ...] = ()) -> Files:
    """Every regular file below a folder, by its path there. No link is followed. UsageError where it is too much."""
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or name in leave_out or "__pycache__" in path.parts:
            continue
        try:
            found[name] = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}") from None
        size += len(found[name])
        if len(found) > MAX_FILES or size > MAX_BYTES:
            raise UsageError(f"{folder} has more than {MAX_FILES} files or {MAX_BYTES} bytes")
    return Files(found)


def _json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: found no JSON that can be read ({error})") from None
    if not isinstance(value, kind):
        raise UsageError(f"{path}: found {type(value).__name__}; expected {kind.__name__}")
    return value
