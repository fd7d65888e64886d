"""Which files of a pytest task are tests, and what of a submission is taken over. Pure: nothing is read or executed.

The tests' side is the suite, what lies in its folders, and everything that configures pytest or an interpreter. It
always comes from the task: what a submission changes of it or adds beside it is dropped, as are bytecode, version
control and installed metadata. The rest of a submission is its package, importable from the task's roots.
"""

from __future__ import annotations

import configparser
import contextlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltyard.referee.once import once_a_task
from tiltyard.task import Files, Task

CONFIG = frozenset(
    "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml sitecustomize.py "
    "usercustomize.py noxfile.py .coveragerc".split()
)
"""Names that configure pytest or an interpreter, in whatever folder."""
_DROPPED_FOLDERS = frozenset({"__pycache__", ".git", ".hg", ".svn", ".tox", ".nox", ".pytest_cache", ".eggs"})
_DROPPED_ENDS = (".pyc", ".pyo", ".pth", ".egg-link")
_METADATA_ENDS = (".egg-info", ".dist-info")
_NATIVE_ENDS = (".so", ".pyd", ".dylib", ".dll")
REMEMBERED = 256
_TEST_FOLDERS = frozenset({"test", "tests"})


@dataclass(frozen=True)
class Layout:
    """``roots``: folders from which the package is imported. ``tests``: trusted files of the tests' side.
    ``modules``: dotted names of the package's modules, as tests import them. ``data``: start files that are no Python,
    for tests that read them. ``ids``: files of the suite that hold hidden tests, in the order of these."""

    roots: tuple[str, ...]
    tests: Files
    modules: tuple[str, ...]
    data: Files
    ids: tuple[str, ...]


@once_a_task(REMEMBERED)
def layout(task: Task) -> Layout:
    """How the files of a task are meant."""
    trusted = {**task.start, **task.suite}
    tests = Files({path: data for path, data in trusted.items() if is_test_side(task, path)})
    roots = _roots(task, trusted)
    package = [path for path in {**task.start, **task.reference} if not is_test_side(task, path)]
    data = Files({p: d for p, d in task.start.items() if not p.endswith(".py") and p not in tests})
    files = tuple(dict.fromkeys(test.id.partition("::")[0] for test in task.hidden)) or tuple(
        path for path in task.suite if is_test_name(path)
    )
    return Layout(roots, tests, tuple(sorted(_modules(package, roots))), data, files)


def is_test_name(path: str) -> bool:
    """Whether a file is one that pytest collects by its name."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def is_test_side(task: Task, path: str) -> bool:
    """Whether a path belongs to the tests and not to the package."""
    if path in task.suite or path.rpartition("/")[2] in CONFIG:
        return True
    if any(path.startswith(f"{folder}/") for folder in _folders(task)):
        return True
    return is_test_name(path) and path not in task.reference


@once_a_task(REMEMBERED)
def _folders(task: Task) -> tuple[str, ...]:
    """Folders that hold tests and nothing of the package."""
    changed = [path for path, data in task.reference.items() if task.start.get(path) != data]
    out: set[str] = set()
    for path in {*task.suite, *(t.id.partition("::")[0] for t in (*task.hidden, *task.visible))}:
        parts = path.split("/")[:-1]
        named = next((n for n, part in enumerate(parts, 1) if part in _TEST_FOLDERS), len(parts))
        folder = "/".join(parts[:named])
        if folder and not any(other.startswith(f"{folder}/") for other in changed):
            out.add(folder)
    return tuple(sorted(out))


def package_files(task: Task, laid: Mapping[str, bytes]) -> dict[str, bytes]:
    """What of the files of a solution (start and submission) is its package."""
    own = {*task.start, *task.reference}
    return {
        path: data
        for path, data in laid.items()
        if not is_test_side(task, path) and (path in own or not _is_dropped(path))
    }


def _is_dropped(path: str) -> bool:
    *folders, name = path.split("/")
    return (
        bool(_DROPPED_FOLDERS & {*folders})
        or any(part.endswith(_METADATA_ENDS) for part in (*folders, name))
        or name.endswith((*_DROPPED_ENDS, *_NATIVE_ENDS))
    )


def together(
    task: Task, laid: Mapping[str, bytes], altered: Mapping[str, bytes] | None = None
) -> dict[str, bytes]:
    """The workspace for both sides in one process: the package, and the trusted tests, some of them altered. A trusted
    file wins where a submitted one is in its way."""
    from tiltyard.referee.grade import without_clashes

    tests = {**layout(task).tests, **(altered or {})}
    return without_clashes(package_files(task, laid), tests)


def _roots(task: Task, trusted: Mapping[str, bytes]) -> tuple[str, ...]:
    if task.pythonpath:
        return task.pythonpath
    files = {*trusted, *task.reference}
    said = [
        path for path in _configured(trusted) if path == "." or any(f.startswith(f"{path}/") for f in files)
    ]
    has_src = "src/__init__.py" not in files and any(
        f.startswith("src/") and f.endswith(".py") for f in files
    )
    return tuple(dict.fromkeys([*said, *(["src"] if has_src else []), "."]))


def _configured(trusted: Mapping[str, bytes]) -> list[str]:
    """What the task's own configuration of pytest says of ``pythonpath``."""
    found: Any = ""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        tables = tomllib.loads(trusted["pyproject.toml"].decode())["tool"]["pytest"]
        found = tables.get("ini_options", tables).get("pythonpath", "")
    for name, section in (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest"), ("pytest.ini", "pytest")):
        with contextlib.suppress(configparser.Error, ValueError, KeyError):
            parser = configparser.ConfigParser(interpolation=None)
            parser.read_string(trusted[name].decode())
            found = parser[section]["pythonpath"]
    paths = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
    return [path.rstrip("/").removeprefix("./") or "." for path in paths if isinstance(path, str)]


def _modules(paths: Iterable[str], roots: tuple[str, ...]) -> set[str]:
    names: set[str] = set()
    inner = [root for root in roots if root != "."]
    for path in paths:
        if not path.endswith(".py"):
            continue
        home = next((root for root in inner if path.startswith(f"{root}/")), ".")
        if home not in roots:
            continue
        parts = (path if home == "." else path[len(home) + 1 :])[:-3].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts):
            names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return names
