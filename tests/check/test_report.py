import pytest

from tiltyard.check.report import (
    TaskReport,
    ValidationReport,
    difference,
    reference_problem,
    start_problem,
)
from tiltyard.verdict import Outcome, Verdict


def verdict(*reasons, reward=None, flags=()):
    """One outcome for each reason: "" for passed."""
    outcomes = tuple(Outcome(f"hidden/{n}", not reason, reason) for n, reason in enumerate(reasons))
    passed = sum(outcome.passed for outcome in outcomes)
    return Verdict(passed / len(outcomes) if reward is None else reward, outcomes, "calls", flags)


def test_a_start_must_score_nothing():
    assert start_problem(verdict("AssertionError", "AssertionError")) is None
    assert (
        start_problem(verdict("x", "x", "x", "")) == "the untouched start scores 0.25: hidden/3 passes on it"
    )
    assert start_problem(verdict("", "", "", "", "", "", "x", "x")) == (
        "the untouched start scores 0.75: hidden/0, hidden/1, hidden/2, hidden/3 and 2 more pass on it"
    )
    # under the rule `all` a start may pass some tests
    assert start_problem(verdict("", "x", reward=0.0)) is None


def test_a_reference_must_score_everything():
    assert reference_problem(verdict("", "")) is None
    assert (
        reference_problem(verdict("", "", "", "ModuleNotFoundError"))
        == "the reference scores 0.75: hidden/3 (ModuleNotFoundError)"
    )
    assert reference_problem(Verdict(1.0, (Outcome("a", False),))) is not None
    assert "no hidden test" in reference_problem(Verdict(0.0))


def test_equal_verdicts_do_not_differ_whatever_the_order():
    one = verdict("", "AssertionError")
    assert difference([one, one, one]) is None
    assert difference([one]) is None
    turned = Verdict(0.5, one.outcomes[::-1], "calls")
    assert difference([one, turned]) is None


def test_what_differs_is_named():
    seen = [verdict("", ""), verdict("", "AssertionError"), verdict("", "")]
    assert difference(seen) == "hidden/1 (passed 2x, AssertionError 1x)"
    assert difference([verdict("", "ValueError"), verdict("", "TypeError")]) == (
        "hidden/1 (TypeError 1x, ValueError 1x)"
    )
    assert difference([verdict(""), verdict("", "")]) == "hidden/1 (absent 1x, passed 1x)"
    assert difference([verdict("", reward=0.0), verdict("", reward=1.0)]) == "rewards 0, 1"
    assert "control_passed" in difference([verdict(""), verdict("", flags=("control_passed",))])


def test_the_json_shape():
    report = ValidationReport(
        "p",
        "process",
        5,
        (TaskReport("a", "fit"), TaskReport("b", "unfit", "why"), TaskReport("c", "void", "disk")),
        3,
    )
    assert report.as_json() == {
        "summary": {"fit": 1, "unfit": 1, "void": 1},
        "tasks": {
            "a": {"outcome": "fit", "reason": ""},
            "b": {"outcome": "unfit", "reason": "why"},
            "c": {"outcome": "void", "reason": "disk"},
        },
    }
    assert report.fit == ("a",)


@pytest.mark.parametrize(
    ("outcome", "planned", "ok"), [("fit", 1, True), ("fit", 2, False), ("unfit", 1, False)]
)
def test_ok(outcome, planned, ok):
    assert ValidationReport("p", "process", 5, (TaskReport("a", outcome),), planned).ok is ok
