"""SWE-bench rows (SWE-bench, Lite, Verified, SWE-Gym, SWE-rebench, and rows mined in their manner) as repository tasks.

A row names a repository, a commit, two patches and two lists of tests. Its base commit's files become an image in this
machine's cache, ``test_patch`` the suite, ``patch`` the reference, ``problem_statement`` the prompt; the environment
is what the repository declares, resolved as of the row's date (``environments.find``). What was built from a row is remembered under its digest: the second time nothing is read but that.

Promises: a row that can't be built here is left out with the true reason and hides no other. Never: runs code of a
repository, changes one, or lets a task see anything but the one commit.
"""

from __future__ import annotations

import ast
import datetime
import hashlib
import importlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr
from pydantic_core import PydanticCustomError

from tiltyard import patches
from tiltyard.errors import ArenaError, Problem, TaskError, UsageError
from tiltyard.git import GitError, Repository, find_repository
from tiltyard.images import Images, cache_folder
from tiltyard.pool.dump import to_dict
from tiltyard.pool.lesson import read_lesson
from tiltyard.pool.model import parse, size_problems
from tiltyard.pool.nodeids import OTHER_RUNNER, NoNodeId, is_unittest_id, node_ids
from tiltyard.pool.repository import REPOSITORY_LIMITS, repository_task, without_history
from tiltyard.pool.rows import Row
from tiltyard.task import Files, Metadata, Task

FORMAT = "tiltyard-swebench-2"
_VERSION = re.compile(r"\d+(\.\d+)*")
REPOS = "TILTYARD_REPOS"
"""The environment variable that names the folder of repositories where nothing else does."""
THREADS = min(8, 2 * (os.cpu_count() or 1))
EXPECTED = "a row that can be built here"
_KEYS = ("instance_id", "repo", "base_commit", "patch")
_NO_LISTS = "no list of tests that must pass (FAIL_TO_PASS)"
_KEPT = (
    "repo",
    "base_commit",
    "fix_commit",
    "version",
    "pull_number",
    "issue_numbers",
    "environment_setup_commit",
)


class Built(Protocol):
    """Who is told of each row: ``outcome`` is ``built``, ``known`` (from before) or ``left out``."""

    def begin(self, total: int) -> None: ...
    def advance(self, result: Any) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RowEnd:
    """What came of one row."""

    outcome: str
    where: str
    task: Task | None = None
    problem: Problem | None = None


class _Unbuildable(Exception):
    """Why a row can't be built here: the field at fault, and what was found."""

    def __init__(self, field: str, found: str, expected: str = EXPECTED) -> None:
        super().__init__(found)
        self.field, self.found, self.expected = field, found.removeprefix("found "), expected


def _names(value: object) -> object:
    """Lists of ids as they are published: a list, or a text that is one in JSON or in Python."""
    if isinstance(value, str):
        text = value
        for read in (json.loads, ast.literal_eval):
            try:
                value = read(text)
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PydanticCustomError("ids", "a list of test ids, or a text that is one in JSON")
    return value


def _when(value: object) -> object:
    """As text; some sets have seconds since 1970."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return datetime.datetime.fromtimestamp(
            value / (1000 if value > 1e11 else 1), datetime.UTC
        ).isoformat()
    return value.isoformat() if isinstance(value, (datetime.datetime, datetime.date)) else value or ""


def _text(value: object) -> object:
    return "" if value is None else value


_Ids = Annotated[list[StrictStr], BeforeValidator(_names)]
_Text = Annotated[StrictStr, BeforeValidator(_text)]


class SweRow(BaseModel):
    """One row. Keys that are not named here are kept out of the task, but for a few facts in its metadata."""

    model_config = ConfigDict(extra="allow", frozen=True)

    instance_id: StrictStr
    repo: StrictStr
    base_commit: StrictStr
    patch: StrictStr
    test_patch: _Text = ""
    problem_statement: _Text = ""
    FAIL_TO_PASS: _Ids
    PASS_TO_PASS: _Ids = Field(default=[])
    created_at: Annotated[StrictStr, BeforeValidator(_when)] = ""
    license_name: _Text = ""
    pytest_pin: _Text = ""
    python: _Text = ""
    requirements: _Text = ""
    packages: list[StrictStr] | None = None
    """Pins that were worked out before: nothing is looked for. []: the standard library and pytest."""
    install_config: Any = None


def is_swebench(data: Mapping[str, Any]) -> bool:
    """Whether a row is of this kind."""
    return all(key in data for key in _KEYS) and any(key in data for key in ("FAIL_TO_PASS", "fail_to_pass"))


def read_swebench(
    rows: Sequence[Row], repos: str | os.PathLike[str] | None = None, progress: Built | None = None
) -> Iterator[RowEnd]:
    """What each row became, in the rows' order. ``repos``: the folder in which the repositories lie (see
    ``git.find_repository``); None: $TILTYARD_REPOS. Several rows are read at a time."""
    said = repos if repos is not None else os.environ.get(REPOS) or None
    reader = _Reader(None if said is None else Path(said).expanduser())
    if progress is not None:
        progress.begin(len(rows))
    pool = ThreadPoolExecutor(THREADS, "rows")
    try:
        for end in pool.map(reader, rows):
            if progress is not None:
                progress.advance(end)
            yield end
    finally:
        pool.shutdown(wait=True, cancel_futures=True)  # Ctrl-C: what has not begun never does
        if progress is not None:
            progress.end()


class _Reader:
    """Reads rows, from several threads; repositories and environments are looked for once."""

    def __init__(self, repos: Path | None) -> None:
        self.repos = repos
        self._lock = threading.Lock()
        self._repositories: dict[str, Repository | GitError] = {}

    def __call__(self, row: Row) -> RowEnd:
        problems: list[Problem] = []
        data = dict(row.data)
        for name in ("FAIL_TO_PASS", "PASS_TO_PASS"):
            if name not in data and name.lower() in data:
                data[name] = data.pop(name.lower())
        facts = parse(SweRow, data, row.where, problems)
        if facts is None:
            whole = "; ".join(f"{p.field}: {p.found}, expected {p.expected}" for p in problems)
            return RowEnd("left out", row.where, problem=Problem(row.where, "", whole, "a row of SWE-bench"))
        where = f"{row.where} ({facts.instance_id})"
        kept = cache_folder() / "rows" / f"{_digest(data)}.json"
        if (task := _remembered(kept)) is not None:
            return RowEnd("known", row.where, task)
        try:
            task = self._build(facts)
        except _Unbuildable as why:
            problem = Problem(where, why.field, why.found, why.expected)
            return RowEnd("left out", row.where, problem=problem)
        except TaskError as error:
            first = error.problems[0]
            found = f"{first.found}" + (
                f" (and {len(error.problems) - 1} more)" if error.problems[1:] else ""
            )
            return RowEnd("left out", row.where, problem=Problem(where, first.field, found, first.expected))
        except (ArenaError, UsageError) as error:
            return RowEnd("left out", row.where, problem=Problem(where, "", str(error), EXPECTED))
        except Exception as error:  # whatever a repository holds, it must not hide the other rows
            found = f"{type(error).__name__}: {error}"
            return RowEnd("left out", row.where, problem=Problem(where, "", found, EXPECTED))
        _remember(kept, task)
        return RowEnd("built", row.where, task)

    def _build(self, row: SweRow) -> Task:
        if not row.FAIL_TO_PASS:
            raise _Unbuildable("FAIL_TO_PASS", _NO_LISTS, "ids of tests that the fix makes pass")
        if not row.problem_statement.strip():
            raise _Unbuildable("problem_statement", "nothing", "what the player is asked to do")
        if other := next((i for i in (*row.FAIL_TO_PASS, *row.PASS_TO_PASS) if is_unittest_id(i)), ""):
            raise _Unbuildable("FAIL_TO_PASS", f"{other!r}, {OTHER_RUNNER}", "pytest's node ids")
        repository = self._repository(row.repo)
        base = without_history(_tried("base_commit", lambda: repository.files(row.base_commit)))
        tested = _patched(base, row.test_patch, "test_patch")
        fixed = _patched(base, row.patch, "patch")
        suite = {path: data for path, data in tested.items() if base.get(path) != data}
        try:
            fail_to_pass = node_ids(row.FAIL_TO_PASS, tested, suite)
            pass_to_pass = node_ids(row.PASS_TO_PASS, tested, suite)
        except NoNodeId as error:
            raise _Unbuildable(error.field or "FAIL_TO_PASS", str(error), "pytest's node ids") from None
        for id_ in (*fail_to_pass, *pass_to_pass):
            path = id_.partition("[")[0].partition("::")[0]
            suite.setdefault(path, tested[path])
        changed = {path: data for path, data in fixed.items() if base.get(path) != data}
        created = row.created_at or repository.commit(row.base_commit).commit_date
        python, packages, generated, plugins = _environment(row, {**base, **suite}, created)
        start = generated.over(base)
        metadata = Metadata(
            source=row.repo.rpartition("/")[2],
            created=created[:10],
            license=row.license_name,
            tags=("repository",),
            python=python,
            packages=packages,
            extra=tuple(_facts(row)),
        )
        task = repository_task(
            row.instance_id,
            row.problem_statement,
            start,
            suite,
            fail_to_pass,
            pass_to_pass,
            Files(changed, removed=set(base) - set(fixed)),
            metadata=metadata,
            plugins=plugins,
        )
        if problems := list(size_problems(task.start, "start", REPOSITORY_LIMITS, row.repo)):
            raise TaskError(problems)
        return _with_image(task)

    def _repository(self, name: str) -> Repository:
        if self.repos is None:
            found = f"{name!r}, and no folder in which it could be looked for"
            raise _Unbuildable("repo", found, f"--repos DIR (or ${REPOS}): a folder with a clone of it")
        with self._lock:
            if name not in self._repositories:
                try:
                    self._repositories[name] = find_repository(self.repos, name)
                except GitError as error:
                    self._repositories[name] = error
            found_or_not = self._repositories[name]
        if isinstance(found_or_not, GitError):
            raise _Unbuildable("repo", str(found_or_not), "a folder with a clone of it")
        return found_or_not


def _tried(field: str, read: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    try:
        return read()
    except GitError as error:
        raise _Unbuildable(field, str(error), "a commit that the repository has; fetch it") from None


def _patched(base: Mapping[str, bytes], patch: str, field: str) -> Files:
    try:
        return patches.apply(patch, base, fuzz=2)
    except patches.PatchError as error:
        raise _Unbuildable(field, str(error), "a patch that applies to the base commit") from None


def _with_image(task: Task) -> Task:
    from dataclasses import replace

    return replace(task, start=Images().add(task.start))


def _facts(row: SweRow) -> Iterator[tuple[str, str]]:
    more = {"repo": row.repo, "base_commit": row.base_commit, **(row.model_extra or {})}
    for key in _KEPT:
        if (value := more.get(key)) not in (None, "", []):
            yield (
                ("upstream" if key == "repo" else key),
                value if isinstance(value, str) else json.dumps(value),
            )


# -- the environment ---------------------------------------------------------------------------------------------


def _environment(
    row: SweRow, files: Mapping[str, bytes], created: str
) -> tuple[str, tuple[str, ...], Files, tuple[str, ...]]:
    """(python, pinned packages, files that a build would have generated, plugins of pytest)."""
    # named late, for this room knows nothing of those above it; there it is known how packages are found
    room = importlib.import_module("tiltyard.environments")
    config = row.install_config if isinstance(row.install_config, dict) else {}
    python = row.python or str(config.get("python") or "")
    generated: Files = room.generated_files(files, str((row.model_extra or {}).get("version") or ""))
    pins = sorted(
        {line.strip() for line in row.requirements.splitlines() if "==" in line and "@" not in line}
    )
    if python and not _VERSION.fullmatch(python):
        raise _Unbuildable("python", repr(python), "a version like 3.11")
    if python:
        room.python_for(python)  # raises where there is none, or one that is too old for cells
    if row.packages is not None or pins:  # what the set was run with, whole
        packages = tuple(sorted(row.packages) if row.packages is not None else pins)
        return python, packages, generated, ()
    extra = [f"pytest{row.pytest_pin}"] if row.pytest_pin[:1] in ("<", "=", "~", "!") else []
    found = room.find({**files, **generated}, date=created[:10], python=python, extra=tuple(extra))
    if found.environment is None:
        raise _Unbuildable("", f"no environment for it: {found.reason}", "packages that can be had here")
    environment = found.environment
    names = {pin.partition("==")[0] for pin in environment.packages}
    plugins = room.plugins_of(environment) if any("pytest-" in name for name in names) else ()
    return environment.python, environment.packages, generated, plugins


# -- what is remembered ------------------------------------------------------------------------------------------


def _digest(data: Mapping[str, Any]) -> str:
    known = [FORMAT, sys.version_info[:2], data]
    return hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()


def _remembered(path: Path) -> Task | None:
    """The task that was built before, unless its image was collected or the file is damaged."""
    try:
        data = json.loads(path.read_bytes())
        task = read_lesson(data["task"], str(path), problems := list[Problem]())
        return task if task is not None and not problems and task.digest == data["digest"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(path: Path, task: Task) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"digest": task.digest, "task": to_dict(task)}))
        partial.rename(path)
    except OSError:
        partial.unlink(missing_ok=True)  # then it is built again next time
