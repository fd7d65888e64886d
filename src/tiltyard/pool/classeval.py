"""ClassEval as published: a class to be written from its skeleton, with a unittest suite.

The player finds the skeleton as ``solution.py``; skeletons that are no Python are replaced by the class's heads (the
prompt shows the published text all the same). Hidden is each test method of the row's suite. The names of the
solution that the suite uses are remote; modules that it expects the solution to have imported are imported beside it.
A suite that touches files, which it shares with the class, is one for pytest instead (``grading`` "pytest").
A task is solved only as a whole, as published (reward ``all``).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from tiltyard.errors import Problem
from tiltyard.parsing import parse_source
from tiltyard.pool.model import make_task, parse
from tiltyard.pool.sources import NOT_WRITTEN, defined, names_in, third_party, tree_of
from tiltyard.pool.suites import (
    EXAMPLE,
    SUITE,
    Method,
    SuiteError,
    head_of,
    imports_for,
    methods_of,
    prelude,
)
from tiltyard.task import MAIN, Files, Limits, Metadata, Task, Test

LIMITS = Limits(test_s=30.0, grade_s=300.0)
"""One published solution searches for seconds: a test has the time of a slower machine than that."""


_FILES = frozenset("open os sqlite3 shutil tempfile zipfile tarfile pathlib Path glob".split())
"""Names by which a suite touches files."""


class ClassEvalRow(BaseModel):
    """A row of ClassEval. Other keys are not used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    task_id: StrictStr
    class_name: StrictStr
    skeleton: StrictStr
    solution_code: StrictStr
    test: StrictStr
    import_statement: list[StrictStr] = Field(default=[])


def is_classeval(row: Mapping[str, Any]) -> bool:
    """Whether a row has the fields of ClassEval."""
    return {"class_name", "skeleton", "solution_code", "test"} <= row.keys()


def read_classeval(data: Mapping[str, Any], where: str, problems: list[Problem]) -> Task | None:
    """The task of a row, or None with its problems appended."""
    row = parse(ClassEvalRow, data, where, problems)
    if row is None:
        return None
    at = f"{where} (task {row.task_id!r})"
    reference = _with_imports(row)
    bound = defined(reference)
    if row.class_name not in bound:
        found = f"no Python that defines the class {row.class_name!r}"
        problems.append(Problem(at, "solution_code", found, "the solved module"))
        return None
    try:
        methods = methods_of(row.test)
    except SuiteError as error:
        problems.append(Problem(at, "test", str(error), "a unittest suite"))
        return None
    if not methods:
        problems.append(Problem(at, "test", "no test method that is run", "a unittest suite"))
        return None
    used = names_in(tree_of(row.test) or ast.Module([], []))
    packages = third_party(reference, row.test)
    how = (
        _by_pytest(row, reference, methods)
        if used & _FILES
        else _by_calls(row, methods, bound, used, packages)
    )
    return make_task(
        where,
        problems,
        id=row.task_id,
        prompt=(
            f"Write the class `{row.class_name}` in `{MAIN}`, as the docstrings in its skeleton say. Names and arguments "
            f"stay as they are.\n\n```python\n{row.skeleton.strip()}\n```\n"
        ),
        reference=Files({MAIN: reference}),
        **how,
        reward="all",
        limits=LIMITS,
        metadata=Metadata(
            source="ClassEval",
            created="2023-08",
            license="MIT",
            tags=("classeval", "class"),
            packages=packages,
        ),
    )


def _by_calls(
    row: ClassEvalRow,
    methods: list[Method],
    bound: Mapping[str, Any],
    used: set[str],
    packages: Sequence[str],
) -> dict[str, Any]:
    return {
        "start": Files({MAIN: _start(row)}),
        "visible": tuple(m.visible(_head(row, m)) for m in methods[:1]),
        "hidden": tuple(m.hidden(_head(row, m)) for m in methods),
        "prelude": prelude(packages),
        "entry": tuple(n for n in bound if n == row.class_name or n in used),
    }


def _by_pytest(row: ClassEvalRow, reference: str, methods: list[Method]) -> dict[str, Any]:
    """For a suite that shares files with the class: validation finds the way in which that works."""

    def file(source: str) -> str:
        imports = imports_for(source, row.import_statement)
        return f"{imports}{head_of(reference, source)}{source.rstrip()}\n"

    return {
        "start": Files({MAIN: _start(row), EXAMPLE: file(methods[0].source)}),
        "protected": frozenset({EXAMPLE}),
        "visible": (Test(EXAMPLE),),
        "suite": Files({SUITE: file(row.test)}),
        "hidden": tuple(Test(f"{SUITE}::{m.id}") for m in methods),
        "grading": "pytest",
    }


def _with_imports(row: ClassEvalRow) -> str:
    """The solved module with the imports that it uses and doesn't have itself."""
    tree = tree_of(row.solution_code)
    has = (
        {ast.unparse(n) for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))} if tree else set()
    )
    lines = imports_for(row.solution_code, row.import_statement).splitlines()
    missing = "".join(f"{line}\n" for line in lines if line not in has)
    return f"{missing}{row.solution_code.rstrip()}\n"


def _head(row: ClassEvalRow, method: Method) -> str:
    """The imports of the solution that the suite uses as its own, for it is published to run in one module with it."""
    return imports_for(method.source, row.import_statement)


def _start(row: ClassEvalRow) -> str:
    if row.class_name in defined(row.skeleton):
        return f"{row.skeleton.rstrip()}\n"
    tree = tree_of(row.solution_code) or ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = parse_source(NOT_WRITTEN).body
    return ast.unparse(tree) + "\n"
