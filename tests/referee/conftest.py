"""Helpers for the referee's tests: a task from a reference and tests in one line."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from tiltyard.cells.protocol import Wall
from tiltyard.referee import Referee
from tiltyard.task import Files, Limits, Task, Test
from tiltyard.verdict import Verdict

Grade = Callable[..., Verdict]


def make_task(reference: str, tests: list[str], **fields: Any) -> Task:
    """A task of kind calls whose entry names are the public names that the reference defines."""
    source = dedent(reference)
    entry = tuple(
        name
        for node in ast.parse(source).body
        for name in (
            [t.id for t in node.targets if isinstance(t, ast.Name)]
            if isinstance(node, ast.Assign)
            else [getattr(node, "name", "_")]
        )
        if name[0] != "_"
    )
    defaults: dict[str, Any] = {
        "id": "t",
        "prompt": "p",
        "start": Files({"solution.py": ""}),
        "hidden": tuple(Test(f"hidden/{n}", dedent(code)) for n, code in enumerate(tests, 1)),
        "reference": Files({"solution.py": source}),
        "entry": entry,
        "limits": Limits(test_s=20.0),
    }
    return Task(**{**defaults, **fields})


@pytest.fixture
def grade(wall: Wall) -> Grade:
    """``grade(solution, tests)``: the verdict on a solution's source, with its own names as the entry names."""

    def run(
        solution: str, tests: list[str], *, files: dict[str, str] | None = None, **fields: Any
    ) -> Verdict:
        task = make_task(solution, tests, **fields)
        return Referee(wall).grade(task, Files({**task.reference, **(files or {})}))

    return run
