"""Test ids as published sets have them, made into pytest's node ids. Pure text; nothing is collected.

Known are node ids themselves, the ``classname::name`` of a junit report (``tests.test_x.TestC::test_a[1]``), and bare
names of test functions where exactly one file of the suite defines them (sympy's runner). Ids of Django's and
unittest's runners (``test_a (app.tests.TestC)``) are refused: such suites are not run by pytest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tiltyard.parsing import parse_source

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BARE = re.compile(r"[A-Za-z_]\w*")
_UNITTEST = re.compile(r"\w+ \([\w.]+\)")

OTHER_RUNNER = "an id of unittest's or Django's runner, which is not pytest"


class NoNodeId(ValueError):
    """An id that names no pytest test; the message has the id."""

    field = ""


def is_unittest_id(one: str) -> bool:
    """Whether it is what ``unittest`` and Django's runner print: ``test_a (app.tests.TestC)``."""
    return _UNITTEST.fullmatch(one.strip()) is not None


def node_ids(ids: Iterable[str], files: Mapping[str, bytes], suite: Mapping[str, bytes]) -> tuple[str, ...]:
    """The node ids, each once, in order. ``files`` is the tree with the suite in it. Raises :class:`NoNodeId`."""
    return tuple(dict.fromkeys(node_id(one, files, suite) for one in ids))


def node_id(one: str, files: Mapping[str, bytes], suite: Mapping[str, bytes]) -> str:
    """As :func:`node_ids`, for one."""
    address, bracket, parameters = one.partition("[")
    head, colons, rest = address.partition("::")
    if colons and head in files:
        return one
    if is_unittest_id(one):
        raise NoNodeId(f"{one!r}, {OTHER_RUNNER}")
    if colons or "." in address:
        parts = [*head.split("."), *(rest.split("::") if rest else [])]
        for n in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:n]) + ".py"
            if path in files:
                return "::".join([path, *parts[n:]]) + bracket + parameters
    if head.endswith(".py") or "/" in head:
        raise NoNodeId(f"{one!r}, whose file is not there with the test patch applied")
    if _BARE.fullmatch(address):
        made = re.compile(rb"^(?:async )?def " + address.encode() + rb"\(", re.MULTILINE)
        homes = [path for path, data in suite.items() if path.endswith(".py") and made.search(data)]
        if len(homes) == 1:
            return f"{homes[0]}::{one}"
        raise NoNodeId(f"{one!r}, a bare name that {len(homes)} files of the suite define")
    raise NoNodeId(f"{one!r}, which is no id of a pytest test")


def in_order(ids: Iterable[str], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The ids in the order in which pytest would run them, as far as the text of their files tells: by file, and by where
    a test stands in it. Published lists put the tests that must pass first; a suite whose tests leave something behind
    passes in its own order only."""
    known: dict[str, dict[str, float]] = {}

    def place(one: str) -> tuple[str, float]:
        address = one.partition("[")[0]
        path, _, name = address.partition("::")
        if path not in known:
            known[path] = dict(_places(files.get(path, b"")))
        while name and name not in known[path]:  # a test that its class inherits stands where the class does
            name = name.rpartition("::")[0]
        return path, known[path].get(name, 0)

    return tuple(sorted(dict.fromkeys(ids), key=place))


def _places(source: bytes) -> Iterator[tuple[str, float]]:
    """Where the tests and classes of a file stand, by the part of an id behind the file. Methods of a ``TestCase`` are
    run in the order of their names."""
    try:
        todo: list[tuple[str, ast.AST]] = [("", node) for node in parse_source(source).body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while todo:
        prefix, node = todo.pop(0)
        if isinstance(node, _DEFS):
            yield f"{prefix}{node.name}", node.lineno
        if isinstance(node, ast.ClassDef):
            inside = f"{prefix}{node.name}::"
            if any("TestCase" in ast.unparse(base) for base in node.bases):
                names = sorted(part.name for part in node.body if isinstance(part, _DEFS))
                yield from ((f"{inside}{name}", node.lineno + n / len(names)) for n, name in enumerate(names))
            else:
                todo += [(inside, part) for part in node.body]
        elif not isinstance(node, _DEFS):
            todo += [(prefix, part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
