"""What makes a pytest that is forked from a warm process begin warm, done before there is anything to hide.

A session over a few tests of our own, so that the interpreter has adapted pytest's code, and filled its caches, in memory
that all forks share; and a list of where pytest's own plugins keep their fixtures, which every session looks for anew.
Nothing of a task is near. Whatever changes here, in a pytest of another version, costs time and nothing else.
"""

# ruff: noqa: PTH109
from __future__ import annotations

import builtins
import os
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

_TESTS = """
import unittest
import pytest

@pytest.fixture
def three():
    return 3

@pytest.mark.parametrize("x", [1, 2])
def test_one(x, three, monkeypatch, capsys):
    assert x < three

def test_fails():
    with pytest.raises(ValueError):
        raise ValueError
    assert 1 == 2

class TestCase(unittest.TestCase):
    def setUp(self):
        pass
    def test_passes(self):
        self.assertEqual(1, 1)
    def test_fails(self):
        with self.assertRaises(ValueError):
            int("x")
        self.assertEqual(1, 2)

class TestClass:
    def test_passes(self):
        assert True
"""
_NAME = "test_tiltyard_rehearsal"


def spare_searches() -> None:
    """pytest looks through all names of its own modules for fixtures, each time; those never change."""
    from _pytest import fixtures

    kind = getattr(fixtures, "FixtureFunctionDefinition", None)  # up to 8.3 they are functions with a mark
    known = {
        id(module): sorted(n for n, value in vars(module).items() if _is_fixture(value, kind))
        for name, module in list(sys.modules.items())
        if name.startswith("_pytest.")
    }
    fixtures.dir = lambda holder: known[id(holder)] if id(holder) in known else builtins.dir(holder)  # type: ignore[attr-defined]


def _is_fixture(value: Any, kind: type | None) -> bool:
    if kind is not None:
        return isinstance(value, kind)
    return isinstance(value, types.FunctionType) and hasattr(value, "_pytestfixturefunction")


def rehearse(run: Callable[[list[str], Any], None]) -> None:
    """One session over tests of our own. ``run(args, plugin)`` runs it. Leaves the process as it was."""
    import shutil  # both bring compression with them, which servers without pytest have no use for
    import tempfile

    folder, before, path = tempfile.mkdtemp(), os.getcwd(), list(sys.path)
    environment, modules = dict(os.environ), set(sys.modules)
    try:
        with open(f"{folder}/{_NAME}.py", "w", encoding="ascii") as file:
            file.write(_TESTS)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.chdir(folder)
        with warnings.catch_warnings():
            options = [
                "--assert=plain",
                "--capture=sys",
                "-o",
                "addopts=",
                "--rootdir=.",
                f"--basetemp={folder}/t",
            ]
            run([*options, f"{_NAME}.py"], _quiet())
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name == _NAME:
                del sys.modules[name]
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        shutil.rmtree(folder, ignore_errors=True)


def _quiet() -> Any:
    from _pytest.reports import TestReport

    class Quiet:
        def pytest_configure(self, config: Any) -> None:
            if not hasattr(config.option, "verbose"):  # as in ``suite``
                config.option.verbose = 0

        def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
            outcome = "passed" if call.excinfo is None else "failed"
            return TestReport(item.nodeid, item.location, {}, outcome, None, call.when)  # type: ignore[arg-type]

    return Quiet()
