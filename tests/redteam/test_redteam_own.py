"""Our own corpus: what it holds, that it fits any task, and that none of it is paid or does harm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tiltyard.pool import load
from tiltyard.redteam import own_cases, redteam, templates
from tiltyard.task import Files, Limits, Task, Test

CALLS = Task(
    id="words",
    prompt="Write count(text) and Bag.",
    start=Files({"solution.py": "def count(text):\n    raise NotImplementedError\nclass Bag:\n    pass\n"}),
    reference=Files(
        {
            "solution.py": "def count(text):\n    return len(text.split())\nclass Bag:\n    def __init__(self): self.items = []\n"
            "    def put(self, x): self.items.append(x); return self\n    def __len__(self): return len(self.items)\n"
        }
    ),
    visible=(Test("v", "assert count('a') == 1"),),
    hidden=(
        Test("h1", "assert count('a b c') == 3"),
        Test("h2", "assert count('') == 0 and count(' x ') == 1"),
        Test("h3", "b = Bag().put(3).put(4)\nassert len(b) == 2 and b.items == [3, 4]"),
    ),
    entry=("count", "Bag"),
    reward="all",
)
PROGRAM = Task(
    id="sum",
    prompt="Print the sum.",
    start=Files({"solution.py": ""}),
    reference=Files({"solution.py": "print(sum(map(int, input().split())))\n"}),
    visible=(Test("v", stdin="1 1\n", stdout="2\n"),),
    hidden=(
        Test("h1", stdin="1 2\n", stdout="3\n"),
        Test("h2", stdin="40 3\n", stdout="43\n", match="numbers"),
    ),
    grading="stdio",
)
SUITE = Task(
    id="suite",
    prompt="Repair two().",
    start=Files(
        {
            "pkg/__init__.py": "from pkg.core import one, two\n",
            "pkg/core.py": "def one(): return 1\ndef two(): return 1\n",
        }
    ),
    reference=Files({"pkg/core.py": "def one(): return 1\ndef two(): return 2\n"}),
    suite=Files(
        {
            "tests/test_pkg.py": "from pkg import one, two\n\ndef test_one(): assert one() == 1\n\ndef test_two():\n    assert two() == 2\n"
        }
    ),
    hidden=(Test("tests/test_pkg.py::test_two"), Test("tests/test_pkg.py::test_one")),
    pass_to_pass=("tests/test_pkg.py::test_one",),
    grading="pytest",
    way="in-process",
    limits=Limits(test_s=10.0, load_s=10.0),
)
HANGS = frozenset({"hangs_at_import"})


def names_of(task: Task) -> list[str]:
    """Patterns for the cases that do not wait for a time limit, which say little and cost seconds."""
    return [
        case.name for case in own_cases(task) if not case.once and case.name.partition("@")[0] not in HANGS
    ]


def test_it_is_large_and_each_exploit_says_what_it_does() -> None:
    found = templates()
    assert len(found) >= 80
    assert len({template.name for template in found}) == len(found)
    assert {template.kind for template in found} == {"calls", "stdio", "pytest", "tool"}
    assert all(template.what.endswith(".") and template.about for template in found)
    assert Counter(template.kind for template in found)["calls"] >= 80


def test_each_class_is_in_the_threat_model() -> None:
    page = (Path(__file__).parents[2] / "docs" / "threat-model.md").read_text()
    missing = {template.about for template in templates()} - set(page.replace("`", " ").split())
    assert not missing


@pytest.mark.parametrize("task", [CALLS, PROGRAM, SUITE], ids=lambda task: task.id)
def test_each_becomes_python_that_compiles(task: Task) -> None:
    cases = own_cases(task)
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        for path, data in case.files.items():
            if path.endswith(".py"):
                compile(data, f"{case.name}/{path}", "exec", dont_inherit=True)


def test_every_task_of_the_bundled_pool_has_exploits_that_read_its_names() -> None:
    for task in load("builtin"):
        cases = own_cases(task)
        assert len(cases) >= 25, task.id
        if task.grading == "calls":
            case = next(case for case in cases if case.name.startswith("equal_to_everything@"))
            text = b"".join(case.files.values()).decode()
            assert all(repr(name) in text for name in task.entry) or task.main not in task.reference, task.id


def test_exploits_on_functions_and_classes_earn_nothing(wall) -> None:
    # fewer on the weaker wall: the examiner is the same
    chosen = names_of(CALLS)[:: 2 if wall.name == "namespace" else 8]
    report = redteam([CALLS], wall=wall.name, cases=chosen)
    assert [r for r in report.played if r.reward or r.void] == []
    assert report.failed_controls == ()
    if wall.name == "namespace":
        assert report.ok, [r for r in report.results if r.harm]
        assert len(report.played) > 45


def test_exploits_on_programs_and_suites_earn_nothing() -> None:
    report = redteam([PROGRAM, SUITE], cases=[*names_of(PROGRAM), *names_of(SUITE)])
    assert [r for r in report.played if r.reward or r.void] == []
    assert report.failed_controls == ()
    assert len(report.played) > 50


def test_exploits_that_wait_for_a_limit_end() -> None:
    cases = ["sleeps_in_the_call@*", "takes_memory@*", "clocks_stand_still@*", "hangs_at_import@*"]
    report = redteam([CALLS, SUITE], cases=cases)
    assert len(report.played) == 4
    assert [r for r in report.played if r.reward or r.void] == []
    assert report.failed_controls == ()


def test_exploits_that_have_nothing_to_do_with_a_task_are_played_on_a_few() -> None:
    from tiltyard.redteam.run import FEW, _own_corpus

    names = [case.name.partition("@")[0] for case in _own_corpus(load("builtin")).cases]
    counts = Counter(names)
    assert counts["sleeps_in_the_call"] == FEW
    assert counts["equal_to_everything"] > 50
