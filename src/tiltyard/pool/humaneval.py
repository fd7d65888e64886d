"""HumanEval and HumanEval+ in their published formats.

The player finds the prompt as ``solution.py``, with a body that fails. The hidden test of HumanEval is the row's own
``check(candidate)``; the helpers that a prompt defines (``poly``, ``encode_cyclic``) stay the trusted ones there, for
prompt and tests stand in the prelude. Visible tests are the plain examples of the docstring. A task counts as solved
only as a whole, as published (reward ``all``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictStr

from tiltyard.errors import Problem
from tiltyard.pool import plus
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import examples, third_party, with_failing_body, without_numpy
from tiltyard.task import MAIN, Files, Limits, Metadata, Task, Test

RULES = {"find_zero": "root"}
"""By entry name, as in EvalPlus: HumanEval/32 asks for any root of a polynomial."""


class HumanEvalRow(BaseModel):
    """A row of HumanEval. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    prompt: StrictStr
    entry_point: StrictStr
    canonical_solution: StrictStr
    test: StrictStr


def is_humaneval(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of HumanEval."""
    return {"entry_point", "canonical_solution", "test"} <= row.keys() and not is_humaneval_plus(row)


def is_humaneval_plus(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of HumanEval+ (MBPP+ has the same and one more, and a prompt without code)."""
    if not {"entry_point", "canonical_solution", "base_input", "plus_input"} <= row.keys():
        return False
    return "assertion" not in row and f"def {row['entry_point']}" in str(row.get("prompt"))


def read_humaneval(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a HumanEval row, or None with its problems appended."""
    row = parse(HumanEvalRow, data, where, problems)
    if row is None:
        return None
    start = _start(row, where, problems)
    if start is None:
        return None
    tests, packages, stand_in = row.test, third_party(row.test), ""
    if "numpy" in packages and (changed := without_numpy(row.test)) is not None:
        tests, packages, stand_in = changed, third_party(changed), plus.NUMPY
    seed = "import random as _random\n_random.seed(0)\n" if "random" in tests else ""
    return _task(
        row,
        where,
        problems,
        start=start,
        prelude=f"{stand_in}{start}\n{tests}\n{seed}",
        hidden=(Test("check", code=f"check({row.entry_point})"),),
        limits=Limits(),
        metadata=Metadata(
            source="HumanEval",
            created="2021-07",
            license="MIT",
            tags=("humaneval", "function"),
            packages=tuple(sorted({*packages, *third_party(row.prompt + row.canonical_solution)})),
        ),
    )


def read_humaneval_plus(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a HumanEval+ row, or None with its problems appended."""
    row = parse(plus.PlusRow, data, where, problems)
    if row is None:
        return None
    start = _start(row, where, problems)
    if start is None:
        return None
    gold = row.prompt + row.canonical_solution
    rule = RULES.get(row.entry_point, "same")
    return _task(
        row,
        where,
        problems,
        start=start,
        prelude=plus.prelude(row.entry_point, gold, rule=rule, atol=row.atol),
        hidden=plus.hidden_tests(row.entry_point, row.base_input, row.plus_input),
        limits=plus.LIMITS,
        metadata=Metadata(
            source="HumanEval+",
            created="2023-05",
            license="Apache-2.0",
            tags=("humaneval+", "function"),
            packages=third_party(gold),
        ),
        facts=str(data.get("test", "")),
    )


def _start(row: HumanEvalRow | plus.PlusRow, where: str, problems: list[Problem]) -> str | None:
    start = with_failing_body(row.prompt, row.entry_point)
    if start is None:
        found = f"no Python that ends in the head of the function {row.entry_point!r}"
        problems.append(Problem(f"{where} (task {row.task_id!r})", "prompt", found, "such a beginning"))
    return start


def _task(
    row: HumanEvalRow | plus.PlusRow,
    where: str,
    problems: list[Problem],
    *,
    start: str,
    facts: str = "",
    **values: Any,
) -> Task | None:
    lines = examples(row.prompt, row.entry_point, row.test if isinstance(row, HumanEvalRow) else facts)
    return make_task(
        where,
        problems,
        id=row.task_id,
        prompt=(
            f"Complete the function `{row.entry_point}` in `{MAIN}`, as its docstring says. "
            f"The file begins like this, and what is there stays:\n\n```python\n{row.prompt.rstrip()}\n```\n"
        ),
        start=Files({MAIN: start}),
        reference=Files({MAIN: row.prompt + row.canonical_solution}),
        visible=tuple(Test(f"example/{n}", code=line) for n, line in enumerate(lines, 1)),
        entry=(row.entry_point,),
        reward="all",
        **values,
    )
