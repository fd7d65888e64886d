"""Finds the mutations of a source: walks it with libcst, and asks the operators at each node.

Left alone: docstrings, annotations, decorators, imports, ``__all__`` and ``__slots__``, what stands under
``if __name__ == "__main__"``, and the texts of exceptions that are raised. Every mutation that is returned compiles, and
no two give the same program, nor the one that was there.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tiltyard.errors import UsageError
from tiltyard.mutate.model import DEFAULT, OPERATORS, Mutation, apply
from tiltyard.parsing import parse_source

if TYPE_CHECKING:
    from tiltyard.mutate.operators import Change

MAX_SOURCE = 200_000
"""Characters. Each mutation of a source is a whole program to compile."""


def mutations(source: str, operators: Iterable[str] = DEFAULT) -> list[Mutation]:
    """Every mutation that these operators make of ``source``, in its order.

    UsageError: an operator is not known, libcst is missing, or the source is no Python or too long.
    """
    seen = {program(source)}
    found: list[Mutation] = []
    for mutation in candidates(source, operators):
        made = program(apply(source, [mutation]))
        if made is not None and made not in seen:
            seen.add(made)
            found.append(mutation)
    return found


def candidates(source: str, operators: Iterable[str] = DEFAULT) -> list[Mutation]:
    """As :func:`mutations`, but whether one compiles, and differs from the source and from the others, is not looked at:
    to look at all mutations of a large source takes minutes, and who draws a few can look at those (``program``)."""
    wanted = frozenset(operators)
    if unknown := sorted(wanted - OPERATORS.keys()):
        raise UsageError(f"operators: found {unknown[0]!r}; expected some of {', '.join(OPERATORS)}")
    if len(source) > MAX_SOURCE:
        raise UsageError(f"a source of {len(source)} characters; expected at most {MAX_SOURCE}")
    if program(source) is None:
        raise UsageError("a source that does not compile can't be mutated")
    return sorted(set(_candidates(source, wanted)))


def program(source: str) -> str | None:
    """What the source means, whatever it looks like; None if it is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = parse_source(source)
            compile(tree, "<mutant>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    return ast.dump(tree)


def _candidates(source: str, wanted: frozenset[str]) -> Iterator[Mutation]:
    try:
        import libcst as cst

        from tiltyard.mutate import operators
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise UsageError(
            "mutating source needs libcst, which is not installed; pip install 'tiltyard[adequacy]'"
        ) from None
    data = source.encode()
    for change in operators.changes(cst.parse_module(data)):
        if change.operator in wanted:
            yield _mutation(data, change)


def _mutation(data: bytes, change: Change) -> Mutation:
    line = data.count(b"\n", 0, change.start) + 1
    before = data[change.start : change.end].decode()
    return Mutation(change.start, change.end, change.text, change.operator, line, change.scope, before)
