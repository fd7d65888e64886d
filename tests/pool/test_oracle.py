import json
import math
from typing import Any

import pytest

from tiltyard.pool.oracle import MAX_ITEMS, SHAPES, checker, close, numpy_stand_in

NAN, INF = math.nan, math.inf


def accepts(
    gold: str, answer: Any, *, rule: str = "same", atol: float = 0.0, args: tuple[Any, ...] = ()
) -> bool:
    """Whether ``answer`` passes where the reference gives the value of the expression ``gold``."""
    check = checker(
        entry="f", gold=f"def f(*args):\n    return {gold}\n", rule=rule, atol=atol, shape="plain"
    )
    try:
        check(lambda *_: answer, json.dumps([list(args)]))
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    ("gold", "answer", "atol", "expected"),
    [
        ("[1, 2]", [1, 2], 0, True),
        ("[1, 2]", (1, 2), 0, False),
        ("2", 2.0, 0, True),
        ("True", 1, 0, True),
        ("'a'", "b", 0, False),
        ("0.1 + 0.2", 0.3, 0, True),  # Floats are compared with a tolerance of 1e-6 always.
        ("0.3", 0.30001, 0, False),
        ("0.3", 0.30001, 1e-4, True),
        ("1e10", 1e10 + 100, 0, True),  # and 1e-7 of the expected value
        ("10 ** 10", 10**10 + 1, 0, False),  # but whole numbers exactly
        ("10 ** 10", 10**10 + 1, 1e-6, True),
        ("[0.3, 1.0]", [0.1 + 0.2, 1.0], 0, True),
        ("[0.3, 1.0]", (0.1 + 0.2, 1.0), 0, False),
        ("[0.3, 1.0]", [0.1 + 0.2], 0, False),
        ("[0.3, 'a']", [0.1 + 0.2, "a"], 0, False),
        ("[[0.3], [1.0]]", [[0.1 + 0.2], [1.0]], 0, False),  # nested ones only where the task has a tolerance
        ("[[0.3], [1.0]]", [[0.1 + 0.2], [1.0]], 1e-6, True),
        ("[[0.3], [1.0]]", [[0.1 + 0.2], 1.0], 1e-6, False),
        ("float('nan')", NAN, 0, True),
        ("float('inf')", INF, 0, True),
        ("float('inf')", 1e308, 0, False),
        ("1.0", INF, 0, False),
        ("1.0", NAN, 0, False),
        ("10.0 ** 300", 10**400, 0, False),
        ("[]", [], 0, True),
        ("None", None, 0, True),
        ("None", False, 0, False),
        ("1.5", "1.5", 0.1, False),
        ("1.5", None, 0.1, False),
        ("1.5", object(), 0.1, False),
    ],
)
def test_equal_or_close(gold: str, answer: Any, atol: float, expected: bool) -> None:
    assert accepts(gold, answer, atol=atol) is expected


def test_a_float_result_makes_no_tolerance_for_the_next_input() -> None:
    gold = "def f(x):\n    return 0.5 if x == 0 else 10 ** 10\n"
    check = checker(entry="f", gold=gold, rule="same", atol=0, shape="plain")
    with pytest.raises(AssertionError, match="wrong result for input 2"):
        check(lambda x: 0.5 if x == 0 else 10**10 + 1, "[[0], [1]]")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([3, 1, 1], True),
        ({1, 3}, True),
        ((x for x in (1, 3)), True),
        ([1], False),
        ([1, 2, 3], False),
        (iter(range(MAX_ITEMS + 9)), False),
    ],
)
def test_sets(answer: Any, expected: bool) -> None:
    assert accepts("(1, 3)", answer, rule="set") is expected


def test_an_endless_answer_is_wrong_and_ends() -> None:
    assert not accepts("(1, 3)", iter(int, 1), rule="set")


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("object()", object(), True),
        ("object()", "found", True),
        ("object()", True, True),
        ("object()", False, False),
        ("object()", None, False),
        ("None", None, True),
        ("None", False, True),
        ("None", "found", False),
    ],
)
def test_something_or_nothing(gold: str, answer: Any, expected: bool) -> None:
    assert accepts(gold, answer, rule="not_none") is expected


@pytest.mark.parametrize(
    ("rule", "args", "gold", "answer", "expected"),
    [
        ("root", ([-4, 0, 1],), "2.0", -2.0, True),
        ("root", ([-4, 0, 1],), "2.0", 2, True),
        ("root", ([-4, 0, 1],), "2.0", 2.001, False),
        ("root", ([-4, 0, 1],), "2.0", NAN, False),
        ("root", ([-4, 0, 1],), "2.0", "2", False),
        ("root", ([-4, 0, 1],), "2.0", None, False),
        ("proper_divisors", (1,), "1", 0, True),
        ("proper_divisors", (8,), "7", 0, False),
        ("proper_divisors", (8,), "7", 7, True),
        ("pyramid", (6, 4), "0", 96, True),
        ("pyramid", (6, 4), "84", 84, True),
        ("pyramid", (6, 4), "84", 97, False),
        ("pyramid", (6, 4), "84", "96", False),
        ("digits", (23, 5), "0", 4, True),
        ("digits", (23, 5), "3", 3, True),
        ("digits", (23, 5), "3", 5, False),
    ],
)
def test_other_readings(rule: str, args: tuple[Any, ...], gold: str, answer: Any, expected: bool) -> None:
    assert accepts(gold, answer, rule=rule, atol=1e-4 if rule == "root" else 0, args=args) is expected


def test_candidate_and_reference_never_share_an_argument() -> None:
    gold = "def f(xs):\n    return sorted(xs)\n"
    check = checker(entry="f", gold=gold, rule="same", atol=0, shape="plain")

    def cheat(xs: list[int]) -> list[int]:
        xs.clear()
        return []

    with pytest.raises(AssertionError):
        check(cheat, "[[[2, 1]]]")
    gold = "def f(xs):\n    xs.clear()\n    return 1\n"
    checker(entry="f", gold=gold, rule="same", atol=0, shape="plain")(lambda xs: len(xs), "[[[7]]]")


def test_what_the_candidate_raises_goes_through() -> None:
    def broken(x: int) -> int:
        raise LookupError

    check = checker(entry="f", gold="def f(x):\n    return x\n", rule="same", atol=0, shape="plain")
    with pytest.raises(LookupError):
        check(broken, "[[1]]")


@pytest.mark.parametrize(
    ("shape", "args", "expected"),
    [
        ("plain", [[1], "a"], [[1], "a"]),
        ("tuples", [[1], [[2]]], [(1,), ([2],)]),
        ("lists of tuples", [[[1], [2]]], [[(1,), (2,)]]),
        ("tuples of tuples", [[[1], [2]]], [((1,), (2,))]),
        ("deep tuples", [[1, [2, [3]]]], [(1, (2, (3,)))]),
        ("a tuple of items", [[1, [2]]], [(1, (2,))]),
        ("a tuple first", [[1], [2], 3], [(1,), [2], 3]),
        ("a tuple second", [[1], [2]], [[1], (2,)]),
        ("a list of tuples first", [[[1]], [2]], [[(1,)], [2]]),
        ("a dict of tuples first", [{"a": [1]}, 2], [{"a": (1,)}, 2]),
        ("a list of sets", [[[1, 1], [], 3]], [[{1}, {}, {}]]),
        ("a complex", ["(1+2j)"], [1 + 2j]),
        ("a float and a complex", ["1", "2j"], [1.0, 2j]),
    ],
)
def test_shapes(shape: str, args: list[Any], expected: list[Any]) -> None:
    assert repr(SHAPES[shape](args)) == repr(expected)


def test_the_stand_in_for_numpy() -> None:
    assert numpy_stand_in.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    assert not numpy_stand_in.allclose([1.0], [1.0, 1.0])
    assert not numpy_stand_in.allclose(1.0, [1.0, 1.0])
    assert not numpy_stand_in.allclose({1.0}, {1.0})
    assert not isinstance([1.0], numpy_stand_in.ndarray)
    assert close(1j, 1j + 1e-9, 1e-6) and not close("a", "a", 1.0)
