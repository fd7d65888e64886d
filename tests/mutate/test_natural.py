"""Mutations as people would write them, and the operators that breaking code needs beside those of adequacy."""

from __future__ import annotations

import ast

import pytest

from tiltyard.mutate import DEFAULT, OPERATORS, apply, candidates, describe, mutations, natural, program

SOURCE = '''def f(rows, low: int, high: int):
    """Docs."""
    total = 0
    count = len(rows)
    if low > high:
        # the wrong way round
        low, high = high, low
    for n in range(low + 1):
        if not rows:
            break
        total += n
    kept = [row for row in rows if row > low]
    best = high if kept else low
    return total + count + best
'''


def made(source: str, operator: str) -> list[str]:
    """What the lines that differ become, of every natural mutation of an operator."""
    found = []
    for mutation in mutations(source, [operator]):
        one = natural(source, mutation)
        if one is not None:
            new = apply(source, [one])
            old_lines = source.splitlines()
            found.append("\n".join(line.strip() for line in new.splitlines() if line not in old_lines))
    return found


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("condition", "if a:\n    b()\n", ["if not a:"]),
        ("condition", "if not a:\n    b()\n", ["if a:"]),
        ("condition", "if a == b:\n    c()\n", []),  # "comparison" says the same better
        ("return", "def f():\n    return a + 1\n", ["return None"]),
        ("statement", "def f(x):\n    x.append(1)  # why\n    return x\n", [""]),
        ("statement", "def f(x):\n    if x:\n        raise ValueError(x)\n    return x\n", []),
        ("loop", "for i in range(n + 1):\n    a()\n", [
            "for i in range(1, n + 1):", "for i in range(n):", "for i in range(n + 2):"]),
        ("loop", "for i in range(n, -1):\n    a()\n", [
            "for i in range(n + 1, -1):", "for i in range(n, 0):", "for i in range(n, -2):"]),
        ("slice", "x = a[n - 1:]\n", ["x = a[:]", "x = a[n:]", "x = a[n - 2:]"]),
        ("slice", "x = a[b : c]\n", [
            "x = a[: c]", "x = a[b + 1 : c]", "x = a[b - 1 : c]", "x = a[b :]", "x = a[b : c + 1]", "x = a[b : c - 1]"]),
        ("constant", 'x = "year"\n', ['x = "yea"']),
        ("constant", "x = 1.5\n", ["x = 2.5"]),
        ("guard", "def f(a):\n    if a:\n        # why\n        return 1\n    return 2\n", ["", "return 1"]),
        ("guard", "x = [a for a in b if a]\n", ["x = [a for a in b]"]),
        ("guard", "x = a if b else c\n", ["x = a", "x = c"]),
        ("guard", "if a:\n    b()\nelse:\n    c()\n", []),
        ("body", 'def f():\n    """Docs."""\n    return 1\n', ["pass"]),
    ],
)  # fmt: skip
def test_how_it_is_written(operator: str, source: str, expected: list[str]) -> None:
    assert sorted(made(source, operator)) == sorted(expected)


def test_natural_means_the_same_and_keeps_the_rest_as_it_is() -> None:
    for mutation in mutations(SOURCE, OPERATORS):
        one = natural(SOURCE, mutation)
        if one is None:
            continue
        text = apply(SOURCE, [one])
        ast.parse(text)
        assert text != SOURCE and '"""Docs."""' in text, describe(one)
        for odd in ("(True)", "(False)", "(None)", "(not (", "not not", "+ 1 - 1", "- 1 + 1"):
            assert odd not in text, describe(one)
        assert "pass" not in text or one.operator == "body", describe(one)


def test_an_if_is_taken_away_with_its_comment_or_its_body_made_unconditional() -> None:
    texts = {
        apply(SOURCE, [m])
        for m in (natural(SOURCE, m) for m in mutations(SOURCE, ["guard"]))
        if m is not None
    }
    guard = "    if low > high:\n        # the wrong way round\n        low, high = high, low\n"
    assert SOURCE.replace(guard, "") in texts
    assert SOURCE.replace("        if not rows:\n            break\n", "") in texts
    assert SOURCE.replace("        if not rows:\n            break\n", "        break\n") in texts


def test_locals_of_one_kind_are_mixed_up_and_only_where_they_are_read() -> None:
    found = mutations(SOURCE, ["local"])
    assert {(m.before, m.text) for m in found} >= {("low", "high"), ("high", "low"), ("total", "count")}
    for mutation in found:
        tree = ast.parse(apply(SOURCE, [mutation]))
        names = [
            ast.unparse(node.target) for node in ast.walk(tree) if isinstance(node, (ast.AugAssign, ast.For))
        ]
        assert sorted(names) == ["n", "total"]
    assert not mutations(
        "def f(a, b: int):\n    return a + b\n", ["local"]
    )  # nothing says that they are alike


def test_candidates_are_what_mutations_are_chosen_from() -> None:
    every, chosen = candidates(SOURCE), mutations(SOURCE)
    assert {*chosen} <= {*every} and every == sorted(every)
    programs = {program(apply(SOURCE, [m])) for m in every} - {None, program(SOURCE)}
    assert programs == {program(apply(SOURCE, [m])) for m in chosen}


def test_adequacy_goes_on_with_the_operators_that_it_had() -> None:
    assert not {"guard", "local", "variable", "moved", "body"} & {*DEFAULT}
