"""What is said of the never-solved and of answers that were known: evidence that is there, and none that is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.report.made import POOL, act, episode, play, submit, verdict

from tiltyard.errors import UsageError
from tiltyard.records import EpisodeRecord, MessageRecord, StepRecord, Store
from tiltyard.report import report
from tiltyard.report.cutoff import compare, parse_cutoff, period, side
from tiltyard.report.mentions import body_of, clues
from tiltyard.report.signs import Answer, look, names_of, tokens_of
from tiltyard.report.unsolved import cut, readable
from tiltyard.report.writing import written
from tiltyard.task import Files, Metadata, Task, Test

SUM = """
def clipped_total(numbers, ceiling):
    \"\"\"Sum of what does not exceed the ceiling.\"\"\"
    accumulated = 0
    for candidate in numbers:
        if candidate <= ceiling:
            accumulated += candidate
    if accumulated > ceiling * len(numbers):
        raise ValueError("overflowing accumulation")
    remainder = accumulated % 7
    return accumulated, remainder
"""


def task(prompt: str, *codes: str, **more: Any) -> Task:
    given = {
        "id": "clipped",
        "prompt": prompt,
        "start": Files(
            {"solution.py": "def clipped_total(numbers, ceiling):\n    raise NotImplementedError\n"}
        ),
        "hidden": tuple(Test(f"t{n}", code) for n, code in enumerate(codes)) or (Test("t", "assert 1"),),
        "reference": Files({"solution.py": SUM}),
        "entry": ("clipped_total",),
    }
    return Task(**{**given, **more})


# -- what a test checks --------------------------------------------------------------------------------------------


def kinds(given: Task, number: int = 0) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(c.kind, c.what): c.where for c in clues(given, given.hidden[number])}


def test_exceptions_empty_inputs_and_texts_are_looked_for_where_the_player_could_read() -> None:
    code = """
def test_other():
    with raises(KeyError):
        clipped_total({}, 1)

def test_it():
    try:
        clipped_total([], 3)
    except (TypeError, ValueError):
        pass
    assert clipped_total([1], "") == "over the top"
    assertRaises(LookupError, clipped_total, None)

test_it()
"""
    found = kinds(task("Raise `ValueError` when it's over the top.", code))
    assert found == {
        ("exception", "TypeError"): (),
        ("exception", "ValueError"): ("prompt",),
        ("exception", "LookupError"): (),
        ("empty input", "an empty list"): (),
        ("empty input", "an empty text"): (),
        ("expected text", "over the top"): ("prompt",),
    }


@pytest.mark.parametrize(
    "said",
    [
        "`numbers` may be empty",
        "With no values it is 0.",
        "at least one number",
        "`clipped_total([])` is 0",
        "without items",
    ],
)
def test_an_empty_input_that_is_told(said: str) -> None:
    assert kinds(task(said, "assert clipped_total([], 1) == 0"))["empty input", "an empty list"] == (
        "prompt",
    )


def test_the_visible_tests_and_the_start_files_tell_too() -> None:
    given = task(
        "Sum.",
        "try:\n    clipped_total(3, 1)\nexcept OSError:\n    pass",
        visible=(Test("v", "try:\n    clipped_total(1, 1)\nexcept OSError: pass"),),
    )
    assert kinds(given)["exception", "OSError"] == ("visible tests",)
    given = replace(given, start=Files({"solution.py": "# may raise OSError\n"}), visible=())
    assert kinds(given)["exception", "OSError"] == ("start files",)
    assert (
        kinds(replace(given, start=Files({"solution.py": "MyOSErrors = 1\n"})))["exception", "OSError"] == ()
    )


def test_of_a_program() -> None:
    given = task(
        "Print how many words there are.",
        grading="stdio",
        entry=(),
        hidden=(
            Test("none", stdin="", stdout="nothing given\n", exit_code=2),
            Test("one", stdin="wordy", stdout="wordy 1"),
        ),
    )
    assert kinds(given) == {
        ("empty input", "an empty text"): (),
        ("exit code", "2"): (),
        ("expected text", "nothing"): (),
        ("expected text", "given"): (),
    }
    assert kinds(given, 1) == {}  # what is passed through is no rule
    told = replace(given, prompt="Without any input say `nothing given` and exit with status 2.")
    assert all(where == ("prompt",) for where in kinds(told).values())


def test_a_test_of_a_suite_is_found_by_its_name() -> None:
    suite = "class TestX:\n    def test_a(self):\n        raises(KeyError, f)\n    def test_b(self):\n        raises(OSError, f)\n"
    given = task("Sum.", grading="pytest", suite=Files({"tests/test_x.py": suite}), entry=(), hidden=())
    given = replace(
        given, hidden=(Test("tests/test_x.py::TestX::test_b[1-2]"), Test("tests/test_x.py::test_c"))
    )
    assert list(kinds(given)) == [("exception", "OSError")]
    assert kinds(given, 1) == {}


def test_a_test_that_is_handed_the_solution_by_the_prelude() -> None:
    check = (
        "def check(candidate):\n    assert candidate([], 1) == 'nothing'\n    raises(KeyError, candidate)\n"
    )
    given = task("Sum.", "check(clipped_total)", prelude=check)
    assert list(kinds(given)) == [
        ("expected text", "nothing"),
        ("exception", "KeyError"),
        ("empty input", "an empty list"),
    ]
    unittest = "class T:\n    def test_a(self):\n        clipped_total(None)\n\n_run(T, 'test_a', globals())"
    given = task("Sum.", unittest, prelude="def _run(case, name, module):\n    raises(OSError, case)\n")
    assert list(kinds(given)) == [("empty input", "None")]


def test_every_hidden_test_of_the_bundled_pool_can_be_read() -> None:
    for given in POOL[::4]:
        for test in given.hidden:
            found = clues(given, test)
            assert all(c.what and c.kind for c in found)
            if given.grading == "calls":
                assert body_of(given, test) is not None


# -- what was written ----------------------------------------------------------------------------------------------


def steps(*records: StepRecord) -> list[tuple[str, bool]]:
    return [(record.action, record.invalid) for record in records]


def test_files_are_put_together_again() -> None:
    found = written(
        {"a.py": b"one two\n", "b.py": b"b"},
        steps(
            act("list_files"),
            act("view_file", path="./a.py"),
            replace(act("write_file", path="a.py", content="refused"), invalid=True),
            act("replace_text", path="./a.py", old="two", new="three"),
            act("write_file", path="c.py", content="c"),
            act("write_file", path="c.py", content="c2"),
            submit(1.0),
        ),
    )
    assert found.files == {"a.py": "one three\n", "c.py": "c2"}
    assert (found.first, found.viewed, found.looked) == (4, ("a.py",), True)
    assert written({}, [("no json {", False), ("[1]", False), ("{}", False)]).first == 0


def signs_of(content: str, *before: StepRecord) -> dict[str, str]:
    given = task("Sum up.", "assert 1")
    wrote = written(
        given.start, steps(*before, act("write_file", path="solution.py", content=content), submit(1.0))
    )
    return dict(look(Answer(given), wrote))


VIEW = act("view_file", path="solution.py")


def test_the_reference_itself_comments_and_layout_aside() -> None:
    for content in (SUM, "# mine\n" + SUM.replace("    ", "  ").replace("Sum of what", "All that")):
        found = signs_of(content, VIEW)
        assert list(found) == ["equals_reference"]
        assert "accumulated, candidate" in found["equals_reference"]


def test_nearly_the_reference_with_its_names() -> None:
    near = SUM.replace("candidate <= ceiling", "not candidate > ceiling").replace("% 7", "% 9")
    assert list(signs_of(near, VIEW)) == ["near_reference"]


def test_the_same_idea_in_other_words_is_no_sign() -> None:
    renamed = SUM.replace("accumulated", "total").replace("candidate", "x").replace("remainder", "r")
    assert signs_of(renamed, VIEW) == {}
    assert (
        signs_of(
            "def clipped_total(numbers, ceiling):\n    return sum(n for n in numbers if n <= ceiling)\n", VIEW
        )
        == {}
    )


def test_what_is_short_is_never_called_the_same() -> None:
    short = "def clipped_total(numbers, ceiling):\n    return sum(numbers)\n"
    given = task("Sum.", "assert 1", reference=Files({"solution.py": short}))
    wrote = written(given.start, steps(VIEW, act("write_file", path="solution.py", content=short)))
    assert dict(look(Answer(given), wrote)) == {}


def test_written_without_a_look() -> None:
    assert "at step 1" in signs_of("x = 1")["written_blind"]
    assert signs_of("x = 1", act("list_files")) == {}
    assert signs_of("x = 1", act("run_tests")) == {}
    given = task("Sum.", "assert 1", start=Files({"solution.py": "\n"}))
    wrote = written(given.start, steps(act("write_file", path="solution.py", content="x = 1")))
    assert dict(look(Answer(given), wrote)) == {}  # there was nothing to look at


def test_tokens_of_anything() -> None:
    assert tokens_of('"""doc"""\nx = 1  # one\n') == ["x", "=", "1"]
    assert tokens_of("no python (((") == ["no", "python", "((("]
    for hostile in (
        "(" * 5000,
        "\0",
        "x" * 300_000,
        "def f():\n\treturn\n  x",
        "\ud800 = 1",
        "-" * 20000 + "1",
    ):
        tokens_of(hostile)
        names_of(hostile)


def test_signs_are_counted_in_a_report(tmp_path: Path) -> None:
    given = POOL["median"]
    reference = given.reference["solution.py"].decode()
    steps_ = (VIEW, act("write_file", path="solution.py", content=reference), submit(1.0))
    with Store(tmp_path / "s") as store:
        store.add(episode(given, "me", 1.0, steps=steps_))
        store.add(episode(given, "me", 0.5, steps=steps_))  # not solved: no sign of knowing
        store.add(episode(given, "reference", 1.0, steps=steps_))
        for n in range(20):
            store.add(
                episode(
                    POOL["trie"],
                    "me",
                    1.0,
                    number=n,
                    steps=(act("write_file", path="solution.py", content="x"),),
                )
            )
        found = report(store, pool=POOL).signs
    assert found.counts == {"me": {"equals_reference": 1, "written_blind": 8}}
    assert (found.solved, found.looked_at) == (21, 9)
    assert found.listed[0].sign == "equals_reference"


# -- the never-solved ----------------------------------------------------------------------------------------------


def test_the_never_solved_first_by_attempts_with_their_best_attempts(tmp_path: Path) -> None:
    first, second = POOL[0], POOL[1]

    def graded(of: Task, passed: int, reason: str) -> EpisodeRecord:
        return episode(of, "me", passed / len(of.hidden), verdict=verdict(of, passed, reason))

    with Store(tmp_path / "s") as store:
        store.add(graded(first, 3, "raised KeyError"))
        best = store.add(graded(first, 5, "assertion failed"))
        store.add(graded(second, 0, "assertion failed"))
        play(store, "me", lambda task, _: 1.0 if task.id == POOL[2].id else None, tasks=3, attempts=1)
        play(store, "reference", lambda *_: 1.0, tasks=3)
        found = report(store, pool=POOL)
        assert found.never == 2
        one, two = found.unsolved
        assert (one.task, one.attempts, one.graded, two.task) == (first.id, 2, 2, second.id)
        assert isclose_(one.best_reward, 5 / len(first.hidden))
        assert one.transcripts[0].episode == best and one.players == ("me",)
        by_id = {t.id: t for t in one.tests}
        assert by_id[first.hidden[3].id].failed == 1 and by_id[first.hidden[5].id].failed == 2
        assert by_id[first.hidden[5].id].reasons == {"assertion failed": 1, "raised KeyError": 1}
        assert first.hidden[2].id not in by_id
        assert report(store, pool=POOL, unsolved_shown=1).never == 2
        assert len(report(store, pool=POOL, unsolved_shown=1).unsolved) == 1


def isclose_(a: float, b: float) -> bool:
    return abs(a - b) < 1e-12


def test_long_transcripts_are_cut_and_say_so(tmp_path: Path) -> None:
    many = tuple(act("view_file", "y" * 9000, path=f"f{n}.py") for n in range(100))
    with Store(tmp_path / "s") as store:
        store.add(episode(POOL[0], "me", 0.0, steps=(*many, submit(0.0))))
        (shown,) = report(store, pool=POOL).unsolved[0].transcripts
    assert len(shown.steps) == 60 and shown.steps_left_out == 41
    assert shown.steps[0].action.startswith("view_file(path='f0.py'") and shown.steps[-1].action == "submit()"
    assert len(shown.steps[0].observation) < 4100 and "5000 characters left out" in shown.steps[0].observation


def test_what_a_model_said_stands_with_the_step_that_came_of_it(tmp_path: Path) -> None:
    calls = tuple({"id": f"c{n}", "name": "list_files", "arguments": {}, "step": n} for n in (0, 1))
    messages = (
        MessageRecord("user", "Do it."),
        MessageRecord("assistant", "I look.", reasoning="Hm.", calls=calls),
        MessageRecord("tool", "a.py", step=0, call_id="c0"),
        MessageRecord("assistant", "", calls=({"id": "c2", "name": "submit", "arguments": {}, "step": 2},)),
        MessageRecord("assistant", "Done."),
    )
    steps_ = (act("list_files"), act("list_files"), submit(0.0))
    with Store(tmp_path / "s") as store:
        store.add(episode(POOL[0], "openai:m", 0.0, steps=steps_, messages=messages))
        (shown,) = report(store, pool=POOL).unsolved[0].transcripts
    assert [step.said for step in shown.steps] == ["Hm.\n\nI look.", "", ""]


def test_actions_are_readable() -> None:
    assert readable('{"tool":"view_file","path":"a.py"}') == "view_file(path='a.py')"
    assert (
        readable('{"tool":"write_file","path":"a","content":"x\\ny\\n"}')
        == "write_file(path='a')\ncontent:\nx\ny"
    )
    for other in ("nothing", "[1]", '{"tool": 3}', "[" * 100_000):
        assert readable(other) == other
    assert cut("x" * 4000) == "x" * 4000


# -- dates ---------------------------------------------------------------------------------------------------------


def test_periods_and_sides() -> None:
    assert period("2026") == (date(2026, 1, 1), date(2026, 12, 31))
    assert period("2026-12") == (date(2026, 12, 1), date(2026, 12, 31))
    assert period("2024-02") == (date(2024, 2, 1), date(2024, 2, 29))
    assert period("2026-10-31T12:00:00Z") == (date(2026, 10, 31), date(2026, 10, 31))
    for nothing in ("", "soon", "2026-13", "2026-02-30", "26", "2026-1", "2026-10-31-1", "٢٠٢٦"):
        assert period(nothing) == (None, None)
    day = parse_cutoff("2026-06")
    assert [side(c, day) for c in ("2026-05", "2026-06", "2026-06-01", "2026", "2025", "?")] == [
        "before",
        "after",
        "after",
        "across",
        "before",
        "undated",
    ]
    with pytest.raises(UsageError, match="--cutoff: found 'June'"):
        parse_cutoff("June")


def test_rates_before_and_after(tmp_path: Path) -> None:
    dated = [
        replace(t, metadata=replace(t.metadata, created="2025-03" if n < 6 else "2026-03" if n < 10 else ""))
        for n, t in enumerate(POOL[:12])
    ]
    with Store(tmp_path / "s") as store:
        early = {t.id for t in dated[:6]}
        play(store, "me", lambda task, attempt: 1.0 if task.id in early else float(attempt == 0), tasks=12)
        play(store, "void", lambda *_: None, tasks=2)
        found = report(store, cutoff="2026", pool=dated)
    assert found.cutoff is not None and found.cutoff.date == "2026-01-01"
    assert found.cutoff.tasks == {"before": 6, "after": 4, "across": 0, "undated": 2}
    difference = found.cutoff.players["me"]
    assert difference is not None and difference.before == 1.0 and difference.after == 0.25
    assert difference.low < -0.75 < difference.high < 0 and difference.attempts == (24, 16)
    assert found.cutoff.players["void"] is None
    assert compare("2030", found.players.values(), {}).tasks["undated"] == 12
    assert Metadata().created == ""
