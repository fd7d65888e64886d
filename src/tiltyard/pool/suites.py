"""A unittest suite as hidden tests: one :class:`Test` a test method, each with only what that method needs; or what a
whole suite needs before it to be a file for pytest (``head_of``).

The suite is read as text and never executed here. A test's code is the suite's own source without the other test
methods, the test classes that it doesn't build on, and ``if __name__ == …``, and a call that runs the one method
(``unittest_one.py``, which stands in the prelude). What is skipped without a condition is no test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tiltyard.pool.sources import defined, module_text, names_in, tree_of
from tiltyard.task import MAIN, Test

_RUNNER = module_text("unittest_one")
_NUMPY = """
try:
    import numpy as _numpy  # once an examination: each test's process would need half a second for it
except ImportError:
    pass
"""
SUITE = "test_solution.py"
"""Where the suite of a row lies, for pytest."""
EXAMPLE = "test_example.py"
"""Where the visible first test of such a suite lies."""
MODULE = MAIN.removesuffix(".py")
_CASES = ("TestCase", "IsolatedAsyncioTestCase")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def prelude(packages: Iterable[str]) -> str:
    """What the tests of a suite need before them, where solution or suite import ``packages``."""
    return _RUNNER + (_NUMPY if "numpy" in packages else "")


@dataclass(frozen=True, slots=True)
class Method:
    """One test method: the class that it is run on, its name, and the suite's source cut down to it."""

    case: str
    name: str
    source: str

    @property
    def id(self) -> str:
        return f"{self.case}::{self.name}"

    def hidden(self, head: str = "", prefix: str = "") -> Test:
        """The test, to run after :func:`prelude`. ``head`` is code before the suite, ``prefix`` stands before the id."""
        run = f"_run_unittest({self.case}, {self.name!r}, globals())"
        return Test(f"{prefix}{self.id}", code=f"{head}{self.source}\n\n{run}\n")

    def visible(self, head: str = "", prefix: str = "") -> Test:
        """The test for a player, which needs no prelude."""
        steps = ["setUpModule()"] if "setUpModule" in defined(self.source) else []
        steps += [f"{self.case}.setUpClass()", f"{self.case}({self.name!r}).debug()"]
        return Test(f"{prefix}{self.id}", code="\n".join([f"{head}{self.source}\n", *steps, ""]))


class SuiteError(ValueError):
    """A suite that can't be cut into its tests; the message says what was found."""


def methods_of(source: str) -> list[Method]:
    """The test methods of a suite, in its order. SuiteError: it is no Python, or makes up its tests as it runs."""
    tree = tree_of(source)
    if tree is None:
        raise SuiteError("no Python")
    if any(isinstance(node, _FUNCTIONS) and node.name == "load_tests" for node in tree.body):
        raise SuiteError("a suite that makes up its tests in load_tests()")
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}  # the last one counts
    suite = _Suite(source, tree, classes)
    return [
        Method(name, test, suite.cut(name, test))
        for name in classes
        if suite.is_case(name) and not suite.is_skipped(name)
        for test in suite.tests(name)
    ]


class _Suite:
    def __init__(self, source: str, tree: ast.Module, classes: dict[str, ast.ClassDef]) -> None:
        self.tree = tree
        self.classes = classes
        self._lines_of_source = source.split("\n")

    @cached_property
    def _called(self) -> set[str]:
        """Names of attributes that anything of the suite mentions: a test method may call another one."""
        return {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}

    @cached_property
    def _names(self) -> list[tuple[ast.stmt, set[str]]]:
        return [(node, names_in(node)) for node in self.tree.body]

    def is_case(self, name: str) -> bool:
        """Whether a class of this module is a TestCase, by its bases."""
        return any(
            base.rpartition(".")[2] in _CASES for own in self.line(name) for base in _bases(self.classes[own])
        )

    def line(self, name: str) -> list[str]:
        """A class of this module and those that it inherits from, nearest first."""
        out = [name]
        for owner in out:  # grows meanwhile
            out += [
                b for b in dict.fromkeys(_bases(self.classes[owner])) if b in self.classes and b not in out
            ]
        return out

    def is_skipped(self, name: str) -> bool:
        """Whether no test of a class is ever run."""
        return any(_is_skipped(self.classes[own]) for own in self.line(name))

    def tests(self, name: str) -> list[str]:
        """The names of the test methods that a class has, its own first."""
        out: dict[str, bool] = {}
        for owner in self.line(name):
            mine: dict[str, bool] = {}
            for node in self.classes[owner].body:
                for test, skipped in _tests_in(node):
                    mine[test] = not skipped
            out = out | {k: v for k, v in mine.items() if k not in out}
        return [test for test, runs in out.items() if runs]

    def cut(self, name: str, test: str) -> str:
        """The source with no other tests than this one."""
        called = self._called | {test}
        kept = self._needed(name)
        gone: list[tuple[int, int]] = []
        hollow: list[int] = []
        end = 0
        for node in self.tree.body:
            if not isinstance(node, ast.ClassDef):
                gone += [self._lines(node, end)] if _is_main(node) else []
            elif node.name not in kept or self.classes[node.name] is not node:
                gone.append(self._lines(node, end))
            elif self._has_tests(node):
                removed = list(self._methods_to_remove(node, called))
                gone += removed
                if len(removed) == len(node.body):
                    hollow.append(removed[0][0])
            end = node.end_lineno or node.lineno
        lines: list[str | None] = [*self._lines_of_source]
        for first, last in gone:
            lines[first - 1 : last] = [None] * (last - first + 1)
        for first in hollow:
            lines[first - 1] = "    pass"
        return "\n".join(line for line in lines if line is not None).strip("\n")

    def _needed(self, name: str) -> set[str]:
        """The classes that a test of this class may use: all but the test classes that nothing names."""
        kept = {n for n, node in self.classes.items() if not self.is_case(n)} | {name}
        used = set[str]().union(
            *(names for n, names in self._names if not isinstance(n, ast.ClassDef) and not _is_main(n))
        )
        named = {n.name: names for n, names in self._names if isinstance(n, ast.ClassDef)}
        while True:
            more = used.union(*(named[n] for n in kept)) & self.classes.keys()
            if more <= kept:
                return kept
            kept |= more

    def _has_tests(self, node: ast.ClassDef) -> bool:
        return self.is_case(node.name) or any(
            node.name in self.line(name) for name in self.classes if self.is_case(name)
        )

    def _methods_to_remove(self, node: ast.ClassDef, called: set[str]) -> Iterator[tuple[int, int]]:
        end = node.lineno
        for part in node.body:
            if isinstance(part, _FUNCTIONS) and part.name.startswith("test") and part.name not in called:
                yield self._lines(part, end)
            end = part.end_lineno or part.lineno

    def _lines(self, node: ast.stmt, end: int) -> tuple[int, int]:
        """First and last line of a statement, with the comments and empty lines between it and the line ``end``."""
        lines = self._lines_of_source
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        while first - 1 > end and (not lines[first - 2].strip() or lines[first - 2].lstrip().startswith("#")):
            first -= 1
        return first, node.end_lineno or node.lineno


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base) for base in node.bases if isinstance(base, (ast.Name, ast.Attribute))]


def _tests_in(node: ast.stmt) -> Iterator[tuple[str, bool]]:
    """(name, skipped) of the test methods that a statement of a class body binds."""
    if isinstance(node, _FUNCTIONS):
        if node.name.startswith("test"):
            yield node.name, _is_skipped(node)
    elif isinstance(node, ast.Assign):
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        if isinstance(node.value, (ast.Name, ast.Lambda)):
            yield from ((name, False) for name in names if name.startswith("test_"))
    elif not isinstance(node, ast.ClassDef):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.stmt):
                yield from _tests_in(part)


def _is_skipped(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is skipped whatever the circumstances."""
    return any(
        ast.unparse(d.func if isinstance(d, ast.Call) else d).rpartition(".")[2] == "skip"
        for d in node.decorator_list
    )


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in names_in(node.test)


def head_of(module: str, suite: str) -> str:
    """Imports for a suite that is published to run in one module with the solution: what of the module's names it uses,
    from the solution where it makes them, and by the module's own imports where it imports them."""
    tree, tests = tree_of(module), tree_of(suite)
    if tree is None or tests is None:
        return ""
    used = names_in(tests)
    imports = []
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            if names & used or "*" in names:
                imports.append(ast.unparse(node))
    bound = [name for name in defined(module) if name in used and name not in _bound(tests)]
    lines = dict.fromkeys([*imports, *([f"from {MODULE} import {', '.join(bound)}"] if bound else [])])
    future = [line for line in suite.split("\n") if line.startswith("from __future__")]
    return "" if not lines or future else "\n".join(lines) + "\n\n"


def _bound(tree: ast.Module) -> set[str]:
    """Names that a module binds at its top level itself."""
    out: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            out |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.add(node.name)
        elif isinstance(node, ast.Assign):
            out |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return out


def modules_of(source: str) -> set[str]:
    """The top-level modules that a source imports."""
    tree = tree_of(source)
    out: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            out |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            out.add(node.module.partition(".")[0])
    return out


def helper_modules(helpers: Iterable[tuple[str, str]]) -> str:
    """Code that makes trusted modules importable by a suite: pairs of a name and its source."""
    parts = [
        f"_module = _sys.modules[{name!r}] = type(_sys)({name!r})\n"
        "_module.__name__ = __name__\n"  # so that its objects are those of a test
        f"exec(compile({source!r}, {name + '.py'!r}, 'exec'), _module.__dict__)\n"
        for name, source in helpers
    ]
    return "".join(["import sys as _sys\n", *parts, "\n"]) if parts else ""


def imports_for(code: str, imports: Sequence[str]) -> str:
    """Those of some import statements whose names a piece of code uses, one a line."""
    tree = tree_of(code)
    used = names_in(tree) if tree else set()
    out = []
    for line in imports:
        for node in (tree_of(line.strip()) or ast.Module([], [])).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [(a.asname or a.name).partition(".")[0] for a in node.names]
                out += [f"{ast.unparse(node)}\n"] if "*" in names or used & set(names) else []
    return "".join(out)
