"""Reading other people's Python as text: what it defines, which examples its docstring gives, how its stub looks.

Everything here parses and nothing executes. Sources that don't parse give empty answers; the task that is made of
them says so.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tiltyard.parsing import parse_expression, parse_source

NOT_WRITTEN = "raise NotImplementedError"
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ARROWS = re.compile(r"\s*(?:➞|==>|=>|->|==|=|should return|returns?)\s*")
_NP = re.compile(r"\bnp\.(\w+)")
_IMPORTS = re.compile(r"\b(?:import|from)\s+(\w+)")


def tree_of(source: str) -> ast.Module | None:
    """The syntax tree, or None if the source is no Python."""
    try:
        return parse_source(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_in(node: ast.AST) -> set[str]:
    """Every plain name in a piece of syntax."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def defined(source: str) -> dict[str, ast.stmt]:
    """What a module binds at its top level by def, class, or assignment, in order."""
    out: dict[str, ast.stmt] = {}
    tree = tree_of(source)
    for node in tree.body if tree else []:
        if isinstance(node, (*_DEFS, ast.ClassDef)):
            out[node.name] = node
        elif isinstance(node, ast.Assign):
            out.update({t.id: node for t in node.targets if isinstance(t, ast.Name)})
    return out


def with_failing_body(head: str, entry: str) -> str | None:
    """``head``, which ends inside the function ``entry``, completed so that a call raises NotImplementedError."""
    lines = [line for line in head.split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    own = last[: len(last) - len(last.lstrip())]
    joined = head if head.endswith("\n") else head + "\n"
    for indent in dict.fromkeys([own, "    ", "\t", own + "    "]):
        text = f"{joined}{indent}{NOT_WRITTEN}\n"
        node = defined(text).get(entry)
        if indent and isinstance(node, _DEFS) and isinstance(node.body[-1], ast.Raise):
            return text
    return None


def stub_of(source: str, names: Sequence[str]) -> str:
    """A start file for a reference: the heads of its functions ``names``; classes that tests use stay as they are."""
    bound = defined(source)
    parts = []
    for name in names:
        node = bound.get(name)
        if isinstance(node, ast.ClassDef):
            parts.append(ast.get_source_segment(source, node) or "")
        elif isinstance(node, _DEFS):
            word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            parts.append(f"{word} {name}({_arguments(node.args)}):\n    {NOT_WRITTEN}")
        else:
            parts.append(f"def {name}(*args):\n    {NOT_WRITTEN}")
    return "\n\n\n".join(parts) + "\n"


def _arguments(args: ast.arguments) -> str:
    """An argument list without annotations; a default that is more than a constant becomes None."""

    def default(value: ast.expr | None) -> ast.expr | None:
        return value if value is None or isinstance(value, ast.Constant) else ast.Constant(None)

    def bare(arg: ast.arg | None) -> ast.arg | None:
        return arg and ast.arg(arg.arg)

    return ast.unparse(
        ast.arguments(
            posonlyargs=[ast.arg(a.arg) for a in args.posonlyargs],
            args=[ast.arg(a.arg) for a in args.args],
            vararg=bare(args.vararg),
            kwonlyargs=[ast.arg(a.arg) for a in args.kwonlyargs],
            kw_defaults=[default(d) for d in args.kw_defaults],
            kwarg=bare(args.kwarg),
            defaults=[default(d) or ast.Constant(None) for d in args.defaults],
        )
    )


def with_imports(code: str, known: Iterable[str]) -> str:
    """A test with the standard modules imported that it uses as plain names (``math.isclose``) and nobody binds."""
    tree = tree_of(code)
    if tree is None:
        return code
    bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    owners = {
        n.value.id for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    missing = owners - bound - set(known) - set(dir(builtins))
    modules = sorted(missing & sys.stdlib_module_names)
    return "".join(f"import {name}\n" for name in modules) + code


def third_party(*sources: str) -> tuple[str, ...]:
    """The top-level packages that sources import and the standard library doesn't have, sorted."""
    found: set[str] = set()
    for source in sources:
        if set(_IMPORTS.findall(source)) <= sys.stdlib_module_names:
            continue  # Parsing a big test file takes long.
        tree = tree_of(source)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.split(".")[0])
    return tuple(sorted(found - sys.stdlib_module_names))


def examples(head: str, entry: str, tests: str = "") -> list[str]:
    """Assert lines from the examples in the docstring of ``entry`` (``>>> f(1)``, or ``f(1) ➞ 2``).

    Only plain ones: one call expression that uses no other names than ``entry`` and built-ins, and a literal as its
    result. An example is left out if ``tests`` assert another result for the same arguments: prompts have mistakes.
    """
    node = defined(head).get(entry)
    docstring = ast.get_docstring(node) if isinstance(node, _DEFS) else None
    if not docstring:
        return []
    facts = dict(_facts(tests))
    out: dict[str, None] = {}
    for source, want in list(_doctests(docstring)) or list(_arrows(docstring, entry)):
        call = _expression(source, entry)
        ok, value = _literal(want)
        if call is None or not ok:
            continue
        key = _key(call)
        if key in facts and not _equal(facts[key], value):
            continue
        out[f"assert {ast.get_source_segment(source, call)} == {want}"] = None
    return [line for line in out if tree_of(line) is not None]


def _doctests(docstring: str) -> Iterator[tuple[str, str]]:
    try:
        found = doctest.DocTestParser().get_examples(docstring)
    except ValueError:
        return
    for example in found:
        if not example.exc_msg:
            yield example.source.strip(), example.want.strip()


def _arrows(docstring: str, entry: str) -> Iterator[tuple[str, str]]:
    for line in docstring.split("\n"):
        start = line.find(f"{entry}(")
        for arrow in _ARROWS.finditer(line, start) if start >= 0 else ():
            if _expression(line[start : arrow.start()], entry) is not None:
                yield line[start : arrow.start()], line[arrow.end() :].strip().rstrip(".").strip()
                break


def _expression(source: str, entry: str) -> ast.expr | None:
    try:
        body = parse_expression(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(body, (ast.Call, ast.Subscript, ast.BinOp)):
        return None  # "assert f(1), f(2) == (3, 4)" and "assert f(1) == 2 == True" would say something else.
    called = {n.func.id for n in ast.walk(body) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return body if entry in called and names_in(body) <= {entry, *dir(builtins)} else None


def _literal(text: str) -> tuple[bool, Any]:
    try:
        return "\n" not in text, ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return False, None


def _facts(tests: str) -> Iterator[tuple[str, Any]]:
    """Arguments and result of every ``assert candidate(ARGS) == LITERAL``."""
    tree = tree_of(tests)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and len(node.ops) == 1:
            ok, value = _literal(ast.unparse(node.comparators[0]))
            if ok and isinstance(node.ops[0], ast.Eq):
                yield _key(node.left), value


def _key(call: ast.expr) -> str:
    if not isinstance(call, ast.Call):
        return ast.dump(call)
    return "".join(map(ast.dump, [*call.args, *(k.value for k in call.keywords)]))


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def without_numpy(source: str) -> str | None:
    """A published test file, which compares with ``np.allclose``, without its import of numpy, and with arguments copied.

    ``assertion(f(*inp), ref_func(*inp), 0)`` gives the solution and the reference the same objects: a solution that
    empties its argument would decide what is expected. None if the source is no Python or uses more of numpy than
    :class:`tiltyard.pool.oracle.numpy_stand_in` has.
    """
    tree = tree_of(source)
    if tree is None or not set(_NP.findall(source)) <= {"allclose", "ndarray", "float64", "float32"}:
        return None
    lines = source.split("\n")  # The big literals stay as they are: a syntax tree of them costs seconds.
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.Expr)):
            continue
        if isinstance(node, ast.Import) and any(a.name == "numpy" for a in node.names):
            if [(a.name, a.asname) for a in node.names] != [("numpy", "np")]:
                return None
            text = ""
        else:
            change = _CopyArguments()
            node = change.visit(node)
            if not change.done:
                continue
            text = ast.unparse(ast.fix_missing_locations(node))
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        lines[first:last] = [text] + [""] * (last - first - 1 - text.count("\n"))
    return "\n".join(lines)


class _CopyArguments(ast.NodeTransformer):
    done = False

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        if not isinstance(node.value, ast.Name) or not isinstance(node.ctx, ast.Load):
            return node
        self.done = True
        copied = parse_expression(f"__import__('copy').deepcopy({node.value.id})").body
        return ast.Starred(copied, ast.Load())


def module_text(name: str) -> str:
    """The text of a module of this folder, for a prelude."""
    return Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
