"""Reading rows: JSON Lines, JSON, either gzipped, or Parquet, from a file. Every problem is collected; a bad row hides no other.

What comes back is plain data with the place where each row stood. Nothing here knows what a task is.
"""

from __future__ import annotations

import gzip
import json
import stat
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiltyard.errors import Problem, UsageError

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object and where it stood: ``tasks.jsonl:3`` or ``tasks.json[2]``."""

    where: str
    data: dict[str, Any]


class _TwiceError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # json keeps the last of two equal keys: a second "hidden" would drop the first one's tests in silence.
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(repr(n) for n in names if names.count(n) > 1))
    return out


def read_rows(path: Path) -> tuple[list[Row], list[Problem]]:
    """All rows of a file that are JSON objects, and what is wrong with the others.

    A file holds one object a line, empty lines left out, or one JSON list of objects, whatever its name. Raises
    :class:`UsageError` if the file can't be read at all.
    """
    try:
        if (
            not stat.S_ISREG(path.stat().st_mode) and not path.is_dir()
        ):  # a pipe that nobody writes to never ends, nor does a device
            raise UsageError(
                f"can't read {path}: found a device, a pipe or a socket; expected a regular file"
            )
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror or error}") from None
    if raw[:4] == b"PAR1":
        return _parquet(path)
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            return [], [Problem(str(path), "", f"damaged gzip data ({error})", "a whole .gz file")]
    elif path.name.endswith(".gz"):
        return [], [Problem(str(path), "", "data that is not gzipped", "gzip data, or a name without .gz")]
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{raw[error.start]:02x}, which is not UTF-8"
        return [], [Problem(f"{path}:{line}", "", found, "text in UTF-8")]
    if text.lstrip().startswith("["):
        return _whole(text, path)
    return _lines(text, path)


def _parquet(path: Path) -> tuple[list[Row], list[Problem]]:
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise UsageError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'tiltyard[parquet]'"
        ) from None
    try:
        values = parquet.read_table(path).to_pylist()
    except (ValueError, OSError) as error:
        return [], [Problem(str(path), "", f"a damaged Parquet file ({error})", "a whole one")]
    return _objects([(f"{path}[{n}]", item) for n, item in enumerate(values)], [])


def _lines(text: str, path: Path) -> tuple[list[Row], list[Problem]]:
    values = []
    problems: list[Problem] = []
    # Not splitlines(): U+2028 and others may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            ok, value = _parse(line, str(path), problems, number)
            if ok:
                values.append((f"{path}:{number}", value))
    return _objects(values, problems)


def _whole(text: str, path: Path) -> tuple[list[Row], list[Problem]]:
    problems: list[Problem] = []
    ok, value = _parse(text, str(path), problems)
    if not ok:
        return [], problems
    if not isinstance(value, list):
        return [], [Problem(str(path), "", short(value), "a list of objects")]
    return _objects([(f"{path}[{n}]", item) for n, item in enumerate(value)], problems)


def _objects(values: Iterable[tuple[str, Any]], problems: list[Problem]) -> tuple[list[Row], list[Problem]]:
    rows = []
    for where, value in values:
        if isinstance(value, dict):
            rows.append(Row(where, value))
        else:
            problems.append(Problem(where, "", short(value), "an object, {…}, that is one task"))
    return rows, problems


def _parse(text: str, path: str, problems: list[Problem], line: int | None = None) -> tuple[bool, Any]:
    at = path if line is None else f"{path}:{line}"
    try:
        return True, json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"{path}:{line if line is not None else error.lineno}:{error.colno}"
        problems.append(Problem(place, "", f"bad JSON ({error.msg})", "JSON"))
    except _TwiceError as error:
        problems.append(Problem(at, "", f"the key {error} twice in one object", "each key once"))
    except RecursionError:
        problems.append(Problem(at, "", "JSON that is nested too deep", "JSON of a sane depth"))
    except ValueError as error:
        problems.append(Problem(at, "", f"bad JSON ({error})", "JSON"))
    return False, None


def short(value: object, limit: int = 60) -> str:
    """A value in a few words for a message: its type and how it begins."""
    kinds = {"str": "text", "dict": "object", "NoneType": "null", "bool": "bool"}
    kind = kinds.get(type(value).__name__, type(value).__name__)
    if value is None:
        return "null"
    text = repr(value) if isinstance(value, (str, int, float, bool)) else ""
    if isinstance(value, (list, tuple, dict, set)):
        return f"{'an' if kind == 'object' else 'a'} {kind} of {len(value)}"
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return f"{text} ({kind})" if text else f"a {type(value).__name__}"
