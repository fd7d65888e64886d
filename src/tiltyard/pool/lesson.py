"""The plain dict of a task, one a row: ``{"id", "prompt", "stub", "ref", "visible", "hidden", "meta"}``, and more.

``stub`` and ``ref`` are the text of ``main`` (solution.py) before and after. A test is a text of Python or an object
with the fields of a :class:`Test`. ``start`` and ``reference`` hold further files, as text or as ``{"base64": …}``.
docs/tasks.md has the whole format. Every problem of every row is collected.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, StrictStr

from tiltyard.errors import Problem
from tiltyard.pool.model import (
    MetaRow,
    Settings,
    Strict,
    TestEntry,
    entry_of,
    image_of,
    limits_of,
    make_task,
    metadata_of,
    parse,
    suite_settings,
    tests_of,
)
from tiltyard.task import Files, Task


def _file(value: object) -> object:
    return value if isinstance(value, dict) else {"text": value}


class _File(Strict):
    text: StrictStr | None = None
    base64: StrictStr | None = None


_FileEntry = Annotated[_File, BeforeValidator(_file)]


class LessonRow(Settings):
    """One row. Only ``id``, ``prompt``, ``hidden`` and a reference (``ref`` or ``reference``) are required."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: StrictStr
    prompt: StrictStr
    stub: StrictStr | None = None
    ref: StrictStr | None = None
    start: dict[str, _FileEntry] = Field(default={})
    reference: dict[str, _FileEntry] = Field(default={})
    visible: list[TestEntry] = Field(default=[])
    hidden: list[TestEntry]
    suite: dict[str, _FileEntry] = Field(default={})
    prelude: StrictStr = ""
    tags: list[StrictStr] = Field(default=[])
    meta: MetaRow = MetaRow()


def read_lesson(
    data: Mapping[str, Any], where: str, problems: list[Problem], stores: Sequence[Path] = ()
) -> Task | None:
    """The task that a dict describes, or None with its problems appended. ``stores``: where its image may lie."""
    row = parse(LessonRow, dict(data), where, problems)
    if row is None:
        return None
    before = len(problems)
    at = f"{where} (task {row.id!r})"
    start = _files(row.start, row.stub, "start", "stub", row.main, at, problems)
    if row.image:
        if start:
            found = "start files beside an image"
            problems.append(Problem(at, "image", found, "one of the two: an image has all start files"))
        start = image_of(row.image, stores, at, problems) or start
    reference = _files(row.reference, row.ref, "reference", "ref", row.main, at, problems)
    suite = _files(row.suite, None, "suite", "suite", row.main, at, problems)
    if row.removed or row.suite_removed:
        reference, suite = Files(reference, row.removed), Files(suite, row.suite_removed)
    solved = bool(reference or reference.removed)
    if not solved:
        problems.append(
            Problem(at, "ref", "nothing", "the text of a solution ('ref'), or files ('reference')")
        )
    files = {**start, **reference} if row.grading == "calls" else {}  # an image is not read for nothing
    entry = entry_of(row, files, at, problems)
    metadata = metadata_of(row.meta, at, problems, row.tags)
    visible = tests_of(row.visible, "visible", row, at, problems)
    hidden = tests_of(row.hidden, "hidden", row, at, problems)
    if not solved:
        return None
    task = make_task(
        where,
        problems,
        id=row.id,
        prompt=row.prompt,
        start=start,
        reference=reference,
        visible=visible,
        hidden=hidden,
        protected=frozenset(row.protected),
        entry=entry,
        main=row.main,
        prelude=row.prelude,
        grading=row.grading,
        reward=row.reward,
        limits=limits_of(row.limits),
        metadata=metadata,
        shell=row.shell,
        clock=row.clock,
        suite=suite,
        **suite_settings(row),
    )
    return task if len(problems) == before else None


def _files(
    given: Mapping[str, _File],
    text: str | None,
    name: str,
    short_name: str,
    main: str,
    where: str,
    problems: list[Problem],
) -> Files:
    out: dict[str, bytes | str] = {} if text is None else {main: text}
    for path, file in given.items():
        at = f"{name}[{path!r}]"
        if path in out:
            found = f"{path!r}, which is also given as {short_name!r}"
            problems.append(Problem(where, at, found, "one of the two"))
        if (file.text is None) == (file.base64 is None):
            problems.append(Problem(where, at, "no content", 'text, or {"base64": "…"}'))
        elif file.text is not None:
            out[path] = file.text
        else:
            try:
                out[path] = base64.b64decode(file.base64 or "", validate=True)
            except (binascii.Error, ValueError) as error:
                problems.append(Problem(where, f"{at}.base64", f"bad base64 ({error})", "base64"))
    try:
        return Files(out)
    except UnicodeEncodeError:
        problems.append(Problem(where, name, "text with lone surrogates", "valid Unicode text"))
        return Files()
