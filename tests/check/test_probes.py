"""The reference in other clothes, and other right solutions: each is worth 1. A task where one is not is found."""

from __future__ import annotations

import ast
import contextlib
import io

import pytest
from tests.check.test_validate import FIT, PROGRAM, SAME, task

from tiltyard.check import validate
from tiltyard.check.probes import noisy, probes, reformatted, slow, slow_program
from tiltyard.check.rename import rename_locals, without_comments
from tiltyard.referee import Referee
from tiltyard.task import Files

SOURCE = '''"""What it is."""
from __future__ import annotations

import os as system

LIMIT = 3  # a comment


def total(values, *, start=0):
    """Sums."""
    # another
    result = start
    for n, value in enumerate(values):
        with io(value) as opened, io(n) as (one, two):
            result += sum(part * one for part in opened if (seen := part) > two)
        try:
            result += {k: v for k, v in pairs(values) for w in k if w}[n]
        except KeyError as error:
            print(f"{error} {n=}")
    def inner(k):
        nonlocal result
        other = [result + k for k in values]
        return other
    match result:
        case [first, *rest]:
            return first, rest
    twice = lambda w, x=LIMIT: w * 2 + result + x
    return inner, twice, seen, system.name


class Kind:
    part = 1

    def gen(self):
        item = self.part
        yield item
'''


def test_without_comments_only_the_comments_are_gone() -> None:
    new = without_comments(SOURCE)
    assert "#" not in new and '"""Sums."""' in new
    assert ast.dump(ast.parse(new)) == ast.dump(ast.parse(SOURCE))
    assert ast.dump(ast.parse(reformatted(SOURCE))) == ast.dump(ast.parse(SOURCE))


def test_locals_are_renamed_and_nothing_that_can_be_seen() -> None:
    new = rename_locals(SOURCE)
    assert new == rename_locals(SOURCE)
    for gone in ("value in", "opened", "as error", "other =", "twice =", "item ="):
        assert gone in SOURCE and gone not in new
    for kept in (
        "values, *, start=0",
        "nonlocal result",
        "{n=}",
        "seen :=",
        "[first, *rest]",
        "LIMIT",
        "lambda w, x",
        "part = 1",
    ):
        assert kept in new
    names = [n.id for n in ast.walk(ast.parse(new)) if isinstance(n, ast.Name)]
    assert sum(name.startswith("local_") for name in names) > 15
    # what libcst does not see is left alone, as Python's own symbol table tells
    nested = "def f(xs):\n    return {y for x in xs for y in x if g(y) and y}\n"
    namespace: dict[str, object] = {"g": bool}
    exec(rename_locals(nested), namespace)
    assert namespace["f"]([[0, 1, 2]]) == {1, 2}  # type: ignore[operator]


def test_a_module_that_looks_up_its_own_locals_is_left_alone() -> None:
    source = "def f():\n    a = 1\n    return locals()\n"
    assert rename_locals(source) == source


def test_noise_is_printed_at_import_and_in_calls_but_not_without_end() -> None:
    namespace: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(
            noisy("from __future__ import annotations\ndef f(n):\n    'Doc.'\n    return n\n", "stdout"),
            namespace,
        )
        assert [namespace["f"](n) for n in range(2000)] == list(range(2000))  # type: ignore[operator]
    lines = printed.getvalue().splitlines()
    assert lines[0] == "noise: import" and set(lines[1:]) == {"noise: f"} and len(lines) == 1000
    assert namespace["f"].__doc__ == "Doc."


def test_slowed_down_is_as_right_and_takes_longer() -> None:
    slept: list[float] = []
    source = "import time\ndef f(n):\n    time.sleep(0.01)\n    return f(n - 1) if n else 'end'\ndef g():\n    yield 1\n"
    namespace: dict[str, object] = {}
    exec(slow(source), namespace)
    namespace["_slow_sleep"] = slept.append
    assert namespace["f"](3) == "end"  # type: ignore[operator]
    assert len(slept) == 1 and slept[0] >= 0.04
    assert list(namespace["g"]()) == [1]  # type: ignore[operator]
    assert "_slow_atexit.register" in slow_program(source)


@pytest.mark.parametrize("grading", ["calls", "stdio"])
def test_which_probes_there_are(grading: str) -> None:
    source = (
        "def f(x):\n    # why\n    y = x\n    return y\nif __name__ == '__main__':\n    print(f(input()))\n"
    )
    if grading == "calls":
        one = task("t", source, "assert f(1) == 1")
        names = {p.name for p in probes(one)}
        assert names == {
            "without its comments", "reformatted", "with its locals renamed", "made twice as slow", "noisy on stdout",
        }  # fmt: skip
        silent = task(
            "t", source, "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()): f(1)"
        )
        assert names - {p.name for p in probes(silent)} == {"noisy on stdout"}
    else:
        assert "noisy on stderr" in {p.name for p in probes(PROGRAM)}
        assert all(p.name != "noisy on stdout" for p in probes(PROGRAM))


def test_fit_tasks_stay_fit_with_probes() -> None:
    report = validate([FIT, PROGRAM], repeats=1, probes=True)
    assert report.as_json()["summary"] == {"fit": 2, "unfit": 0, "void": 0}


def test_a_task_whose_probe_fails_names_the_probe_and_the_tests() -> None:
    reference = (
        "import sys\nfrom pathlib import Path\n"
        "def f(x):\n    # the word that counts\n    return x if 'word that ' + 'counts' in Path(__file__).read_text() else 0\n"
    )
    report = validate(
        [task("strict", reference, "assert f(3) == 3", "assert f(0) == 0")], repeats=1, probes=True
    )
    [one] = report.tasks
    assert one.outcome == "unfit"
    assert one.reason == "the reference without its comments scores 0.5: hidden/1 (assertion failed)"
    assert validate([task("strict", reference, "assert f(3) == 3")], repeats=1).ok


def test_what_is_known_without_probes_is_not_known_with_them(tmp_path) -> None:
    state = tmp_path / "state"
    assert validate([FIT], repeats=1, state=state).ok
    assert validate([FIT], repeats=1, state=state, probes=True).resumed == 0
    assert validate([FIT], repeats=1, state=state, probes=True).resumed == 1
    assert validate([FIT], repeats=1, state=state).resumed == 1


def test_a_probe_is_a_submission_of_all_files(wall) -> None:
    one = task("t", SAME, "assert f(1) == 1")
    for probe in probes(one):
        assert isinstance(probe.files, Files) and set(probe.files) == {"solution.py"}
        assert Referee(wall).grade(one, probe.files).reward == 1.0
