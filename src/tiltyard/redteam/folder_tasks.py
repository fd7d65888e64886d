"""The tasks of a corpus folder as tasks of the arena.

A function task is ``prompt.md``, ``reference.py`` and ``hidden_tests.py`` (``TESTS``, a list of Python texts), perhaps
``visible_tests.py``; a program has ``cases.json`` (pairs of input and output) in their place; one without any tests says
in its prompt ``As task NAME`` and has that task's, and ``each call must take under N ms`` puts every call under that
limit, measured in the examiner. A folder with ``task.json`` is a repository with a pytest suite. Tests are read as literals, never executed here.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.parsing import parse_source
from tiltyard.task import MAIN, Files, Limits, Task, Test

LIMITS = Limits(test_s=5.0, load_s=5.0, run_s=5.0, grade_s=30.0)
TOLERANCE = 1e-9
_AS_TASK = re.compile(r"[Aa]s task (\w+)")
_UNDER = re.compile(r"each call must take under (\d+(?:\.\d+)?) ?ms")
_TIMED = """\
import time as _time
_called = {name}
def {name}(*args, **kwargs):
    _start = _time.perf_counter()
    _value = _called(*args, **kwargs)
    assert _time.perf_counter() - _start < {seconds}
    return _value
"""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """``secrets``: texts that no player may see, beside the hidden tests."""

    task: Task
    timed: bool = False
    secrets: tuple[str, ...] = ()


def read_task(folder: Path) -> ReadTask:
    """The task in ``folder``. UsageError and TaskError name what is malformed."""
    if (folder / "task.json").is_file():
        return _repository(folder)
    prompt, reference = _text(folder / "prompt.md"), _text(folder / "reference.py")
    parts: dict[str, Any] = {
        "id": folder.name,
        "prompt": prompt,
        "start": Files({MAIN: ""}),
        "reference": Files({MAIN: reference}),
        "reward": "all",
        "limits": LIMITS,
    }
    if (folder / "cases.json").is_file():
        return ReadTask(Task(**parts, hidden=_programs(folder / "cases.json"), grading="stdio"))
    source, seconds = folder, None
    if not (folder / "hidden_tests.py").is_file():
        named = _AS_TASK.search(prompt)
        if named is None or not (folder.parent / named[1] / "hidden_tests.py").is_file():
            raise UsageError(
                f"{folder}: found neither hidden_tests.py nor cases.json, nor 'As task NAME' in the prompt"
            )
        source = folder.parent / named[1]
        under = _UNDER.search(prompt)
        seconds = float(under[1]) / 1000 if under else None
    hidden, visible = _literals(source / "hidden_tests.py"), _literals(source / "visible_tests.py")
    entry = _public(reference, folder / "reference.py")
    task = Task(
        **parts,
        hidden=_tests("hidden", hidden, source),
        visible=_tests("visible", visible, source),
        entry=entry,
    )
    if seconds is not None:
        limit = "".join(_TIMED.format(name=name, seconds=seconds) for name in entry[:1])
        task = replace(task, hidden=tuple(replace(t, code=limit + t.code) for t in task.hidden))
    secrets = tuple(v for k, v in hidden.items() if isinstance(v, str) and k.isupper() and len(v) >= 8)
    if secrets:  # they lie in the examiner, where an exploit would look for them
        lines = [f"{k} = {v!r}\n" for k, v in hidden.items() if isinstance(v, str) and k.isupper()]
        task = replace(task, prelude="".join(lines))
    return ReadTask(task, seconds is not None, secrets)


def _repository(folder: Path) -> ReadTask:
    """``repo/`` is the start, ``hidden/`` the suite, ``gold_NAME.py`` the fix of the one file NAME.py of the
    repository; ``task.json`` has the two lists of node ids. The way is the strongest that works."""
    lists = _lists(folder / "task.json")
    start = dict(_files(folder / "repo"))
    ids = [*lists["FAIL_TO_PASS"], *lists["PASS_TO_PASS"]]
    files = list(dict.fromkeys(id.partition("::")[0] for id in ids))
    suite = {path: start[path] for path in files if path in start}
    for path, data in _files(folder / "hidden").items():
        suite[next((known for known in files if known.endswith(f"/{path}")), path)] = data
    reference: dict[str, bytes] = {}
    for gold in sorted(folder.glob("gold_*.py")):
        name = gold.name.removeprefix("gold_")
        places = [path for path in start if path.rpartition("/")[2] == name]
        if len(places) != 1:
            raise UsageError(f"{gold}: found {len(places)} files named {name} in repo/; expected one")
        reference[places[0]] = gold.read_bytes()
    prompt = folder / "prompt.md"
    tests = ", ".join(lists["FAIL_TO_PASS"])
    task = Task(
        id=folder.name,
        prompt=_text(prompt)
        if prompt.is_file()
        else f"A bug makes tests fail that should pass. Fix it: {tests}",
        start=Files(start),
        hidden=tuple(Test(id) for id in ids),
        reference=Files(reference),
        grading="pytest",
        reward="all",
        limits=LIMITS,
        suite=Files(suite),
        pass_to_pass=tuple(lists["PASS_TO_PASS"]),
    )
    return ReadTask(task)


def _lists(path: Path) -> dict[str, list[str]]:
    try:
        found = json.loads(_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: found no JSON ({error})") from None
    out: dict[str, list[str]] = {}
    for name in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        value = found.get(name, []) if isinstance(found, dict) else None
        if not isinstance(value, list) or not all(isinstance(id, str) for id in value):
            raise UsageError(f"{path}, {name}: found {value!r}; expected a list of node ids")
        out[name] = value
    return out


def _files(folder: Path) -> dict[str, bytes]:
    """Every regular file below a folder, by its path there."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: found no such folder")
    found = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in found if "__pycache__" not in p.parts}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None


def _literals(path: Path) -> dict[str, Any]:
    """The names of a file that are bound to literals."""
    if not path.is_file():
        return {}
    try:
        body = parse_source(_text(path)).body
    except SyntaxError as error:
        raise UsageError(f"{path}: found no Python ({error})") from None
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def _tests(kind: str, literals: dict[str, Any], folder: Path) -> tuple[Test, ...]:
    tests = literals.get("TESTS", [])
    if (
        not isinstance(tests, list)
        or not all(isinstance(t, str) for t in tests)
        or not (tests or literals == {})
    ):
        raise UsageError(f"{folder / f'{kind}_tests.py'}, TESTS: expected a list of texts of Python")
    return tuple(Test(f"{kind}/{number}", code) for number, code in enumerate(tests, 1))


def _programs(path: Path) -> tuple[Test, ...]:
    try:
        pairs = json.loads(_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: found no JSON ({error})") from None
    tests = []
    for number, pair in enumerate(pairs if isinstance(pairs, list) else [None], 1):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise UsageError(f"{path}: found {pair!r}; expected pairs of input and output")
        stdin, stdout = pair
        # honest programs print 20 and 20.0
        tests.append(
            Test(f"hidden/{number}", stdin=stdin, stdout=stdout + "\n", match="numbers", tolerance=TOLERANCE)
        )
    return tuple(tests)


def _public(source: str, path: Path) -> tuple[str, ...]:
    try:
        body = parse_source(source).body
    except SyntaxError as error:
        raise UsageError(f"{path}: found no Python ({error})") from None
    names = (
        node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return tuple(name for name in names if not name.startswith("_"))
