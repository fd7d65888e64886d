"""BigCodeBench: a function that uses libraries, with a unittest suite. In both published shapes of its rows.

The player finds the function's head with its docstring as ``solution.py``. Hidden is each test method of the row's suite,
run by pytest: many of these suites patch the standard library or share files with the function, so the way in which
they run is left to validation. The first method is visible, as a file. A task is solved only as a whole, as published
(reward ``all``). Nothing is executed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictStr

from tiltyard.errors import Problem
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import defined, third_party, with_failing_body
from tiltyard.pool.suites import EXAMPLE, MODULE, SUITE, SuiteError, head_of, methods_of
from tiltyard.task import MAIN, Files, Limits, Metadata, Task, Test

LIMITS = Limits(test_s=30.0, grade_s=300.0)


class BigCodeBenchRow(BaseModel):
    """A row of BigCodeBench. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    entry_point: StrictStr
    prompt: StrictStr = Field(validation_alias=AliasChoices("prompt", "complete_prompt"))
    instruction: StrictStr = Field(validation_alias=AliasChoices("instruction", "instruct_prompt"))
    canonical_solution: StrictStr
    test: StrictStr


def is_bigcodebench(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of BigCodeBench."""
    return (
        {"entry_point", "canonical_solution", "test"} <= row.keys()
        and ("instruction" in row or "instruct_prompt" in row)
        and ("prompt_wo_doc" in row or "code_prompt" in row)
    )


def read_bigcodebench(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a row, or None with its problems appended."""
    row = parse(BigCodeBenchRow, data, where, problems)
    if row is None:
        return None
    at = f"{where} (task {row.task_id!r})"
    reference = f"{row.prompt.rstrip()}\n{row.canonical_solution.rstrip()}\n"
    start = with_failing_body(row.prompt, row.entry_point)
    if start is None or row.entry_point not in defined(reference):
        found = f"no Python that begins the function {row.entry_point!r}"
        problems.append(Problem(at, "prompt", found, "imports and a function's head with its docstring"))
        return None
    source = row.test.replace(
        "__main__.", f"{MODULE}."
    )  # published to be run in one module with the function
    try:
        methods = methods_of(source)
    except SuiteError as error:
        problems.append(Problem(at, "test", str(error), "a unittest suite"))
        return None
    if not methods:
        problems.append(Problem(at, "test", "no test method that is run", "a unittest suite"))
        return None
    packages = third_party(reference, source)
    example = methods[0]
    return make_task(
        where,
        problems,
        id=row.task_id,
        prompt=(
            f"Write the function `{row.entry_point}` in `{MAIN}`.\n\n{row.instruction.strip()}\n\nKeep what `{MAIN}` begins "
            "with: imports, names and arguments.\n"
        ),
        start=Files({MAIN: start, EXAMPLE: f"{head_of(reference, example.source)}{example.source}\n"}),
        protected=frozenset({EXAMPLE}),
        reference=Files({MAIN: reference}),
        visible=(Test(EXAMPLE),),
        suite=Files({SUITE: f"{head_of(reference, source)}{source.rstrip()}\n"}),
        hidden=tuple(Test(f"{SUITE}::{method.id}") for method in methods),
        grading="pytest",
        reward="all",
        limits=LIMITS,
        metadata=Metadata(
            source="BigCodeBench",
            created="2024-06",
            license="Apache-2.0",
            tags=("bigcodebench", "function"),
            packages=packages,
        ),
    )
