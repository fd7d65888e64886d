"""Probes from the right side: the reference in other clothes, which must still be worth 1.

A grader that is strict in the wrong place labels honest work as wrong. ``probes(task)`` gives the reference without its
comments, reformatted, with its local variables renamed, noisy on its output, and twice as slow; each means the same as
the reference and is graded as a submission would be. A file that a probe can't change safely stays as it is. Source is
parsed here, never executed. Renaming locals and dropping comments need libcst.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tiltyard.check.rename import rename_locals, without_comments
from tiltyard.parsing import parse_source
from tiltyard.task import Files, Task

_READS_OUTPUT = re.compile(r"redirect_std|capsys|capfd|sys\.stdout|sys\.stderr|StringIO|\bcaplog\b")
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Probe:
    """``name`` completes "the reference …" in a reason; ``files`` are what would be handed in."""

    name: str
    files: Files


def probes(task: Task) -> Iterator[Probe]:
    """The probes that make sense for a task: none that changes nothing, none that prints where output is what counts."""
    made: list[tuple[str, Callable[[str], str]]] = [
        ("without its comments", without_comments),
        ("reformatted", reformatted),
        ("with its locals renamed", rename_locals),
        ("made twice as slow", slow_program if task.grading == "stdio" else slow),
    ]
    if task.grading == "stdio":
        made.append(("noisy on stderr", lambda source: noisy(source, "stderr")))
    elif not _reads_output(task):
        made.append(("noisy on stdout", lambda source: noisy(source, "stdout")))
    for name, change in made:
        paths = [task.main] if change is slow_program else list(task.reference)
        files = {
            p: _changed(task.reference[p], change) for p in paths if p.endswith(".py") and p in task.reference
        }
        if any(files[path] != task.reference[path] for path in files):
            yield Probe(name, Files({**task.reference, **files}).over(task.start))


def _reads_output(task: Task) -> bool:
    texts = [task.prelude, *(t.code for t in task.hidden)]
    texts += [data.decode("utf-8", "replace") for data in task.suite.values()]
    return any(_READS_OUTPUT.search(text) for text in texts)


def _changed(data: bytes, change: Callable[[str], str]) -> bytes:
    try:
        source = data.decode()
        new = change(source)
        compile(new, "<probe>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return data
    return new.encode()


def reformatted(source: str) -> str:
    """As Python's own ``ast.unparse`` writes it."""
    return ast.unparse(parse_source(source)) + "\n"


def noisy(source: str, stream: str) -> str:
    """Prints when it is imported, and for the first thousand times that one of its functions is called."""
    tree = parse_source(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            at = _after_docstring(node.body)
            node.body[at:at] = _statements(f"_noise({node.name!r})")
    head = f"""
        import sys as _noise_sys
        def _noise(name, left=[1000]):
            if left[0] > 0:
                left[0] -= 1
                _noise_sys.{stream}.write('noise: ' + name + '\\n')
        _noise('import')
        """
    at = _after_future(tree.body)
    tree.body[at:at] = _statements(head)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def slow(source: str) -> str:
    """Every call from outside takes twice as long: when it is over, it sleeps for as long as it took."""
    tree = parse_source(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not _yields(node.body):
            at = _after_docstring(node.body)
            rest = node.body[at:] or [ast.Pass()]
            [wrapped] = _statements("try:\n    pass\nfinally:\n    _slow_leave(_slow_since)")
            assert isinstance(wrapped, ast.Try)
            wrapped.body = rest
            node.body[at:] = [*_statements("_slow_since = _slow_enter()"), wrapped]
    head = """
        import threading as _slow_threading
        from time import perf_counter as _slow_clock, sleep as _slow_sleep
        _slow_state = _slow_threading.local()
        def _slow_enter():
            _slow_state.depth = getattr(_slow_state, 'depth', 0) + 1
            return _slow_clock() if _slow_state.depth == 1 else None
        def _slow_leave(since):
            _slow_state.depth -= 1
            if since is not None:
                _slow_sleep(_slow_clock() - since)
        """
    at = _after_future(tree.body)
    tree.body[at:at] = _statements(head)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def slow_program(source: str) -> str:
    """The whole program takes twice as long: at its end it sleeps for as long as it ran."""
    tree = parse_source(source)
    head = """
        import atexit as _slow_atexit
        from time import perf_counter as _slow_clock, sleep as _slow_sleep
        _slow_begun = _slow_clock()
        _slow_atexit.register(lambda: _slow_sleep(_slow_clock() - _slow_begun))
        """
    at = _after_future(tree.body)
    tree.body[at:at] = _statements(head)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _statements(text: str) -> list[ast.stmt]:
    lines = text.strip("\n").rstrip().splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return parse_source("\n".join(line[margin:] for line in lines)).body


def _after_docstring(body: Sequence[ast.stmt]) -> int:
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return int(is_text and isinstance(first.value.value, str))  # type: ignore[union-attr]


def _after_future(body: Sequence[ast.stmt]) -> int:
    at = _after_docstring(body)
    while at < len(body) and isinstance(node := body[at], ast.ImportFrom) and node.module == "__future__":
        at += 1
    return at


def _yields(body: Sequence[ast.AST]) -> bool:
    """Whether a function with this body is a generator; functions inside it may well be."""
    return any(
        isinstance(node, (ast.Yield, ast.YieldFrom))
        or (not isinstance(node, _DEFS) and _yields(list(ast.iter_child_nodes(node))))
        for node in body
    )
