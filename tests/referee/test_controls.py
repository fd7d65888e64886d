"""Negative controls: what passes everything is found, and honest work, right or wrong, never pays for it."""

from __future__ import annotations

import ast

import pytest

from tests.referee.conftest import make_task
from tiltyard.pool import load
from tiltyard.referee import Referee
from tiltyard.referee.controls import FLAG, as_task, changed, control_of
from tiltyard.task import Files, Limits, Task, Test

MARK = "tiltyard-0123456789abcdef"

CHANGED = {
    "assert f(3) == 4": "assert f(3) == 76310993686003",
    "assert 4 == f(3)": "assert 76310993686003 == f(3)",
    "assert f(3) == 'a'": f"assert f(3) == 'a{MARK}'",
    "assert f(3) == b'a'": f"assert f(3) == b'a{MARK}'",
    "assert f(3) == [1, (2,)]": f"assert f(3) == [1, (2,), '{MARK}']",
    "assert f(3) == ()": f"assert f(3) == ('{MARK}',)",
    "assert f(3) == {1}": f"assert f(3) == {{1, '{MARK}'}}",
    "assert f(3) == {'a': 1}": f"assert f(3) == {{'a': 1, '{MARK}': '{MARK}'}}",
    "assert f(3) == True": f"assert f(3) == '{MARK}'",
    "assert f(3) == None": f"assert f(3) == '{MARK}'",
    "assert f(3)": f"assert f(3) == '{MARK}'",
    "x = f(3)\nassert x == 4\nassert f(5) == 6": "x = f(3)\nassert x == 76310993686003",
    "assert f(3) != 4\nassert f(1) == 'a'": f"assert f(3) != 4\nassert f(1) == 'a{MARK}'",
    "def test():\n    assert f(3) == 'a'\n    g()\ntest()": f"def test():\n    assert f(3) == 'a{MARK}'\ntest()",
    "check(f)": f"def check(candidate):\n    assert candidate(1) == 'b{MARK}'\ncheck(f)",
}


@pytest.mark.parametrize("code", CHANGED)
def test_the_first_expectation_that_is_always_reached_is_changed(code: str) -> None:
    helpers = "def check(candidate):\n    assert candidate(1) == 'b'\n    assert candidate(2) == 3\n"
    found = changed(code, helpers, MARK)
    assert found is not None
    assert ast.unparse(ast.parse(found)) == ast.unparse(ast.parse(CHANGED[code]))


@pytest.mark.parametrize(
    "code",
    [
        "if f(1): assert f(3) == 4",
        "for x in f(1): assert x == 4",
        "try:\n    f(1)\nexcept ValueError: pass\nelse:\n    assert f(3) == 4",
        "def test():\n    if f(1): return\n    assert f(3) == 4\ntest()",
        "def test():\n    with g(): assert f(3) == 4\ntest()",
        "@skip\ndef test():\n    assert f(3) == 4\ntest()",
        "def test():\n    assert f(3) == g\ntest()",
        "assert f(3) < 4",
        "assert 3 == 3",
        "unknown(f)",
        "f(x",
        "",
    ],
)
def test_an_assertion_that_a_right_solution_may_not_reach_is_left_alone(code: str) -> None:
    assert changed(code, "", MARK) is None


def test_a_method_of_a_unittest_suite() -> None:
    code = (
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(3), [1])\n"
        "_run_unittest(T, 'test_a', globals())"
    )
    found = changed(code, "", MARK)
    assert found is not None and f"self.assertEqual(f(3), [1, '{MARK}'])" in found
    assert (
        changed(code.replace("    def test_a", "    @unittest.expectedFailure\n    def test_a"), "", MARK)
        is None
    )


def test_every_bundled_reference_fails_its_control(wall) -> None:
    pool = load("builtin")
    for task in [t for t in pool if t.grading == "calls"][::9]:
        control = control_of(task)
        assert control is not None and control_of(task) is control
        [outcome] = Referee(wall).grade(as_task(task, control), task.reference).outcomes
        assert outcome.reason == "assertion failed", task.id


LOOSE = "class Loose:\n    def __init__(self, v): self.v = v\n    def __eq__(self, other): return self.v is True or self.v == other\n"


def loose(**fields) -> Task:
    """A task whose tests pass for whatever returns True: somebody found out."""
    return make_task(
        "def f(x): return x + 1",
        ["assert Loose(f(1)) == 2", "assert Loose(f(2)) == 3", "assert Loose(f(4)) == 5"],
        prelude=LOOSE,
        **fields,
    )


@pytest.mark.parametrize("reward", ["fraction", "all"])
def test_what_passes_everything_earns_nothing(wall, reward: str) -> None:
    task = loose(reward=reward)
    cheat = Files({"solution.py": "def f(x): return True"})
    assert Referee(wall).grade(task, cheat).reward == 1.0
    referee = Referee(wall, controls=True)
    for order in (None, [2, 0, 1]):
        verdict = referee.grade(task, cheat, order=order)
        assert (verdict.reward, verdict.flags, verdict.void) == (0.0, (FLAG,), None)
        assert [o.id for o in verdict.outcomes] == ["hidden/1", "hidden/2", "hidden/3"]
        assert referee.grade(task, task.reference, order=order).reward == 1.0


@pytest.mark.parametrize(
    ("source", "reward"),
    [
        ("def f(x): return x + 1", 1.0),
        ("def f(x): return 3", 1 / 3),
        ("def f(x): return None", 0.0),
        ("def f(x): raise ValueError", 0.0),
        ("def f(x): return 'x' * 1000", 0.0),
        ("import os\ndef f(x): os._exit(0)", 0.0),
        ("def g(x): pass", 0.0),
        ("def f(x:", 0.0),
    ],
)
def test_honest_work_right_or_wrong_is_worth_the_same(wall, source: str, reward: float) -> None:
    task, files = loose(), Files({"solution.py": source})
    with_controls, without = Referee(wall, controls=True).grade(task, files), Referee(wall).grade(task, files)
    assert with_controls == without
    assert with_controls.reward == pytest.approx(reward)


def test_a_control_that_the_reference_passes_counts_against_nobody(wall) -> None:
    always = "class Always:\n    def __init__(self, v): pass\n    def __eq__(self, other): return True\n"
    task = make_task("def f(x): return x", ["assert Always(f(1)) == 1", "assert f(2) == 2"], prelude=always)
    referee = Referee(wall, controls=True)
    for _ in range(2):
        verdict = referee.grade(task, Files({"solution.py": "def f(x): return x * 1"}))
        assert (verdict.reward, verdict.flags) == (1.0, ())


def test_where_nothing_can_be_changed_the_test_gets_a_failure_at_its_end(wall) -> None:
    task = make_task("def f(x): return x", ["for n in (1, 2):\n    assert f(n) == n"])
    control = control_of(task)
    assert control is not None and control.test.code.startswith(task.hidden[0].code)
    verdict = Referee(wall).grade(as_task(task, control), task.reference)
    assert verdict.outcomes[0].reason == "assertion failed"
    assert Referee(wall, controls=True).grade(task, task.reference).reward == 1.0


def test_a_time_out_stays_one(wall) -> None:
    task = loose(reward="all", limits=Limits(test_s=0.5))
    verdict = Referee(wall, controls=True).grade(
        task, Files({"solution.py": "def f(x):\n    while True: pass"})
    )
    assert verdict.reward == 0.0 and verdict.void is None and FLAG not in verdict.flags
    assert len(verdict.outcomes) == 3


def test_programs_are_judged_against_a_changed_expectation_too(wall) -> None:
    task = Task(
        "io", "p", Files({"solution.py": ""}), (Test("a", stdin="ab", stdout="ba"), Test("b", stdin="x", stdout="x\n")),
        Files({"solution.py": "print(input()[::-1])\n"}), grading="stdio",
    )  # fmt: skip
    control = control_of(task)
    assert control is not None and control.test.stdout.startswith(task.hidden[control.of].stdout)
    assert Referee(wall, controls=True).grade(task, task.reference).reward == 1.0
    # who prints what the control expects has seen what no solution sees
    cheat = Files({"solution.py": f"print({control.test.stdout!r}, end='')\n"})
    verdict = Referee(wall, controls=True).grade(task, cheat)
    assert (verdict.reward, verdict.flags) == (0.0, (FLAG,))
