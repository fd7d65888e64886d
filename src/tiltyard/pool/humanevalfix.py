"""HumanEvalFix (of HumanEvalPack), Python: a function with a bug, to be repaired.

Two forms are read: complete sources (``buggy``, ``canonical``), and the fields of HumanEvalPack (``prompt`` with
``buggy_solution`` and ``canonical_solution``). The player finds the faulty module. The hidden test is the row's own
``check``; functions beside the faulty one stay the trusted ones there. Visible tests are the plain examples of the
docstring. A task is solved only as a whole, as published (reward ``all``).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictStr

from tiltyard.errors import Problem
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import defined, examples, third_party, tree_of
from tiltyard.task import MAIN, Files, Metadata, Task, Test


class FixRow(BaseModel):
    """A row with complete sources. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    entry_point: StrictStr
    buggy: StrictStr
    canonical: StrictStr
    test: StrictStr
    language: StrictStr = "python"


class PackRow(BaseModel):
    """A row of HumanEvalPack. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    entry_point: StrictStr
    prompt: StrictStr
    buggy_solution: StrictStr
    canonical_solution: StrictStr
    test: StrictStr


def is_humanevalfix(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of HumanEvalFix in either form."""
    return {"entry_point", "buggy", "canonical", "test"} <= row.keys() or (
        {"entry_point", "buggy_solution", "canonical_solution", "test"} <= row.keys()
    )


def read_humanevalfix(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a row, or None with its problems appended."""
    row = _row(data, where, problems)
    if row is None:
        return None
    at = f"{where} (task {row.task_id!r})"
    language = row.language.lower()
    if language != "python":
        problems.append(
            Problem(at, "language", repr(row.language), "python; other languages can't be graded")
        )
        return None
    for name in ("buggy", "canonical"):
        if row.entry_point not in defined(getattr(row, name)):
            found = f"no Python that defines {row.entry_point!r}"
            problems.append(Problem(at, name, found, "the module with that function"))
            return None
    definitions, calls = _split(row.test)
    if not calls:
        problems.append(Problem(at, "test", "no call of check(…) at its end", "the published test"))
        return None
    seed = "import random as _random\n_random.seed(0)\n" if "random" in row.test else ""
    lines = examples(row.canonical, row.entry_point, row.test)
    return make_task(
        where,
        problems,
        id=row.task_id,
        prompt=(
            f"The function `{row.entry_point}` in `{MAIN}` has a bug. Repair it, so that it does what its docstring "
            f"says; name and arguments stay.\n\n```python\n{row.buggy.strip()}\n```\n"
        ),
        start=Files({MAIN: row.buggy}),
        reference=Files({MAIN: row.canonical}),
        visible=tuple(Test(f"example/{n}", code=line) for n, line in enumerate(lines, 1)),
        hidden=(Test("check", code=calls),),
        prelude=f"{row.canonical}\n{definitions}\n{seed}",
        entry=(row.entry_point,),
        reward="all",
        metadata=Metadata(
            source="HumanEvalFix",
            created="2023-08",
            license="MIT",
            tags=("humanevalfix", "bugfix", "function"),
            packages=third_party(row.canonical, row.test),
        ),
    )


def _row(data: Mapping[str, Any], where: str, problems: list[Problem]) -> FixRow | None:
    if "buggy_solution" not in data:
        return parse(FixRow, data, where, problems)
    row = parse(PackRow, data, where, problems)
    if row is None:
        return None
    language = row.task_id.partition("/")[0] if "/" in row.task_id else "python"
    return FixRow(
        task_id=row.task_id,
        entry_point=row.entry_point,
        buggy=row.prompt + row.buggy_solution,
        canonical=row.prompt + row.canonical_solution,
        test=row.test,
        language=language,
    )


def _split(test: str) -> tuple[str, str]:
    """A test's definitions, and its calls of ``check`` at the top level."""
    tree = tree_of(test)
    if tree is None:
        return test, ""
    lines = test.split("\n")
    calls = []
    for node in tree.body:
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Name) and called.id == "check":
            calls.append(ast.unparse(node))
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            lines[first:last] = [""] * (last - first)
    return "\n".join(lines).rstrip("\n"), "\n".join(calls)
