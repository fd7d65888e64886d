"""Test files of a task folder, split into single tests. Python is parsed, never executed here.

``calls``: each ``def test_*()`` is a test, with the whole file before it; in a file without one, each top-level
``assert`` is, with all other top-level statements that precede it. ``stdio``: NAME.in and NAME.out, and NAME.args
and NAME.rc if there are arguments and another exit code than 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tiltyard.errors import Problem
from tiltyard.parsing import parse_source
from tiltyard.pool.collection import near
from tiltyard.pool.model import TestRow

STDIO_SUFFIXES = ("in", "out", "args", "rc")
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WRAP = "put it into a 'def test_…():'"


def split_python(
    source: str, stem: str, where: str, problems: list[Problem], prefix: str = ""
) -> list[TestRow]:
    """The tests of one Python file, ids ``stem::name`` or ``stem::1``; ``prefix`` is code put before each."""
    try:
        tree = parse_source(source)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        problems.append(Problem(where + line, "", f"code that does not compile ({message})", "Python"))
        return []
    except (RecursionError, MemoryError):  # what the parser says of code that is nested too deep
        found = "code that does not compile (it is nested too deep)"
        problems.append(Problem(where, "", found, "Python"))
        return []
    before = len(problems)
    problems.extend(_traps(tree, where))
    functions = [n.name for n in tree.body if isinstance(n, _DEFS) and n.name.startswith("test")]
    if functions:
        rows = [TestRow(id=f"{stem}::{name}", code=f"{prefix}{source}\n{name}()") for name in functions]
    else:
        rows = [
            TestRow(id=f"{stem}::{n}", code=prefix + code)
            for n, code in enumerate(_asserts(source, tree, where, problems), 1)
        ]
    if not rows and len(problems) == before:
        expected = (
            "at least one 'def test_…():' or one assert at the top level (helpers belong into prelude.py)"
        )
        problems.append(Problem(where, "", "no test", expected))
    return rows


def _traps(tree: ast.Module, where: str) -> Iterator[Problem]:
    """What looks like a test and would never run."""
    seen: set[str] = set()
    for node in tree.body:
        at = f"{where}:{getattr(node, 'lineno', 1)}"
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield Problem(
                at, node.name, "a class of tests, which would not be run", "functions: def test_…():"
            )
        if not isinstance(node, _DEFS) or not node.name.startswith("test"):
            continue
        if node.name in seen:
            yield Problem(
                at, node.name, "the same name twice, so that the first is lost", "names that differ"
            )
        seen.add(node.name)
        if isinstance(node, ast.AsyncFunctionDef):
            yield Problem(at, node.name, "an async test", "a plain function (use asyncio.run inside)")
        args = node.args
        positional = args.posonlyargs + args.args
        required = [a.arg for a in positional[: len(positional) - len(args.defaults)]]
        required += [a.arg for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is None]
        if required:
            found = f"arguments ({', '.join(required)}), and nothing here gives them"
            yield Problem(
                at, node.name, found, "a test function without arguments (there are no pytest fixtures)"
            )
        if _yields(node.body):
            yield Problem(at, node.name, "yield in a test, whose body would then not run", "a plain function")


def _yields(body: Sequence[ast.AST]) -> bool:
    """Whether a function with this body is a generator; functions inside it may well be."""
    for node in body:
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_DEFS, ast.Lambda, ast.ClassDef)) and _yields(
            list(ast.iter_child_nodes(node))
        ):
            return True
    return False


def _asserts(source: str, tree: ast.Module, where: str, problems: list[Problem]) -> list[str]:
    tests: list[str] = []
    setup: list[str] = []
    for node in tree.body:
        text = _text(source, node)
        if isinstance(node, ast.Assert):
            tests.append("\n".join([*setup, text]))
        else:
            setup.append(text)
    if tests and not isinstance(tree.body[-1], ast.Assert):
        found = "statements after the last assert, which no test would run"
        problems.append(Problem(f"{where}:{tree.body[-1].lineno}", "", found, _WRAP))
    return tests


def _text(source: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    if decorators:  # get_source_segment leaves decorators out.
        return "\n".join(source.splitlines()[decorators[0].lineno - 1 : node.end_lineno])
    return ast.get_source_segment(source, node) or ast.unparse(node)


def split_stdio(files: Mapping[str, str], where: str, problems: list[Problem]) -> list[TestRow]:
    """The tests of a folder of NAME.in, NAME.out, NAME.args, NAME.rc; ``files`` maps file names to their text."""
    groups: dict[str, dict[str, str]] = {}
    for name, text in files.items():
        stem, _, suffix = name.rpartition(".")
        if not stem or suffix not in STDIO_SUFFIXES:
            hint = near(suffix, STDIO_SUFFIXES)
            expected = "NAME.in, NAME.out, NAME.args, NAME.rc, or tests.json" + hint
            problems.append(Problem(f"{where}/{name}", "", "a file that is part of no test", expected))
        else:
            groups.setdefault(stem, {})[suffix] = text
    rows = []
    for stem, parts in sorted(groups.items()):
        for suffix in ("in", "out"):
            if suffix not in parts:
                there = " and ".join(f"{stem}.{s}" for s in parts)
                found = f"no {stem}.{suffix} beside {there}"
                problems.append(Problem(where, f"{stem}.{suffix}", found, "both (either may be empty)"))
        code = _exit_code(parts["rc"], f"{where}/{stem}.rc", problems) if "rc" in parts else None
        args = parts.get("args", "")
        rows.append(
            TestRow(
                id=stem,
                stdin=parts.get("in", ""),
                stdout=parts.get("out", ""),
                args=args.removesuffix("\n").split("\n") if args else [],
                exit_code=code,
            )
        )
    return rows


def _exit_code(text: str, where: str, problems: list[Problem]) -> int | None:
    digits = text.strip()
    if digits.isascii() and digits.isdigit() and int(digits) <= 255:
        return int(digits)
    problems.append(Problem(where, "", repr(text[:40]), "an exit code, 0 to 255"))
    return None
