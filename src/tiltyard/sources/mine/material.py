"""A commit taken apart: what a player finds, what the fix changes, what the tests are, what is said of it.

Read from the repository's objects; nothing is run. The start is the tree of the commit's first parent without any history.
What the commit changes on the tests' side is the suite; everything else that it changes is the reference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tiltyard.git import Repository
from tiltyard.parsing import parse_source
from tiltyard.pool.folder import is_left_behind
from tiltyard.pool.repository import REPOSITORY_LIMITS, repository_task, without_history
from tiltyard.sources.mine.history import Candidate
from tiltyard.sources.mine.license import license_of
from tiltyard.sources.mine.prompts import Said, home_of, names_of_tests, read_message
from tiltyard.sources.mine.sides import is_test_side, tests_to_run
from tiltyard.task import Files, Limits, Metadata, Task

MAX_MODULES = 20
_WORD = re.compile(rb"[A-Za-z_]\w*")
_CHANGELOG = re.compile(r"(changelog|changes|history|news|release[-_ ]?notes)(\.[a-z]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Material:
    """``modules`` are the test files that are run, all of them in ``suite``; ``license`` the SPDX id or ""; ``new_names``
    what the fix defines, the start has nowhere, and the suite uses."""

    start: Files
    reference: Files
    suite: Files
    modules: tuple[str, ...]
    said: Said
    license: str
    new_names: tuple[str, ...] = ()


def take_apart(repository: Repository, candidate: Candidate) -> Material:
    """The material of a candidate. GitError: the repository can't be read."""
    before = readable_by_pytest(without_history(repository.files(candidate.base)))
    after = readable_by_pytest(without_history(repository.files(candidate.sha)))
    changed = [path for path, data in after.items() if before.get(path) != data]
    gone = [path for path in before if path not in after and not is_test_side(path)]
    of_source = [path for path in changed if not is_test_side(path) and _can_be_kept(path)]
    of_tests = [path for path in changed if is_test_side(path) and _can_be_kept(path)]
    reference = Files({path: after[path] for path in of_source}, removed=gone)
    modules = tests_to_run(of_tests, after, MAX_MODULES)
    suite = Files({path: after[path] for path in dict.fromkeys([*of_tests, *modules])})
    return Material(
        Files(before),
        reference,
        suite,
        modules,
        _said(repository, candidate, before, after),
        license_of(before),
        new_names(before, reference, suite),
    )


def readable_by_pytest(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a section in ``setup.cfg`` called as pytest has called it since 2016: it starts with no other."""
    old = files.get("setup.cfg", b"")
    if re.search(rb"^\[tool:pytest\]", old, re.MULTILINE):
        return files
    return (
        files | {"setup.cfg": re.sub(rb"^\[pytest\]", b"[tool:pytest]", old, flags=re.MULTILINE)}
        if old
        else files
    )


def new_names(
    before: Mapping[str, bytes], reference: Mapping[str, bytes], suite: Mapping[str, bytes]
) -> tuple[str, ...]:
    """What the fix defines, the start's source has nowhere, and the suite uses, sorted: an interface that a prompt must
    name."""
    defined: set[str] = set()
    for path, data in reference.items():
        if path.endswith(".py"):
            defined |= _defined(data)
    source = [data for path, data in before.items() if path.endswith(".py") and not is_test_side(path)]
    old = {word for data in source for word in _WORD.findall(data)}
    used = {word for path, data in suite.items() if path.endswith(".py") for word in _WORD.findall(data)}
    return tuple(sorted(word for word in defined if word.encode() in used - old))


def _defined(data: bytes) -> set[str]:
    """Names of functions, classes, their parameters, and of what is assigned at the top or in a class."""
    try:
        tree = parse_source(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.arg):
            found.add(node.arg)
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for statement in node.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def _can_be_kept(path: str) -> bool:
    """Whether a folder of tasks keeps a file of this name; bytecode and the like are not what a commit is about."""
    return not any(is_left_behind(part) for part in path.split("/"))


def _said(
    repository: Repository, candidate: Candidate, before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> Said:
    changelog: list[str] = []
    code: list[str] = []
    tests: dict[str, list[str]] = {}
    for path, data in after.items():
        if before.get(path) == data:
            continue
        added = _added(before.get(path, b""), data)
        if _CHANGELOG.fullmatch(path.rpartition("/")[2]):
            changelog += added
        elif is_test_side(path):
            tests[path] = added
        elif path.endswith(".py"):
            code += added
    return read_message(
        candidate.message,
        changelog=changelog,
        added=code,
        test_names=names_of_tests(tests),
        home=home_of(repository.remote),
    )


def _added(before: bytes, after: bytes) -> list[str]:
    old = set(before.decode("utf-8", "replace").splitlines())
    return [line for line in after.decode("utf-8", "replace").splitlines() if line not in old]


def draft(name: str, candidate: Candidate, material: Material, limits: Limits = REPOSITORY_LIMITS) -> Task:
    """The task before anything is known of its tests: no hidden ones are named, no environment is chosen."""
    return repository_task(
        f"{name}-{candidate.sha[:10]}",
        "To be found out.",
        material.start,
        material.suite,
        (),
        (),
        material.reference,
        metadata=Metadata(source=name),
        limits=limits,
    )
