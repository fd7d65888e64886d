"""Which breaks are tried, and in which order: drawn by the seed alone.

A draw takes the operators in turn, so that rare ones are not drowned, and spreads each over the functions of the subject.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiltyard.errors import UsageError
from tiltyard.mutate import Mutation, candidates
from tiltyard.parsing import parse_source

Reach = Mapping[str, Mapping[int, frozenset[int]]]
"""By path and line: indices of the tests that reach it."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One change of one file. ``tests``: indices of those that reach it, so that no other one can notice."""

    path: str
    mutation: Mutation
    tests: frozenset[int]


@dataclass(frozen=True, slots=True)
class Break:
    """One or several changes, made at once. The first one gives it its kind."""

    changes: tuple[Change, ...]

    @property
    def kind(self) -> str:
        return self.changes[0].mutation.operator

    @property
    def tests(self) -> frozenset[int]:
        return frozenset[int]().union(*(change.tests for change in self.changes))


def changes_of(
    path: str, data: bytes, kinds: Sequence[str], reach: Mapping[int, frozenset[int]]
) -> list[Change]:
    """Every change of these kinds in what tests reach of a file; [] for a file that can't be mutated."""
    try:
        source = data.decode()
        found = candidates(source, kinds)
        tree = parse_source(source)
    except (UsageError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return []
    spans = _Spans(tree)
    out: list[Change] = []
    for mutation in found:
        last = mutation.line + mutation.before.count("\n")
        tests = spans.reached(mutation.line, last, reach)
        if tests:
            out.append(Change(path, mutation, tests))
    return out


class _Spans:
    """Which lines a statement and a function have."""

    def __init__(self, tree: ast.Module) -> None:
        self.statements: dict[int, tuple[int, int]] = {}
        self.functions: list[tuple[int, int, int]] = []
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.append((node.lineno, node.body[0].lineno, node.end_lineno or node.lineno))
            elif isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
                body = getattr(node, "body", None)
                last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
                for line in range(node.lineno, max(last, node.lineno) + 1):
                    self.statements[line] = (node.lineno, max(last, node.lineno))

    def reached(self, first: int, last: int, reach: Mapping[int, frozenset[int]]) -> frozenset[int]:
        """The tests that reach a statement of these lines; of a function's head, those that reach its body; of what is run
        at the import, all that reach the file."""
        lines = {*range(first, last + 1)}
        for line in (first, last):
            start, end = self.statements.get(line, (line, line))
            lines |= {*range(start, end + 1)}
        around = [f for f in self.functions if f[0] <= first <= f[2]]
        if around:
            _, body, end = max(around)
            if first < body:
                lines = {*range(body, end + 1)}
        else:
            lines = {*reach}
        return frozenset[int]().union(*(reach[line] for line in sorted(lines) if line in reach))


def drawn(changes: Sequence[Change], most: int, seed: str) -> list[Break]:
    """Every change once, in the order in which they are to be tried, as breaks of 1 to ``most`` changes each."""
    rng = random.Random(seed)
    groups: defaultdict[str, list[Change]] = defaultdict(list)
    for change in sorted(changes):
        groups[change.mutation.operator].append(change)
    for name in sorted(groups):
        groups[name] = _spread(groups[name], rng)
    order: list[Change] = []
    while groups:
        names = sorted(groups)
        rng.shuffle(names)
        for name in names:
            order.append(groups[name].pop(0))
            if not groups[name]:
                del groups[name]
    return [_with_others(change, order, most, rng) for change in order]


def _spread(changes: list[Change], rng: random.Random) -> list[Change]:
    """Shuffled, and the functions in turn."""
    rng.shuffle(changes)
    seen: defaultdict[tuple[str, str], int] = defaultdict(int)
    turns: list[tuple[int, Change]] = []
    for change in changes:
        place = (change.path, change.mutation.scope)
        turns.append((seen[place], change))
        seen[place] += 1
    return [change for _, change in sorted(turns, key=lambda turn: turn[0])]


def _with_others(change: Change, every: Sequence[Change], most: int, rng: random.Random) -> Break:
    chosen = [change]
    wanted = rng.randint(1, most)
    for _ in range(20 * (wanted - 1)):
        if len(chosen) == wanted:
            break
        other = rng.choice(every)
        if all(_apart(other, one) for one in chosen):
            chosen.append(other)
    return Break(tuple(chosen))


def _apart(one: Change, two: Change) -> bool:
    """In different lines, so that what is made natural can't overlap either."""
    if one.path != two.path:
        return True
    a, b = one.mutation, two.mutation
    return a.line + a.before.count("\n") < b.line - 1 or b.line + b.before.count("\n") < a.line - 1
