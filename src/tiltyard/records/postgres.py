"""All that is special about PostgreSQL. Nothing outside this module and its sibling for SQLite may use SQL that another
database would refuse.

Promises: the driver is psycopg 3, whatever the URL says of a driver; a missing driver, a server that is not there, a
wrong password or a database that may not be written is reported in plain words, without the password; a lost
connection is told apart from other errors, so that a write can be tried again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from tiltyard.errors import ArenaError, TiltyardError, UsageError

NAMES = ("postgresql", "postgres", "postgresql+psycopg", "postgres+psycopg")
CONNECT_S = 10
RETRY_S = 60.0
"""How long a write is tried again after the connection was lost: a server's restart, a short break of the network."""
MIGRATION_LOCK = 0x7117_7A4D
"""The key of the advisory lock under which a store is brought up to date."""


def engine_for(url: URL, *, readonly: bool) -> Engine:
    """An engine on this database; connects when it is used. Raises UsageError without the driver."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"a store in PostgreSQL needs the driver psycopg, which is not there ({error}); "
            "pip install 'tiltyard[postgres]'"
        ) from None
    query = dict(url.query)
    query.setdefault("connect_timeout", str(CONNECT_S))
    if readonly:
        given = query.get("options", "")
        given = " ".join(given) if isinstance(given, tuple) else given
        query["options"] = f"{given} -c default_transaction_read_only=on".strip()
    # pre_ping: a connection that died while it lay in the pool must not cost an episode
    return create_engine(url.set(drivername="postgresql+psycopg", query=query), pool_pre_ping=True)


def lock_for_migration(connection: Connection) -> None:
    """Wait until no one else brings this database up to date; until the end of the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})


def lost(error: DBAPIError) -> bool:
    """Whether the connection went away, or could not be made because the server is starting or stopping."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    # 08: connection exceptions; 57P: the server is shutting down, has crashed, or can't take connections yet
    if state is None:  # a connection that could not be made has none
        return type(error.orig).__name__ == "OperationalError"
    return str(state).startswith(("08", "57P"))


def explain(error: DBAPIError, where: str, doing: str) -> TiltyardError:
    """The error of the driver in plain words: what was found, where, what to do."""
    original: Any = error.orig
    said = " ".join(str(original).split()) or type(original).__name__
    state = getattr(original, "sqlstate", None) or ""
    if state.startswith("28") or "authentication failed" in said:
        return UsageError(f"{where}: the server refuses this user or password ({said})")
    if state == "3D000" or ('database "' in said and "does not exist" in said):
        return UsageError(f"{where}: there is no such database ({said}); make it with createdb")
    if state in ("25006", "42501"):
        return UsageError(
            f"{where} can't be written by this user ({said}); name another one or another store"
        )
    if state.startswith("53"):
        return ArenaError(
            f"{where}: the server is out of disk, memory or connections ({said}) while {doing}; what was stored "
            "before is kept"
        )
    if type(original).__name__ == "OperationalError" and not state:
        return UsageError(f"{where}: the server can't be reached ({said}) while {doing}; check host and port")
    return ArenaError(f"{where}: {said} while {doing}")
