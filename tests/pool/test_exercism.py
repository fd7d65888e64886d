"""A small track in the published layout, written for these tests, graded for real."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiltyard import CodeEnv
from tiltyard.cells.protocol import Wall
from tiltyard.errors import TaskError, UsageError
from tiltyard.pool import load
from tiltyard.pool.suites import SuiteError, methods_of
from tiltyard.referee import Referee
from tiltyard.task import Files, Task

Write = Callable[[str, "str | bytes"], Path]

STUB = "class Jar:\n    pass\n"
EXAMPLE = """class LidError(Exception):
    pass


class Jar:
    def __init__(self, items=()):
        self.items = list(items)

    def add(self, item):
        if item == "lid":
            raise LidError("that is the lid")
        self.items.append(item)
        return self

    def copy_to(self, file):
        for item in self.items:
            file.write_item(item)

    def __len__(self):
        return len(self.items)
"""
SUITE = """# These tests are made for tests
import unittest

from cookie_jar import (
    Jar,
    LidError,
)
from sinks import Sink

SIZES = [0, 1, 3]


def setUpModule():
    SIZES.append(4)


class CookieJarBase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.jar = Jar(["a"])

    def test_in_all(self):
        self.assertEqual(len(self.jar), 1)


class CookieJarTest(CookieJarBase):
    # the first one
    def test_sizes(self):
        self.assertEqual(SIZES, [0, 1, 3, 4])
        for size in SIZES:
            with self.subTest(size=size):
                self.assertEqual(len(Jar(range(size))), size)

    def test_lid(self):
        with self.assertRaises(LidError) as caught:
            self.jar.add("lid")
        self.assertEqual(caught.exception.args[0], "that is the lid")

    # comment of the next
    @unittest.skip("extra")
    def test_later(self):
        self.fail()

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(len(self.jar), 7)

    def test_sink(self):
        sink = Sink()
        Jar("ab").copy_to(sink)
        self.assertHas(sink, ["a", "b"])

    # helpers
    def assertHas(self, sink, items):
        self.assertEqual(sink.items, items)


@unittest.skip("all of it")
class NotNow(unittest.TestCase):
    def test_nothing(self):
        self.fail()


if __name__ == "__main__":
    unittest.main()
"""
SINKS = "from sink_parts import KEEP\n\n\nclass Sink:\n    def __init__(self):\n        self.items = []\n\n    def write_item(self, item):\n        if KEEP:\n            self.items.append(item)\n"
HIDDEN = ["CookieJarBase::test_in_all"] + [
    f"CookieJarTest::test_{name}" for name in ("sizes", "lid", "expected", "sink", "in_all")
]


def make(write: Write, slug: str = "cookie-jar", **changes: Any) -> Path:
    """An exercise below exercises/practice; ``changes`` are files by name, None leaves one out."""
    name = slug.replace("-", "_")
    files: dict[str, Any] = {
        ".meta/config.json": json.dumps(
            {
                "blurb": "b",
                "files": {
                    "solution": [f"{name}.py"],
                    "test": [f"{name}_test.py"],
                    "example": [".meta/example.py"],
                },
            }
        ),
        ".meta/example.py": EXAMPLE,
        ".docs/introduction.md": "# Introduction\n\nJars.\n",
        ".docs/instructions.md": "# Instructions\n\nWrite a jar.\n",
        ".docs/instructions.append.md": "# Append\n\nRaise `LidError`.\n",
        ".docs/hints.md": "No lids.\n",
        f"{name}.py": STUB,
        f"{name}_test.py": SUITE,
        "sinks.py": SINKS,
        "sink_parts.py": "KEEP = True\n",
    }
    root = Path()
    for path, content in {**files, **changes}.items():
        if content is not None:
            root = write(f"exercises/practice/{slug}/{path}", content)
    return next(p for p in root.parents if p.name == "practice")


def read(write: Write, **changes: Any) -> Task:
    return load(f"exercism:{make(write, **changes)}")[0]


def test_an_exercise_becomes_a_task(write: Write) -> None:
    task = read(write)
    assert (task.id, task.main, task.reward, task.entry) == ("cookie-jar", "cookie_jar.py", "all", ())
    assert dict(task.start) == {"cookie_jar.py": STUB.encode()}
    assert dict(task.reference) == {"cookie_jar.py": EXAMPLE.encode()}
    parts = ("Jars.", "Write a jar.", "Raise `LidError`.", "`cookie_jar.py`")
    assert [task.prompt.index(p) for p in parts] == sorted(task.prompt.index(p) for p in parts)
    assert "No lids" not in task.prompt
    assert [t.id for t in task.hidden] == HIDDEN
    assert task.metadata.packages == ()


def test_a_test_holds_what_it_needs_and_no_other_test() -> None:
    code = {m.id: m.source for m in methods_of(SUITE)}
    lid = code["CookieJarTest::test_lid"]
    assert lid.count("def test_") == 1 and "the first one" not in lid and "comment of the next" not in lid
    for needed in ("SIZES = [0, 1, 3]", "class CookieJarBase", "def assertHas", "# helpers", "setUpModule"):
        assert needed in lid, needed
    assert "__main__" not in lid and "NotNow" not in lid
    for source in code.values():
        compile(source, "cut", "exec")


def test_a_suite_is_graded_test_by_test(write: Write, wall: Wall) -> None:
    task, referee = read(write), Referee(wall)
    verdict = referee.grade(task, task.reference)
    assert (verdict.reward, [o.id for o in verdict.outcomes]) == (1.0, HIDDEN)
    assert referee.grade(task, Files()).reward == 0.0
    faults = {
        ("that is the lid", "a lid"): ["lid"],
        ("list(items)", "list(items)[:3]"): ["sizes"],
        ("file.write_item(item)", "file.write_item(0)"): ["sink"],
        ("return len(self.items)", "return 7"): ["in_all", "sizes", "expected", "in_all"],
    }
    for (part, fault), tests in faults.items():
        verdict = referee.grade(task, Files({"cookie_jar.py": EXAMPLE.replace(part, fault)}))
        assert [o.id.rpartition("::test_")[2] for o in verdict.outcomes if not o.passed] == tests, part


@pytest.mark.parametrize(
    "raised",
    [
        "unittest.SkipTest('x')",
        "unittest.case._ShouldStop()",
        "unittest.case._UnexpectedSuccess()",
        "KeyboardInterrupt()",
        "SystemExit(0)",
    ],
)
def test_nothing_that_steers_unittest_passes_a_test(write: Write, wall: Wall, raised: str) -> None:
    task = read(write)
    steering = f"import unittest\nclass LidError(Exception): pass\ndef Jar(*args):\n    raise {raised}\n"
    verdict = Referee(wall).grade(task, Files({"cookie_jar.py": steering}), reward="fraction")
    assert verdict.reward == 0.0 and verdict.total == len(HIDDEN)


def test_modules_of_the_suite_never_come_from_the_solution(write: Write, wall: Wall) -> None:
    task = read(write)
    assert "sinks.py" not in task.start and not task.visible
    liar = "class Sink:\n    items = ['a', 'b']\n    def write_item(self, item): pass\n"
    silent = EXAMPLE.replace("file.write_item(item)", "pass")
    verdict = Referee(wall).grade(task, Files({"cookie_jar.py": silent, "sinks.py": liar}))
    assert [o.id for o in verdict.outcomes if not o.passed] == ["CookieJarTest::test_sink"]


def test_files_shown_to_students_are_given_and_protected(write: Write, wall: Wall) -> None:
    config = {
        "files": {
            "solution": ["cookie_jar.py"],
            "test": ["cookie_jar_test.py"],
            "example": [".meta/example.py"],
            "editor": ["sinks.py", "sink_parts.py"],
        }
    }
    task = read(write, **{".meta/config.json": json.dumps(config)})
    assert task.protected == {"sinks.py", "sink_parts.py"} <= set(task.start)
    assert [t.id for t in task.visible] == HIDDEN[:1]
    assert Referee(wall).grade(task, task.reference).reward == 1.0


def test_a_player_sees_the_first_test(write: Write, wall: Wall) -> None:
    suite = SUITE.replace("from sinks import Sink\n", "Sink = list\n")
    task = read(write, **{"cookie_jar_test.py": suite})
    with CodeEnv([task], wall=wall) as env:
        env.reset(seed=0)
        observation = env.step({"tool": "run_tests"})[0]
        assert "0 of 1 visible test passed" in observation
        env.step({"tool": "write_file", "path": "cookie_jar.py", "content": EXAMPLE})
        assert "1 of 1 visible test passed" in env.step({"tool": "run_tests"})[0]


def test_folder_track_and_single_exercise(write: Write) -> None:
    practice = make(write)
    make(write, "tea-pot", **{"tea_pot_test.py": SUITE.replace("cookie_jar", "tea_pot")})
    write("config.json", json.dumps({"exercises": {"practice": [{"slug": "tea-pot", "difficulty": 4}]}}))
    pool = load(f"exercism:{practice}")
    assert (pool.name, pool.ids) == ("exercism", ("cookie-jar", "tea-pot"))
    assert [t.metadata.difficulty for t in pool] == [None, 4]
    assert load(f"exercism:{practice.parents[1]}").digest == pool.digest
    assert load(f"exercism:{practice / 'tea-pot'}")[0].digest == pool["tea-pot"].digest


def test_specs_that_can_not_be_meant(write: Write, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for spec, message in {
        "exercism:": "names no file; expected exercism:DIR",
        f"exercism:{empty}": "has no exercise in it; expected the folder exercises/practice",
        f"exercism:{write('a.txt', 'x')}": "is a file; expected the folder",
        f"exercism:{empty}/none": "no such file or folder",
    }.items():
        with pytest.raises(UsageError, match=message):
            load(spec)


def test_every_problem_is_named(write: Write, tmp_path: Path) -> None:
    def config(**files: Any) -> dict[str, Any]:
        named = {"solution": ["a.py"], "test": ["a_test.py"], "example": [".meta/example.py"], **files}
        return {".meta/config.json": json.dumps({"files": named}), "a.py": "", "a_test.py": SUITE}

    make(write, "a1", **config(solution=["../a.py"]))
    make(write, "a2", **config(example=[]))
    make(write, "a3", **{**config(), "a_test.py": "import unittest\n"})
    make(write, "a4", **config(), **{".docs/instructions.md": None})
    make(write, "a5", **{".meta/config.json": "{"})
    practice = make(write, "a6", **config(), **{".docs/instructions.md": b"\xff"})
    make(write, "a7", **config(solution=["a.py", "b.py"]))
    (tmp_path / "secret").write_text("x")
    make(write, "a8", **{**config(), "a.py": None})
    (practice / "a8" / "a.py").symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError) as caught:
        load(f"exercism:{practice}")
    found = [str(p).removeprefix(f"{practice}/").partition(";")[0] for p in caught.value.problems]
    assert found == [
        "a1/.meta/config.json, files: found a path with an empty, '.' or '..' part ('../a.py')",
        "a2/.meta/config.json, files.example: found a list of 0",
        "a3/a_test.py: found no test method that is run",
        "a4/.docs/instructions.md: found nothing",
        "a5/.meta/config.json: found bad JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))",
        "a6/.docs/instructions.md: found bytes that are not UTF-8",
        "a7/.meta/config.json, files.example: found 1 for 2 solution files",
        "a8/a.py: found no regular file",
    ]


SHAPES = {
    "the last definition counts": (
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\nclass A(unittest.TestCase):\n"
        "    def test_b(self): pass\n    def test_b(self): 1\n",
        ["A::test_b"],
    ),
    "a mixin's tests run where a TestCase takes them": (
        "from unittest import TestCase\nclass Mixin:\n    def test_m(self): pass\nclass B(Mixin, TestCase):\n    def test_b(self): pass\n",
        ["B::test_b", "B::test_m"],
    ),
    "methods under a condition and by name": (
        "import unittest, sys\ndef made(self): pass\nclass C(unittest.TestCase):\n    test_data = [1]\n    test_made = made\n"
        "    if sys.maxsize > 1:\n        def test_c(self): pass\n    class test_inner: pass\n    def helper(self):\n        def test_no(): pass\n",
        ["C::test_made", "C::test_c"],
    ),
    "skipped classes hand it down, conditions do not skip": (
        "import unittest\n@unittest.skip('x')\nclass A(unittest.TestCase):\n    def test_a(self): pass\nclass B(A):\n    def test_b(self): pass\n"
        "class D(unittest.IsolatedAsyncioTestCase):\n    @unittest.skipIf(False, '')\n    async def test_d(self): pass\n",
        ["D::test_d"],
    ),
    "classes that inherit from each other": (
        "import unittest\nclass A(B): pass\nclass B(A):\n    def test_b(self): pass\n",
        [],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_methods_of_a_suite(name: str) -> None:
    source, expected = SHAPES[name]
    methods = methods_of(source)
    assert [m.id for m in methods] == expected
    for method in methods:
        compile(method.source, "cut", "exec")


def test_a_method_that_another_one_calls_stays() -> None:
    source = (
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): self.x = 1\n    def test_b(self):\n        self.test_a()\n"
        "    def test_c(self): pass\n"
    )
    cut = {m.name: m.source for m in methods_of(source)}
    assert "def test_a" in cut["test_b"] and "def test_c" not in cut["test_b"]


def test_a_suite_that_can_not_be_read() -> None:
    with pytest.raises(SuiteError, match="no Python"):
        methods_of("class (")
