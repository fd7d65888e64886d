"""Test files without some of their tests: what a player may see of a suite whose failing tests decide."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from tiltyard.parsing import parse_source

_Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def without_tests(files: Mapping[str, bytes], ids: Iterable[str]) -> tuple[dict[str, bytes], frozenset[str]]:
    """Those of ``files`` that hold one of these tests (node ids), without them; and the paths of those that had to go as a
    whole, because a test in them could not be taken out by itself, or nothing was left."""
    by_file: dict[str, set[tuple[str, ...]]] = {}
    for test_id in ids:
        path, *names = test_id.split("[")[0].split("::")
        if path in files:
            by_file.setdefault(path, set()).add(tuple(names))
    changed: dict[str, bytes] = {}
    gone: set[str] = set()
    for path, wanted in sorted(by_file.items()):
        left = _without(files[path], wanted)
        if left is None:
            gone.add(path)
        else:
            changed[path] = left
    return changed, frozenset(gone)


def _without(data: bytes, names: set[tuple[str, ...]]) -> bytes | None:
    try:
        source = data.decode()
        tree = parse_source(source)
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return None
    spans: list[tuple[int, int]] = []
    if not all(_find(tree, name, spans) for name in names):
        return None  # a test that is made by a program, or inherited
    lines = source.splitlines(keepends=True)
    for first, last in sorted(spans, reverse=True):
        del lines[first - 1 : last]
    text = "".join(lines)
    try:
        left = parse_source(text)
    except (SyntaxError, ValueError):
        return None  # it was the only statement of a block
    has_tests = any(
        isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name.startswith("test")
        for n in ast.walk(left)
    )
    return text.encode() if has_tests else None


def _find(tree: ast.Module, name: tuple[str, ...], spans: list[tuple[int, int]]) -> bool:
    """Add the lines of a test; where it was the last one of its class, those of the class."""
    body: list[ast.stmt] = tree.body
    found: _Node | None = None
    for part in name:
        found = next((n for n in body if isinstance(n, _Node) and n.name == part), None)
        if found is None:
            return False
        body = found.body
    if found is None:
        return False
    first = min([found.lineno, *(d.lineno for d in found.decorator_list)])
    span = (first, found.end_lineno or found.lineno)
    if span not in spans:
        spans.append(span)
    return True
