"""Negative controls: a real hidden test with a changed expectation, which every correct solution fails.

A submission that passes one passes everything it is asked, so its passes say nothing: the reward is 0. A control must
never cost honest work its reward, so it is made only where no solution can pass it by being right, or by being wrong in
an ordinary way: the expectation becomes a value that holds a mark made from the task's digest, in a statement that the
test always reaches. Where no test has such a place, the control is the shortest test with a failure at its end. Before
a control counts against anyone the reference is asked to fail it too (``grade.Referee``), which costs honest work nothing.

Tests are parsed here, never executed. On stdio the control costs no run: what was printed is judged once more, against
a changed expectation.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.parsing import parse_source
from tiltyard.referee.once import once_a_task
from tiltyard.referee.prepare import MAX_SOURCE, item
from tiltyard.task import Task, Test

FLAG = "negative_control_passed"
REMEMBERED = 512
TRIED = 40
"""Hidden tests that are looked through for a place to change."""
_EQUAL_CALLS = frozenset({"assertEqual", "assertEquals"})
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Control:
    """``test`` is hidden test number ``of`` with a changed expectation. By calls it runs before the test at ``place`` in
    the order of a grading, and ``item`` is its prepared form (``prepare.Prepared``)."""

    of: int
    test: Test
    place: int
    item: list[Any]


def _changed_output(task: Task, test: Test) -> Test:
    """A stdio test that expects other output: the same, and a line that no program prints by chance."""
    end = "" if not test.stdout or test.stdout.endswith("\n") else "\n"
    return replace(test, stdout=f"{test.stdout}{end}{_mark(task, test.id)}\n")


def as_task(task: Task, control: Control) -> Task:
    """A task whose only hidden test is the control: the reference must fail it."""
    return replace(task, hidden=(control.test,))


def _mark(task: Task, name: str) -> str:
    return "tiltyard-" + hashlib.sha256(f"{task.digest} {name}".encode()).hexdigest()[:16]


@once_a_task(REMEMBERED)
def control_of(task: Task) -> Control | None:
    """The control of a task, the same each time; None if there can't be one."""
    if task.grading not in ("calls", "stdio"):
        return None  # suites in files have controls of their own
    number = int(hashlib.sha256(task.digest.encode()).hexdigest()[:8], 16) % len(task.hidden)
    if task.grading == "stdio":
        return Control(number, _changed_output(task, task.hidden[number]), number, [])
    sized = [(len(t.code), i) for i, t in enumerate(task.hidden) if len(t.code) <= MAX_SOURCE]
    found = None
    for _, i in sorted(sized)[:TRIED]:
        mark = _mark(task, task.hidden[i].id)
        if (code := changed(task.hidden[i].code, task.prelude, mark)) is not None:
            found = (i, code)
            break
    else:
        if sized:
            i = min(sized)[1]
            found = (i, f"{task.hidden[i].code}\nassert {_mark(task, task.hidden[i].id)!r} == ''")
    if found is None:
        return None
    i, code = found
    test = replace(task.hidden[i], id=f"control of {task.hidden[i].id}", code=code)
    try:
        return Control(i, test, number, item(code, "<test>", frozenset(task.modules)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# ---------------------------------------------------------------------------------------------- a changed expectation


def changed(code: str, prelude: str, mark: str) -> str | None:
    """The test up to its first assertion that always runs and can be given another expectation, with that; or None."""
    try:
        tree = parse_source(code)
        helpers = parse_source(prelude)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    tree = copy.deepcopy(tree)
    if not tree.body:
        return None
    if _cut(tree.body, mark):
        return ast.unparse(tree)
    if (body := _called(tree, helpers)) is not None and _cut(body, mark):
        return ast.unparse(tree)
    return None


def _called(tree: ast.Module, helpers: ast.Module) -> list[ast.stmt] | None:
    """The body of the function or method in which the test's last statement ends up; a helper of the prelude is put
    into the test, as a function of the same name."""
    last = tree.body[-1]
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return None
    call = last.value
    if not isinstance(call.func, ast.Name):
        return None
    if call.func.id == "_run_unittest":
        return _method(tree, call)
    mine = _defined(tree, call.func.id)
    if mine is None and (mine := _defined(helpers, call.func.id)) is not None:
        tree.body.insert(len(tree.body) - 1, mine)
    if not isinstance(mine, ast.FunctionDef) or mine.decorator_list:
        return None
    return mine.body


def _method(tree: ast.Module, call: ast.Call) -> list[ast.stmt] | None:
    match call.args:
        case [ast.Name(id=case), ast.Constant(value=str(name)), *_]:
            found = _defined(tree, case)
            if not isinstance(found, ast.ClassDef) or found.decorator_list:
                return None
            for node in found.body:
                if isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list:
                    return node.body
    return None


def _defined(tree: ast.Module, name: str) -> ast.stmt | None:
    """The only definition of this name at the top level."""
    found = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name]
    return found[0] if len(found) == 1 else None


def _cut(body: list[ast.stmt], mark: str) -> bool:
    """Change the first assertion of ``body`` that can be, and drop what follows it. False: there is none that always
    runs."""
    for n, statement in enumerate(body):
        if _may_leave(statement):
            return False
        if _change(statement, mark):
            del body[n + 1 :]
            return True
    return False


def _may_leave(statement: ast.stmt) -> bool:
    """Whether the function may end here, and with it the test, passed."""
    return any(isinstance(node, _LEAVES) for node in _own(statement))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, _DEFS):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _change(statement: ast.stmt, mark: str) -> bool:
    match statement:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) as compare):
            if _asks(left) and (other := _other(right, mark)) is not None:
                compare.comparators = [other]
                return True
            if _asks(right) and (other := _other(left, mark)) is not None:
                compare.left = other
                return True
        case ast.Assert(test=ast.Call() as call) if _asks(call):
            # a call that must be true: it is made all the same, and is not this text whatever it returns
            statement.test = ast.Compare(left=call, ops=[ast.Eq()], comparators=[ast.Constant(mark)])
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) as call):
            if name in _EQUAL_CALLS and _asks(left) and (other := _other(right, mark)) is not None:
                call.args[1] = other
                return True
    return False


def _asks(node: ast.expr) -> bool:
    """Whether it is more than a literal."""
    return any(isinstance(n, (ast.Call, ast.Name, ast.Attribute)) for n in ast.walk(node))


def _other(node: ast.expr, mark: str) -> ast.expr | None:
    """A literal of the same kind that nobody returns by chance; None if ``node`` is no literal."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    new = ast.Constant(mark)
    match node:
        case ast.List():
            return ast.List(elts=[*node.elts, new], ctx=ast.Load())
        case ast.Tuple():
            return ast.Tuple(elts=[*node.elts, new], ctx=ast.Load())
        case ast.Set():
            return ast.Set(elts=[*node.elts, new])
        case ast.Dict():
            return ast.Dict(keys=[*node.keys, new], values=[*node.values, new])
    far = int(mark[-12:], 16) | 1 << 40
    match value:
        case str():
            return ast.Constant(value + mark)
        case bytes():
            return ast.Constant(value + mark.encode())
        case int() | float() | complex() if not isinstance(value, bool):
            return ast.Constant(far if value != value or abs(value) > 1e300 else int(abs(value)) + far)
    return new
