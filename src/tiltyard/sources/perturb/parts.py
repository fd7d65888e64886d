"""A task taken apart into its Python texts, and put together again with others in their place.

Promises: ``put_together(task, {})`` is the task itself; every text that is Python code of the task comes apart once: files of
start, reference and suite, the prelude, the code of tests, and the reference inside a prelude of HumanEval+ or MBPP+.
Never: parses with anything that executes, or changes a byte of what it does not know.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tiltyard.images import Images
from tiltyard.parsing import parse_source
from tiltyard.task import Files, Task, Test

Key = tuple[str, str]
"""Where a text stands: ("start", "solution.py"), ("hidden", "test_x::1"), ("prelude", ""), ("gold", "")."""
FOLDERS = ("start", "reference", "suite")
MAX_TEXT = 4 << 20
"""Bytes of a file that is looked at as text; a larger one is data."""


@dataclass(frozen=True)
class Parts:
    """``code`` by place. ``broken``: Python files that do not parse, with the reason; their text counts as data.
    ``data``: every other text of the task that its code may read (files, stdin, stdout, arguments)."""

    code: Mapping[Key, str]
    broken: Mapping[Key, str] = field(default_factory=dict)
    data: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Oracle:
    """A prelude whose first lines are trusted machinery (``tiltyard.pool.plus``), with the reference in a text."""

    lines: tuple[str, ...]
    call: ast.Call | None
    rest: str

    @property
    def gold(self) -> str | None:
        if self.call is None:
            return None
        return next((k.value.value for k in self.call.keywords if k.arg == "gold"), None)  # type: ignore[attr-defined]

    def text(self, gold: str | None, entry: Callable[[str], str], rest: str) -> str:
        """The prelude with another reference and another rest."""
        head = list(self.lines)
        if self.call is not None and gold is not None:
            given = {k.arg: k.value.value for k in self.call.keywords}  # type: ignore[attr-defined]
            given |= {"gold": gold, "entry": entry(given["entry"])}
            shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
            head[-1] = f'_plus = _plus["checker"]({shown})\n'
        return "".join(head) + rest


def _oracle(prelude: str) -> _Oracle | None:
    if not prelude.startswith(('_plus = {"__name__": "_oracle"}\n', '_np = {"__name__": "_oracle"}\n')):
        return None
    lines = prelude.split("\n")
    head, rest = [f"{line}\n" for line in lines[:3]], "\n".join(lines[3:])
    try:
        body = parse_source(head[2]).body
    except (SyntaxError, ValueError):
        return None
    match body:
        case [ast.Assign(value=ast.Call(func=ast.Subscript(), keywords=keywords) as call)] if all(
            isinstance(k.value, ast.Constant) and k.arg for k in keywords
        ) and {"gold", "entry"} <= {k.arg for k in keywords}:
            return _Oracle(tuple(head), call, rest)
        case [ast.Assign(value=ast.Subscript())]:
            return _Oracle(tuple(head), None, rest)
    return None


def taken_apart(task: Task) -> Parts:
    """The texts of a task."""
    code: dict[Key, str] = {}
    broken: dict[Key, str] = {}
    data: list[str] = []
    for name in FOLDERS:
        for path, text in _texts(getattr(task, name)):
            if not path.endswith(".py"):
                data.append(text)
            elif why := _no_python(text):
                broken[name, path] = why
                data.append(text)
            else:
                code[name, path] = text
    oracle = _oracle(task.prelude)
    if oracle is not None and oracle.gold is not None and not _no_python(oracle.gold):
        code["gold", ""] = oracle.gold
    rest = task.prelude if oracle is None else oracle.rest
    if rest.strip() and not _no_python(rest):
        code["prelude", ""] = rest
    for kind in ("visible", "hidden"):
        for test in getattr(task, kind):
            if test.code:  # which a Task is only made with if it compiles
                code[kind, test.id] = test.code
            data += [text for text in (test.stdin, test.stdout, *test.args) if text]
    return Parts(code, broken, tuple(data))


_CALL = re.compile(r"\w+\(\)")


def split_call(text: str) -> tuple[str, str]:
    """A test's code as the file that it is out of, and the call at its end ("" for none): tests out of one file share
    the first part, which is then looked at once."""
    head, _, last = text.rpartition("\n")
    return (f"{head}\n", last) if _CALL.fullmatch(last) else (text, "")


def _texts(files: Files) -> Iterator[tuple[str, str]]:
    for path, raw in files.items():
        if len(raw) > MAX_TEXT:
            continue
        try:
            yield path, raw.decode()
        except UnicodeDecodeError:
            continue


def _no_python(text: str) -> str:
    """Why it is no Python, or ""."""
    try:
        parse_source(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        return f"{getattr(error, 'msg', error)}" + (f" (line {line})" if line else "")
    except (RecursionError, MemoryError):
        return "it is nested too deep"
    return ""


def put_together(
    task: Task,
    code: Mapping[Key, str],
    *,
    prompt: str | None = None,
    names: Mapping[str, str] | None = None,
    paths: Callable[[str], str] = lambda path: path,
    other: Callable[[str, str], str] = lambda path, text: text,
    tests: Callable[[str, Test], Test] = lambda kind, test: test,
) -> Task:
    """The task with other code. ``names`` are those of entry points, ``paths`` gives a file's new place, ``other`` the
    new text of a file that is no Python, ``tests`` a test with other fields than its code. Raises TaskError."""
    names = names or {}

    def files(name: str) -> Files:
        old: Files = getattr(task, name)
        new: dict[str, bytes] = {}
        for path, raw in old.items():
            if (name, path) in code:
                raw = code[name, path].encode()
            elif not path.endswith(".py") and len(raw) <= MAX_TEXT:
                raw = _other(path, raw, other)
            new[paths(path)] = raw
        made = Files(new, removed={paths(path) for path in old.removed})
        if made == old:
            return old
        return Images().add(made) if old.image and not made.removed else made

    def test(kind: str, old: Test) -> Test:
        new = replace(old, code=code.get((kind, old.id), old.code))
        if task.grading == "pytest":
            new = replace(new, id=node_id(old.id, paths))
        return tests(kind, new)

    oracle = _oracle(task.prelude)
    rest = code.get(("prelude", ""), task.prelude if oracle is None else oracle.rest)
    prelude = (
        rest
        if oracle is None
        else oracle.text(code.get(("gold", ""), oracle.gold), lambda e: names.get(e, e), rest)
    )
    return replace(
        task,
        prompt=task.prompt if prompt is None else prompt,
        start=files("start"),
        reference=files("reference"),
        suite=files("suite"),
        prelude=prelude,
        visible=tuple(test("visible", one) for one in task.visible),
        hidden=tuple(test("hidden", one) for one in task.hidden),
        pass_to_pass=tuple(node_id(one, paths) for one in task.pass_to_pass),
        entry=tuple(names.get(name, name) for name in task.entry),
        main=paths(task.main),
        protected=frozenset(map(paths, task.protected)),
        pythonpath=tuple(path if path == "." else paths(path) for path in task.pythonpath),
    )


def node_id(test_id: str, paths: Callable[[str], str]) -> str:
    """A node id of pytest with its file in another place."""
    path, mark, rest = test_id.partition("::")
    return paths(path) + mark + rest


def _other(path: str, raw: bytes, other: Callable[[str, str], str]) -> bytes:
    try:
        return other(path, raw.decode()).encode()
    except UnicodeDecodeError:
        return raw


_WORD = re.compile(r"[^\W\d]\w*")


def words(text: str) -> set[str]:
    """Everything in a text that could be an identifier."""
    return set(_WORD.findall(text))
