"""Suites graded for real, in both ways: what pytest can do works, and each test's outcome is known by its id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.referee.suites import (
    BROKEN,
    FAIL_TO_PASS,
    PASS_TO_PASS,
    RIGHT,
    SOLVED,
    suite_task,
    tally_task,
)
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.referee.pytest_settle import NothingCollectedError, settle
from tiltyard.task import Files, Task, Test
from tiltyard.verdict import Verdict

WAYS = ("remote", "in-process")
RICH_SOLUTION = """
import sys

class Box:
    size = 3
    def __init__(self, *items): self.items = list(items)
    def __len__(self): return len(self.items)
    def put(self, item):
        if len(self) >= self.size: raise Full(item)
        self.items.append(item)
        return self

class Full(Exception): pass

def limit(): return Box.size * factor()
def factor(): return 2
def greet(name): print(f"hello {name}")
def double(xs): return [2 * x for x in xs]
def lines(file): return [line.strip() for line in file]
def numbers():
    yield from range(3)
"""
RICH_TESTS = """
import io
import unittest
import pytest
import solution
from solution import Box, Full, double, greet, lines, numbers

COUNT = {"session": 0}

@pytest.fixture(scope="session")
def once():
    COUNT["session"] += 1
    yield COUNT["session"]

@pytest.fixture(params=["a", "b"])
def letter(request):
    return request.param

@pytest.fixture
def box():
    made = Box(1, 2)
    yield made
    assert len(made) <= Box.size

@pytest.fixture(autouse=True)
def around():
    yield

@pytest.mark.parametrize("xs, expected", [([1], [2]), pytest.param([], [], id="none")])
def test_parametrized(xs, expected):
    assert double(xs) == expected

def test_params(letter, once):
    assert letter in "ab" and once == 1

def test_tmp_path(tmp_path):
    (tmp_path / "x.txt").write_text("one\\ntwo\\n")
    with (tmp_path / "x.txt").open() as file:
        assert lines(file) == ["one", "two"]

def test_capsys(capsys):
    greet("world")
    assert capsys.readouterr().out == "hello world\\n"

def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(solution, "factor", lambda: 5)
    monkeypatch.setattr(Box, "size", 4)
    assert solution.limit() == 20

def test_monkeypatch_is_undone():
    assert solution.limit() == 6

def test_exception(box):
    box.put(3)
    with pytest.raises(Full) as caught:
        box.put(4)
    assert caught.value.args == (4,)

def test_generator():
    assert list(numbers()) == [0, 1, 2] and numbers() is not None

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.xfail
def test_expected_to_fail(): assert double([1]) == [1]

@pytest.mark.slow
class TestGroup:
    base = 7
    def setup_method(self): self.box = Box(self.base)
    def test_in_a_class(self): assert self.box.items == [7]
    @pytest.mark.parametrize("n", range(3))
    def test_many(self, n): assert double([n]) == [n + n]

class TestUnit(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.box = Box(1)
    def tearDown(self): self.assertIn(1, self.box.items)
    def test_unit(self): self.assertEqual(len(self.box), 1)
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(double([n]), [2 * n])
    @unittest.skip("never")
    def test_skipped_unit(self): pass
    def test_stream(self):
        self.assertEqual(lines(io.StringIO("a\\nb")), ["a", "b"])
"""
RICH_IDS = 17


def rich(way: str) -> Task:
    return suite_task(RICH_SOLUTION, RICH_TESTS, way=way)


def grade(wall: Wall, task: Task, core: str) -> Verdict:
    return Referee(wall).grade(task, Files({"tally/core.py": core}))


@pytest.mark.parametrize("way", WAYS)
def test_what_pytest_can_do(way: str, wall: Wall) -> None:
    referee = Referee(wall)
    task = referee.settled(rich(way))
    names = {test.id.partition("::")[2] for test in task.hidden}
    assert {"test_parametrized[xs0-expected0]", "test_parametrized[none]", "test_params[b]"} <= names
    assert {"TestGroup::test_many[2]", "TestUnit::test_subtests", "test_tmp_path"} <= names
    assert not {"test_skipped", "test_expected_to_fail", "TestUnit::test_skipped_unit"} & names
    verdict = referee.grade(task, task.reference)
    failed = {o.id: o.reason for o in verdict.outcomes if not o.passed}
    assert failed == {} and verdict.reward == 1.0 and verdict.graded == f"pytest-{way}"
    assert verdict.total == RICH_IDS


@pytest.mark.parametrize("way", WAYS)
def test_outcomes_by_id(way: str, wall: Wall) -> None:
    task = tally_task(way=way)
    solved, start = grade(wall, task, SOLVED), grade(wall, task, BROKEN)
    assert solved.reward == 1.0 and all(o.passed for o in solved.outcomes)
    assert [o.id for o in start.outcomes] == [*FAIL_TO_PASS, *PASS_TO_PASS]
    assert start.reward == 0.0 and {o.id for o in start.outcomes if o.passed} == {*PASS_TO_PASS}
    assert {o.reason for o in start.outcomes if not o.passed} == {"assertion failed"}


def test_the_reward_of_two_lists(wall: Wall) -> None:
    half = BROKEN.replace("return ys[half]", RIGHT)
    broken_again = SOLVED.replace("raise Empty", "raise TypeError")
    task = tally_task(way="remote", reward="fraction")
    assert grade(wall, task, half).reward == pytest.approx(4 / 7)
    assert grade(wall, task, SOLVED).reward == 1.0
    lost = grade(wall, task, broken_again)
    assert lost.reward == 0.0 and lost.passed == len(FAIL_TO_PASS) + 1
    assert grade(wall, tally_task(way="remote"), half).reward == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_another_order_gives_the_same(way: str, wall: Wall) -> None:
    task = tally_task(way=way)
    referee = Referee(wall)
    backwards = list(reversed(range(len(task.hidden))))
    assert referee.grade(task, task.reference, order=backwards) == referee.grade(task, task.reference)


def test_the_strongest_way_is_found(wall: Wall) -> None:
    settled, tried = settle(wall, tally_task())
    assert settled.way == "remote" and [one.works for one in tried] == [True]
    assert settled.digest != tally_task().digest and settle(wall, settled) == (settled, ())
    if wall.name == "process":
        return  # which has no wall around files: two cells of it can share one
    shares_files = suite_task(
        "def write(path, text):\n    open(path, 'w').write(text)\n",
        """
        from solution import write
        def test_write(tmp_path):
            write(tmp_path / "x", "abc")
            assert (tmp_path / "x").read_text() == "abc"
        """,
    )
    settled, tried = settle(wall, shares_files)
    assert settled.way == "in-process" and [test.id for test in settled.hidden] == [
        "test_solution.py::test_write"
    ]
    assert [(one.way, one.passed, one.works) for one in tried] == [
        ("remote", 0, False),
        ("in-process", 1, True),
    ]
    verdict = Referee(wall).grade(shares_files, shares_files.reference)
    assert (verdict.reward, verdict.graded) == (1.0, "pytest-in-process")


def test_nothing_to_collect_is_the_tasks_fault(wall: Wall) -> None:
    task = suite_task("x = 1\n", "import no_such_package\ndef test_x(): pass\n")
    with pytest.raises(
        NothingCollectedError, match=r"test_solution\.py raised ModuleNotFoundError"
    ) as caught:
        settle(wall, task)
    assert isinstance(caught.value, ArenaError)
    assert Referee(wall).grade(task, task.reference).void is not None


@pytest.mark.parametrize("way", WAYS)
def test_a_package_that_does_not_load(way: str, wall: Wall) -> None:
    task = tally_task(way=way)
    for core, reason in (
        ("import no_such_thing\n", "raised ModuleNotFoundError"),
        ("def f(:\n", "raised SyntaxError"),
    ):
        verdict = grade(wall, task, core)
        assert verdict.reward == 0.0 and verdict.void is None
        assert reason in {o.reason.removeprefix("not collected: ") for o in verdict.outcomes}


@pytest.mark.parametrize("way", WAYS)
def test_one_file_that_does_not_load_costs_its_own_tests(way: str, wall: Wall) -> None:
    task = tally_task(
        way=way,
        pass_to_pass=(),
        reward="fraction",
        suite=Files({**tally_task().suite, "tests/test_median.py": "from tally.middle import median\ndef test_even():\n    assert median([1, 3]) == 2\n"}),
        reference=Files({"tally/core.py": SOLVED, "tally/middle.py": "from tally.core import median\n"}),
        hidden=(Test("tests/test_median.py::test_even"), Test("tests/test_mean.py::test_mean")),
    )  # fmt: skip
    verdict = grade(wall, task, SOLVED)
    assert [o.passed for o in verdict.outcomes] == [False, True]
    assert verdict.outcomes[0].reason.startswith("not collected: raised ")


def test_a_src_folder_and_settings_of_the_task(wall: Wall) -> None:
    task = Task(
        id="src",
        prompt="p",
        start=Files(
            {
                "src/pkg/__init__.py": "",
                "src/pkg/a.py": "def one(): return 0\n",
                "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--no-such-option"\nmarkers = ["quick: x"]\n'
                'pythonpath = ["src", "tests/lib"]\n',
                "tests/lib/helper.py": "def same(a, b): return a == b\n",
                "tests/data/one.txt": "1",
            }
        ),
        reference=Files({"src/pkg/a.py": "def one(): return 1\n"}),
        suite=Files(
            {
                "tests/unit/test_a.py": "import pathlib\nimport pytest\nfrom helper import same\nimport pkg.a\n"
                "@pytest.mark.quick\ndef test_one():\n"
                "    text = (pathlib.Path(__file__).parent.parent / 'data' / 'one.txt').read_text()\n"
                "    assert same(pkg.a.one(), int(text))\n"
            }
        ),
        hidden=(Test("tests/unit/test_a.py::test_one"),),
        grading="pytest",
    )
    for way in WAYS:
        one = replace(task, way=way)  # type: ignore[arg-type]
        assert Referee(wall).grade(one, one.reference).reward == 1.0
        assert (
            Referee(wall).grade(one, Files({"tests/lib/helper.py": "def same(a, b): return True\n"})).reward
            == 0.0
        )


def test_a_suite_of_thousands(wall: Wall) -> None:
    if wall.name == "process":
        pytest.skip("one wall will do: it is about what goes over the control socket")
    count = 1500
    task = suite_task(
        "def f(x): return x\n",
        f"import pytest\nfrom solution import f\n@pytest.mark.parametrize('x', range({count}))\ndef test_f(x): assert f(x) == x\n",
        way="remote",
        hidden=tuple(Test(f"test_solution.py::test_f[{n}]") for n in range(count)),
    )
    verdict = Referee(wall).grade(task, task.reference)
    assert (verdict.reward, verdict.total) == (1.0, count)


def test_modules_of_a_package_are_patched_from_outside(wall: Wall) -> None:
    task = Task(
        id="parts",
        prompt="p",
        start=Files({"pkg/__init__.py": "", "pkg/a.py": ""}),
        reference=Files(
            {
                "pkg/__init__.py": "from pkg.a import two\n",
                "pkg/a.py": "def one(): return 1\ndef two(): return one() + 1\n",
            }
        ),
        suite=Files(
            {
                "tests/test_a.py": """
from unittest import mock
import pytest
from pkg import a, two

def test_of_a_module(): assert a.two() == two() == 2

def test_by_name(monkeypatch):
    monkeypatch.setattr("pkg.a.one", lambda: 7)
    assert two() == 8

def test_by_mock():
    with mock.patch.object(a, "one", return_value=4) as one, mock.patch("pkg.a.two", two):
        assert two() == 5
    one.assert_called_once_with()

def test_removed(monkeypatch):
    monkeypatch.delattr(a, "one")
    with pytest.raises(NameError):
        two()

def test_all_is_back(): assert two() == 2
"""
            }
        ),
        grading="pytest",
        way="remote",
        hidden=(),
        limits=tally_task().limits,
    )
    referee = Referee(wall)
    verdict = referee.grade(task, task.reference)
    assert {o.id: o.reason for o in verdict.outcomes if not o.passed} == {} and verdict.total == 5


@pytest.mark.parametrize("way", WAYS)
def test_long_lists_that_differ_take_no_time(way: str, wall: Wall) -> None:
    task = suite_task(
        "def f(n): return [i % 7 for i in range(n)]\n",
        """
        import unittest
        from solution import f
        class TestF(unittest.TestCase):
            def test_f(self):
                self.assertEqual(f(20_000), [i % 7 for i in range(20_000)])
        """,
        way=way,
        hidden=(Test("test_solution.py::TestF::test_f"),),
    )
    verdict = Referee(wall).grade(
        task, Files({"solution.py": "def f(n): return [i % 5 for i in range(n)]\n"})
    )
    assert (verdict.reward, verdict.outcomes[0].reason) == (0.0, "assertion failed")
