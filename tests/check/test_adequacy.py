"""Adequacy with real mutants, the real referee and real cells."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.check.test_validate import task

from tiltyard.check.adequacy import AdequacyReport, TaskAdequacy, adequacy
from tiltyard.check.adequacy.differential import compare
from tiltyard.check.adequacy.measure import all_mutations, hurried, mutated, pick
from tiltyard.check.adequacy.unmentioned import unmentioned
from tiltyard.check.probes import probes
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import load, to_folder
from tiltyard.task import Files, Limits, Task, Test

CLAMP = "def f(x, low=0, high=10):\n    if x > high:\n        x = high\n    return low if x < low else x\n"
GOOD = [
    "assert [f(-1), f(0), f(5), f(10), f(11)] == [0, 0, 5, 10, 10]",
    "assert [f(5, 6), f(5, 5), f(7, 6), f(9, 1, 8), f(0, 1, 8)] == [6, 5, 7, 8, 1]",
    "assert [f(-1, high=3), f(2, high=3), f(4, high=3), f(-9, -8)] == [0, 2, 3, -8]",
]


def measured(one: Task, **options: Any) -> TaskAdequacy:
    report = adequacy([one], **{"workers": 0, "mutants": 200, **options})
    assert report.planned == 1
    return report.tasks[0]


def test_good_tests_notice_every_mutant_but_the_equivalent_ones() -> None:
    found = measured(task("clamp", CLAMP, *GOOD))
    assert found.score == 1.0 and found.of("survived") == () and found.idle == ()
    assert found.possible == len(found.mutants) > 8
    titles = {m.title for m in found.of("equivalent")}
    assert titles == {
        "solution.py: f, line 2: > → >= (boundary)",
        "solution.py: f, line 4: < → <= (boundary)",
    }
    for mutant in found.of("equivalent"):
        assert mutant.inputs > 50 and mutant.witness is None and mutant.diff


def test_what_a_weak_test_lets_pass_is_shown_with_its_diff_and_an_input_that_tells() -> None:
    found = measured(task("clamp", CLAMP, "assert f(5) == 5", "assert f(-3) == 0"))
    assert found.score is not None and found.score < 0.9
    survived = {m.title: m for m in found.of("survived")}
    high = survived["solution.py: f, line 1: 10 → 11 (default)"]
    assert high.diff.splitlines()[:2] == ["--- a/solution.py", "+++ b/solution.py"]
    assert "-def f(x, low=0, high=10):" in high.diff and "+def f(x, low=0, high=11):" in high.diff
    assert high.witness is not None and high.witness["call"].startswith("f(")
    namespace: dict[str, Any] = {}
    exec(CLAMP, namespace)
    assert repr(eval(high.witness["call"], namespace)) == high.witness["reference"]
    exec(CLAMP.replace("10", "11"), namespace)
    assert repr(eval(high.witness["call"], namespace)) == high.witness["mutant"]


COUNTER = """\
class Counter:
    def __init__(self, start=0):
        self._n = start
        self._seen = []

    def add(self, by):
        if by < 0:
            raise ValueError("down")
        self._n += by
        self._seen.append(by)
        return self._n

    @property
    def count(self):
        return len(self._seen)

    def merge(self, other):
        self._n += other._n
        return self


def make(start):
    return Counter(start)
"""


def test_objects_are_compared_by_what_they_do_later() -> None:
    one = Task(
        "counter", "Write Counter and make.", Files({"solution.py": "class Counter: pass\n"}),
        (
            Test("a", "c = Counter(2)\nc.add(3)\nc.add(1)\nassert c.add(0) == 6\nc.count"),
            Test("b", "assert Counter().merge(make(4)).add(1) == 5"),
        ),
        Files({"solution.py": COUNTER}), entry=("Counter", "make"),
    )  # fmt: skip
    found = measured(one)
    survived = {m.mutation.scope + ": " + m.mutation.before: m for m in found.of("survived")}
    # nobody looks at the count, nor at the error: both are found by calls in another order and with other arguments
    appended = survived["Counter.add: self._seen.append(by)"]
    assert appended.witness is not None and ".count" in appended.witness["call"]
    assert "raised ValueError" in {m.witness["reference"] for m in found.of("survived") if m.witness}
    assert all(m.witness is not None for m in found.of("survived"))


def test_programs_are_measured_too() -> None:
    source = "n = int(input())\nif n > 3:\n    print('big')\nelse:\n    print('small')\n"
    one = Task(
        "io", "Say big or small.", Files({"main.py": "print()\n"}),
        (Test("a", stdin="9\n", stdout="big\n"), Test("b", stdin="0\n", stdout="small\n")),
        Files({"main.py": source}), main="main.py", grading="stdio",
    )  # fmt: skip
    found = measured(one)
    assert {m.mutation.text for m in found.of("survived")} == {">=", "2", "4"}
    assert all(m.witness is not None and "stdin" in m.witness["call"] for m in found.of("survived"))


def test_a_mutant_that_does_not_end_is_noticed_soon() -> None:
    source = "def f(n):\n    while n > 3:\n        n -= 1\n    return n\n"
    one = task("loop", source, "assert f(5) == 3 and f(1) == 1")
    found = measured(one, mutants=6)
    assert sum(m.timed_out for m in found.mutants) >= 1 and found.of("void") == ()


def test_the_time_limits_of_mutants_come_from_the_reference() -> None:
    one = task("t", CLAMP, *GOOD, limits=Limits(test_s=60.0))
    assert {t.time_s for t in hurried(one, 0.5).hidden} == {2.5}
    assert {t.time_s for t in hurried(task("t", CLAMP, *GOOD, limits=Limits(test_s=0.7)), 0.5).hidden} == {
        0.7
    }


def test_the_same_seed_gives_the_same_report_whoever_works() -> None:
    pool = [task("a", CLAMP, "assert f(5) == 5"), task("b", CLAMP, *GOOD)]
    here, there = (adequacy(pool, mutants=6, workers=n, seed=3) for n in (0, 2))
    assert here.as_json() == there.as_json()
    assert [t.task for t in here.tasks] == ["a", "b"] and [t.task for t in here.weak] == ["a"]
    assert not here.ok and {len(t.mutants) for t in here.tasks} == {6}


def test_every_operator_has_its_share_of_what_is_picked() -> None:
    every = all_mutations(load("builtin")["interval_map"])
    operators = {m.operator for _, m in every}
    picked = pick(every, len(operators), "seed")
    assert {m.operator for _, m in picked} == operators and picked == sorted(picked, key=every.index)
    assert picked == pick(every, len(operators), "seed") != pick(every, len(operators), "other")
    assert pick(every, 10_000, "seed") == every


def test_a_reference_that_fails_is_a_problem_and_measured_no_further() -> None:
    found = measured(task("bad", "def f(x):\n    return x + 1\n", "assert f(1) == 3"))
    assert "validate" in found.problem and found.mutants == () and found.score is None


def test_an_arena_that_fails_is_void(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, files: Any, limits: Any) -> Any:
        raise ArenaError("the disk is full")

    monkeypatch.setattr("tiltyard.cells.process.ProcessWall.open", broken)
    found = measured(task("t", CLAMP, *GOOD), wall="process")
    assert found.void and "the disk is full" in found.problem


def test_files_of_the_start_that_nobody_has_to_write_are_not_mutated() -> None:
    one = task("t", CLAMP, *GOOD)
    helper = b"def g(x):\n    return x + 1\n"
    more = Task(
        "t", "p", Files({"solution.py": b"", "helper.py": helper, "data.txt": b"1"}), one.hidden,
        Files({"solution.py": CLAMP, "helper.py": helper, "data.txt": b"2"}), entry=("f",),
    )  # fmt: skip
    assert {path for path, _ in all_mutations(more)} == {"solution.py"}


def test_what_can_not_be_compared_counts_as_survived(wall: Any) -> None:
    # a reference that differs each time it is asked leaves no input on which anything could be told
    one = task("t", "import os\ndef f(x):\n    return os.urandom(8)\n", "assert len(f(1)) == 8")
    [(path, mutation), *_] = [(p, m) for p, m in all_mutations(one) if m.text == "9"]
    [compared] = compare(wall, one, one.reference, [mutated(one, path, mutation)], inputs=20, seed="s")
    assert compared.inputs == 0 and compared.witness is None
    same = task("t", CLAMP, *GOOD)
    [compared] = compare(wall, same, same.reference, [same.reference], inputs=30, seed="s")
    assert compared.inputs == 30 and compared.witness is None


@pytest.mark.parametrize(
    ("options", "why"), [({"mutants": 0}, "mutants"), ({"mutants": True}, "mutants"), ({"weak": 2}, "weak")]
)
def test_options_that_make_no_sense(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        adequacy([task("t", CLAMP, *GOOD)], **options)


# -- what the prompt doesn't mention -----------------------------------------------------------------------------------

STATED = "Write f(x). Raise KeyError for a ghost."


def findings(*hidden: str, prompt: str = STATED, reference: str = "") -> set[tuple[str, str]]:
    source = reference or (
        "def f(x, style=None):\n    if x == 'ghost':\n        raise KeyError\n    return 'Nothing here' if not x else 4711\n"
    )
    one = Task(
        "t", prompt, Files({"solution.py": "def f(x):\n    pass\n"}),
        tuple(Test(f"hidden/{n}", code) for n, code in enumerate(hidden)), Files({"solution.py": source}), entry=("f",),
    )  # fmt: skip
    return {(f.kind, f.what) for f in unmentioned(one)}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("try:\n    f('ghost')\nexcept KeyError:\n    pass", set()),
        ("try:\n    f(3)\nexcept ValueError:\n    pass", {("exception", "ValueError")}),
        ("assert raises(TypeError, f, 3)", {("exception", "TypeError")}),
        ("try:\n    f(3)\nexcept Exception:\n    pass", set()),
        ("assert f([]) == 1", {("empty", "empty input []")}),
        ("assert f('') == 1", {("empty", "empty input ''")}),
        ("assert len([]) == 0 and f('a')", set()),
        ("assert f(None) == 1", {("none", "None as an input")}),
        ("assert f('x') == 'Nothing'", {("literal", "'Nothing'")}),
        ("assert f('nothing') == 'Nothing'", set()),
        ("assert f('x') == 'ghost'", set()),
        ("assert f('x') == 4711", {("literal", "4711")}),
        ("assert f('x', style=1) == 2", {("name", "style=")}),
    ],
)
def test_what_a_test_checks_beyond_what_is_told(code: str, expected: set[tuple[str, str]]) -> None:
    assert findings(code) == expected


def test_what_the_prompt_speaks_of_is_no_finding() -> None:
    told = "Write f(x, style). An empty list gives 1, None 'Nothing here', and 4711 is ValueError."
    code = "assert f([]) == 1\nassert f(None, style=1) == 'Nothing'\nassert raises(ValueError, f, 4711)\nassert f(1) == 4711"
    assert findings(code, prompt=told) == set()


def test_ties_methods_and_the_evidence() -> None:
    source = "class A:\n    def secret(self):\n        return 1\ndef f(x):\n    return A()\n"
    one = Task(
        "t", "Write f(x).", Files({"solution.py": ""}),
        (
            Test("test_a::test_tie", "def test_tie():\n    a = f(1)\n    assert a.secret() == 1\n\ndef other():\n    f([])\ntest_tie()"),
            Test("again", "assert f(1).secret() == 1"),
        ),
        Files({"solution.py": source}), entry=("f",),
    )  # fmt: skip
    found = unmentioned(one)
    assert {(f.kind, f.what) for f in found} == {("tie", "a tie"), ("name", ".secret")}
    [name] = [f for f in found if f.kind == "name"]
    assert (name.test, name.evidence) == ("test_a::test_tie", "assert a.secret() == 1")
    program = Task(
        "io", "Write it.", Files({"solution.py": ""}), (Test("a", stdout="x", exit_code=3), Test("b", stdin="1", stdout="x")),
        Files({"solution.py": "print('x')\nexit(3)"}), grading="stdio",
    )  # fmt: skip
    assert {(f.kind, f.what) for f in unmentioned(program)} == {
        ("empty", "empty input"),
        ("literal", "exit code 3"),
    }


# -- the command -------------------------------------------------------------------------------------------------------


def tiltyard(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tiltyard", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def test_the_command(tmp_path: Any) -> None:
    pool = load([task("weak", CLAMP, "assert f(5) == 5"), task("good", CLAMP, *GOOD)])
    to_folder(pool, tmp_path / "pool")
    run = tiltyard("adequacy", tmp_path / "pool", "--mutants", 8, "--json", "--seed", 1)
    assert run.returncode == 1, run.stderr
    said = json.loads(run.stdout)
    assert said["summary"]["weak"] == ["weak"] and said["tasks"]["good"]["score"] == 1.0
    assert said["summary"]["mutants"] == 16 and all("diff" in m for m in said["tasks"]["weak"]["survived"])
    run = tiltyard("adequacy", tmp_path / "pool", "--task", "weak", "--mutants", 8, "--seed", 1)
    assert run.returncode == 1
    assert (
        "weak: survived: solution.py: f, line" in run.stdout
        and "+" in run.stdout
        and "reference:" in run.stdout
    )
    assert "1 weak tasks (below 0.9)" in run.stdout and "\x1b[" not in run.stdout
    assert tiltyard("adequacy", tmp_path / "nothing").returncode == 2


def test_a_report_of_nothing_that_could_be_measured_is_bad_news() -> None:
    empty = AdequacyReport("p", "process", 0, 0.9, (TaskAdequacy("t", "d", problem="why"),), 1)
    assert not empty.ok and empty.score is None and empty.weak == ()
    assert empty.as_json()["tasks"]["t"]["problem"] == "why"


def test_suites_of_pytest_files_are_measured_and_probed() -> None:
    one = Task(
        "pt", "Write f(x).", Files({"pkg/__init__.py": "", "pkg/core.py": "def f(x):\n    raise NotImplementedError\n"}), (),
        Files({"pkg/core.py": "def f(x):\n    # one more\n    y = x + 1\n    return y if y > 0 else 0\n"}), grading="pytest",
        suite=Files({"tests/test_core.py": "from pkg.core import f\ndef test_a():\n    assert f(1) == 2\n"}),
    )  # fmt: skip
    found = measured(one, mutants=4)
    assert len(found.of("killed")) + len(found.of("survived")) == len(found.mutants) == 4
    assert found.of("killed") and all(m.inputs == 0 and m.diff for m in found.of("survived"))
    assert {p.name for p in probes(one)} >= {
        "without its comments",
        "with its locals renamed",
        "noisy on stdout",
    }
