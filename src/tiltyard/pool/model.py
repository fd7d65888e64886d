"""What rows and task files may say, as pydantic models, and the way from there to a :class:`Task` or its problems.

Shared by all formats. Nothing here reads a file. A model accepts exactly what the format allows; an unknown key is a
problem with a hint, for a misspelt ``hidden`` must not make a task that tests nothing.
"""

from __future__ import annotations

import ast
import datetime
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
)
from pydantic_core import PydanticCustomError

from tiltyard.errors import ArenaError, Problem, TaskError, UsageError
from tiltyard.images import ImageFiles, Images
from tiltyard.parsing import parse_source
from tiltyard.pool.collection import near
from tiltyard.pool.rows import short
from tiltyard.task import MAIN, Files, Limits, Metadata, Task, Test

_CREATED = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
M = TypeVar("M", bound=BaseModel)


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PydanticCustomError("float_type", "not a number")
    return value


def _difficulty(value: object) -> str | float | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PydanticCustomError("difficulty", "a word, a number or null")
    return value


def _day(value: object) -> object:
    """TOML makes a date of what looks like one."""
    return value.isoformat() if type(value) is datetime.date else value


def _test(value: object) -> object:
    return {"code": value} if isinstance(value, str) else value


Number = Annotated[float, PlainValidator(_number)]


class Strict(BaseModel):
    """No unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TestRow(Strict):
    """One test: the fields of :class:`tiltyard.task.Test`. Those that are None take the task's default."""

    __test__ = False

    id: StrictStr | None = None
    code: StrictStr = ""
    stdin: StrictStr = ""
    stdout: StrictStr = ""
    args: list[StrictStr] = Field(default=[])
    exit_code: StrictInt | None = None
    match: StrictStr | None = None
    tolerance: Number | None = None
    time_s: Number | None = None


TestEntry = Annotated[TestRow, BeforeValidator(_test)]


class MetaRow(BaseModel):
    """The fields of :class:`tiltyard.task.Metadata`; any other key goes to ``extra``."""

    model_config = ConfigDict(extra="allow", frozen=True)

    source: StrictStr | None = None
    created: Annotated[StrictStr | None, BeforeValidator(_day)] = None
    difficulty: Annotated[str | float | None, PlainValidator(_difficulty)] = None
    license: StrictStr | None = None
    tags: list[StrictStr] = Field(default=[])
    image: StrictStr | None = None
    python: StrictStr | None = None
    packages: list[StrictStr] = Field(default=[])


_LIMITS = get_type_hints(Limits)
_limit_fields: dict[str, Any] = {
    f.name: (StrictInt | None if _LIMITS[f.name] is int else Number | None, None) for f in fields(Limits)
}
# Any: mypy can't see the fields of a model that is made from a dataclass.
_LimitsRow: Any = create_model("_LimitsRow", __base__=Strict, **_limit_fields)


class Settings(Strict):
    """What a lesson dict and a ``task.toml`` have in common."""

    id: StrictStr | None = None
    grading: StrictStr = "calls"
    reward: StrictStr = "fraction"
    main: StrictStr = MAIN
    entry: list[StrictStr] | None = None
    protected: list[StrictStr] = Field(default=[])
    match: StrictStr = "lines"
    tolerance: Number = 0.0
    limits: _LimitsRow = Field(default_factory=_LimitsRow)
    shell: StrictBool = False
    clock: StrictStr = ""
    pass_to_pass: list[StrictStr] = Field(default=[])
    way: StrictStr = ""
    pythonpath: list[StrictStr] = Field(default=[])
    plugins: list[StrictStr] = Field(default=[])
    image: StrictStr = ""
    """Digest of the image that the start files are, "" if they are given one by one."""
    removed: list[StrictStr] = Field(default=[])
    """Start files that the reference takes away."""
    suite_removed: list[StrictStr] = Field(default=[])


def suite_settings(settings: Settings) -> dict[str, Any]:
    """The fields of a :class:`Task` that only ``grading = "pytest"`` has."""
    return {
        "pass_to_pass": tuple(settings.pass_to_pass),
        "way": settings.way,
        "pythonpath": tuple(settings.pythonpath),
        "plugins": tuple(settings.plugins),
    }


def image_of(image: str, stores: Sequence[Path], where: str, problems: list[Problem]) -> Files | None:
    """The files of an image, from the first of these stores that has it, or from this machine's cache."""
    missing = ""
    for root in (*stores, None):
        try:
            return Images(root).get(image)
        except UsageError as error:
            missing = missing or str(error)
        except ArenaError as error:
            missing = str(error)
            break
    problems.append(Problem(where, "image", missing, "an image that lies in images/ beside the tasks"))
    return None


_EXPECTED = {
    "missing": "a value, for this key is required",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table of names and values",
    "model_type": "a table of names and values",
    "model_attributes_type": "a table of names and values",
    "int_type": "a whole number",
    "float_type": "a number",
}
_NESTED = {
    "limits": tuple(f.name for f in fields(Limits)),
    "visible": tuple(TestRow.model_fields),
    "hidden": tuple(TestRow.model_fields),
}


def dotted(loc: Sequence[int | str]) -> str:
    """``("hidden", 2, "code")`` as ``hidden[2].code``."""
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def parse(model: type[M], data: object, where: str, problems: list[Problem]) -> M | None:
    """The model made of ``data``, or None with every problem appended to ``problems``."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            loc, kind = item["loc"], item["type"]
            if kind == "extra_forbidden":
                known = _NESTED.get(str(loc[0]), ()) if len(loc) > 1 else tuple(model.model_fields)
                hint = near(str(loc[-1]), known) or "; the keys are: " + ", ".join(known)
                problems.append(Problem(where, dotted(loc), "an unknown key", f"only known keys{hint}"))
            else:
                found = "nothing" if kind == "missing" else short(item["input"])
                expected = _EXPECTED.get(kind, item["msg"])
                if loc and loc[0] in ("visible", "hidden") and kind.startswith("model"):
                    expected = "Python as text, or a table with 'code' (or stdin and stdout)"
                problems.append(Problem(where, dotted(loc), found, expected))
        return None


def limits_of(row: BaseModel) -> Limits:
    """The limits that a task names, over the defaults. Raises nothing: :class:`Task` checks the values."""
    given = {k: v for k, v in row.model_dump().items() if v is not None}
    # 2 and 2.0 seconds are the same limit, so they must give the same digest.
    values: dict[str, Any] = {k: v if _LIMITS[k] is int else float(v) for k, v in given.items()}
    return Limits(**values)


def metadata_of(row: MetaRow, where: str, problems: list[Problem], tags: Sequence[str] = ()) -> Metadata:
    """The metadata, ``tags`` and the row's own merged in order; keys that have no field go to ``extra`` as text."""
    if row.created and not _CREATED.fullmatch(row.created):
        expected = "an ISO date or a prefix of one: 2026, 2026-10 or 2026-10-31"
        problems.append(Problem(where, "created", repr(row.created), expected))
    extra = row.model_extra or {}
    texts = {
        k: v if isinstance(v, str) else json.dumps(v, sort_keys=True, default=str) for k, v in extra.items()
    }
    return Metadata(
        source=row.source or "",
        created=row.created or "",
        difficulty=row.difficulty,
        license=row.license or "",
        tags=tuple(dict.fromkeys([*tags, *row.tags])),
        image=row.image or "",
        python=row.python or "",
        packages=tuple(row.packages),
        extra=tuple(sorted(texts.items())),
    )


def tests_of(
    rows: Sequence[TestRow], kind: str, settings: Settings, where: str, problems: list[Problem]
) -> tuple[Test, ...]:
    """Tests of rows. ``kind`` is ``visible`` or ``hidden``, and names tests without an id: ``hidden/1``, …"""
    out = []
    for n, row in enumerate(rows):
        stdio = settings.grading == "stdio"
        strange = {"code"} if stdio else set(TestRow.model_fields) - {"id", "code", "time_s"}
        for name in sorted(strange & row.model_fields_set):
            what = f"{name!r} in a test of a task with grading = {settings.grading!r}"
            expected = "stdin, stdout, args, exit_code" if stdio else "code, which is Python"
            problems.append(Problem(where, f"{kind}[{n}].{name}", what, expected))
        match, tolerance = (row.match, row.tolerance) if stdio else (None, None)
        out.append(
            Test(
                id=f"{kind}/{n + 1}" if row.id is None else row.id,
                code=row.code,
                stdin=row.stdin,
                stdout=row.stdout,
                args=tuple(row.args),
                exit_code=row.exit_code,
                match=match if match is not None else settings.match if stdio else "lines",
                tolerance=float(tolerance if tolerance is not None else settings.tolerance if stdio else 0.0),
                time_s=None if row.time_s is None else float(row.time_s),
            )
        )
    return tuple(out)


def public_names(source: bytes | str) -> tuple[str, ...]:
    """The names of the public functions and classes at the top level of a module, in order. Raises SyntaxError."""
    try:
        body = parse_source(source).body
    except ValueError as error:  # A NUL byte; Python from 3.12 on says SyntaxError.
        raise SyntaxError(str(error)) from None
    except (RecursionError, MemoryError):  # what the parser says of code that is nested too deep
        raise SyntaxError("it is nested too deep") from None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")]
    return tuple(dict.fromkeys(names))


def entry_of(
    settings: Settings, files: Mapping[str, bytes], where: str, problems: list[Problem]
) -> tuple[str, ...]:
    """The names that tests use: those the author gives, else the public names of ``main`` in ``files``."""
    if settings.entry is not None:
        return tuple(settings.entry)
    if settings.grading != "calls" or settings.main not in files:
        return ()
    try:
        return public_names(files[settings.main])
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        problems.append(
            Problem(
                where, "reference", f"{settings.main} that does not compile ({error.msg}{line})", "Python"
            )
        )
        return ()


def size_problems(files: Files, name: str, limits: Limits, where: str) -> Iterator[Problem]:
    """Files that the task's own limits would not let into a cell."""
    # an image's files are not read for this
    sizes = (
        files.sizes if isinstance(files, ImageFiles) else {path: len(data) for path, data in files.items()}
    )
    for path, size in sizes.items():
        if size > limits.file_bytes:
            expected = f"at most {limits.file_bytes} bytes (limits.file_bytes)"
            yield Problem(where, f"{name}/{path}", f"a file of {size} bytes", expected)
    total = sum(sizes.values())
    if total > limits.disk_bytes:
        expected = f"at most {limits.disk_bytes} bytes (limits.disk_bytes)"
        yield Problem(where, name, f"{total} bytes in all", expected)
    if len(files) > limits.disk_files:
        yield Problem(where, name, f"{len(files)} files", f"at most {limits.disk_files} (limits.disk_files)")


def make_task(where: str, problems: list[Problem], **values: Any) -> Task | None:
    """``Task(**values)``, or None with its problems appended; each says where the task stood."""
    before = len(problems)
    limits = values.get("limits", Limits())
    try:
        task = Task(**values)
    except TaskError as error:
        id_ = values.get("id")
        problems.extend(
            Problem(f"{where} (task {id_!r})", p.field, p.found, p.expected) for p in error.problems
        )
        return None
    for name in ("start", "reference", "suite"):
        problems.extend(size_problems(getattr(task, name), name, limits, f"{where} (task {task.id!r})"))
    return task if len(problems) == before else None
