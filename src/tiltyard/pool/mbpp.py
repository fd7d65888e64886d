"""MBPP (original and sanitized) and MBPP+ (EvalPlus's own format, and in MBPP's format) as published.

The player finds the heads of the functions that tests use, and sees the first assert. Hidden are all asserts, or for
MBPP+ the comparison with the reference over all inputs. A task counts as solved only as a whole, as published.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from tiltyard.errors import Problem
from tiltyard.pool import plus
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import (
    defined,
    names_in,
    stub_of,
    third_party,
    tree_of,
    with_imports,
    without_numpy,
)
from tiltyard.task import MAIN, Files, Limits, Metadata, Task, Test

# The facts of EvalPlus's evaluator: rules by entry name, shapes of the arguments by the number of the task.
RULES = {
    **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), "not_none"),
    **dict.fromkeys(
        (
            "similar_elements",
            "find_char_long",
            "common_in_nested_lists",
            "extract_singly",
            "larg_nnum",
            "intersection_array",
            "find_dissimilar",
            "Diff",
        ),
        "set",
    ),
    "sum_div": "proper_divisors",
    "surface_Area": "pyramid",
    "digit_distance_nums": "digits",
}
# fmt: off
_SHAPES: dict[str, tuple[int, ...]] = {
    "tuples": (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809),
    "lists of tuples": (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    "tuples of tuples": (259, 401, 445),
    "deep tuples": (580, 615, 791),
    "a tuple of items": (278,),
    "a tuple first": (250, 307, 405, 446, 617, 720, 763, 808),
    "a tuple second": (106, 750),
    "a list of tuples first": (75, 413, 444, 753),
    "a dict of tuples first": (722,),
    "a list of sets": (115,),
    "a complex": (252,),
    "a float and a complex": (124,),
}
# fmt: on
SHAPES = {number: shape for shape, numbers in _SHAPES.items() for number in numbers}


class MbppRow(BaseModel):
    """A row of MBPP: original (``text``), sanitized (``prompt``), or MBPP+ in that format (``test``)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictInt | StrictStr
    text: StrictStr = ""
    prompt: StrictStr = ""
    code: StrictStr
    test_list: list[StrictStr]
    challenge_test_list: list[StrictStr] = Field(default=[])
    test_setup_code: StrictStr = ""
    test_imports: list[StrictStr] = Field(default=[])
    test: StrictStr = ""


def is_mbpp(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of MBPP, original or sanitized."""
    return {"task_id", "code", "test_list"} <= row.keys() and not row.get("test")


def is_mbpp_plus(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of MBPP+, in EvalPlus's own format or in MBPP's."""
    if {"task_id", "code", "test_list"} <= row.keys():
        return bool(row.get("test"))
    return {"entry_point", "canonical_solution", "base_input", "plus_input"} <= row.keys()


def read_mbpp(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a row in MBPP's format, or None with its problems appended."""
    row = parse(MbppRow, data, where, problems)
    if row is None:
        return None
    id_ = row.task_id if isinstance(row.task_id, str) else f"Mbpp/{row.task_id}"
    at = f"{where} (task {id_!r})"
    gold = _unix(row.code)
    entry = _entry(gold, [*row.test_list, row.test_setup_code])
    if not entry:
        problems.append(Problem(at, "test_list", "no test that uses a function of 'code'", "asserts that do"))
        return None
    # Setup may use the solution's classes, so it belongs to each test and not to the prelude.
    head = "".join(
        f"{_unix(part).rstrip()}\n" for part in (*row.test_imports, row.test_setup_code) if part.strip()
    )
    hidden = _asserts("test", row.test_list, head, entry) + _asserts(
        "challenge", row.challenge_test_list, head, entry
    )
    prelude, packages = "", set(third_party(gold, head))
    if row.test:
        source = without_numpy(row.test)
        if source is None:
            found = "a test file that uses numpy for more than np.allclose, or is no Python"
            problems.append(Problem(at, "test", found, "the published test file"))
            return None
        prelude = plus.NUMPY
        hidden += (Test("plus", code=source, time_s=plus.TIME_S),)
        packages |= set(third_party(source))
    return _task(
        where,
        problems,
        id_=id_,
        text=row.text or row.prompt,
        shown=[line.strip() for line in row.test_list[:1]],
        setup=head,
        gold=gold,
        entry=entry,
        hidden=hidden,
        prelude=prelude,
        limits=plus.LIMITS if row.test else Limits(),
        metadata=_metadata(bool(row.test), packages),
    )


def read_mbpp_plus(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of an MBPP+ row in either format, or None with its problems appended."""
    if "code" in data:
        return read_mbpp(data, where, problems)
    row = parse(plus.PlusRow, data, where, problems)
    if row is None:
        return None
    gold = _unix(row.canonical_solution)
    text, shown = _split_prompt(row.prompt)
    number = row.task_id.rpartition("/")[2]
    shape = SHAPES.get(int(number), "plain") if number.isascii() and number.isdigit() else "plain"
    entry = row.entry_point
    if entry not in defined(gold):
        at = f"{where} (task {row.task_id!r})"
        found = f"a solution that doesn't define {entry!r}"
        problems.append(Problem(at, "canonical_solution", found, "one that does"))
        return None
    return _task(
        where,
        problems,
        id_=row.task_id,
        text=text,
        shown=shown,
        setup="",
        gold=gold,
        entry=(entry,),
        hidden=plus.hidden_tests(entry, row.base_input, row.plus_input),
        prelude=plus.prelude(entry, gold, rule=RULES.get(entry, "same"), atol=row.atol, shape=shape),
        limits=plus.LIMITS,
        metadata=_metadata(True, set(third_party(gold))),
    )


def _task(
    where: str,
    problems: list[Problem],
    *,
    id_: str,
    text: str,
    shown: Sequence[str],
    setup: str,
    gold: str,
    entry: tuple[str, ...],
    **values: Any,
) -> Task | None:
    what = " and ".join(f"`{name}`" for name in entry)
    shown_text = "\n".join([setup.rstrip(), *shown] if setup else shown)
    example = f" This must hold:\n\n```python\n{shown_text}\n```" if shown else ""
    return make_task(
        where,
        problems,
        id=id_,
        prompt=f"{_unix(text).strip()}\n\nWrite {what} in `{MAIN}`.{example}\n",
        start=Files({MAIN: stub_of(gold, entry)}),
        reference=Files({MAIN: gold.lstrip("\n")}),
        visible=_asserts("example", shown, setup, entry),
        entry=entry,
        reward="all",
        **values,
    )


def _asserts(name: str, lines: Sequence[str], head: str, entry: Sequence[str]) -> tuple[Test, ...]:
    return tuple(
        Test(f"{name}/{n}", code=with_imports(head + _unix(line).strip(), entry))
        for n, line in enumerate(lines, 1)
    )


def _entry(gold: str, tests: Sequence[str]) -> tuple[str, ...]:
    """The names that the reference defines and the tests use, in the order of the reference."""
    used: set[str] = set()
    for test in tests:
        tree = tree_of(_unix(test).strip())
        used |= names_in(tree) if tree else set()
    return tuple(name for name in defined(gold) if name in used)


def _split_prompt(prompt: str) -> tuple[str, list[str]]:
    """An MBPP+ prompt is a docstring: what to do, then asserts."""
    tree = tree_of(prompt)
    text = (ast.get_docstring(tree) if tree else None) or prompt.strip()
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if line.startswith("assert ")), len(lines))
    tests = "\n".join(lines[at:])
    body = tree_of(tests)
    if body is None or not all(isinstance(node, ast.Assert) for node in body.body):
        return text, []
    return "\n".join(lines[:at]), [ast.get_source_segment(tests, node) or "" for node in body.body]


def _metadata(is_plus: bool, packages: set[str]) -> Metadata:
    return Metadata(
        source="MBPP+" if is_plus else "MBPP",
        created="2023-11" if is_plus else "2021-08",
        license="Apache-2.0" if is_plus else "CC-BY-4.0",
        tags=("mbpp+" if is_plus else "mbpp", "function"),
        packages=tuple(sorted(packages)),
    )


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")
