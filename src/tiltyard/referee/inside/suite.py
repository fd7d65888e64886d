"""One pytest session over chosen tests, with its outcomes told to a listener and nothing shown.

Used by the examiner's side of the remote way, by the in-process way, and for visible tests. pytest is the cell's own or
comes from a kit (see ``kit``); this module imports nothing of it before ``run``. A test has passed if its set-up, its
call and its tear-down have, and no subtest failed; skipped and xfailed tests have not. No plugin is loaded but those
of pytest and those that the task names, and no failure is ever formatted: a ``repr`` would run the solution's code.
"""

# Paths here are text, in processes that must stay small: no pathlib.
# ruff: noqa: PTH100
from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

SKIPPED = "skipped"
XFAILED = "marked as an expected failure"
NOT_COLLECTED = "not collected"
_OFF = (
    "cacheprovider terminal terminalprogress unraisableexception threadexception junitxml doctest faulthandler "
    "pastebin pytester"
).split()
"""Plugins of pytest's that say something to people, or cost time without changing an outcome."""
_WITHOUT = [word for name in _OFF for word in ("-p", f"no:{name}")]
_OPTIONS = [
    "--assert=plain",
    "--capture=sys",
    "-o",
    "addopts=",
    "--rootdir=.",
    "--continue-on-collection-errors",
]
_ready: list[Any] = []
"""A configuration with pytest's own plugins registered, made before there is anything to run."""


ROUNDS = 3


class Listener(Protocol):
    """What is told of a session. Indices are those of ``Session.tests``. One for a session with options is told, by
    ``printed(text)``, too what a failed test printed."""

    def collected(self, ids: list[str]) -> None:
        """All node ids, once they are known, in pytest's order."""

    def failed_to_collect(self, file: str, error: BaseException | None) -> None:
        """A file or class could not be collected."""

    def begin(self, index: int) -> None:
        """A test begins."""

    def end(self, index: int, reason: str, error: BaseException | None) -> None:
        """A test has ended: passed if ``reason`` is ""."""


@dataclass(frozen=True)
class Session:
    """What to run: ``tests`` are pairs of an index and a node id, in the order in which they are to run; ``files`` the
    test files to collect. ``tests`` None: all that are collected, numbered in that order. ``only_collect``: run nothing.
    """

    files: list[str]
    tests: list[tuple[int, str]] | None
    roots: list[str]
    plugins: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    only_collect: bool = False


def cause_of(error: BaseException | None) -> BaseException | None:
    """The exception that a test file raised, from the one in which pytest wraps it."""
    while error is not None and type(error).__module__.startswith("_pytest.") and error.__cause__ is not None:
        error = error.__cause__
    return error


def warm_up() -> None:
    """Called by a fork server: where pytest is loaded, get it as far as it goes without a task."""
    if "pytest" not in sys.modules:
        return
    try:
        from .warmth import rehearse, spare_searches

        spare_searches()
        for _ in range(ROUNDS):
            _prepare()
            rehearse(_main)
    except Exception:
        pass  # a pytest that works in another way inside costs a little more, and works
    try:
        _prepare()
    except Exception:
        _ready.clear()  # a pytest that has no such thing starts from its public entry


def _prepare() -> None:
    from _pytest.config import get_config

    _ready[:] = [get_config([*_WITHOUT])]


def provide(packages: dict[str, str]) -> None:
    """Make sure of pytest: loaded, installed for this interpreter, or from the kit. ImportError: there is none."""
    if "pytest" not in sys.modules:
        # in a cell the folders of inside modules are one package; outside, where this file is read too, they are not
        importlib.import_module(f"{__package__}.kit").install(packages)
    import pytest  # noqa: F401

    if not _ready:
        with contextlib.suppress(Exception):  # as in ``warm_up``; it loads all that pytest itself consists of
            _prepare()


def run(session: Session, listener: Listener) -> None:
    """Run the session in the current folder. Raises what pytest raises where it can't even begin (a ``conftest.py`` that
    does not load)."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for root in reversed(session.roots):
        path = os.path.abspath(root)
        if path not in sys.path:
            sys.path.insert(0, path)
    if not session.options:
        # a message that nobody reads is not worth a diff, which takes minutes for two long lists
        import unittest.case  # here: servers without pytest do without it

        unittest.case.difflib = types.SimpleNamespace(ndiff=lambda a, b: ())  # type: ignore[attr-defined]
    args = [*_OPTIONS, f"--basetemp={os.environ.get('TMPDIR', '/tmp')}/pytest"]
    args += [word for name in session.plugins for word in ("-p", name)]
    args += session.options
    args += ["--collect-only"] if session.only_collect else []
    _main([*args, *session.files], _plugin(session, listener))


def _main(args: list[str], plugin: Any) -> None:
    import pytest

    if not _ready:
        try:
            _prepare()
        except Exception:
            pytest.main([*_WITHOUT, *args], plugins=[plugin])
            return
    import pathlib

    config = _ready.pop()
    config.invocation_params = type(config).InvocationParams(
        args=tuple(args), plugins=None, dir=pathlib.Path.cwd()
    )
    config.pluginmanager.register(plugin)
    config = config.pluginmanager.hook.pytest_cmdline_parse(pluginmanager=config.pluginmanager, args=args)
    config.hook.pytest_cmdline_main(config=config)


def _meant(asked: Iterable[str], collected: Iterable[str]) -> dict[str, str]:
    """By id of a collected test that nobody asked for, the id that means it: one with an object's address in it, which is
    another one in every process, or one that was cut off at a space, as logs that are split at spaces have it."""
    known, wanted = set(collected), set(asked)
    loose: dict[str, str] = {}
    for test_id in asked:
        if test_id not in known:
            loose.setdefault(_without_address(test_id), test_id)
    found: dict[str, str] = {}
    for test_id in collected if loose else ():
        for form in (_without_address(test_id), test_id.split(" ")[0]):
            if test_id not in wanted and form in loose:
                found[test_id] = loose.pop(form)
                break
    return found


def _without_address(test_id: str) -> str:
    return re.sub(r"\b0x[0-9a-f]{4,}", "0x", test_id)


def _plugin(session: Session, listener: Listener) -> Any:
    """The plugin object: made here, for its hooks need pytest's marks."""
    import pytest
    from _pytest.reports import CollectReport, TestReport

    index_of = {test_id: index for index, test_id in session.tests or ()}
    place = {test_id: n for n, (_, test_id) in enumerate(session.tests or ())}
    made_report = TestReport

    class Outcomes:
        reason: str | None = None
        error: BaseException | None = None

        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(self, config: Any) -> None:
            if not hasattr(
                config.option, "verbose"
            ):  # of the terminal's plugin; up to 7.x others read it too
                config.option.verbose = 0

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            first: dict[str, Any] = {}
            for item in items:
                first.setdefault(item.nodeid, item)
            for test_id, asked in _meant(place, first).items():
                index_of[test_id], place[test_id] = index_of[asked], place[asked]
            listener.collected(list(first))
            if session.tests is None:
                index_of.update({test_id: n for n, test_id in enumerate(first)})
                items[:] = first.values()
            elif not session.only_collect:
                items[:] = sorted(
                    (i for k, i in first.items() if k in place), key=lambda item: place[item.nodeid]
                )

        def pytest_exception_interact(self, node: Any, call: Any, report: Any) -> None:
            if isinstance(report, CollectReport):
                file = str(report.nodeid).partition("::")[0]
                listener.failed_to_collect(file, cause_of(call.excinfo.value))

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self.reason, self.error = None, None
            listener.begin(index_of[nodeid])

        def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
            outcome, said = "passed", None
            if call.excinfo is not None:
                error = call.excinfo.value
                skipped = isinstance(error, pytest.skip.Exception)
                outcome = "skipped" if skipped else "failed"
                said = (str(item.fspath), 0, "") if skipped else "failed"
                if not skipped and self.error is None:
                    self.error = error
                    if session.options:
                        said = "".join(text for _, _, text in item._report_sections)
                        listener.printed(said)  # type: ignore[attr-defined]
            return made_report(item.nodeid, item.location, {}, outcome, said, call.when)  # type: ignore[arg-type]

        def pytest_runtest_logreport(self, report: Any) -> None:
            part = (
                getattr(report, "context", None) is not None
            )  # a subtest: it can fail its test, and not pass it
            if report.failed:
                self.reason = "failed"
            elif hasattr(report, "wasxfail"):
                self.reason = self.reason or XFAILED
            elif report.skipped and not part:
                self.reason = self.reason or SKIPPED
            elif report.when == "call" and not part and self.reason is None:
                self.reason = ""

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            reason = "failed" if self.reason is None else self.reason
            listener.end(index_of[nodeid], reason, self.error if reason == "failed" else None)

    return Outcomes()
