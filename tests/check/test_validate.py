"""Validation with the real referee and cells."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tiltyard.check import judge as room
from tiltyard.check import validate
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import load
from tiltyard.task import Files, Limits, Task, Test
from tiltyard.verdict import Outcome, Verdict


def task(id, reference, *hidden, start="def f(*a):\n    raise NotImplementedError\n", **fields):
    return Task(
        id=id,
        prompt="Write f.",
        start=Files({"solution.py": start}),
        reference=Files({"solution.py": reference}),
        hidden=tuple(Test(f"hidden/{n}", code) for n, code in enumerate(hidden, start=1)),
        entry=("f",),
        **fields,
    )


SAME = "def f(x):\n    return x\n"
TESTS = [f"assert f({n}) == {n}" for n in range(4)]
FIT = task("fit", SAME, *TESTS)
PROGRAM = Task(
    id="double",
    prompt="Print the double.",
    start=Files({"main.py": "print()\n"}),
    reference=Files({"main.py": "print(2 * int(input()))\n"}),
    hidden=(Test("h1", stdin="2\n", stdout="4\n"), Test("h2", stdin="5\n", stdout="10\n")),
    main="main.py",
    grading="stdio",
)


def found(*tasks, **options):
    report = validate(list(tasks), **{"repeats": 2, **options})
    return {one.task: (one.outcome, one.reason) for one in report.tasks}


def test_fit_tasks_of_both_kinds():
    report = validate([FIT, PROGRAM], repeats=2, workers=2)
    assert report.as_json() == {
        "summary": {"fit": 2, "unfit": 0, "void": 0},
        "tasks": {"fit": {"outcome": "fit", "reason": ""}, "double": {"outcome": "fit", "reason": ""}},
    }
    assert report.ok and report.fit == ("fit", "double") and report.repeats == 2


def test_a_start_that_scores():
    lazy = task("lazy", SAME, *TESTS, start="def f(x):\n    return 3\n")
    assert found(lazy) == {"lazy": ("unfit", "the untouched start scores 0.25: hidden/4 passes on it")}


def test_under_the_rule_all_some_tests_may_pass_on_the_start():
    lazy = task("lazy", SAME, *TESTS, start="def f(x):\n    return 3\n", reward="all")
    assert found(lazy) == {"lazy": ("fit", "")}
    assert found(lazy, reward="fraction")["lazy"][0] == "unfit"


def test_a_reference_that_fails():
    wrong = task(
        "wrong", "def f(x):\n    if x == 3:\n        import nothing_of_this_name\n    return x\n", *TESTS
    )
    outcome, reason = found(wrong)["wrong"]
    assert outcome == "unfit"
    assert reason.startswith("the reference scores 0.75: hidden/4 (") and "ModuleNotFoundError" in reason


def test_both_wrong_names_both():
    both = task("both", "def f(x):\n    return 0\n", *TESTS, start="def f(x):\n    return 1\n")
    outcome, reason = found(both)["both"]
    assert outcome == "unfit"
    assert "the untouched start scores 0.25: hidden/2" in reason and "the reference scores 0.25" in reason


def test_a_task_that_wavers():
    coin = "import os\ndef f():\n    return os.urandom(1)[0] & 1\n"
    outcome, reason = found(task("coin", coin, *["assert f() == 1"] * 12), repeats=3)["coin"]
    assert outcome == "unfit"
    assert reason.startswith("verdicts differ between repeats of the reference: hidden/")


def test_the_order_of_a_set():
    # the lesson's third experiment: it passes or fails by the hash seed
    texts = [f"word{n}" for n in range(6)]
    first = f"assert next(iter(f({texts}))) == 'word{{}}'"
    for n in range(6):
        outcome, reason = found(task("order", "def f(xs):\n    return set(xs)\n", first.format(n)))["order"]
        assert outcome == "unfit"
        if reason.startswith("the reference differs under another hash seed"):
            assert "hidden/1" in reason
            return
    pytest.fail("under hash seed 0 some word comes first, and its task had to pass there")


def test_tests_that_depend_on_their_order(monkeypatch):
    # each hidden test has a solution of its own, so that only a referee that broke this could see the order
    class Leaky(room.Referee):
        def grade(self, task, files, *, reward=None, order=None):
            verdict = super().grade(task, files, reward=reward, order=order)
            if order is None or verdict.reward == 0:
                return verdict
            return Verdict(
                0.75, (*verdict.outcomes[:3], Outcome("hidden/4", False, "raised KeyError")), "calls"
            )

    monkeypatch.setattr(room, "Referee", Leaky)
    assert found(FIT)["fit"] == (
        "unfit",
        "the reference differs with the tests in another order: hidden/4 (passed 1x, raised KeyError 1x)",
    )


def test_an_arena_that_fails_is_void_and_not_the_tasks_fault(monkeypatch):
    def broken(self, files, limits):
        raise ArenaError("the disk is full")

    monkeypatch.setattr("tiltyard.cells.process.ProcessWall.open", broken)
    report = validate([FIT], repeats=2, wall="process")
    (one,) = report.tasks
    assert one.outcome == "void" and "the disk is full" in one.reason
    assert not report.ok and report.summary == {"fit": 0, "unfit": 0, "void": 1}


def test_a_reference_that_hangs_is_unfit_within_its_limits():
    hangs = task(
        "hangs",
        "import time\ndef f(x):\n    time.sleep(600)\n",
        "assert f(1) == 1",
        limits=Limits(test_s=0.3),
    )
    outcome, reason = found(hangs, repeats=1)["hangs"]
    assert outcome == "unfit" and "the reference scores 0: hidden/1" in reason


def test_one_bad_task_does_not_hide_the_others(tmp_path):
    good = {"id": "good", "prompt": "f", "stub": "def f(x): pass\n", "ref": SAME}
    good |= {"visible": [], "hidden": ["assert f(1) == 1"], "meta": {}}
    lines = [json.dumps(good), '{"id": "bad", "prompt": 3}', "no json", json.dumps(good | {"id": "second"})]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(lines) + "\n")
    report = validate(str(path), repeats=1)
    tasks = report.as_json()["tasks"]
    assert tasks["good"]["outcome"] == tasks["second"]["outcome"] == "fit"
    bad = {where: one for where, one in tasks.items() if one["outcome"] == "unfit"}
    assert len(bad) == 2 and all(one["reason"].startswith("malformed: ") for one in bad.values())
    assert any("p.jsonl:2" in where for where in bad) and any("p.jsonl:3" in where for where in bad)
    assert not report.ok
    # who asks for one task is told of that one
    assert validate(str(path), tasks=["good"], repeats=1).ok


@pytest.mark.parametrize("repeats", [0, -1, 1.5, True, 10**6])
def test_repeats_that_make_no_sense(repeats):
    with pytest.raises(UsageError, match="repeats"):
        validate([FIT], repeats=repeats)


# -- going on ------------------------------------------------------------------------------------------------------


def test_a_second_time_only_what_is_not_known(tmp_path, monkeypatch):
    state = tmp_path / "state"
    wrong = task("wrong", "def f(x):\n    return 0\n", *TESTS)
    first = validate([FIT, wrong], repeats=1, state=state)
    monkeypatch.setattr(room.Bench, "__call__", None)  # nothing may be examined again
    second = validate([wrong, FIT], repeats=1, state=state, workers=0)
    assert second.as_json()["summary"] == first.as_json()["summary"] and second.resumed == 2
    assert [one.task for one in second.tasks] == ["wrong", "fit"]


def test_a_changed_task_or_another_number_of_repeats_is_examined(tmp_path):
    state = tmp_path / "state"
    validate([FIT], repeats=1, state=state)
    changed = task("fit", "def f(x):\n    return 0\n", *TESTS)
    report = validate([changed], repeats=1, state=state)
    assert report.resumed == 0 and report.tasks[0].outcome == "unfit"
    assert validate([FIT], repeats=2, state=state).resumed == 0
    assert validate([FIT], repeats=1, state=state).resumed == 1


INTERRUPTED = """
import sys
from test_validate import FIT
from dataclasses import replace
from tiltyard.check import judge as room
from tiltyard.check import validate
from tiltyard.workers import Interrupted
try:
    validate([replace(FIT, id=f"fit{n}") for n in range(3000)], repeats=5, state=sys.argv[1])
except Interrupted as stopped:
    print(stopped.exit_code, len(stopped.partial.tasks), stopped.partial.planned, stopped.partial.ok)
"""


def test_ctrl_c_keeps_what_was_found(tmp_path):
    state = tmp_path / "state"
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, state],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not state.exists() or state.read_text().count("\n") < 3:
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    code, seen, planned, ok = out.split()
    assert (code, planned, ok) == ("130", "3000", "False") and 2 <= int(seen) < 3000
    assert state.read_text().count('"outcome": "fit"') == int(seen)


def test_a_pool_object_is_taken_as_it_is():
    assert validate(load([FIT, PROGRAM])[:1], repeats=1).as_json()["summary"]["fit"] == 1
