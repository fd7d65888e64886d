"""Between a record and its rows: an episode is a row of its own, one for each step and one for each message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, select

from tiltyard.records import schema
from tiltyard.records.model import EpisodeRecord, MessageRecord, StepRecord, Usage


def names(table: Table) -> list[str]:
    """Of the table's columns, in their order."""
    return [column.name for column in table.columns]


def found(
    connection: Connection,
    table: Table,
    have: Mapping[str, set[str]] | None,
    which: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]],
    at_most: int | None = None,
) -> list[dict[str, Any]]:
    """The table's rows, with the columns that the store has."""
    some = [n for n in names(table) if have is None or n in have.get(table.name, ())]
    if not some:
        return []
    wanted = select(*(table.c[name] for name in some)).where(which).order_by(*order).limit(at_most)
    return [dict(row) for row in connection.execute(wanted).mappings()]


def by_episode(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of steps or messages, by the id of their episode."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row["episode"], []).append(row)
    return grouped


_USAGE = tuple(Usage.__dataclass_fields__)


def episode_row(record: EpisodeRecord) -> dict[str, Any]:
    """All columns but the id. What a report asks of the steps is counted here, once."""
    made_here = ("id", "step_count", "invalid_count", "text_chars", *_USAGE)
    row = {name: getattr(record, name) for name in names(schema.episodes) if name not in made_here}
    row |= {name: getattr(record.usage, name) for name in _USAGE}
    row |= {
        "run": record.run or None,
        "step_count": len(record.steps),
        "invalid_count": sum(step.invalid for step in record.steps),
        "text_chars": len(record.observation)
        + sum(len(s.action or "") + len(s.observation or "") for s in record.steps),
        "verdict": None if record.verdict is None else dict(record.verdict),
        "flags": list(record.flags),
        "settings": dict(record.settings),
        "versions": dict(record.versions),
    }
    return row


def step_row(n: int, step: StepRecord) -> dict[str, Any]:
    """All columns but the episode's id."""
    return {"n": n} | {name: getattr(step, name) for name in StepRecord.__dataclass_fields__}


def message_row(n: int, message: MessageRecord) -> dict[str, Any]:
    """All columns but the episode's id."""
    row = {name: getattr(message, name) for name in MessageRecord.__dataclass_fields__ if name != "usage"}
    row |= {name: getattr(message.usage, name) for name in _USAGE}
    return {"n": n, **row, "calls": [dict(call) for call in message.calls]}


def _fields(kind: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of a record's fields."""
    values = {name: row[name] for name in kind.__dataclass_fields__ if name in row}
    if "usage" in kind.__dataclass_fields__:
        values["usage"] = Usage(**_fields(Usage, row))
    return values


def _message(row: Mapping[str, Any]) -> MessageRecord:
    return MessageRecord(**_fields(MessageRecord, row) | {"calls": tuple(row["calls"])})


def episode(
    row: Mapping[str, Any], steps: Iterable[Mapping[str, Any]], messages: Iterable[Mapping[str, Any]]
) -> EpisodeRecord:
    """The record that these rows were made from."""
    values = _fields(EpisodeRecord, row)
    values |= {"run": row["run"] or "", "flags": tuple(row["flags"])}
    values["steps"] = tuple(StepRecord(**_fields(StepRecord, step)) for step in steps)
    values["messages"] = tuple(_message(message) for message in messages)
    return EpisodeRecord(**values)
