"""Every mutation compiles, differs, leaves the rest of the source as it is, and is the same each time."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tiltyard.errors import UsageError
from tiltyard.mutate import DEFAULT, OPERATORS, Mutation, apply, describe, mutations
from tiltyard.pool import load

SOURCE = '''"""Docs that are nobody's business."""
import math  # é
__all__ = ["f"]

@decorated("x", 1)
def f(a: "int" = 3, b=None, *, key=str):
    """Not touched."""
    # a comment
    if (a < b) and not a:   # why
        return f"{a + 1} left"
    for i in range(a, 7):
        if i == 2: break
    try:
        y = sorted(list(xs)[1:a], key=key)
        y = -a
        self.y = y
    except (ValueError, KeyError) as e:
        raise ValueError("no text " "is changed here") from e
    while a: a -= 1
    return g(a, (b, 1), k=3.5)


if __name__ == "__main__":
    print(f(1, 2))
'''


def changed(source: str, *operators: str) -> list[tuple[str, str]]:
    return [(m.before, m.text) for m in mutations(source, operators)]


def test_each_operator_finds_something_and_nothing_that_it_must_leave_alone() -> None:
    found = mutations(SOURCE, OPERATORS)
    assert {m.operator for m in found} >= set(DEFAULT) - {"copy"}
    for m in found:
        new = apply(SOURCE, [m])
        ast.parse(new)
        assert new != SOURCE
        for kept in (
            "nobody's business",
            "import math  # é",
            '__all__ = ["f"]',
            '@decorated("x", 1)',
            '"int"',
            "print(f(1, 2))",
        ):
            assert kept in new, describe(m)
        if m.operator != "body":
            assert "# a comment" in new and "Not touched" in new
        if m.operator not in ("body", "statement", "exception"):
            assert '"no text " "is changed here"' in new
    assert len({apply(SOURCE, [m]) for m in found}) == len(found)


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("boundary", "a < b", [("<", "<=")]),
        ("comparison", "a is not b", [("is not", "is")]),
        ("comparison", "a not in b", [("not in", "in")]),
        ("arithmetic", "a // b", [("//", "/")]),
        ("arithmetic", "a += b", [("+=", "-=")]),
        ("arithmetic", "-(a)", [("-(a)", "((a))")]),
        ("arithmetic", "'%s' % a", []),
        ("constant", "x = 0", [("0", "1")]),
        ("constant", "x = 0xff", [("0xff", "254"), ("0xff", "256")]),
        ("constant", "x = 'é'", [("'é'", "''"), ("'é'", "'éx'")]),
        ("boolean", "x = True", [("True", "False")]),
        ("boolean", "a and b", [("a and b", "a"), ("a and b", "b"), ("and", "or")]),
        ("condition", "a if (b) else c", [("(b)", "(False)"), ("(b)", "(True)"), ("(b)", "(not ((b)))")]),
        ("statement", "a.append(1)", [("a.append(1)", "pass")]),
        ("argument", "f((1, 2), b)", [("(1, 2), b", "b, (1, 2)")]),
        ("argument", "f(a, k=1, m=2)", [("k=1, ", ""), (", m=2", "")]),
        ("argument", "f(a, *b)", []),
        ("return", "def f(): return (1)", [("(1)", "(None)")]),
        ("exception", "raise KeyError(a)", [("KeyError", "IndexError")]),
        ("default", "def f(a=1): pass", [("1", "0"), ("1", "2")]),
        ("slice", "a[b:]", [("b", ""), ("b", "b + 1"), ("b", "b - 1")]),
        ("loop", "for i in range(n): break", [("n", "1, n"), ("n", "n + 1"), ("n", "n - 1"), ("break", "continue")]),
        ("call", "min(a)", [("min", "max")]),
        ("copy", "x = a[:]", [("a[:]", "a")]),
        ("variable", "def f(a, b): return a.b + g(a=b)", [("a", "b"), ("b", "a")]),
        ("moved", "def f():\n    a = 1\n    b = 2\n", [("a = 1\n    b = 2", "b = 2\n    a = 1")]),
        ("body", "def f(a):\n    return a\n", [("return a", "pass")]),
    ],
)  # fmt: skip
def test_what_an_operator_does(operator: str, source: str, expected: list[tuple[str, str]]) -> None:
    assert changed(source, operator) == expected


def test_where_it_is_and_how_it_reads() -> None:
    source = "class A:\n    def m(self, xs):\n        return xs[0]\n"
    [up] = mutations(source, ["constant"])
    assert (up.line, up.scope, up.operator) == (3, "A.m", "constant")
    assert describe(up) == "A.m, line 3: 0 → 1"
    assert apply(source, [up]) == source.replace("0", "1")


def test_several_at_once() -> None:
    source = "def f(a, b):\n    return a < b and a + 1 == b  # é\n"
    found = [m for m in mutations(source) if m.operator in ("boundary", "arithmetic")]
    assert apply(source, found) == "def f(a, b):\n    return a <= b and a - 1 == b  # é\n"
    whole = Mutation(0, len(source), "pass", "body", 1, "", source)
    with pytest.raises(UsageError, match="overlap"):
        apply(source, [whole, found[0]])


def test_source_that_can_not_be_mutated_says_so() -> None:
    with pytest.raises(UsageError, match="does not compile"):
        mutations("def f(:")
    with pytest.raises(UsageError, match="found 'nonsense'"):
        mutations("a = 1", ["nonsense"])
    with pytest.raises(UsageError, match="at most"):
        mutations("a = 1\n" * 100_000)
    assert mutations("") == []


def test_the_same_each_time_and_for_every_bundled_reference() -> None:
    task = load("builtin")["interval_map"]
    source = task.reference["solution.py"].decode()
    found = mutations(source)
    assert found == mutations(source) == sorted(found) and len(found) > 30


def test_without_libcst_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['libcst'] = None\nfrom tiltyard.mutate import mutations\nmutations('a = 1')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'tiltyard[adequacy]'" in run.stderr
