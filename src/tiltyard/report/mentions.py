"""Does what a hidden test checks stand in what the player was told? Evidence, not a judgement: a person decides.

A heuristic over the text of the test: the exceptions that it expects, what it passes in that is empty, the texts and
exit codes that it wants back. Each is looked for in the prompt, the start files and the visible tests. A test that is
not mentioned may be fair (it follows from what is said), and one that is mentioned may be unfair all the same.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tiltyard.parsing import parse_source
from tiltyard.task import Task, Test

PROMPT, START, VISIBLE = "prompt", "start files", "visible tests"
MAX_CLUES = 12
"""Of one test."""
MAX_SHOWN = 60
_EMPTY_WORDS = re.compile(
    r"\b(empty|blank|none|nothing|no (?:\w+ )?(?:values?|items?|elements?|words?|lines?|numbers?|input|arguments?|"
    r"entries|characters?|rows?)|without (?:any|values?|items?|elements?)|zero[- ]length|at least one)\b",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(r"^[A-Z]\w*(Error|Exception|Warning|Exit|Interrupt|Iteration)$")
_LITERALS = {"[]": "an empty list", "{}": "an empty dict", "()": "an empty tuple", "''": "an empty text"}
_LITERALS |= {"b''": "empty bytes", "set()": "an empty set", "None": "None"}


@dataclass(frozen=True, slots=True)
class Clue:
    """One thing that a test checks, and where the player could have read of it (() is nowhere)."""

    kind: str
    """``exception``, ``empty input``, ``expected text`` or ``exit code``."""
    what: str
    where: tuple[str, ...]

    @property
    def untold(self) -> bool:
        """Whether it is a rule of its own that stands nowhere. A text that is expected may follow from what went in."""
        return not self.where and self.kind != "expected text"


def clues(task: Task, test: Test) -> tuple[Clue, ...]:
    """What the test checks, as far as that can be read off it; () where nothing can."""
    told = {
        PROMPT: task.prompt,
        START: "\n".join(data.decode("utf-8", "replace") for data in task.start.values()),
        VISIBLE: "\n".join("\n".join((t.code, t.stdin, t.stdout, *t.args)) for t in task.visible),
    }
    found = dict.fromkeys(_of_stdio(test) if task.grading == "stdio" else _of_code(task, test))
    return tuple(
        Clue(kind, what, tuple(place for place, text in told.items() if _stands(kind, what, text)))
        for kind, what in list(found)[:MAX_CLUES]
    )


def _stands(kind: str, what: str, text: str) -> bool:
    if kind == "empty input":
        literal = next((lit for lit, name in _LITERALS.items() if name == what), what)
        spellings = {literal, literal.replace("'", '"')}
        return any(f"({s})" in text or f"`{s}`" in text for s in spellings) or bool(_EMPTY_WORDS.search(text))
    if kind == "exit code":
        return bool(re.search(rf"(?i)\b(exit|status|code)\b[^.\n]{{0,40}}\b{re.escape(what)}\b", text))
    if re.fullmatch(r"\w+", what):
        return bool(re.search(rf"\b{re.escape(what)}\b", text))
    return what in text


def _of_stdio(test: Test) -> Iterator[tuple[str, str]]:
    if not test.stdin.strip():
        yield "empty input", "an empty text"
    if test.exit_code:
        yield "exit code", str(test.exit_code)
    for word in re.findall(r"[A-Za-z_]{3,}", test.stdout):
        if word not in test.stdin:  # what is only passed through is no rule that must be known
            yield "expected text", word


def _of_code(task: Task, test: Test) -> Iterator[tuple[str, str]]:
    body = body_of(task, test)
    if body is None:
        return
    entries = set(task.entry)
    if isinstance(body, ast.FunctionDef):  # `check(candidate)` of HumanEval is given the solution
        entries |= {argument.arg for argument in body.args.args} - {"self"}
    for node in ast.walk(body):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            yield from _exceptions([node.type])
        elif isinstance(node, ast.Call):
            if _last_name(node.func) in (
                "raises",
                "assertRaises",
                "assertRaisesRegex",
                "warns",
                "assertWarns",
            ):
                yield from _exceptions(node.args[:1])
            elif _root(node.func) in entries or not entries:
                yield from _empties([*node.args, *(k.value for k in node.keywords)])
            if _last_name(node.func) in ("assertEqual", "assertEquals", "assertIn"):
                yield from _texts(node.args)
        elif isinstance(node, ast.Compare):
            yield from _texts([node.left, *node.comparators])


def _exceptions(nodes: Iterable[ast.expr]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            name = _last_name(part)
            known = getattr(builtins, name, None)
            if _EXCEPTION.match(name) or (isinstance(known, type) and issubclass(known, BaseException)):
                yield "exception", name


def _empties(nodes: Iterable[ast.expr]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        literal = ast.unparse(node)
        if literal in _LITERALS:
            yield "empty input", _LITERALS[literal]


def _texts(nodes: Iterable[ast.expr]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and text.strip() and len(text) <= MAX_SHOWN:
            yield "expected text", text


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def body_of(task: Task, test: Test) -> ast.AST | None:
    """The part of the hidden tests that is this one test: importers give each test its whole file and a last line that
    calls one function of it, or of the prelude. None if it can't be found or read."""
    code, name = test.code, ""
    if task.grading == "pytest":
        path, _, name = test.id.partition("::")
        name = name.split("[")[0].split("::")[-1]
        code = task.suite.over(task.start).get(path, b"").decode("utf-8", "replace")
    try:
        tree = parse_source(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not tree.body:
        return None
    functions = _functions(code)
    if name:
        return functions.get(name)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        return tree
    if task.prelude:
        functions = _functions(task.prelude) | functions
    # `test_x()`, `check(solution)`, `_run_unittest(T, "test_x", globals())`: a name or a text names the function, and
    # one of the test's own code comes before one of the prelude's
    found = [functions[said] for node in ast.walk(last) if (said := _said(node)) in functions]
    own = {node.name for node in _functions(code).values()}
    return next((node for node in found if node.name in own), found[0] if found else tree)


def _said(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return _last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _functions(code: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = parse_source(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
