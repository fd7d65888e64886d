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
    func,
    inspect,
    select,
    text,
    true,
    update,
)
from sqlalchemy.schema import CreateColumn

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


def _usage() -> list[Column[Any]]:
    """The columns of a :class:`tiltyard.records.Usage`."""
    tokens = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    counts = [Column(name, BigInteger, nullable=False, server_default=text("0")) for name in tokens]
    return [*counts, Column("cost_usd", Float, nullable=True)]


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
    Column("model", ExactText, nullable=False, server_default=""),
    Column("ended_by", String(32), nullable=False, server_default=""),
    Column("turns", Integer, nullable=False, server_default=text("0")),
    *_usage(),
    Column("step_count", Integer, nullable=False, server_default=text("0")),
    Column("invalid_count", Integer, nullable=False, server_default=text("0")),
    Column("truncated_by", ExactText, nullable=False, server_default=""),
    Column("text_chars", BigInteger, nullable=False, server_default=text("0")),
    Column("patch", ExactText, nullable=False, server_default=""),
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
    Column("seconds", Float, nullable=False, server_default=text("0")),
)

messages = Table(
    "messages",
    metadata,
    Column("episode", String(32), ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("role", String(16), nullable=False),
    Column("text", ExactText, nullable=False),
    Column("reasoning", ExactText, nullable=False),
    Column("calls", Json, nullable=False),
    Column("call_id", ExactText, nullable=False),
    Column("step", Integer, nullable=True),
    Column("stop_reason", ExactText, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("at", String(40), nullable=False),
    *_usage(),
)


def _first(connection: Connection) -> None:
    for table in (runs, episodes, steps):
        table.create(connection, checkfirst=True)


def _transcripts(connection: Connection) -> None:
    """Version 2: what a model said, what it took and cost; how long each step took."""
    messages.create(connection, checkfirst=True)
    for table in (episodes, steps):
        _add_missing(connection, table)


def _add_missing(connection: Connection, table: Table) -> None:
    """Add the columns that an older table lacks. A new store has them: ``_first`` makes the tables as they are now."""
    have = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for column in table.columns:
        if column.name not in have:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")


def _counts(connection: Connection) -> None:
    """Version 3: what a report asks of the steps of an episode stands with the episode, so that it need not read them."""
    _add_missing(connection, episodes)
    mine = steps.c.episode == episodes.c.id
    chars = func.sum(func.length(steps.c.action) + func.length(steps.c.observation))
    last = select(func.max(steps.c.n)).where(mine).correlate(episodes).scalar_subquery()
    ends = select(steps.c.truncated_by).where(mine, steps.c.n == last).correlate(episodes)
    connection.execute(
        update(episodes).values(
            step_count=select(func.count()).select_from(steps).where(mine).scalar_subquery(),
            invalid_count=select(func.count()).where(mine, steps.c.invalid.is_(true())).scalar_subquery(),
            truncated_by=func.coalesce(ends.scalar_subquery(), ""),
            text_chars=func.length(episodes.c.observation)
            + func.coalesce(select(chars).where(mine).scalar_subquery(), 0),
        )
    )


def _patches(connection: Connection) -> None:
    """Version 4: what was handed in of a repository, as a diff."""
    _add_missing(connection, episodes)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first, _transcripts, _counts, _patches)
"""``MIGRATIONS[n]`` takes a store from version n to version n + 1."""

VERSION = len(MIGRATIONS)
