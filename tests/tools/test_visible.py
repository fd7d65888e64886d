"""What run_tests says: true, useful, bounded, and the same in every wall."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from tiltyard.cells import WALLS, CellLimits, Run, Wall, make_wall, probe_wall
from tiltyard.task import Files, Limits, Task, Test
from tiltyard.tools import text
from tiltyard.tools.visible import run_tests, split_prelude

Report = Callable[..., str]


def task_of(solution: str, tests: list[str], **more: object) -> Task:
    names = sorted(set(re.findall(r"^(?:def|class) (\w+)", solution, re.M)))
    base = Task(
        id="t",
        prompt="p",
        start=Files({"solution.py": solution}),
        hidden=(Test("h", "pass"),),
        reference=Files({"solution.py": solution}),
        visible=tuple(Test(f"t{n}", code) for n, code in enumerate(tests, 1)),
        entry=tuple(names),
    )
    return replace(base, **more)  # type: ignore[arg-type]


def never(tests: tuple[Test, ...]) -> dict[str, tuple[bool, str]]:
    raise AssertionError("these tests need no examiner")


def report_in(wall: Wall, task: Task, limits: Limits | None = None, examine: object = never) -> str:
    cell = wall.open(task.start, CellLimits())
    try:
        return run_tests(cell, task, limits or task.limits, examine)  # type: ignore[arg-type]
    finally:
        cell.close()


@pytest.fixture
def report(wall: Wall) -> Report:
    return lambda *args, **kwargs: report_in(wall, *args, **kwargs)


SOLUTION = """\
import json
import os
import sys

class Box:
    pass

def same(x):
    print("called with", x)
    return x

def outer(xs):
    return xs[0] + inner(xs)

def inner(xs):
    raise ValueError(f"bad {Box()} in {__file__}")

def deep(n):
    return deep(n + 1)

def hang():
    while True:
        pass

def leave():
    os._exit(0)

def stop():
    sys.exit(3)

def parse(s):
    return json.loads(s)
"""

EXPECTED = """\
PASSED t1
  printed:
    called with 3
FAILED t2
    assert same(3) == 4
  left side:  3
  right side: 4
  printed:
    called with 3
FAILED t3
    assert outer([1]) == 2
  solution.py, line 13, in outer
    return xs[0] + inner(xs)
  solution.py, line 16, in inner
    raise ValueError(f"bad {Box()} in {__file__}")
  ValueError: bad <solution.Box object at 0x…> in solution.py
FAILED t4
    assert x == 7, "not seven"
  left side:  8
  right side: 7
  AssertionError: not seven
"""


def test_report_reads_well(report: Report) -> None:
    tests = [
        "assert same(3) == 3",
        "assert same(3) == 4",
        "assert outer([1]) == 2",
        'def test_x():\n    x = 8\n    assert x == 7, "not seven"\n\n\ntest_x()',
    ]
    shown = report(task_of(SOLUTION, tests))
    assert shown == EXPECTED + "1 of 4 visible tests passed"


def test_ends_are_named(report: Report) -> None:
    shown = report(
        task_of(SOLUTION, ["leave()", "stop()", "import os\nos.kill(os.getpid(), 11)", "parse('{')"])
    )
    assert "FAILED t1\n  the process of the test ended before the test did (exit status 0)" in shown
    assert "solution.py, line 29, in stop\n    sys.exit(3)\n  SystemExit: 3" in shown
    assert "FAILED t3\n  the process of the test ended before the test did (killed by SIGSEGV)" in shown
    assert "solution.py, line 32, in parse" in shown
    assert "JSONDecodeError: Expecting property name" in shown
    assert shown.endswith("0 of 4 visible tests passed")


def test_time_outs_are_named_and_do_not_take_the_others_along(report: Report) -> None:
    task = task_of(SOLUTION, ["hang()", "assert same(1) == 1"])
    shown = report(task, Limits(test_s=0.5, run_s=60))
    assert "TIMED OUT t1: it took more than 0.5 seconds" in shown
    assert "PASSED t2" in shown
    assert shown.endswith("1 of 2 visible tests passed")


def test_one_run_has_a_limit(report: Report) -> None:
    shown = report(task_of(SOLUTION, ["hang()", "hang()", "assert True"]), Limits(test_s=30, run_s=1))
    assert "TIMED OUT t1: one run of all tests may take 1 second\n" in shown
    assert "NOT RUN t3: the 1 second for one run of the tests are used up" in shown
    assert shown.endswith("0 of 3 visible tests passed")


def test_import_that_hangs_fails_or_leaves(report: Report) -> None:
    tests = ["assert True", "assert True"]
    hang = report(task_of("while True: pass\n", tests), Limits(run_s=1))
    assert hang.startswith("TIMED OUT: importing solution.py took more than 1 second.")
    broken = report(task_of("def f(:\n", tests))
    assert "solution.py could not be imported:" in broken
    assert "solution.py, line 1\n" in broken
    assert "SyntaxError" in broken
    leaves = report(task_of("import os\nos._exit(4)\n", tests))
    assert leaves.startswith("solution.py ended the process while it was imported (exit status 4).")
    quits = report(task_of("print('hello')\nraise SystemExit(0)\n", tests))
    assert "While solution.py was imported, it printed:\n    hello" in quits
    assert "SystemExit: 0" in quits
    for shown in (hang, broken, leaves, quits):
        assert "NOT RUN t1\nNOT RUN t2\n0 of 2 visible tests passed" in shown


def test_missing_name(report: Report) -> None:
    task = replace(task_of("x = 1\n", ["assert median([1]) == 1"]), entry=("median",))
    shown = report(task)
    assert "solution.py does not define median, which the tests use." in shown
    assert "NameError: name 'median' is not defined" in shown


def test_each_test_is_alone(report: Report) -> None:
    solution = "seen = []\ndef add(x):\n    seen.append(x)\n    return len(seen)\n"
    shown = report(task_of(solution, ["assert add(1) == 1\nkept = 1", "assert add(1) == 1", "kept"]))
    assert "PASSED t1\nPASSED t2\nFAILED t3" in shown


def test_what_is_printed_is_bounded(report: Report) -> None:
    solution = "def flood():\n    for _ in range(200000):\n        print('x' * 100)\n"
    shown = report(task_of(solution, ["flood()"]))
    assert "[… more was printed …]" in shown
    assert len(shown) < 5000


def test_values_are_bounded_and_hostile_reprs_survive(report: Report) -> None:
    solution = (
        "class Bad:\n    def __repr__(self):\n        raise KeyError(1)\n"
        "class Big:\n    def __repr__(self):\n        return 'x' * 10**6\n"
    )
    shown = report(
        task_of(solution, ["assert Bad() == 1", "assert Big() == 1", "assert [1] * 30 == [1] * 29 + [2]"])
    )
    assert "(Bad, whose repr raised KeyError)" in shown
    assert "characters …]" in shown
    assert "first difference at index 29: 1 and 2" in shown
    assert len(shown) < 3000


def test_sides_are_evaluated_once(report: Report) -> None:
    solution = "n = 0\ndef tick():\n    global n\n    n += 1\n    return n\n"
    shown = report(
        task_of(solution, ["assert tick() == 2", "assert tick() < tick() < 0", "assert not tick()"])
    )
    assert "left side:  1\n  right side: 2" in shown
    assert "value: 1" in shown


def test_files_of_the_workspace_can_be_imported(report: Report) -> None:
    task = task_of("from helper import one\ndef f():\n    return one\n", ["assert f() == 1", "import helper"])
    task = replace(task, start=Files({**task.start, "helper.py": b"one = 1\n"}))
    assert report(task).endswith("2 of 2 visible tests passed")


def test_main_in_a_package(report: Report) -> None:
    files = Files(
        {"pkg/__init__.py": b"", "pkg/core.py": b"from pkg.other import x\n", "pkg/other.py": b"x = 5\n"}
    )
    task = Task(
        "t",
        "p",
        files,
        (Test("h", "pass"),),
        files,
        visible=(Test("v", "assert x == 5"),),
        entry=("x",),
        main="pkg/core.py",
    )
    assert report(task).endswith("1 of 1 visible test passed")


def test_main_with_a_name_of_the_standard_library(report: Report) -> None:
    files = Files({"queue.py": b"def f():\n    return 'mine'\n"})
    task = Task(
        "t",
        "p",
        files,
        (Test("h", "pass"),),
        files,
        visible=(Test("v", "assert f() == 'mine'"),),
        entry=("f",),
        main="queue.py",
    )
    assert report(task).endswith("1 of 1 visible test passed")


def test_no_visible_tests(report: Report) -> None:
    assert report(task_of("x = 1\n", [])).startswith("This task has no visible tests.")


# -- preludes ----------------------------------------------------------------------------------------------------

PRELUDE = "import math\nfrom os import path as p\nSECRET = 'oracle'\ndef answer():\n    return 42\n"


def test_split_prelude() -> None:
    imports, names = split_prelude(PRELUDE)
    assert imports == "import math\nfrom os import path as p"
    assert names == {"SECRET", "answer"}


def test_a_prelude_never_enters_the_players_cell(wall: Wall) -> None:
    spy = "import sys, gc\ndef f():\n    return [s for s in gc.get_objects() if isinstance(s, (dict, list)) and 'oracle' in str(s)]\n"
    tests = ["assert math.pi > f.__code__.co_argcount", "assert f() == answer()", "assert f() == []"]
    task = replace(task_of(spy, tests), prelude=PRELUDE)
    asked: list[str] = []

    def examine(visible: tuple[Test, ...]) -> dict[str, tuple[bool, str]]:
        asked.extend(t.id for t in visible)
        return {"t2": (False, "AssertionError")}

    shown = report_in(wall, task, examine=examine)
    assert asked == ["t2"], "only the test that uses a name of the prelude goes to the examiner"
    assert "PASSED t1\n" in shown
    assert "FAILED t2: AssertionError\n2 of 3 visible tests passed" in shown


# -- programs ----------------------------------------------------------------------------------------------------


def program(source: str, *tests: Test) -> Task:
    files = Files({"main.py": source})
    return Task("p", "p", files, (Test("h"),), files, visible=tests, main="main.py", grading="stdio")


def test_program(report: Report) -> None:
    source = "import sys\nn = int(input())\nprint(n * 2, *sys.argv[1:])\n"
    shown = report(
        program(
            source,
            Test("ok", stdin="4\n", stdout="8\n"),
            Test("args", stdin="4\n", stdout="8 a b\n", args=("a", "b")),
            Test("wrong", stdin="5\n", stdout="11\n"),
            Test("crash", stdin="x\n", stdout=""),
        )
    )
    assert shown.startswith("PASSED ok\nPASSED args\nFAILED wrong: wrong output\n")
    assert "  input:\n    5\n  expected output:\n    11\n  actual output:\n    10\n" in shown
    assert "FAILED crash: exit code 1, expected 0" in shown
    assert 'File "main.py", line 2, in <module>' in shown
    assert "ValueError: invalid literal" in shown
    assert shown.endswith("2 of 4 visible tests passed")


def test_program_time_out_and_missing(report: Report) -> None:
    shown = report(
        program("while True: pass\n", Test("a", stdout="1"), Test("b", stdout="1")),
        Limits(test_s=0.5, run_s=60),
    )
    assert "TIMED OUT a: it took more than 0.5 seconds" in shown
    assert "0 of 2 visible tests passed" in shown


# -- the same everywhere -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WALLS)
def test_same_text_in_every_wall(wall: Wall, name: str) -> None:
    if (reason := probe_wall(name)) is not None:
        pytest.skip(f"no {name} wall here: {reason}")
    tests = [
        "assert outer([1]) == 2",
        "deep(0)",
        "assert Box() is None",
        "leave()",
        "import os\nprint(os.getcwd(), {'b', 'a', 'c'})",
    ]
    tasks = [
        task_of(SOLUTION, tests),
        program("import os\nprint(os.getcwd())\nraise ValueError(__file__)\n", Test("a", stdout="x")),
    ]
    other = make_wall(name)
    try:
        for task in tasks:
            shown = text.safe(report_in(other, task))
            assert shown == text.safe(report_in(other, task)), "not the same twice"
            assert shown == text.safe(report_in(wall, task)), "not the same in two walls"
            assert "/root" not in shown
            assert "/home" not in shown
            assert "tiltyard-" not in shown
            assert not re.search(r"0x[0-9a-f]{6}", shown)
    finally:
        other.close()


def test_runs_leave_nothing_running(wall: Wall) -> None:
    solution = "import subprocess, sys\ndef f():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n    return 1\n"
    task = task_of(solution, ["assert f() == 1"])
    cell = wall.open(task.start, CellLimits())
    try:
        assert run_tests(cell, task, task.limits, never).endswith("1 of 1 visible test passed")
        assert cell.run(Run(("python", "-c", "print('still works')"))).stdout == b"still works\n"
    finally:
        cell.close()
