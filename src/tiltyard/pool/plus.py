"""HumanEval+ and MBPP+ rows: hidden tests that compare with what the reference returns.

The reference, under another name, and the comparison (``oracle.py``) stand in the prelude, which runs in the examiner;
a test is a call with JSON text, so that a thousand inputs cost no compiling. Nothing is executed here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictStr
from pydantic_core import PydanticCustomError

from tiltyard.pool.model import Number
from tiltyard.pool.sources import module_text
from tiltyard.task import Limits, Test

CHUNK = 50
"""Inputs of one test at most."""
TIME_S = 60.0
"""Wall-clock of one such test. EvalPlus gives each input the greater of 1 s and 4 times the reference's time; there are
references that need 5 s for a chunk."""
LIMITS = Limits(grade_s=300.0)


def _inputs(value: object) -> object:
    """Published files have a list of argument lists, the same as JSON text, or an empty object for no inputs."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise PydanticCustomError("inputs", "JSON text of a list of argument lists") from error
    return [] if value == {} else value


Inputs = Annotated[list[list[Any]], BeforeValidator(_inputs)]


class PlusRow(BaseModel):
    """A row of HumanEval+ or MBPP+ (EvalPlus's own format). Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    prompt: StrictStr
    entry_point: StrictStr
    canonical_solution: StrictStr
    base_input: Inputs
    plus_input: Inputs
    atol: Number = 0.0


def prelude(entry: str, gold: str, *, rule: str = "same", atol: float = 0.0, shape: str = "plain") -> str:
    """Code that binds ``_plus(candidate, inputs)``, and nothing else."""
    return (
        '_plus = {"__name__": "_oracle"}\n'
        f'exec(compile({module_text("oracle")!r}, "oracle.py", "exec"), _plus)\n'
        f'_plus = _plus["checker"](entry={entry!r}, rule={rule!r}, atol={float(atol)!r}, shape={shape!r}, gold={gold!r})\n'
    )


def hidden_tests(entry: str, base: Sequence[Any], plus: Sequence[Any]) -> tuple[Test, ...]:
    """``base`` and ``plus/1``, ``plus/2``, … for the inputs that there are."""
    chunks = [("base", base)] if base else []
    starts = range(0, len(plus), CHUNK)
    chunks += [(f"plus/{n}", plus[start : start + CHUNK]) for n, start in enumerate(starts, 1)]
    return tuple(
        Test(id=name, code=f"_plus({entry}, {json.dumps(inputs)!r})", time_s=TIME_S)
        for name, inputs in chunks
    )


NUMPY = (
    '_np = {"__name__": "_oracle"}\n'
    f'exec(compile({module_text("oracle")!r}, "oracle.py", "exec"), _np)\n'
    'np = _np["numpy_stand_in"]\n'
)
"""Prelude that binds ``np`` to what published test files need of numpy."""
