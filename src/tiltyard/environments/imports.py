"""What a repository imports that is not its own and not the standard library's, from its syntax trees.

Only what is imported whenever a file is: at the top, not in a ``try`` that handles its absence, not for type checkers,
not under a condition. Files of documentation, examples and benchmarks do not count.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tiltyard.environments.names import OF_FIXTURES, OF_MARKS, distribution_of
from tiltyard.environments.setup_py import parse_quietly
from tiltyard.parsing import alone

_ASIDE = frozenset(
    "doc docs examples example samples demo demos benchmark benchmarks bench perf scripts tools tool ci utils_dev .github "
    "contrib misc release dist build extras vendor _vendor vendored third_party notebooks tutorials website typings stubs".split()
)
"""Top folders that tests don't need; and folders of copies of others' code."""
_NOT_IMPORTED = frozenset(
    "setup.py noxfile.py conf.py tasks.py fabfile.py dodo.py pavement.py ez_setup.py distribute_setup.py versioneer.py".split()
)
MAX_FILE = 1 << 20
_HANDLED = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Imported:
    """Distributions by where they are imported. ``anywhere``: modules that any test side file mentions, optional ones
    too."""

    package: frozenset[str]
    tests: frozenset[str]
    anywhere: frozenset[str]


def read_imports(files: Mapping[str, bytes]) -> Imported:
    """Which distributions the package and its tests need, as far as imports, fixtures and marks tell."""
    own = _own_names(files)
    package: set[str] = set()
    tests: set[str] = set()
    anywhere: set[str] = set()
    for path, data in files.items():
        if not path.endswith(".py") or len(data) > MAX_FILE or _is_aside(path):
            continue
        try:
            tree = alone(parse_quietly, data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        of_tests = _is_test(path)
        modules = set(_needed(tree.body)) - own
        (tests if of_tests else package).update(_distributions(modules))
        if of_tests:
            anywhere |= _distributions({*_mentioned(tree)} - own)
            tests |= _of_plugins(tree)
    return Imported(frozenset(package), frozenset(tests), frozenset(anywhere | tests))


def _distributions(modules: Iterable[str]) -> set[str]:
    return {
        name
        for module in modules
        if module not in sys.stdlib_module_names and (name := distribution_of(module))
    }


def _is_aside(path: str) -> bool:
    parts = path.split("/")
    return (
        parts[0] in _ASIDE
        or bool({"_vendor", "vendor", "vendored", "third_party", "_vendored"} & {*parts[:-1]})
        or path in _NOT_IMPORTED
    )


def _is_test(path: str) -> bool:
    parts = path.split("/")
    name = parts[-1]
    return (
        bool({"test", "tests", "testing"} & {*parts[:-1]})
        or name == "conftest.py"
        or name.startswith("test_")
        or name.endswith("_test.py")
    )


def _own_names(files: Mapping[str, bytes]) -> set[str]:
    """Names of modules and packages of the repository, wherever they lie: tests put many folders on the path."""
    names: set[str] = set()
    for path in files:
        if path.endswith((".py", ".pyx", ".pyi", ".c", ".so")):
            *folders, last = path.split("/")
            names |= {last.partition(".")[0], *folders}
    return names


def _needed(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _modules(node)
        elif isinstance(node, ast.Try):
            if not any(_handles_absence(handler.type) for handler in node.handlers):
                yield from _needed(node.body)
            yield from _needed([*node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from _needed(node.body)


def _handles_absence(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(name, ast.Name) and name.id in _HANDLED for name in names)


def _modules(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif node.module and not node.level:
        yield node.module.partition(".")[0]


def _mentioned(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _modules(node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "importorskip"
        ):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value.partition(".")[0]


def _of_plugins(tree: ast.Module) -> set[str]:
    """Plugins whose fixtures and marks a test file uses and does not define."""
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            found |= {
                OF_FIXTURES[a.arg] for a in node.args.args if a.arg in OF_FIXTURES and a.arg not in defined
            }
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in OF_MARKS
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "mark"
        ):
            found.add(OF_MARKS[node.attr])
    return found
