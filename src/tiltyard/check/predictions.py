"""Predictions in SWE-bench's format: read from files, and made of a store's episodes.

A prediction is ``{"instance_id", "model_name_or_path", "model_patch"}``; ``check.grading`` grades them. Nothing of a patch is
looked at here.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.records.model import EpisodeRecord

MAX_FILE = 4 << 30
BINARY = "without their binary files, for a patch has text alone"
_BINARY_LINE = re.compile(r"^Binary files .* differ$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was handed in for one task. ``patch`` None: nothing, or something that is no text (``problem`` says what)."""

    id: str
    model: str
    patch: str | None
    problem: str = ""


def read_predictions(path: str | os.PathLike[str]) -> tuple[Prediction, ...]:
    """The predictions of a file: JSON Lines, a JSON list, or a JSON object by id; gzipped or not. Raises UsageError for
    a file that is none of these and for an id that comes twice."""
    file = Path(path)
    out: dict[str, Prediction] = {}
    for where, data in _objects(file):
        one = _prediction(data, where)
        if one.id in out:
            raise UsageError(
                f"{where}: found a second prediction for {one.id!r}; expected one a task (a file for each attempt)"
            )
        out[one.id] = one
    if not out:
        raise UsageError(f"{file} holds no prediction; expected objects with instance_id and model_patch")
    return tuple(out.values())


def _objects(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    text = _text(file)
    try:
        whole = json.loads(text)
    except RecursionError:
        raise UsageError(f"{file}: JSON that is nested too deep") from None
    except ValueError:
        whole = None
    if isinstance(whole, dict) and "instance_id" not in whole:
        for id_, value in whole.items():
            about = value if isinstance(value, dict) else {"model_patch": value}
            yield f"{file}[{id_!r}]", {"instance_id": id_, **about}
        return
    if isinstance(whole, list):
        values = [(f"{file}[{n}]", value) for n, value in enumerate(whole)]
    elif isinstance(whole, dict):
        values = [(str(file), whole)]
    else:
        values = list(_lines(text, file))
    for where, value in values:
        if not isinstance(value, dict):
            raise UsageError(f"{where}: found {type(value).__name__}; expected an object with instance_id")
        yield where, value


def _lines(text: str, file: Path) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{file}:{number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{file}:{number}: bad JSON ({str(error)[:200]})") from None


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            raise UsageError(f"no such file: {file}; expected predictions as JSON or JSON Lines")
        if file.stat().st_size > MAX_FILE:
            raise UsageError(f"{file} has more than {MAX_FILE} bytes")
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text in UTF-8 (byte {error.start})") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{file} can't be read: {error}") from None


def _prediction(data: Mapping[str, Any], where: str) -> Prediction:
    id_, patch = data.get("instance_id"), data.get("model_patch", data.get("patch"))
    model = data.get("model_name_or_path", data.get("model_name", ""))
    if not isinstance(id_, str) or not id_:
        raise UsageError(f"{where}, instance_id: found {id_!r}; expected the id of a task")
    problem = "" if patch is None or isinstance(patch, str) else f"a patch of type {type(patch).__name__}"
    return Prediction(id_, str(model or ""), patch if isinstance(patch, str) else None, problem)


def prediction_rows(
    records: Sequence[EpisodeRecord], name: str = "", attempt: int = 0
) -> tuple[list[dict[str, str]], dict[str, int]]:
    """Predictions made of recorded episodes, one a task, in order of ids, and of how many episodes something was left out,
    by what.

    ``name`` stands in place of the player's own; ``attempt``: which of several at one task (0: the first)."""
    rows: dict[str, dict[str, str]] = {}
    notes: dict[str, int] = {}

    def leave(what: str) -> None:
        notes[what] = notes.get(what, 0) + 1

    for record in records:
        if record.void is not None:
            leave("left out: void")
        elif record.attempt != attempt:
            leave(f"left out: not attempt {attempt}")
        elif record.task in rows:
            leave("left out: another one of a task that has one")
        else:
            model = name or record.model or record.player
            patch = _text_only(record.patch)
            if patch != record.patch:
                leave(BINARY)
            rows[record.task] = {
                "instance_id": record.task,
                "model_name_or_path": model,
                "model_patch": patch,
            }
    return [rows[id_] for id_ in sorted(rows)], notes


def _text_only(patch: str) -> str:
    """The patch without files that are no text, which are only named in it: nobody could apply that."""
    parts = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return "".join(part for part in parts if not _BINARY_LINE.search(part))
