import pytest

from tiltyard.errors import Problem
from tiltyard.pool.testfiles import split_python, split_stdio


def split(source: str) -> tuple[list[tuple[str | None, str]], list[str]]:
    problems: list[Problem] = []
    rows = split_python(source, "f", "f.py", problems)
    return [(row.id, row.code) for row in rows], [str(p) for p in problems]


def test_each_function_is_a_test_with_the_whole_file_before_it() -> None:
    source = "import math\nassert math\n\n@staticmethod\ndef test_a():\n    pass\n\ndef helper(x):\n    pass\n\ndef test_b(n=1):\n    pass"
    assert split(source) == ([("f::test_a", f"{source}\ntest_a()"), ("f::test_b", f"{source}\ntest_b()")], [])


def test_each_assert_is_a_test_with_what_precedes_it_and_no_other_assert() -> None:
    source = (
        "x = [1]; y = 2\n"
        "assert x  # comment\n"
        "@decorate\n"
        "def helper():\n"
        "    assert x\n"
        "assert (\n"
        "    helper()\n"
        ")\n"
    )
    tests, problems = split(source)
    assert problems == []
    assert tests == [
        ("f::1", "x = [1]\ny = 2\nassert x"),
        ("f::2", "x = [1]\ny = 2\n@decorate\ndef helper():\n    assert x\nassert (\n    helper()\n)"),
    ]


def test_functions_inside_a_test_may_be_generators() -> None:
    source = "def test_a():\n    def numbers():\n        yield 1\n    f = lambda: (yield)\n    assert list(numbers()) == [1]\n"
    assert split(source)[1] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "f.py: found no test; expected at least one"),
        ("def check():\n    assert 1\n", "f.py: found no test"),
        ("for x in []:\n    assert x\n", "f.py: found no test"),
        ("x = \n", "f.py:1: found code that does not compile"),
        ("a\0b", "f.py: found code that does not compile"),
        (
            "assert 1\ntry:\n    f()\nexcept E:\n    pass\n",
            "f.py:2: found statements after the last assert, which no test",
        ),
        ("class TestX:\n    def test_a(self): pass\n", "f.py:1, TestX: found a class of tests"),
        ("def test_a(): pass\ndef test_a(): pass\n", "f.py:2, test_a: found the same name twice"),
        ("async def test_a(): pass\n", "f.py:1, test_a: found an async test"),
        ("def test_a(tmp_path): pass\n", "f.py:1, test_a: found arguments (tmp_path)"),
        ("def test_a(*, x, y=1): pass\n", "f.py:1, test_a: found arguments (x)"),
        ("def test_a():\n    if 1:\n        yield\n", "f.py:1, test_a: found yield in a test"),
    ],
)
def test_what_would_never_run_is_an_error(source: str, expected: str) -> None:
    problems = split(source)[1]
    assert len(problems) == 1 and problems[0].startswith(expected), problems


def test_programs() -> None:
    problems: list[Problem] = []
    rows = split_stdio(
        {"b.in": "x", "b.out": "y", "a.in": "", "a.out": "", "a.args": "-1\n\n"}, "hidden", problems
    )
    assert [(r.id, r.stdin, r.stdout, r.args, r.exit_code) for r in rows] == [
        ("a", "", "", ["-1", ""], None),
        ("b", "x", "y", [], None),
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.in": ""}, "hidden, a.out: found no a.out beside a.in; expected both"),
        ({"a.out": "", "a.rc": "0"}, "hidden, a.in: found no a.in beside a.out and a.rc; expected both"),
        ({"a.in": "", "a.out": "", "a.rc": "x"}, "hidden/a.rc: found 'x'; expected an exit code, 0 to 255"),
        ({"a.in": "", "a.out": "", "a.rc": "256"}, "hidden/a.rc: found '256'; expected an exit code"),
        (
            {"a.otu": ""},
            "hidden/a.otu: found a file that is part of no test; expected NAME.in, NAME.out, NAME.args, ",
        ),
        ({"notes": ""}, "hidden/notes: found a file that is part of no test"),
    ],
)
def test_programs_with_mistakes(files: dict[str, str], expected: str) -> None:
    problems: list[Problem] = []
    split_stdio(files, "hidden", problems)
    assert len(problems) == 1 and str(problems[0]).startswith(expected), problems
