"""Tasks as folders: ``task.toml``, ``prompt.md``, ``start/``, ``visible/``, ``hidden/``, ``reference/``.

docs/tasks.md has the whole format. Nothing is executed and no link is followed. Everything that is wrong with any task
of a folder is collected, with its file. What Python and desktops leave behind (``__pycache__``, ``*.pyc``,
``.DS_Store``) is not seen, so that running a reference by hand doesn't change a digest.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainValidator, StrictStr
from pydantic_core import PydanticCustomError

from tiltyard.errors import Problem, UsageError
from tiltyard.pool.collection import near
from tiltyard.pool.model import (
    M,
    MetaRow,
    Number,
    Settings,
    Strict,
    TestEntry,
    TestRow,
    entry_of,
    image_of,
    limits_of,
    make_task,
    metadata_of,
    parse,
    suite_settings,
    tests_of,
)
from tiltyard.pool.testfiles import split_python, split_stdio
from tiltyard.task import Files, Task, Test

PARTS = ("task.toml", "prompt.md", "start", "visible", "hidden", "reference")
IMAGES = "images"
"""The folder beside the tasks (or in a task that stands alone) in which their images lie."""
_FOLDERS = PARTS[2:]
_LEFT_BEHIND = ("__pycache__", ".DS_Store", "Thumbs.db", ".pytest_cache", ".mypy_cache", ".ruff_cache")
_ASIDE = re.compile(r"\..*|(README|LICENSE|LICENCE|NOTICE|NOTES)(\..*)?", re.IGNORECASE)


class TaskToml(Settings):
    """``task.toml``. No key is required."""

    metadata: MetaRow = MetaRow()
    fail_to_pass: list[StrictStr] | None = None
    visible_tests: list[StrictStr] | None = None
    order: list[StrictStr] = Field(default=[])
    """The ids of both lists in the order in which they are run, where it is another one than theirs."""
    times: dict[str, Number] = Field(default={})


def _version(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise PydanticCustomError("version", "a whole number or a text")
    return value


class PoolToml(Strict):
    """``pool.toml``. No key is required. ``order`` names folders that come first, in this order."""

    name: StrictStr | None = None
    version: Annotated[int | str | None, PlainValidator(_version)] = None
    description: StrictStr = ""
    order: list[StrictStr] = Field(default=[])


class _TestsJson(Strict):
    tests: list[TestEntry]


def is_left_behind(name: str) -> bool:
    """Whether a file or folder of this name is seen as rubbish, and not as part of a task."""
    return name in _LEFT_BEHIND or name.endswith(".pyc")


def is_task(folder: Path) -> bool:
    """Whether the folder is one task, not a pool of them."""
    return not (folder / "pool.toml").exists() and any((folder / p).exists() for p in PARTS[:2])


def read_pool_toml(folder: Path, problems: list[Problem]) -> PoolToml:
    """What ``pool.toml`` says; the defaults if there is none."""
    path = folder / "pool.toml"
    if not path.exists():
        return PoolToml()
    return _toml(PoolToml, path, problems) or PoolToml()


def task_folders(folder: Path, order: Sequence[str], problems: list[Problem]) -> list[Path]:
    """The task folders of a pool folder: those of ``order``, then the others by name. Files are not looked at."""
    out: dict[str, Path] = {}
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        raise UsageError(f"can't read {folder}: {error.strerror or error}") from None
    for entry in entries:
        if entry.name.startswith((".", "_")) or entry.name in _LEFT_BEHIND or _is_store(entry):
            continue
        if entry.is_symlink() and entry.is_dir():
            problems.append(Problem(shown(entry.path), "", "a symbolic link", "a task folder"))
        elif entry.is_dir():
            out[entry.name] = Path(entry.path)
    for name in order:
        if name not in out:
            found = f"{name!r}, which is no folder here"
            problems.append(
                Problem(shown(folder / "pool.toml"), "order", found, f"task folders{near(name, list(out))}")
            )
    first = {name: n for n, name in enumerate(order)}
    return [out[name] for name in sorted(out, key=lambda name: (first.get(name, len(first)), name))]


def _is_store(entry: os.DirEntry[str]) -> bool:
    return entry.name == IMAGES and entry.is_dir() and not is_task(Path(entry.path))


def read_task(folder: Path, problems: list[Problem]) -> Task | None:
    """The task that a folder describes, or None with its problems appended."""
    where = shown(folder)
    before = len(problems)
    toml = _toml(TaskToml, folder / "task.toml", problems)
    prompt = _text(folder / "prompt.md", problems, "what the player is asked to do")
    problems.extend(_strangers(folder))
    trees = {name: _tree(folder / name, problems) for name in _FOLDERS}
    if toml is not None and toml.grading != "pytest":
        _no_pytest_keys(toml, where, problems)
    removes = toml is not None and bool(toml.removed)
    for name in ("hidden",) if removes else ("hidden", "reference"):
        if not trees[name] and not any(p.where.startswith(shown(folder / name)) for p in problems[before:]):
            what = (
                "tests, for nothing else decides the reward"
                if name == "hidden"
                else "the files that solve it"
            )
            problems.append(Problem(where, f"{name}/", "nothing", f"a folder with {what}"))
    if toml is None or prompt is None or not trees["hidden"] or not (trees["reference"] or removes):
        return None
    if toml.grading == "pytest":
        return _pytest_task(folder, where, toml, prompt, trees, problems, before)
    start, reference = Files(trees["start"]), Files(trees["reference"])
    prelude, _ = _prelude(folder / "hidden", trees["hidden"], toml, problems)
    _, prefix = _prelude(folder / "visible", trees["visible"], toml, problems)
    rows = {
        "visible": _tests(folder / "visible", trees["visible"], toml, prefix, problems),
        "hidden": _tests(folder / "hidden", trees["hidden"], toml, "", problems),
    }
    entry = entry_of(toml, {**start, **reference}, where, problems)
    metadata = metadata_of(toml.metadata, f"{where}/task.toml", problems)
    tests = {k: tests_of(v, k, toml, where, problems) for k, v in rows.items()}
    if len(problems) > before:
        return None
    return make_task(
        where,
        problems,
        id=folder.resolve().name if toml.id is None else toml.id,
        prompt=prompt,
        start=start,
        reference=reference,
        protected=frozenset(toml.protected),
        entry=entry,
        main=toml.main,
        prelude=prelude,
        grading=toml.grading,
        reward=toml.reward,
        limits=limits_of(toml.limits),
        metadata=metadata,
        shell=toml.shell,
        clock=toml.clock,
        **tests,
    )


_PYTEST_KEYS = (
    "fail_to_pass", "pass_to_pass", "visible_tests", "order", "times", "way", "pythonpath", "plugins", "image", "removed",
    "suite_removed",
)  # fmt: skip


def _no_pytest_keys(toml: TaskToml, where: str, problems: list[Problem]) -> None:
    for name in _PYTEST_KEYS:
        if getattr(toml, name):
            found = f"a key of pytest grading, and grading = {toml.grading!r}"
            problems.append(Problem(f"{where}/task.toml", name, found, 'grading = "pytest", or no such key'))


def _pytest_task(
    folder: Path,
    where: str,
    toml: TaskToml,
    prompt: str,
    trees: dict[str, dict[str, bytes]],
    problems: list[Problem],
    before: int,
) -> Task | None:
    """A task whose tests are files: those of ``hidden/`` are laid over the workspace where they run, those of
    ``visible/`` lie in it, protected."""
    ids = [*(toml.fail_to_pass or ()), *toml.pass_to_pass]
    if toml.order and sorted(toml.order) != sorted(ids):
        found = "other ids than in fail_to_pass and pass_to_pass"
        problems.append(Problem(f"{where}/task.toml", "order", found, "the same ids in another order"))
    ids = toml.order or ids
    shown_twice = sorted({*trees["visible"]} & {*trees["start"]})
    for path in shown_twice:
        found = f"{path!r}, which is also in start/"
        problems.append(Problem(f"{where}/visible", path, found, "each file in one of the two"))
    if toml.pass_to_pass and toml.fail_to_pass is None:
        found = "pass_to_pass without fail_to_pass"
        expected = "both lists, or neither: then all tests that are collected count"
        problems.append(Problem(f"{where}/task.toml", "pass_to_pass", found, expected))
    start: Files | None = Files({**trees["start"], **trees["visible"]})
    if toml.image:
        if start:
            found = "an image, and files in start/ or visible/"
            problems.append(Problem(f"{where}/task.toml", "image", found, "one of the two"))
        stores = (folder / IMAGES, folder.parent / IMAGES)
        start = image_of(toml.image, stores, f"{where}/task.toml", problems)
    for id_ in sorted({*toml.times} - {*ids}):
        problems.append(
            Problem(f"{where}/task.toml", "times", repr(id_), "ids of fail_to_pass or pass_to_pass")
        )
    usual = [path for path in start or () if is_test_file(path) and path not in trees["hidden"]]
    visible = usual if toml.visible_tests is None else toml.visible_tests
    metadata = metadata_of(toml.metadata, f"{where}/task.toml", problems)
    if len(problems) > before or start is None:
        return None
    times = {id_: float(seconds) for id_, seconds in toml.times.items()}
    return make_task(
        where,
        problems,
        id=folder.resolve().name if toml.id is None else toml.id,
        prompt=prompt,
        start=start,
        reference=Files(trees["reference"], toml.removed),
        suite=Files(trees["hidden"], toml.suite_removed),
        hidden=tuple(Test(id_, time_s=times.get(id_)) for id_ in ids),
        visible=tuple(Test(id_) for id_ in visible),
        protected=frozenset({*toml.protected, *trees["visible"]}),
        entry=tuple(toml.entry or ()),
        main=toml.main,
        grading="pytest",
        reward=toml.reward,
        limits=limits_of(toml.limits),
        metadata=metadata,
        shell=toml.shell,
        clock=toml.clock,
        **suite_settings(toml),
    )


def is_test_file(path: str) -> bool:
    """Whether pytest collects a file of this name."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _prelude(
    folder: Path, tree: dict[str, bytes], toml: TaskToml, problems: list[Problem]
) -> tuple[str, str]:
    """The text of ``prelude.py``, and the same as something to put before a test's code."""
    if "prelude.py" not in tree or toml.grading != "calls":
        return "", ""
    text = _decode(tree["prelude.py"], folder / "prelude.py", problems) or ""
    return text, f"{text}\n"


def _tests(
    folder: Path, tree: dict[str, bytes], toml: TaskToml, prefix: str, problems: list[Problem]
) -> list[TestRow]:
    rows: list[TestRow] = []
    stdio: dict[str, str] = {}
    for name, data in tree.items():
        if name == "prelude.py" and toml.grading == "calls":
            continue
        path = folder / name
        expected = "NAME.in, NAME.out, …" if toml.grading == "stdio" else "test files, *.py"
        if "/" in name:
            problems.append(
                Problem(shown(path), "", "a file in a folder of its own", f"{expected} side by side")
            )
        elif name == "tests.json":
            rows += _tests_json(path, data, problems)
        elif toml.grading != "stdio" and not name.endswith(".py"):
            found = f"a file that is no test of a task with grading = {toml.grading!r}"
            problems.append(Problem(shown(path), "", found, f"{expected} (what tests need stands in them)"))
        elif (text := _decode(data, path, problems)) is not None:
            if toml.grading == "stdio":
                stdio[name] = text
            else:
                rows += split_python(text, name[:-3], shown(path), problems, prefix)
    return split_stdio(stdio, shown(folder), problems) + rows


def _tests_json(path: Path, data: bytes, problems: list[Problem]) -> list[TestRow]:
    text = _decode(data, path, problems)
    if text is None:
        return []
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{shown(path)}:{error.lineno}:{error.colno}"
        problems.append(Problem(place, "", f"bad JSON ({error.msg})", "a JSON list of tests"))
        return []
    except (ValueError, RecursionError) as error:
        problems.append(Problem(shown(path), "", f"bad JSON ({error})", "a JSON list of tests"))
        return []
    row = parse(_TestsJson, {"tests": value}, shown(path), problems)
    return list(row.tests) if row else []


def _toml(model: type[M], path: Path, problems: list[Problem]) -> M | None:
    text = _text(path, problems, "the task's settings (it may be empty)")
    if text is None:
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f"{shown(path)}:{at[1]}:{at[2]}" if at else shown(path)
        found = f"bad TOML ({str(error).split(' (at ')[0]})"
        problems.append(
            Problem(place, "", found, "TOML; texts stand in quotes, tables like [limits] come last")
        )
        return None
    return parse(model, data, shown(path), problems)


def _text(path: Path, problems: list[Problem], expected: str) -> str | None:
    """The text of one file that has to be there."""
    try:
        info = path.lstat()
    except OSError:
        problems.append(Problem(shown(path), "", "no such file", f"a file with {expected}"))
        return None
    if not stat.S_ISREG(info.st_mode):
        problems.append(Problem(shown(path), "", _kind(info.st_mode), "a regular file"))
        return None
    try:
        return _decode(path.read_bytes(), path, problems)
    except OSError as error:
        problems.append(Problem(shown(path), "", f"a file that can't be read ({error.strerror})", "a file"))
        return None


def _decode(data: bytes, path: Path, problems: list[Problem]) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x}, which is not UTF-8"
        problems.append(Problem(f"{shown(path)}:{line}", "", found, "text in UTF-8"))
        return None


def _strangers(folder: Path) -> Iterable[Problem]:
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError as error:
        yield Problem(shown(folder), "", f"a folder that can't be read ({error.strerror})", "a folder")
        return
    for entry in entries:
        if entry.name in (*PARTS, IMAGES) or entry.name in _LEFT_BEHIND or _ASIDE.fullmatch(entry.name):
            continue
        expected = f"only {', '.join(PARTS)} (and a README){near(entry.name, PARTS)}"
        yield Problem(shown(entry.path), "", "something that is no part of a task", expected)


def _tree(root: Path, problems: list[Problem]) -> dict[str, bytes]:
    """Every regular file below ``root``, by relative path, sorted. A link or a device is a problem."""
    out: dict[str, bytes] = {}
    try:
        info = root.lstat()
    except OSError:
        return out
    if not stat.S_ISDIR(info.st_mode):
        problems.append(Problem(shown(root), "", _kind(info.st_mode), "a folder"))
        return out
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError as error:
            problems.append(
                Problem(shown(folder), "", f"a folder that can't be read ({error.strerror})", "a folder")
            )
            continue
        for entry in entries:
            if is_left_behind(entry.name):
                continue
            path = Path(entry.path)
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError as error:  # listed but not searchable, or gone meanwhile
                found = f"a file that can't be read ({error.strerror})"
                problems.append(Problem(shown(path), "", found, "a file"))
                continue
            if stat.S_ISDIR(mode):
                stack.append(path)
            elif not stat.S_ISREG(mode):
                problems.append(Problem(shown(path), "", _kind(mode), "a regular file or a folder"))
            else:
                try:
                    out[path.relative_to(root).as_posix()] = path.read_bytes()
                except OSError as error:
                    found = f"a file that can't be read ({error.strerror})"
                    problems.append(Problem(shown(path), "", found, "a file"))
    return dict(sorted(out.items()))


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a regular file" if stat.S_ISREG(mode) else "a device, a pipe or a socket"


def shown(path: str | Path) -> str:
    """A path as text that can always be printed."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
