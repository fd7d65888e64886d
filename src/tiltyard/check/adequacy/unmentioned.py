"""Hidden tests that check what the player isn't told: listed with the evidence, for a person to judge.

What a player is told is the prompt, the start files and the visible tests. A finding says that a test uses a word (an
exception class, a method, a text that the reference contains) which stands nowhere there, or an input (empty, None) or a
situation (a tie) that nothing there speaks of. Words prove little either way: a finding is a question, never a verdict.
Tests are parsed, never executed.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from tiltyard.check.adequacy.model import Finding
from tiltyard.parsing import parse_source
from tiltyard.task import Task, Test

MAX_FINDINGS = 30
_SPEAKS_OF_EMPTY = re.compile(
    r"\b(empt\w*|blank|no|none|nothing|without|at least one|zero|any|0)\b|\[\]|\(\)|\{\}|\"\"|''",
    re.IGNORECASE,
)
_SPEAKS_OF_TIES = re.compile(
    r"\b(tie\w*|stabl\w*|same|equal\w*|order\w*|first|earli\w*|ascend\w*|descend\w*|alphabet\w*|sort\w*|twice)\b",
    re.IGNORECASE,
)
_TIE = re.compile(r"(^|[_\W])(tie|ties|tied|stable|stability)([_\W]|$)", re.IGNORECASE)
_WIDE = frozenset({"Exception", "BaseException", "AssertionError", "SkipTest", "StopIteration"})
_WORD = re.compile(r"[^\W\d_]{3,}")


def unmentioned(task: Task) -> tuple[Finding, ...]:
    """What the hidden tests of a task check though nothing that the player sees speaks of it; each thing once."""
    told = _told(task)
    if task.grading == "stdio":
        found = list(_programs(task, told))
    elif task.grading != "calls":
        return ()  # suites in files: what they check is spread over fixtures and helpers
    else:
        reference = _Reference(task)
        found = [f for test in task.hidden for f in _calls(task, test, told, reference)]
    once: dict[tuple[str, str], Finding] = {}
    for finding in found:
        once.setdefault((finding.kind, finding.what), finding)
    return tuple(once.values())[:MAX_FINDINGS]


def _told(task: Task) -> str:
    start = [data.decode("utf-8", "replace") for data in task.start.values()]
    visible = [part for t in task.visible for part in (t.code, t.stdin, t.stdout, *t.args)]
    return "\n".join([task.prompt, *start, *visible])


class _Reference:
    """The names that the reference gives to things, and the words and numbers in its constants."""

    def __init__(self, task: Task) -> None:
        self.names: set[str] = set()
        self.words: set[str] = set()
        self.numbers: set[int | float] = set()
        for path, data in task.reference.items():
            if path.endswith(".py"):
                self._read(data)

    def _read(self, data: bytes) -> None:
        try:
            tree = parse_source(data)
        except (SyntaxError, ValueError, RecursionError):
            return
        docs = {id(d) for n in ast.walk(tree) if (d := _docstring(n)) is not None}
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    self.names.add(name)
                case ast.arg(arg=name):
                    self.names.add(name)
                case ast.Attribute(attr=name, value=ast.Name(id="self")):
                    self.names.add(name)
                case ast.Constant(value=str(text)) if id(node) not in docs:
                    self.words.update(w.lower() for w in _WORD.findall(text))
                case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                    self.numbers.add(number)


def _docstring(node: ast.AST) -> ast.expr | None:
    match node:
        case (
            ast.Module(body=[first, *_]) | ast.FunctionDef(body=[first, *_]) | ast.ClassDef(body=[first, *_])
        ):
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                return first.value
    return None


def _programs(task: Task, told: str) -> Iterator[Finding]:
    numbers = _Reference(task).numbers - {0}
    for test in task.hidden:
        if not test.stdin.strip() and not test.args and not _SPEAKS_OF_EMPTY.search(told):
            yield Finding("empty", "empty input", test.id, f"stdin is {test.stdin!r}")
        if test.exit_code in numbers and not re.search(rf"\b{test.exit_code}\b", told):
            yield Finding("literal", f"exit code {test.exit_code}", test.id, f"exit code {test.exit_code}")
        if _TIE.search(test.id) and not _SPEAKS_OF_TIES.search(told):
            yield Finding("tie", "a tie", test.id, f"the name {test.id}")


def _calls(task: Task, test: Test, told: str, reference: _Reference) -> Iterator[Finding]:
    try:
        tree = parse_source(test.code)
    except (SyntaxError, ValueError, RecursionError):
        return
    body = _body(tree)

    def finding(kind: str, what: str, node: ast.AST) -> Finding:
        text = ast.get_source_segment(test.code, node) or what
        return Finding(kind, what, test.id, " ".join(text.split())[:160])

    if _TIE.search(test.id) and not _SPEAKS_OF_TIES.search(told):
        yield finding("tie", "a tie", body[0])
    own = _raised(body) | _raised(_statements(task.prelude))
    given = {w.lower() for n in _given(body) for w in _WORD.findall(n)}
    for statement in body:
        for node in ast.walk(statement):
            for kind, what in _checks(node, told, task, reference, given):
                if kind == "exception" and what in own:
                    continue  # a callback of the test's own raises it
                yield finding(kind, what, _around(statement, node))


def _body(tree: ast.Module) -> list[ast.stmt]:
    """The statements of the test itself: those of the function or method that the last line calls, if it does."""
    last = tree.body[-1] if tree.body else ast.Pass()
    named = {n.id for n in ast.walk(last) if isinstance(n, ast.Name)}
    named |= {n.value for n in ast.walk(last) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in named:
            return node.body
    return tree.body or [last]


def _statements(source: str) -> list[ast.stmt]:
    try:
        return parse_source(source).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _raised(body: list[ast.stmt]) -> set[str]:
    """The exceptions that a test makes or raises itself."""
    found: set[str] = set()
    for node in (n for statement in body for n in ast.walk(statement)):
        match node:
            case ast.Raise(exc=ast.Name(id=name)) | ast.Call(func=ast.Name(id=name)):
                found.add(name)
    return found


def _given(body: list[ast.stmt]) -> Iterator[str]:
    """The texts that a test hands to something, rather than compares with."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and not (
                isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert")
            ):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        yield inner.value


def _checks(
    node: ast.AST, told: str, task: Task, reference: _Reference, given: set[str]
) -> Iterator[tuple[str, str]]:
    match node:
        case ast.ExceptHandler(type=ast.expr() as kind):
            yield from (("exception", n) for n in _exceptions(kind) if not _says(told, n))
        case ast.Call():
            for argument in node.args:
                yield from (("exception", n) for n in _exceptions(argument) if not _says(told, n))
            if _asks_solution(node, task, reference):
                yield from _inputs(node, told)
            for keyword in node.keywords:
                if keyword.arg in reference.names and not _says(told, str(keyword.arg)):
                    yield "name", f"{keyword.arg}="
        case ast.Attribute(attr=name) if name in reference.names and name[0] != "_" and not _says(told, name):
            yield "name", f".{name}"
        case ast.Compare(ops=[ast.Eq() | ast.In()]):
            yield from _expected([node.left, *node.comparators], told, reference, given)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.startswith("assert")
    ):
        yield from _expected(node.args, told, reference, given)


def _exceptions(node: ast.expr) -> Iterator[str]:
    """The exception classes that are named, in ``except`` or as an argument (``raises(ValueError, f)``)."""
    for part in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(part, ast.Name) and part.id not in _WIDE:
            found = getattr(builtins, part.id, None)
            if isinstance(found, type) and issubclass(found, BaseException):
                yield part.id


def _asks_solution(node: ast.Call, task: Task, reference: _Reference) -> bool:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name in task.entry or name in reference.names


def _inputs(node: ast.Call, told: str) -> Iterator[tuple[str, str]]:
    for argument in node.args:
        match argument:
            case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value="" | b""):
                if not _SPEAKS_OF_EMPTY.search(told):
                    yield "empty", f"empty input {ast.unparse(argument)}"
            case ast.Constant(value=None):
                if not _says(told, "None"):
                    yield "none", "None as an input"


def _expected(
    sides: list[ast.expr], told: str, reference: _Reference, given: set[str]
) -> Iterator[tuple[str, str]]:
    """Literals on a side that is compared, which the reference holds as well and nothing else tells."""
    for side in sides:
        if any(isinstance(n, ast.Call) for n in ast.walk(side)):
            continue
        for node in ast.walk(side):
            match node:
                case ast.Constant(value=str(text)):
                    for word in _WORD.findall(text):
                        low = word.lower()
                        if low in reference.words and low not in given and low not in told.lower():
                            yield "literal", repr(word)
                case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                    if abs(number) > 100 and number in reference.numbers and not _says(told, str(number)):
                        yield "literal", str(number)


def _says(told: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", told) is not None


def _around(statement: ast.stmt, node: ast.AST) -> ast.AST:
    """The smallest statement that holds the node: a line of evidence, not a whole loop."""
    best: ast.AST = statement
    for inner in ast.walk(statement):
        if isinstance(inner, ast.stmt) and any(n is node for n in ast.walk(inner)):
            best = inner if not isinstance(inner, (ast.For, ast.While, ast.With, ast.Try, ast.If)) else best
    return best if not isinstance(best, (ast.For, ast.While, ast.With, ast.Try, ast.If)) else node
