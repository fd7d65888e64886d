"""Drawing breaks, symptoms from calls, and suites without their failing tests: the parts that need no cell."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sources.breakage_code import FILES, MONEY

from tiltyard.errors import UsageError
from tiltyard.mutate import OPERATORS, apply
from tiltyard.referee.inside.shown import shown
from tiltyard.referee.inside.tracing import Calls, Lines
from tiltyard.sources.breakage import breakage
from tiltyard.sources.breakage.draw import changes_of, drawn
from tiltyard.sources.breakage.prompt import prompt_of
from tiltyard.sources.breakage.report import hiddenness
from tiltyard.sources.breakage.subject import subject_of_files, subject_of_task
from tiltyard.sources.breakage.symptoms import Symptom, of_program, symptom_of, tells, written
from tiltyard.sources.breakage.trimmed import without_tests
from tiltyard.task import Files, Metadata, Task, Test

EVERY = {n: frozenset({n % 3}) for n in range(1, 40)}


def call(fn: str, *args: str, **more: Any) -> dict[str, Any]:
    one = {"fn": fn, "as": "call", "on": "", "args": list(args), "out": "value", "text": "None", "after": {}}
    return one | {"known": False, "uses": [], "shows": False} | more


# ------------------------------------------------------------------------------------------------------------ drawing


def test_the_order_depends_on_the_seed_alone_and_takes_the_kinds_in_turn() -> None:
    changes = changes_of("shop/money.py", MONEY.encode(), list(OPERATORS), EVERY)
    order = drawn(changes, 1, "7")
    assert order == drawn(list(reversed(changes)), 1, "7") != drawn(changes, 1, "8")
    assert sorted(one.changes[0] for one in order) == sorted(changes)
    kinds = {change.mutation.operator for change in changes}
    assert {one.kind for one in order[: len(kinds)]} == kinds


def test_several_changes_at_once_are_apart() -> None:
    changes = changes_of("shop/money.py", MONEY.encode(), list(OPERATORS), EVERY)
    order = drawn(changes, 3, "7")
    assert {len(one.changes) for one in order} == {1, 2, 3}
    for one in order:
        apply(MONEY, [change.mutation for change in one.changes])
        assert one.tests == frozenset().union(*(change.tests for change in one.changes))


def test_only_what_tests_reach_is_changed_and_heads_and_constants_count_as_reached_by_their_users() -> None:
    source = "LIMIT = 3\n\n\ndef f(a=1):\n    return (\n        a + LIMIT\n    )\n\n\ndef g(b):\n    return b + 2\n"
    changes = changes_of("m.py", source.encode(), ["constant", "default", "arithmetic"], {5: frozenset({4})})
    assert {c.mutation.line for c in changes} == {1, 4, 6}
    assert all(c.tests == frozenset({4}) for c in changes)
    assert changes_of("m.py", b"def f(:", ["constant"], {1: frozenset({1})}) == []
    assert changes_of("m.py", b"\xff", ["constant"], {1: frozenset({1})}) == []


# ----------------------------------------------------------------------------------------------------------- symptoms


def test_the_first_call_that_ends_differently_is_told_with_what_it_needs() -> None:
    made = call("Box", "3", **{"as": "new", "name": "box7"})
    put = call(
        "put",
        "1",
        **{"as": "method", "on": "box7", "known": True, "after": {"-1": "Box([1])"}, "shows": True},
    )
    look = call("peek", **{"as": "method", "on": "box7", "known": True, "text": "1", "shows": True})
    take = call("take", "box7", uses=["box7"], text="1")
    before = [made, put, look]
    found = symptom_of([*before, take], [*before, take], [*before, take | {"text": "2"}])
    assert found == Symptom(("box = Box(3)", "box.put(1)", "take(box)"), "returns `2`", "return `1`")


def test_what_wavers_by_itself_is_no_symptom() -> None:
    now = call("now", text="1")
    assert symptom_of([now], [now | {"text": "2"}], [now | {"text": "3"}]) is None
    same, right = call("same", text="0"), call("f", "2", text="4")
    found = symptom_of(
        [now, right], [now | {"text": "2"}, right], [now | {"text": "3"}, right | {"text": "5"}]
    )
    assert found is not None and found.lines == ("f(2)",)
    assert symptom_of([same], [same], [same]) is None
    assert symptom_of([], [], []) is None


def test_a_call_whose_arguments_differ_already_tells_nothing() -> None:
    right, wrong = call("f", "1", text="1"), call("f", "2", text="2")
    assert symptom_of([right], [right], [wrong]) is None


@pytest.mark.parametrize(
    ("right", "wrong", "got", "wanted"),
    [
        ({"text": "1"}, {"out": "raise", "text": "KeyError: 3"}, "raises `KeyError: 3`", "return `1`"),
        ({"text": "1"}, {"out": "raise", "text": "NameError: name 'q'"}, "raises `NameError`", "return `1`"),
        ({"out": "yield", "text": "[1]"}, {"out": "yield", "text": "[]"}, "gives `[]`, one by one", "give `[1]`, one by one"),
        ({"after": {"0": "[1, 2]"}}, {}, "leaves the argument `[2, 1]` as it was", "make of it `[1, 2]`"),
        ({"text": "'" + "a" * 500 + "b'"}, {"text": "'" + "a" * 500 + "c'"}, None, None),
    ],
)  # fmt: skip
def test_how_a_difference_is_said(
    right: dict[str, Any], wrong: dict[str, Any], got: str | None, wanted: str | None
) -> None:
    one = call("f", "[2, 1]")
    found = symptom_of([one | right], [one | right], [one | wrong])
    assert found is not None
    if got is None:
        assert "c'" in found.got and "b'" in found.wanted and len(found.got) < 400
    else:
        assert (found.got, found.wanted) == (got, wanted)


def test_calls_are_written_as_people_write_them() -> None:
    item = {"as": "method", "on": "x", "known": True}
    assert written(call("__getitem__", "1", **item)) == "x[1]"
    assert written(call("__setitem__", "'a'", "2", **item)) == "x['a'] = 2"
    assert written(call("__add__", **item)) is None  # what it was called with is not known
    assert written(call("size", **(item | {"as": "property"}))) == "x.size"
    assert written(call("Box.of", "1", **{"as": "class", "name": "box"})) == "box = Box.of(1)"


def test_a_symptom_that_names_a_test_or_a_file_is_known() -> None:
    symptom = Symptom(("f(pkg/core.py)",), "returns `1`", "return `_inner`")
    assert tells(symptom, ["_inner"]) and tells(symptom, ["pkg/core.py"])
    assert not tells(symptom, ["test_f", "inner", "cor"])


def test_what_nobody_can_type_in_is_odd() -> None:
    assert Symptom(("f(<Box object>)",), "", "").odd and Symptom(("Box: 3.f()",), "", "").odd
    assert not Symptom(("f([1, 2])",), "", "").odd


def test_programs() -> None:
    assert of_program("1 2\n", (), "3", "3") is None
    assert of_program("1\n" * 5000, (), "3", "4") is None
    symptom = of_program("1 2\n", ("-v",), "3", "4")
    assert symptom is not None
    text = prompt_of("this code", [symptom], "Add `numbers`.", 2, random.Random(0))
    assert "arguments `-v`" in text and "```\n1 2\n```" in text and "> Add `numbers`." in text
    assert "more than one fault" in text


TRACED = """
def numbers(n):
    for i in range(n):
        yield i
    return "end"


def both(n):
    yield from numbers(n)


class Box:
    def __init__(self, x, *, k=3):
        self.x = x

    @classmethod
    def of(cls, x):
        return cls(x)

    @property
    def size(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]

    def calm(self):
        try:
            raise KeyError(1)
        except KeyError:
            pass

    def loud(self):
        self.calm()
        raise ValueError("no")


def sort(xs, key=None, *more, way="up", **others):
    xs.sort(key=key)
"""


def traced(tmp_path: Path, tracer: Any) -> list[Any]:
    spec = importlib.util.spec_from_file_location("traced", tmp_path / "traced.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["traced"] = module
    before = sys.gettrace()
    try:
        spec.loader.exec_module(module)
        tracer.begin()
        try:
            list(module.numbers(2))
            list(module.both(1))
            box = module.Box("abc", k=4)
            module.Box.of([1])
            box.size, box[1], box.calm()
            with contextlib.suppress(ValueError):
                box.loud()
            module.sort([2, 1], None, 7, way="down", deep=box)
            next(module.numbers(9))
        finally:
            found = tracer.end()
    finally:
        sys.settrace(before)
        del sys.modules["traced"]
    return list(found)


def test_calls_are_noted_as_they_were_made(tmp_path: Path) -> None:
    (tmp_path / "traced.py").write_text(TRACED)
    found = traced(tmp_path, Calls({str(tmp_path / "traced.py"): 0}))
    assert [(written(one), one["out"], one["text"]) for one in found] == [
        ("numbers(2)", "yield", "[0, 1]"),
        ("both(1)", "yield", "[0]"),
        ("box = Box('abc', k=4)", "value", "None"),
        ("box2 = Box.of([1])", "value", "<traced.Box object>"),
        ("box.size", "value", "3"),
        ("box[1]", "value", "'b'"),
        ("box.calm()", "value", "None"),
        ("box.loud()", "raise", "ValueError: no"),
        ("sort([2, 1], None, 7, way='down', deep=box)", "value", "None"),
        ("numbers(9)", "yield", "[0]"),
    ]
    assert found[-2]["after"] == {"0": "[1, 2]"} and found[-2]["uses"] == ["box"]


def test_lines_and_depths_are_noted(tmp_path: Path) -> None:
    (tmp_path / "traced.py").write_text(TRACED)
    [[file, lines, functions]] = traced(tmp_path, Lines({str(tmp_path / "traced.py"): 0}))
    at = {text.strip(): n for n, text in enumerate(TRACED.split("\n"), 1)}
    assert file == 0 and {at["yield i"], at["raise KeyError(1)"], at["xs.sort(key=key)"]} <= {*lines}
    depths = dict(functions)
    assert depths[at["def loud(self):"]] == 0 and depths[at["def calm(self):"]] == 0
    assert depths[at["def __init__(self, x, *, k=3):"]] == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b", "a"}, "{'a', 'b'}"), (frozenset(), "frozenset()"), ((1,), "(1,)"), ({1: [2.5, None]}, "{1: [2.5, None]}"),
        (KeyError("x"), "KeyError('x')"), (type("Rows", (list,), {})([1]), "Rows([1])"), (object(), "<object object>"),
        (type("Bad", (), {"__repr__": lambda s: 1 / 0})(), "<Bad whose repr raises ZeroDivisionError>"),
    ],
)  # fmt: skip
def test_values_are_shown_the_same_everywhere(value: Any, text: str) -> None:
    assert shown(value) == text


def test_what_is_shown_is_bounded() -> None:
    assert len(shown(["x" * 1000] * 1000)) < 5000 and len(shown(b"x" * 10**6)) < 5000
    nested: list[Any] = []
    for _ in range(1000):
        nested = [nested]
    assert "..." in shown(nested)


# ------------------------------------------------------------------------------------------------- suites and subjects


def test_failing_tests_are_taken_out_of_the_files_that_the_player_sees() -> None:
    files = {path: text.encode() for path, text in FILES.items()}
    ids = ["tests/test_money.py::test_written_out[5-0.05]", "tests/test_money.py::TestShares::test_uneven"]
    changed, gone = without_tests(files, ids)
    assert not gone and {*changed} == {"tests/test_money.py"}
    text = changed["tests/test_money.py"].decode()
    assert "test_written_out" not in text and "parametrize" not in text and "test_uneven" not in text
    assert "test_even" in text and "test_total_from_a_start" in text
    compile(text, "t", "exec")


def test_a_file_goes_as_a_whole_where_its_test_can_not_be_taken_out() -> None:
    files = {
        "tests/test_made.py": b"for n in 'ab':\n    globals()[f'test_{n}'] = lambda: None\n\n\ndef test_c():\n    pass\n"
    }
    assert without_tests(files, ["tests/test_made.py::test_a"]) == ({}, frozenset(files))
    assert without_tests(files, ["tests/test_made.py::test_c"]) == (
        {},
        frozenset(files),
    )  # nothing would be left
    assert without_tests(files, ["tests/test_other.py::test_c"]) == ({}, frozenset())


def test_what_of_a_repository_is_broken() -> None:
    subject = subject_of_files("shop", {p: t.encode() for p, t in FILES.items()}, metadata=Metadata())
    assert subject is not None and subject.targets == ("shop/__init__.py", "shop/ledger.py", "shop/money.py")
    assert subject_of_files("x", {"a.py": b"x = 1\n"}, metadata=Metadata()) is None
    assert subject_of_files("x", {"test_a.py": b"x = 1\n"}, metadata=Metadata()) is None


def test_a_task_is_broken_as_its_reference_solves_it() -> None:
    start = Files({"solution.py": "def f(): ...\n", "fixed.py": "N = 1\n"})
    task = Task("t", "Write f.", start, (Test("h", "assert f() == 1"),), Files({"solution.py": "def f(): return 1\n"}),
                protected=frozenset({"fixed.py"}), entry=("f",))  # fmt: skip
    subject = subject_of_task(task)
    assert subject.task.start["solution.py"] == b"def f(): return 1\n" and subject.targets == ("solution.py",)
    assert subject.described == "Write f." and subject.extra == (("broken_from", task.digest),)
    mended = subject_of_task(Task("t", "Fix f.", start, task.hidden, task.reference, entry=("f",)))
    assert mended.described == ""  # what it reports is mended already


def test_few_failing_far_away_and_small_is_well_hidden() -> None:
    assert hiddenness(1, 3, 1) > hiddenness(1, 0, 1) > hiddenness(8, 0, 1) > hiddenness(8, 0, 9)
    assert (
        hiddenness(1, 0, 1, ["return"])
        < hiddenness(1, 0, 1, ["return", "loop"])
        == hiddenness(1, 0, 1, ["loop"])
    )
    assert 0 < hiddenness(1000, 0, 100) < hiddenness(1, 100, 1) <= 1


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"count": 0}, "count"),
        ({"breaks": 9}, "breaks"),
        ({"kinds": ["nonsense"]}, "kinds"),
        ({"rev": "v1"}, "--rev"),
    ],
)
def test_what_can_not_be_asked_for(asked: dict[str, Any], found: str) -> None:
    with pytest.raises(UsageError, match=found):
        breakage("builtin", **asked)
