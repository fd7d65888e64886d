"""The tables, and how an older store becomes a newer one. Portable SQL only, through SQLAlchemy.

A store is told by its table ``tiltyard_schema``: one row for each migration that was applied; the highest version is
the store's. A migration is never changed once it was released; a new one is appended to ``MIGRATIONS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

ESCAPED = "\x01json:"


class ExactText(TypeDecorator[str]):
    """Text that comes back equal. NUL (PostgreSQL) and lone surrogates (SQLite) can't be stored as they are, and a
    player can write both; such a text is stored as JSON behind a mark, any other one as itself."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or not _hard(value):
            return value
        return ESCAPED + json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or not value.startswith(ESCAPED):
            return value
        decoded = json.loads(value[len(ESCAPED) :])
        return decoded if isinstance(decoded, str) else value


class Json(TypeDecorator[Any]):
    """Plain data as sorted ASCII JSON text: the same bytes for the same data, in every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def _hard(text: str) -> bool:
    if "\0" in text or text.startswith(ESCAPED):
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


metadata = MetaData()

schema_table = Table(
    "tiltyard_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied", String(40), nullable=False),
    Column("by", String(40), nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("pool", ExactText, nullable=False),
    Column("pool_version", ExactText, nullable=False),
    Column("pool_digest", String(64), nullable=False),
    Column("pool_spec", ExactText, nullable=False),
    Column("player", ExactText, nullable=False),
    Column("wall", String(64), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("settings", Json, nullable=False),
    Column("versions", Json, nullable=False),
    Column("started", String(40), nullable=False),
    Column("finished", String(40), nullable=False),
)

episodes = Table(
    "episodes",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("run", String(32), ForeignKey("runs.id"), nullable=True),
    Column("number", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("task", ExactText, nullable=False),
    Column("task_digest", String(64), nullable=False),
    Column("pool", ExactText, nullable=False),
    Column("pool_version", ExactText, nullable=False),
    Column("pool_digest", String(64), nullable=False),
    Column("pool_spec", ExactText, nullable=False),
    Column("player", ExactText, nullable=False),
    Column("wall", String(64), nullable=False),
    Column("run_seed", BigInteger, nullable=True),
    Column("seed", BigInteger, nullable=False),
    Column("observation", ExactText, nullable=False),
    Column("reward", Float, nullable=True),
    Column("void", ExactText, nullable=True),
    Column("verdict", Json, nullable=True),
    Column("flags", Json, nullable=False),
    Column("settings", Json, nullable=False),
    Column("versions", Json, nullable=False),
    Column("started", String(40), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("digest", String(64), nullable=False),
    Index("episodes_by_run", "run", "number"),
    Index("episodes_by_task", "task"),
)

steps = Table(
    "steps",
    metadata,
    Column("episode", String(32), ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("action", Text, nullable=False),
    Column("observation", ExactText, nullable=False),
    Column("reward", Float, nullable=True),
    Column("terminated", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("truncated_by", ExactText, nullable=False),
    Column("invalid", Boolean, nullable=False),
)


def _first(connection: Connection) -> None:
    for table in (runs, episodes, steps):
        table.create(connection, checkfirst=True)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first,)
"""``MIGRATIONS[n]`` takes a store from version n to version n + 1."""

VERSION = len(MIGRATIONS)
