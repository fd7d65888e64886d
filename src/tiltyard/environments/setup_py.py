"""The keywords of ``setup(…)`` in a setup.py, read from its syntax tree: literals, sums, and names that are assigned
such. Nothing is executed; what is worked out by the program itself is not known here."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from tiltyard.parsing import alone

_DEPTH = 20


def setup_words(text: str) -> dict[str, Any]:
    """What a call of ``setup`` is given, as far as it can be read. {}: no Python 3, or no such call."""
    try:
        tree = alone(parse_quietly, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_eye(text)
    names: dict[str, ast.expr] = {}
    call: ast.Call | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = node.value
        elif isinstance(node, ast.Call) and _is_setup(node.func):
            call = node
    if call is None:
        return {}
    words: dict[str, Any] = {}
    for keyword in call.keywords:
        value = _value(keyword.value, names)
        if keyword.arg is not None:
            words[keyword.arg] = value
        elif isinstance(value, dict):  # setup(**options)
            words |= {key: item for key, item in value.items() if isinstance(key, str)}
    return {key: value for key, value in words.items() if value is not None}


def parse_quietly(source: str | bytes) -> ast.Module:
    """As ``ast.parse``, without a word about old ways of writing. Not by itself: see ``tiltyard.parsing.alone``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _is_setup(func: ast.expr) -> bool:
    return (isinstance(func, ast.Name) and func.id == "setup") or (
        isinstance(func, ast.Attribute) and func.attr == "setup"
    )


def _value(node: ast.expr, names: dict[str, ast.expr], depth: int = 0) -> Any:
    """A literal's value; None for what is not one. Of lists and dicts, the items that are."""
    if depth > _DEPTH:
        return None

    def again(inner: ast.expr) -> Any:
        return _value(inner, names, depth + 1)

    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | bool | int) else None
    if isinstance(node, ast.Name):
        return again(names[node.id]) if node.id in names else None
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        items = [again(item) for item in node.elts]
        return [item for item in items if item is not None]
    if isinstance(node, ast.Dict):
        pairs = [
            (again(key), again(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        ]
        return {key: value for key, value in pairs if isinstance(key, str | bool | int) and value is not None}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {
            word.arg: again(word.value)
            for word in node.keywords
            if word.arg and again(word.value) is not None
        }
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = again(node.left), again(node.right)
        if isinstance(left, str) and isinstance(right, str):
            return left + right
        parts = [part for part in (left, right) if isinstance(part, list)]
        return [item for part in parts for item in part] if parts else None
    return None


def _by_eye(text: str) -> dict[str, Any]:
    """Of a setup.py that this Python can't parse (print statements): what stands there as plain texts."""
    words: dict[str, Any] = {}
    for key in ("name", "version"):
        match = re.search(rf"\b{key}\s*=\s*(['\"])([^'\"]+)\1", text)
        if match:
            words[key] = match[2]
    for key in ("install_requires", "tests_require"):
        match = re.search(rf"\b{key}\s*=\s*\[([^\]]*)\]", text)
        if match:
            words[key] = re.findall(r"['\"]([^'\"]+)['\"]", match[1])
    return words
