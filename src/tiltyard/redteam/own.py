"""Our own exploits: templates that fit any task of their kind, made into cases for one task.

``corpus/*.toml`` holds them, one table an exploit. A template of kind ``calls`` defines ``exploit(name, args, kwargs)``,
what a call of the entry ``name`` does, or ``bind(name)``, what that name is; it is bound to every name that the
task's reference defines, in every file of it. One of kind ``stdio`` is the program; ``tool`` is a list of actions; the
code of one of kind ``pytest`` is added to the package's unsolved files, and its names are bound where it defines any. A
template finds ``NAMES``, ``MAIN``, ``VISIBLE`` (the visible tests), ``REFERENCE`` (the reference's source) and
``LIMIT_S`` (a test's time limit) where it mentions them. Nothing is executed here.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from tiltyard.parsing import parse_source
from tiltyard.redteam.case import Case
from tiltyard.redteam.subject import CAP
from tiltyard.task import Files, Task

_CODE = "@@CODE@@"
_BINDING = """
if "bind" not in globals():
    def bind(_name):
        def _call(*_args, **_kwargs):
            return exploit(_name, _args, _kwargs)
        _call.__name__ = _call.__qualname__ = _name
        return _call
for _name in NAMES:
    globals()[_name] = bind(_name)
"""


@dataclass(frozen=True, slots=True)
class Template:
    """One exploit before it is made for a task. ``kind`` is a way of grading, or ``tool``. ``use`` names the snippets
    that its code begins with; ``beside`` are files that it leaves beside the solution, by path."""

    name: str
    kind: str
    about: str
    what: str
    code: str = ""
    use: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)
    actions: tuple[Mapping[str, Any], ...] = ()
    episodes: int = 1
    once: bool = False
    min_python: tuple[int, ...] = ()
    fits: str = "any"
    """``any`` task of the kind, or ``single``: one whose reference is one file of Python."""


@cache
def templates() -> tuple[Template, ...]:
    """All of our exploits, by kind and name."""
    found: list[Template] = []
    for tables in _tables():
        for table in tables.get("exploit", ()):
            fields = dict(table)
            fields["about"] = fields.pop("class")
            fields["use"] = tuple(fields.get("use", ()))
            fields["actions"] = tuple(fields.get("actions", ()))
            fields["min_python"] = tuple(fields.get("min_python", ()))
            found.append(Template(**fields))
    return tuple(sorted(found, key=lambda template: (template.kind, template.name)))


@cache
def _snippets() -> Mapping[str, str]:
    return {name: code for tables in _tables() for name, code in tables.get("snippets", {}).items()}


def _tables() -> Iterator[dict[str, Any]]:
    folder = resources.files("tiltyard.redteam") / "corpus"
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            yield tomllib.loads(entry.read_text(encoding="utf-8"))


def own_cases(task: Task) -> tuple[Case, ...]:
    """Our exploits for a task, named ``EXPLOIT@TASK``."""
    goal = _Goal(task, {path: _names(task, path) for path in _modules(task)})
    return tuple(_case(template, goal) for template in templates() if _fits(template, goal))


@dataclass(frozen=True, slots=True)
class _Goal:
    """A task with what is worked out of it once: the files of Python that a solver would write, with their names."""

    task: Task
    names: Mapping[str, tuple[str, ...]]


def _fits(template: Template, goal: _Goal) -> bool:
    task = goal.task
    if template.kind == "tool":
        return task.grading == "calls" or not template.code
    if template.kind != task.grading:
        return False
    if template.kind == "pytest":
        return bool(goal.names)
    if template.kind == "calls" and not any(goal.names.values()):
        return False
    if "VISIBLE" in template.code and not task.visible:
        return False
    return template.fits == "any" or len(goal.names) == 1


def _modules(task: Task) -> list[str]:
    """The files of Python that a solver would write: those of the reference that are not protected."""
    return [path for path in task.reference if path.endswith(".py") and path not in task.protected]


def _names(task: Task, path: str) -> tuple[str, ...]:
    """The names that tests may use of a file: those that the reference defines at its top, and the entry names."""
    names: list[str] = list(task.entry) if path == task.main else []
    try:
        body = parse_source(task.reference.get(path, b"")).body
    except (SyntaxError, ValueError):
        return tuple(names)
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return tuple(name for name in dict.fromkeys(names) if not name.startswith("_"))


def _case(template: Template, goal: _Goal) -> Case:
    task = goal.task
    files: dict[str, str] = {}
    actions: tuple[Mapping[str, Any], ...] = ()
    if template.kind == "tool":
        code = _code(template, goal, task.main) if template.code else ""
        actions = tuple(_filled(action, task, code) for action in template.actions)
    elif template.kind == "calls":
        files = {path: _code(template, goal, path) for path, names in goal.names.items() if names}
    elif template.kind == "pytest":
        files = {path: _added(template, goal, path) for path in goal.names} if template.code else {}
    else:
        files = {task.main: _code(template, goal, task.main)}
    files = {**_beside(template, task), **files}
    return Case(
        name=f"{template.name}@{task.id}",
        kind={"tool": "tool", "pytest": "repo"}.get(template.kind, "function"),
        task=task.id,
        about=template.about,
        mechanism=template.what,
        files=Files(files),
        actions=actions,
        episodes=template.episodes,
        min_python=template.min_python,
        once=template.once,
    )


def _beside(template: Template, task: Task) -> dict[str, str]:
    """The files that a template leaves beside the solution; in a repository, those of its root and of its tests."""
    folder = task.main.rpartition("/")[0] if task.grading != "pytest" else ""
    found: dict[str, str] = {}
    for path, text in template.beside.items():
        if path == "@@EACH@@":
            found |= dict.fromkeys(_test_files(task), text)
            continue
        tests = _test_files(task)[0].rpartition("/")[0] if "@@TESTS@@" in path else ""
        at = path.replace("@@TESTS@@/", f"{tests}/" if tests else "")
        found[f"{folder}/{at}" if folder else at] = text
    return {path: text for path, text in found.items() if path not in task.protected}


def _test_files(task: Task) -> list[str]:
    """The files of a repository that hold tests, the hidden ones too: a solver can guess their names."""
    named = [test.id.partition("::")[0] for test in (*task.hidden, *task.visible)]
    seen = [path for path in {**task.suite, **task.start} if path.rpartition("/")[2].startswith("test_")]
    return list(dict.fromkeys([*named, *seen])) or ["test_it.py"]


def _added(template: Template, goal: _Goal, path: str) -> str:
    """An unsolved file of a package with a template's code behind it."""
    start = goal.task.start.get(path, b"").decode("utf-8", "replace")
    binds = "def exploit(" in template.code or "def bind(" in template.code
    forget = 'globals().pop("bind", None)\n' if binds else ""
    return f"{start}\n\n{forget}{_code(template, goal, path)}{_BINDING if binds else ''}"


def _code(template: Template, goal: _Goal, path: str) -> str:
    """A template's code for one file of a task."""
    task = goal.task
    body = "".join(_snippets()[name] for name in template.use) + template.code
    calls = task.grading == "calls"
    names = goal.names.get(path, ()) if task.grading in ("calls", "pytest") else ()
    known: dict[str, Any] = {"NAMES": names, "MAIN": task.main}
    known["VISIBLE"] = [test.code for test in task.visible] if calls else _pairs(task)
    known["REFERENCE"] = task.reference.get(path, b"").decode("utf-8", "replace")
    known["LIMIT_S"] = min(task.limits.test_s, CAP.test_s)
    needed = {name for name in known if name in body or (names and name == "NAMES")}
    head = "".join(f"{name} = {value!r}\n" for name, value in known.items() if name in needed)
    return head + body + (_BINDING if calls else "")


def _pairs(task: Task) -> list[tuple[str, str]]:
    return [(test.stdin, test.stdout) for test in task.visible]


def _filled(value: Any, task: Task, code: str) -> Any:
    """An action with its own tokens replaced: the code, the program's path, and what lies there at the start."""
    if isinstance(value, str):
        return value.replace(_CODE, code).replace("@@MAIN@@", task.main)
    if isinstance(value, Mapping):
        return {key: _filled(item, task, code) for key, item in value.items()}
    return value
