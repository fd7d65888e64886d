"""What ``tiltyard break`` is given, opened: a git repository at a commit, a folder with code, or a pool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tiltyard.cells.protocol import Wall
from tiltyard.environments import find, generated_files
from tiltyard.errors import ArenaError, UsageError
from tiltyard.git import Repository
from tiltyard.pool import Pool, load
from tiltyard.pool.repository import VERSION_CONTROL, without_history
from tiltyard.referee import Referee
from tiltyard.sources.breakage.report import Source
from tiltyard.sources.breakage.subject import Subject, subject_of_files, subject_of_task
from tiltyard.task import Metadata, path_problem

MAX_FILE = 16 << 20
MAX_FILES = 20_000
_SKIPPED = frozenset(
    (
        "__pycache__",
        ".tox",
        ".nox",
        ".venv",
        "venv",
        ".pytest_cache",
        ".mypy_cache",
        "node_modules",
        *VERSION_CONTROL,
    )
)
_LICENSES = (
    ("Apache License", "Apache-2.0"), ("GNU AFFERO", "AGPL-3.0"), ("GNU LESSER", "LGPL"), ("GNU GENERAL", "GPL"),
    ("Mozilla Public", "MPL-2.0"), ("Permission is hereby granted, free of charge", "MIT"),
    ("Redistribution and use in source", "BSD"), ("ISC License", "ISC"),
)  # fmt: skip


def is_repository(spec: Any) -> bool:
    """Whether it is a folder with code, and no pool."""
    if not isinstance(spec, str | Path) or not Path(spec).is_dir():
        return False
    root = Path(spec)
    if (root / ".git").exists() or ((root / "HEAD").is_file() and (root / "objects").is_dir()):
        return True
    is_pool = any((root / name).is_file() for name in ("pool.toml", "task.toml"))
    return not is_pool and not any(root.glob("*/task.toml")) and any(root.rglob("*.py"))


def open_repository(
    spec: str | Path, *, rev: str, environment: bool, packages: Sequence[str], python: str
) -> Subject:
    """The subject. UsageError: no tests, no code, no such commit; ArenaError: no environment can be had, with the reason."""
    root = Path(spec)
    created, extra, name = "", tuple[tuple[str, str], ...](), _clean(root.resolve().name)
    if (root / ".git").exists() or ((root / "HEAD").is_file() and (root / "objects").is_dir()):
        repository = Repository(root)
        commit = repository.commit(rev)
        files = without_history(repository.files(commit.sha))
        created, name = commit.commit_date[:10], _clean(repository.name)
        extra = (("base_commit", commit.sha), ("author_date", commit.author_date))
    else:
        if rev != "HEAD":
            raise UsageError(f"--rev: found {rev!r}, but {root} is no git repository; expected none")
        files = dict(_files_of(root))
    files |= generated_files(files)
    metadata = Metadata(source=name, created=created, license=_license(files))
    if environment:
        metadata = _with_environment(metadata, files, created, packages, python, root)
    subject = subject_of_files(name, files, metadata=metadata, extra=extra)
    if subject is None:
        raise UsageError(
            f"{root} has no code with tests to break; expected Python files and test files (test_*.py, *_test.py) among them"
        )
    return subject


def _with_environment(
    metadata: Metadata, files: dict[str, bytes], date: str, packages: Sequence[str], python: str, root: Path
) -> Metadata:
    found = find(files, date=date, python=python, extra=tuple(packages))
    if found.environment is None:
        raise ArenaError(f"no environment for {root}: {found.reason}")
    return replace(metadata, python=found.environment.python, packages=found.environment.packages)


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or "repository"


def _license(files: dict[str, bytes]) -> str:
    for path in sorted(files):
        if "/" not in path and path.lower().startswith(("license", "licence", "copying")):
            text = files[path][:4000].decode(errors="replace")
            return next((name for words, name in _LICENSES if words in text), path)
    return ""


def _files_of(root: Path) -> Iterator[tuple[str, bytes]]:
    """The regular files below a folder, no link followed."""
    count = 0
    for folder, folders, names in root.walk() if hasattr(root, "walk") else _walk(root):
        folders[:] = sorted(
            f
            for f in folders
            if f not in _SKIPPED and not f.endswith(".egg-info") and not (Path(folder) / f).is_symlink()
        )
        for name in sorted(names):
            path = Path(folder) / name
            relative = path.relative_to(root).as_posix()
            if path.is_symlink() or not path.is_file() or path_problem(relative) or path.suffix == ".pyc":
                continue
            if path.stat().st_size > MAX_FILE:
                continue
            count += 1
            if count > MAX_FILES:
                raise UsageError(
                    f"{root} has more than {MAX_FILES} files; expected the folder of one project"
                )
            yield relative, path.read_bytes()


def _walk(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    import os

    for folder, folders, names in os.walk(root):
        yield Path(folder), folders, names


def open_pool(
    spec: Any, wall: Wall, *, tasks: Sequence[str] = (), tags: Sequence[str] = ()
) -> tuple[list[Subject], list[Source]]:
    """The subjects, and the tasks that are none with the reason."""
    pool = spec if isinstance(spec, Pool) and not tasks and not tags else load(spec, tasks=tasks, tags=tags)
    referee = Referee(wall)
    subjects: list[Subject] = []
    left_out: list[Source] = []
    for task in pool:
        try:
            subject = subject_of_task(referee.settled(task))
        except ArenaError as error:
            left_out.append(Source(task.id, problem=str(error)))
            continue
        if subject.targets:
            subjects.append(subject)
        else:
            left_out.append(Source(task.id, problem="no Python file of it may be changed"))
    return subjects, left_out
