"""Writing tasks: as folders and as JSON Lines, in the native forms. What is read back has the same digest.

Start files that are an image are written as its digest, and the image into the store ``images`` beside the tasks. Nothing that exists is ever overwritten, but for the file that ``to_jsonl`` is asked to write.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tiltyard.errors import Problem, UsageError
from tiltyard.images import ImageFiles, Images
from tiltyard.pool.collection import Pool
from tiltyard.pool.folder import IMAGES, is_left_behind, is_test_file
from tiltyard.pool.model import Settings, entry_of, tests_of
from tiltyard.pool.testfiles import split_python, split_stdio
from tiltyard.task import MAIN, Limits, Metadata, Task, Test

_NAME = re.compile(r"[A-Za-z0-9][\w-]*")


def to_dict(task: Task) -> dict[str, Any]:
    """The task as one row of JSON Lines: the keys of the plain dict first, further ones where they are needed."""
    start, stub = ({}, None) if task.start.image else _texts(task.start, task.main)
    reference, ref = _texts(task.reference, task.main)
    row: dict[str, Any] = {"id": task.id, "prompt": task.prompt}
    row |= {"stub": stub} if stub is not None else {}
    row |= {"ref": ref} if ref is not None else {}
    row |= _of_repositories(task)
    row["visible"] = [_test(test, f"visible/{n}") for n, test in enumerate(task.visible, 1)]
    row["hidden"] = [_test(test, f"hidden/{n}") for n, test in enumerate(task.hidden, 1)]
    row["meta"] = {"source": "", "created": "", "difficulty": None} | _metadata(task.metadata)
    row |= {"start": start} if start else {}
    row |= {"reference": reference} if reference else {}
    row |= {"suite": _texts(task.suite, "")[0]} if task.suite else {}
    return row | _settings(task) | ({"prelude": task.prelude} if task.prelude else {})


def _of_repositories(task: Task) -> dict[str, Any]:
    """What only tasks have whose start is an image, or whose reference takes files away."""
    out: dict[str, Any] = {"image": task.start.image} if task.start.image else {}
    out |= {"removed": sorted(task.reference.removed)} if task.reference.removed else {}
    return out | ({"suite_removed": sorted(task.suite.removed)} if task.suite.removed else {})


def _keep_images(tasks: Iterable[Task], root: Path) -> None:
    """Put the images of these tasks into the store ``images`` of a folder."""
    store, kept = Images(root / IMAGES), set[str]()
    for task in tasks:
        if isinstance(task.start, ImageFiles) and task.start.image not in kept:
            kept.add(task.start.image)
            store.add(task.start)


def to_jsonl(tasks: Iterable[Task], path: str | os.PathLike[str]) -> None:
    """Write tasks as JSON Lines, gzipped if the name ends in ``.gz``. Replaces the file in one step."""
    chosen, target = list(tasks), Path(path)
    data = "".join(json.dumps(to_dict(task)) + "\n" for task in chosen).encode()
    _keep_images(chosen, target.absolute().parent)  # before the file that names them
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(gzip.compress(data, mtime=0) if target.name.endswith(".gz") else data)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"can't write {target}: {error.strerror or error}") from None


def to_folder(what: Task | Pool, path: str | os.PathLike[str]) -> None:
    """Write a task as a folder, or a pool as a folder of them. ``path`` must not exist, or be an empty folder."""
    root = Path(path)
    try:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise UsageError(f"{root} exists; expected a new name or an empty folder")
        root.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Task):
            _keep_images([what], root)
            _write_task(what, root)
            return
        _keep_images(what, root)
        used: set[str] = {IMAGES}
        folders = [_folder_name(task.id, used) for task in what]
        head: dict[str, Any] = {"name": what.name, "version": what.version}
        _write(root / "pool.toml", _toml(head | ({"order": folders} if folders != sorted(folders) else {})))
        for task, folder in zip(what, folders, strict=True):
            (root / folder).mkdir()
            _write_task(task, root / folder)
    except OSError as error:
        raise UsageError(f"can't write {error.filename or root}: {error.strerror or error}") from None


def _folder_name(id_: str, used: set[str]) -> str:
    name = re.sub(r"[^\w.-]", "_", id_)[:80]
    name = name if name[0].isalnum() else f"task_{name}"
    n, base = 2, name
    while name.lower() in used:
        name, n = f"{base}_{n}", n + 1
    used.add(name.lower())
    return name


def _write_task(task: Task, root: Path) -> None:
    tables: dict[str, Any] = {"id": task.id, **_settings(task), "metadata": _metadata(task.metadata)}
    if task.grading == "pytest":
        _write_pytest_task(task, root, tables)
        return
    first = task.hidden[0]
    defaults: dict[str, Any] = {}
    if task.grading == "stdio":
        defaults = {"match": first.match, "tolerance": first.tolerance}
    settings = Settings(grading=task.grading, **defaults)
    if task.prelude:
        if task.grading != "calls":
            raise UsageError(f"task {task.id!r} has a prelude and is graded by stdio; no folder can say that")
        _write(root / "hidden" / "prelude.py", task.prelude)
    _write(root / "task.toml", _toml({**tables, **defaults}))
    _write(root / "prompt.md", task.prompt)
    _write_files(task, root, {"start": task.start, "reference": task.reference})
    for kind, tests in (("visible", task.visible), ("hidden", task.hidden)):
        for file, text in _test_files(tests, kind, settings).items():
            _write(root / kind / file, text)


def _write_files(task: Task, root: Path, trees: Mapping[str, Mapping[str, bytes]]) -> None:
    for name, files in trees.items():
        for file, data in files.items():
            if any(is_left_behind(part) for part in file.split("/")):
                raise UsageError(
                    f"task {task.id!r}: {name}/{file} has a name that folders of tasks don't keep"
                )
            _write(root / name / file, data)


def _write_pytest_task(task: Task, root: Path, tables: dict[str, Any]) -> None:
    """Visible tests are start files like others; the list of those that are run stands there if it is not the usual."""
    if task.hidden:
        tables["fail_to_pass"] = list(task.fail_to_pass)
        order = [test.id for test in task.hidden]
        if order != [*task.fail_to_pass, *task.pass_to_pass]:
            tables["order"] = order
    visible = [test.id for test in task.visible]
    if visible != [path for path in task.start if is_test_file(path) and path not in task.suite]:
        tables["visible_tests"] = visible
    tables |= _of_repositories(task)
    tables["times"] = {test.id: test.time_s for test in task.hidden if test.time_s is not None}
    _write(root / "task.toml", _toml(tables))
    _write(root / "prompt.md", task.prompt)
    trees = {"reference": task.reference, "hidden": task.suite}
    _write_files(task, root, trees if task.start.image else {"start": task.start, **trees})


def _write(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def _test_files(tests: Sequence[Test], kind: str, settings: Settings) -> dict[str, str]:
    """Files for people where they say exactly these tests, ``tests.json`` otherwise."""
    if not tests:
        return {}
    if settings.grading == "stdio":
        files = _stdio_files(tests)
        rows = split_stdio(files, "", problems := list[Problem]())
    else:
        files = _python_files(tests)
        problems = []
        rows = [
            row for name, text in sorted(files.items()) for row in split_python(text, name[:-3], "", problems)
        ]
    if (
        files
        and not problems
        and tests_of(rows, kind, settings, "", problems) == tuple(tests)
        and not problems
    ):
        return files
    rows_json = [_test(test, f"{kind}/{n}", whole=True) for n, test in enumerate(tests, 1)]
    return {"tests.json": json.dumps(rows_json, indent=1) + "\n"}


def _python_files(tests: Sequence[Test]) -> dict[str, str]:
    files: dict[str, str] = {}
    for test in tests:
        stem, _, name = test.id.partition("::")
        if not _NAME.fullmatch(stem) or not test.code.endswith(f"\n{name}()") or stem == "prelude":
            return {}
        files[f"{stem}.py"] = test.code.removesuffix(f"\n{name}()")
    return files


def _stdio_files(tests: Sequence[Test]) -> dict[str, str]:
    files: dict[str, str] = {}
    for test in tests:
        if not _NAME.fullmatch(test.id):
            return {}
        files[f"{test.id}.in"] = test.stdin
        files[f"{test.id}.out"] = test.stdout
        if test.args:
            files[f"{test.id}.args"] = "".join(f"{arg}\n" for arg in test.args)
        if test.exit_code is not None:
            files[f"{test.id}.rc"] = f"{test.exit_code}\n"
    return files


def _test(test: Test, default_id: str, whole: bool = False) -> Any:
    """A test as its code alone, where that says all, or as an object of what differs from the defaults."""
    out = {
        f.name: getattr(test, f.name)
        for f in fields(Test)
        if f.name != "id" and getattr(test, f.name) != f.default
    }
    if set(out) == {"code"} and test.id == default_id and not whole:
        return test.code
    if whole and not test.code:  # A folder has defaults of its own for these.
        out |= {"match": test.match, "tolerance": test.tolerance}
    if "args" in out:
        out["args"] = list(out["args"])
    return {"id": test.id, **out} if whole or test.id != default_id else out


def _texts(files: Mapping[str, bytes], main: str) -> tuple[dict[str, Any], str | None]:
    """All files but ``main``, which comes apart if it is text."""
    out: dict[str, Any] = {}
    for path, data in files.items():
        try:
            out[path] = data.decode()
        except UnicodeDecodeError:
            out[path] = {"base64": base64.b64encode(data).decode()}
    text = out.pop(main) if isinstance(out.get(main), str) else None
    return out, text


def _settings(task: Task) -> dict[str, Any]:
    """What differs from the defaults, but for the tests and the files."""
    out: dict[str, Any] = {}
    for name, default in (("grading", "calls"), ("reward", "fraction"), ("main", MAIN)):
        if getattr(task, name) != default:
            out[name] = getattr(task, name)
    usual: tuple[str, ...] = ()
    if task.grading == "calls":
        files = {**task.start, **task.reference}
        usual = entry_of(Settings(grading=task.grading, main=task.main), files, "", [])
    if task.entry != usual:
        out["entry"] = list(task.entry)
    for name in ("pass_to_pass", "way", "pythonpath", "plugins"):
        if (value := getattr(task, name)) and task.grading == "pytest":
            out[name] = list(value) if isinstance(value, tuple) else value
    if task.shell:
        out["shell"] = True
    if task.clock:
        out["clock"] = task.clock
    if task.protected:
        out["protected"] = sorted(task.protected)
    changed = {f.name: getattr(task.limits, f.name) for f in fields(Limits)}
    changed = {k: v for k, v in changed.items() if v != getattr(Limits(), k)}
    return out | ({"limits": changed} if changed else {})


def _metadata(metadata: Metadata) -> dict[str, Any]:
    out = {f.name: getattr(metadata, f.name) for f in fields(Metadata) if f.name != "extra"}
    out = {k: list(v) if isinstance(v, tuple) else v for k, v in out.items() if v not in ("", (), None)}
    return out | {k: v for k, v in metadata.extra if k not in out}


def _toml(values: Mapping[str, Any]) -> str:
    flat = [f"{_key(k)} = {_value(v)}\n" for k, v in values.items() if not isinstance(v, dict)]
    for name, table in values.items():
        if isinstance(table, dict) and table:
            flat.append(f"\n[{_key(name)}]\n")
            flat += [f"{_key(k)} = {_value(v)}\n" for k, v in table.items()]
    return "".join(flat)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # JSON's escapes are TOML's too, but for DEL, and for pairs of surrogates.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
