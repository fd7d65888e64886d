"""The pure parts of pytest grading: which files are whose, how expectations are altered, and what a session may say."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import socket
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.referee.suites import TEST_MEDIAN, TEST_TALLY, tally_task
from tiltyard.errors import ArenaError
from tiltyard.referee.inside.seal import plain, sealed_writer
from tiltyard.referee.pytest_controls import alter
from tiltyard.referee.pytest_files import is_test_side, layout, package_files, together
from tiltyard.referee.pytest_kit import pytest_kit
from tiltyard.referee.pytest_session import Course, Talk, conduct
from tiltyard.task import Files, Limits


def test_whose_files() -> None:
    task = tally_task()
    plan = layout(task)
    assert plan.roots == (".",) and plan.modules == ("tally", "tally.core")
    assert set(plan.tests) == {
        f"tests/{name}.py" for name in ("conftest", "test_mean", "test_median", "test_tally")
    }
    submission = {
        **task.start,
        "tally/core.py": b"mine",
        "tally/more.py": b"mine",
        **dict.fromkeys(
            [
                "tests/test_mean.py", "tests/helper.py", "conftest.py", "tally/conftest.py", "pytest.ini", "setup.cfg",
                "pyproject.toml", "sitecustomize.py", "x.pth", "tally/__pycache__/core.cpython-311.pyc", ".git/config",
                "tally.egg-info/entry_points.txt", "tally/fast.so", "test_own.py",
            ],
            b"theirs",
        ),
    }  # fmt: skip
    kept = package_files(task, submission)
    assert set(kept) == {"tally/__init__.py", "tally/core.py", "tally/more.py"}
    whole = together(task, submission)
    assert b"theirs" not in whole.values() and whole["tests/test_mean.py"] == task.start["tests/test_mean.py"]


def test_a_test_beside_the_package() -> None:
    task = tally_task(
        start=Files({"clock.py": ""}),
        reference=Files({"clock.py": "x = 1\n"}),
        suite=Files({"clock_test.py": "from clock import x\ndef test_x(): assert x == 1\n"}),
        hidden=(),
        pass_to_pass=(),
        visible=(),
    )
    assert layout(task).modules == ("clock",) and layout(task).ids == ("clock_test.py",)
    assert is_test_side(task, "clock_test.py") and not is_test_side(task, "clock.py")


def test_a_file_in_the_way_of_the_tests() -> None:
    task = tally_task()
    whole = together(task, {**task.start, "tests": b"a file", "tally/core.py": b"x"})
    assert "tests" not in whole and "tests/test_median.py" in whole


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("assert f(1) == 2", "assert f(1) == 3"),
        ("assert 'ab' == f()", "assert 'aa' == f()"),
        ("assert f() == -1.5", "assert f() == -4.5"),
        ("assert f() == [1, (2, True)]", "assert f() == [1, (2, False)]"),
        ("assert f() == {'a': None}", "assert f() == {'a': 0}"),
        ("assert f() == []", "assert f() == [0]"),
        ("assert f() == pytest.approx(1, abs=2)", "assert f() == pytest.approx(2, abs=2)"),
        ("assert f(x) == want", "assert f(x) == (want, 0)"),
        ("assert f() is True", "assert f() is False"),
        ("assert f()", "assert (not (f()))"),
        ("assert not f()", "assert (f())"),
        ("self.assertEqual(f(), 'é')", "self.assertEqual(f(), 'a')"),
        ("self.assertAlmostEqual(1, f())", "self.assertAlmostEqual(2, f())"),
        ("self.assertTrue(f())", "self.assertFalse(f())"),
        ("with pytest.raises(ValueError): f()", "with pytest.raises(ZeroDivisionError): f()"),
        ("with self.assertRaises(ZeroDivisionError): f()", "with self.assertRaises(LookupError): f()"),
        ("assert f() == 1; assert g()", "assert f() == 2; assert g()"),
        ("want = 3\n    assert f(x) == want", "want = 4\n    assert f(x) == want"),
        ("assert f(self) == x", "x = (x, 0); assert f(self) == x"),
        (
            "if f: pass\n    assert f() == approx(x)",
            "x = (x, 0)\n    if f: pass\n    assert f() == approx(x)",
        ),
        (
            "for a, b in [(1, 2)]:\n        assert f(a) == b",
            "for a, b in [(1, 2)]:\n        b = (b, 0); assert f(a) == b",
        ),
        ("check(f)", "check(f)\n    assert False"),
    ],
)
def test_how_expectations_are_altered(code: str, expected: str) -> None:
    source = f"import pytest\n# é\ndef test_it(self=None, x=1):\n    {code}\ndef other(): assert f() == 5\n"
    wanted = source.replace(code, expected, 1)
    assert alter(source.encode()).decode() == wanted


def test_altered_files_keep_their_names() -> None:
    for source in (TEST_MEDIAN, TEST_TALLY):
        changed = alter(source.encode()).decode()
        first, second = (
            [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            for text in (source, changed)
        )
        assert first == second and changed != source
        gone = set(source.split("\n")) - set(changed.split("\n"))
        assert len(gone) <= 3
    body = "def test_it():\n    f()\n    if x:\n        g()"
    assert alter(body.encode()).decode() == f"{body}\n    assert False"
    assert alter(b"def test_(:") == b"def test_(:"


def test_the_kit_has_what_pytest_needs() -> None:
    names = {name for name, _ in pytest_kit().packages}
    assert {"pytest", "_pytest", "pluggy", "iniconfig", "packaging"} <= names
    assert "tiltyard" not in names and "numpy" not in names


# -- what a session may say ----------------------------------------------------------------------------------------

KEY = b"k" * 32


def talk(lines: list[str], *, key: bytes = KEY, sealed: bool = True, close: bool = True) -> Talk:
    """A session whose process has said these lines."""
    ours, theirs = socket.socketpair()
    stack = contextlib.ExitStack()
    stack.callback(ours.close)
    stack.callback(theirs.close)
    say = sealed_writer(theirs.fileno(), key if sealed else b"")
    for line in ['["h"]', *lines]:
        say(line)
    if close:
        theirs.close()
    program: Any = SimpleNamespace(wait=lambda seconds: 0)
    return Talk(ours, program, stack, key)


def conducted(lines: list[str], **how: Any) -> Course:
    task = tally_task(limits=Limits(test_s=0.3, load_s=60.0, grade_s=60.0))
    sessions = [talk(lines, **how)]
    return conduct(task, [0, 1], False, lambda tests: sessions.pop() if sessions else talk([]), trusted=False)


PASSED = ['["b",0]', '["e",0,true,"",[],[]]', '["b",1]', '["e",1,true,"",[],[]]', '["d"]']


def test_a_session_in_order() -> None:
    course = conducted(PASSED)
    assert [course.reports[i].passed for i in (0, 1)] == [True, True] and not course.flags


@pytest.mark.parametrize(
    "lines",
    [
        ['["e",0,true,"",[],[]]', '["d"]'],
        ['["b",0]', '["e",1,true,"",[],[]]', '["d"]'],
        ['["b",7]', '["d"]'],
        ['["b",0]', '["d"]'],
        ["[" * 100_000],
        ['{"b": 0}'],
        ["no json"],
        ['["v","the arena failed"]'],
    ],
)
def test_what_is_no_session_fails_all(lines: list[str]) -> None:
    course = conducted(lines)
    assert not any(report.passed for report in course.reports.values()) and len(course.reports) == 2
    assert course.flags == {"forged_report"}


def test_lines_without_their_seal_fail_all() -> None:
    for how in ({"sealed": False}, {}):
        lines = PASSED if how else [*PASSED[:2], PASSED[1]]
        assert not any(report.passed for report in conducted(lines, **how).reports.values()) or not how


def test_only_a_process_that_has_not_begun_may_say_that_it_cannot() -> None:
    task = tally_task()
    ours, theirs = socket.socketpair()
    stack = contextlib.ExitStack()
    stack.callback(ours.close)
    sealed_writer(theirs.fileno(), KEY)('["v","no pytest"]')
    theirs.close()
    program: Any = SimpleNamespace(wait=lambda seconds: 0)
    with pytest.raises(ArenaError, match="no pytest"):
        conduct(task, [0], False, lambda tests: Talk(ours, program, stack, KEY), trusted=False)


def test_an_early_end_and_a_stall() -> None:
    ended = conducted(PASSED[:3])
    assert ended.reports[0].passed and not ended.reports[1].passed
    begun = time.monotonic()
    stalled = conducted(PASSED[:3], close=False)
    assert stalled.reports[0].passed and stalled.reports[1].reason == "timed out"
    assert time.monotonic() - begun < 50


def test_the_seal_is_over_number_and_content() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        say = sealed_writer(theirs.fileno(), KEY)
        say("[1]")
        say("[1]")
        first, second = ours.recv(4096).decode().split("\n")[:2]
    assert first != second
    assert first == "[1] " + hashlib.blake2s(b"1 [1]", key=KEY, digest_size=16).hexdigest()
    assert plain('a"b\\c\né') == "a?b?c??"
