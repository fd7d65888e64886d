"""From what a caller names to a pool. Detects a file's kind by the fields of its rows, never by its name.

Raises ``UsageError`` for a spec that can't be meant, ``TaskError`` with every problem of every task otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tiltyard.errors import Problem, TaskError, UsageError
from tiltyard.pool.bigcodebench import is_bigcodebench, read_bigcodebench
from tiltyard.pool.classeval import is_classeval, read_classeval
from tiltyard.pool.collection import Pool, near, some_of
from tiltyard.pool.exercism import read_exercises
from tiltyard.pool.folder import IMAGES, is_task, read_pool_toml, read_task, shown, task_folders
from tiltyard.pool.humaneval import is_humaneval, is_humaneval_plus, read_humaneval, read_humaneval_plus
from tiltyard.pool.humanevalfix import is_humanevalfix, read_humanevalfix
from tiltyard.pool.lesson import read_lesson
from tiltyard.pool.mbpp import is_mbpp, is_mbpp_plus, read_mbpp, read_mbpp_plus
from tiltyard.pool.rows import SUFFIXES, Row, read_rows, short
from tiltyard.pool.swebench import Built, is_swebench, read_swebench
from tiltyard.task import Task

Spec = str | os.PathLike[str] | Pool | Task | Mapping[str, Any] | Iterable[Any]
Reader = Callable[[Mapping[str, Any], str, list[Problem]], Task | None]

BUILTIN = Path(__file__).with_name("builtin")
FORMS = (
    "'builtin', 'humaneval:FILE', 'humanevalfix:FILE', 'mbpp:FILE', 'classeval:FILE', 'bigcodebench:FILE', "
    "'swebench:FILE' (with a folder of repositories), 'exercism:DIR', a .jsonl file (.json, .gz as well), a folder (one "
    "task, or one a task), or a Python list of dicts and Tasks"
)


SWEBENCH = "swebench"


class Format(NamedTuple):
    """One published kind of rows: what it's called, how a row of it is known and read."""

    name: str
    family: str
    fits: Callable[[Mapping[str, Any]], bool]
    read: Reader | None
    """None: rows of this kind are read together (``read_swebench``)."""


FORMATS = (
    Format("tasks", "native", lambda row: "hidden" in row, read_lesson),
    Format("swe-bench", SWEBENCH, is_swebench, None),
    Format("humanevalfix", "humanevalfix", is_humanevalfix, read_humanevalfix),
    Format("classeval", "classeval", is_classeval, read_classeval),
    Format("bigcodebench", "bigcodebench", is_bigcodebench, read_bigcodebench),
    Format("humaneval", "humaneval", is_humaneval, read_humaneval),
    Format("humaneval+", "humaneval", is_humaneval_plus, read_humaneval_plus),
    Format("mbpp+", "mbpp", is_mbpp_plus, read_mbpp_plus),
    Format("mbpp", "mbpp", is_mbpp, read_mbpp),
)

EXERCISM = "exercism"
"""The one published set that is a folder and no file of rows."""


@dataclass
class _Reading:
    name: str
    version: int | str | None = None
    found: list[tuple[str, Task]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)

    def add(self, where: str, task: Task | None) -> None:
        if task is not None:
            self.found.append((where, task))


@dataclass(frozen=True)
class _Wishes:
    """What a caller said beside the spec. ``only``: globs on ids, so that rows nobody asked for are not built."""

    only: tuple[str, ...] = ()
    repos: str | os.PathLike[str] | None = None
    progress: Built | None = None


def load(
    spec: Spec,
    *,
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    repos: str | os.PathLike[str] | None = None,
    progress: Built | None = None,
) -> Pool:
    """The pool that ``spec`` names, filtered.

    ``tasks`` are globs on ids, ``tags`` any of which a task must have; both empty take everything. Raises
    :class:`TaskError` with every problem if any task is malformed, :class:`UsageError` for an unknown spec, a file that
    can't be read, and a filter that selects nothing. ``repos`` is the folder of repositories for ``swebench:FILE`` (None:
    $TILTYARD_REPOS), ``progress`` is told of each of its rows; those that can't be built here are in ``pool.left_out``,
    and only if there is no other it is an error.
    """
    pool, problems = _load(spec, _wishes(tasks, repos, progress))
    if problems:
        raise TaskError(problems)
    return _selected(pool, tasks, tags)


def load_lenient(
    spec: Spec,
    *,
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    repos: str | os.PathLike[str] | None = None,
    progress: Built | None = None,
) -> tuple[Pool, list[Problem]]:
    """As :func:`load`, but the well-formed tasks come back together with what is wrong with the others."""
    pool, problems = _load(spec, _wishes(tasks, repos, progress))
    if not pool.tasks and pool.left_out:
        return pool, problems
    return _selected(pool, tasks, tags), problems


def _wishes(tasks: Sequence[str], repos: str | os.PathLike[str] | None, progress: Built | None) -> _Wishes:
    return _Wishes((tasks,) if isinstance(tasks, str) else tuple(tasks), repos, progress)


def _selected(pool: Pool, tasks: Sequence[str], tags: Sequence[str]) -> Pool:
    """Filtered. If nothing is left because rows can't be built here, the error says why they can't."""
    if not pool.tasks and pool.left_out:
        raise TaskError(list(pool.left_out))
    return pool.select(tasks, tags)


def _load(spec: Spec, wishes: _Wishes) -> tuple[Pool, list[Problem]]:
    if isinstance(spec, Pool):
        return spec, []
    if isinstance(spec, Task):
        spec = [spec]
    if isinstance(spec, str):
        reading = _named(spec, wishes)
    elif isinstance(spec, os.PathLike):
        reading = _path(Path(os.fspath(spec)), None, wishes)
    elif isinstance(spec, Mapping):
        reading = _items([spec])
    elif isinstance(spec, Iterable) and not isinstance(spec, (bytes, bytearray)):
        reading = _items(spec)
    else:
        raise UsageError(f"{short(spec)} names no pool; a pool is {FORMS}")
    unique = _unique(reading)
    if not unique and not reading.problems and not reading.left_out:
        raise UsageError(f"pool {reading.name!r} has no task in it; expected at least one")
    pool = Pool(reading.name, 0, tuple(task for _, task in unique))
    version = pool.digest[:12] if reading.version is None else reading.version
    return Pool(reading.name, version, pool.tasks, tuple(reading.left_out)), reading.problems


def _unique(reading: _Reading) -> list[tuple[str, Task]]:
    """The tasks found, each id once; a problem that names both places for each that is not the first."""
    first: dict[str, str] = {}
    out = []
    for where, task in reading.found:
        if task.id in first:
            found = f"{task.id!r}, which is also the id of {first[task.id]}"
            reading.problems.append(Problem(where, "id", found, "ids that differ within a pool"))
        else:
            first[task.id] = where
            out.append((where, task))
    return out


def _named(spec: str, wishes: _Wishes) -> _Reading:
    if spec == "builtin":
        reading = _folder(BUILTIN)
        reading.name = "builtin"
        return reading
    families = sorted({f.family for f in FORMATS} - {"native"} | {EXERCISM})
    head, colon, rest = spec.partition(":")
    if colon and head in families:
        if not rest:
            raise UsageError(
                f"{spec!r} names no file; expected {head}:{'DIR' if head == EXERCISM else 'FILE'}"
            )
        return _path(_expanded(rest), head, wishes)
    path = _expanded(spec)
    if spec and _exists(path):
        return _path(path, None, wishes)
    hint = near(head if colon else spec, ["builtin", *families])
    if not hint and spec and ("/" in spec or spec.endswith(SUFFIXES)):
        raise UsageError(f"no such file or folder: {spec}")
    shortened = repr(spec if len(spec) < 200 else spec[:200] + "…")
    raise UsageError(f"{shortened} names no pool, and there is no such file{hint}; a pool is {FORMS}")


def _expanded(text: str) -> Path:
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:  # nobody's home: ~nosuchuser, or no HOME and no entry for this user
        return path


def _exists(path: Path) -> bool:
    """As Path.exists, which raises for a name that is too long and for a folder that may not be searched."""
    try:
        return path.exists()
    except PermissionError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from None
    except (OSError, ValueError):
        return False


def _path(path: Path, family: str | None, wishes: _Wishes) -> _Reading:
    if not _exists(path):
        raise UsageError(f"no such file or folder: {path}")
    if family == EXERCISM:
        return _exercism(path)
    if path.is_dir():
        if family:
            raise UsageError(f"{path} is a folder; expected the file in which {family} is published")
        return _folder(path)
    return _file(path, family, wishes)


def _folder(path: Path) -> _Reading:
    reading = _Reading(path.resolve().name)
    try:
        whole = is_task(path)
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror or error}") from None
    if whole:
        reading.add(shown(path), read_task(path, reading.problems))
        return reading
    about = read_pool_toml(path, reading.problems)
    reading.name = about.name or reading.name
    reading.version = about.version
    folders = task_folders(path, about.order, reading.problems)
    if not folders and not reading.problems:
        raise UsageError(
            f"{path} has no task folder in it (a folder with task.toml, prompt.md, hidden/, reference/)"
        )
    for folder in folders:
        reading.add(shown(folder), read_task(folder, reading.problems))
    return reading


def _exercism(path: Path) -> _Reading:
    if not path.is_dir():
        raise UsageError(
            f"{path} is a file; expected the folder exercises/practice of Exercism's Python track"
        )
    reading = _Reading(EXERCISM)
    for where, task in read_exercises(path, reading.problems):
        reading.add(where, task)
    return reading


def _file(path: Path, family: str | None, wishes: _Wishes) -> _Reading:
    rows, problems = read_rows(path)
    reading = _Reading(_stem(path), problems=problems)
    if not rows and not problems:
        raise UsageError(f"{path} has no row in it; expected one task a line")
    kinds = [_kind(row.data) for row in rows]
    if family and not any(kind and kind.family == family for kind in kinds):
        first = next((k for k in kinds if k), None)
        if not rows:
            return reading  # its problems say more than that no row is of this kind
        found = f"rows of {first.name}" if first else f"rows with the keys {some_of(list(rows[0].data))}"
        other = f"; use {first.family}:{path}" if first and first.family != "native" else ""
        raise UsageError(f"{path} holds {found}; expected {_names(family)}{other}")
    stores = (path.absolute().parent / IMAGES,)
    together = [row for row, kind in zip(rows, kinds, strict=True) if kind and kind.family == SWEBENCH]
    if together and family in (None, SWEBENCH):
        _swebench(together, wishes, reading)
    for row, kind in zip(rows, kinds, strict=True):
        if kind is not None and kind.read is None and family in (None, kind.family):
            continue  # read with the others of its kind
        if family and (kind is None or kind.family != family):
            found = f"a row of {kind.name}" if kind else f"a row with the keys {some_of(list(row.data))}"
            problems.append(Problem(row.where, "", found, f"a row of {_names(family)}"))
        else:
            # A row of no known kind is read as a native one, which says what is missing.
            read = kind.read if kind and kind.family != "native" else partial(read_lesson, stores=stores)
            assert read is not None
            reading.add(row.where, read(row.data, row.where, problems))
    published = {kind.name for kind in kinds if kind and kind.family != "native"}
    if len(published) == 1:
        reading.name = published.pop()
    return reading


def _swebench(rows: list[Row], wishes: _Wishes, reading: _Reading) -> None:
    ids = [str(row.data["instance_id"]) for row in rows]
    for glob in wishes.only:
        if not any(id_ == glob or fnmatchcase(id_, glob) for id_ in ids):
            hint = near(glob, ids) or f"; the tasks are: {some_of(ids)}"
            raise UsageError(f"no row of {reading.name!r} matches {glob!r}{hint}")
    chosen, seen = list[Row](), set[str]()
    for row, id_ in zip(rows, ids, strict=True):
        if id_ in seen:
            found = f"{id_!r}, which an earlier row has"
            reading.left_out.append(Problem(row.where, "instance_id", found, "ids that differ"))
        elif not wishes.only or any(id_ == glob or fnmatchcase(id_, glob) for glob in wishes.only):
            chosen.append(row)
        seen.add(id_)
    for end in read_swebench(chosen, wishes.repos, wishes.progress):
        reading.add(end.where, end.task)
        reading.left_out += [end.problem] if end.problem else []


def _kind(data: Mapping[str, Any]) -> Format | None:
    return next((f for f in FORMATS if f.fits(data)), None)


def _names(family: str) -> str:
    return " or ".join(f.name for f in FORMATS if f.family == family)


def _stem(path: Path) -> str:
    name = path.name
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return name.removesuffix(suffix) or name
    return name


def _items(items: Iterable[Any]) -> _Reading:
    reading = _Reading("tasks")
    for n, item in enumerate(items):
        where = f"tasks[{n}]"
        if isinstance(item, Task):
            reading.add(where, item)
        elif isinstance(item, Mapping):
            reading.add(where, read_lesson(item, where, reading.problems))
        else:
            reading.problems.append(Problem(where, "", short(item), "a dict or a Task"))
    return reading
