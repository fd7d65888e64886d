"""All that is special about SQLite. Nothing outside this module may use SQL that another database would refuse.

Promises: a file that is no database, can't be read or written, or sits on a full disk is reported in plain words;
writers wait for each other for up to ``BUSY_S`` seconds; a process that ends at any moment loses nothing that was
committed (a power cut may lose the last commits, never the file).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from tiltyard.errors import ArenaError, TiltyardError, UsageError

BUSY_S = 60.0
MAGIC = b"SQLite format 3\0"


def engine_for(path: Path, *, create: bool, readonly: bool) -> Engine:
    """An engine on this file. Raises UsageError if it can't be what was asked for."""
    _check_file(path, create=create)
    if readonly:
        query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if _at_rest(path) else {})
        url = URL.create("sqlite", database=f"file:{_quoted(path)}", query=query)
    else:
        url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        # sqlite3 must not begin transactions by itself: it does so late, and two late writers deadlock
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
        if not readonly:
            cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = not readonly and connection.get_execution_options().get("tiltyard_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def use_wal(engine: Engine) -> None:
    """Write-ahead log: readers never wait for writers. A file system that can't do it keeps the older journal."""
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()
    except (
        sqlite3.Error
    ) as error:  # a full disk, which SQLAlchemy would wrap, were this not its raw connection
        raise DBAPIError("PRAGMA journal_mode = WAL", None, error) from error
    finally:
        raw.close()


def explain(error: DBAPIError, path: Path, doing: str) -> TiltyardError:
    """The error of the driver in plain words: what was found, where, what to do."""
    original: Any = error.orig
    text = str(original)
    name = getattr(original, "sqlite_errorname", "") or ""
    if name.startswith("SQLITE_NOTADB") or "not a database" in text:
        return UsageError(f"{path} is not a tiltyard store (it is no SQLite file); name another file")
    if name.startswith("SQLITE_READONLY") or "readonly" in text:
        return UsageError(f"{path} can't be written ({text}); make it writable or name another store")
    if name.startswith("SQLITE_CANTOPEN") or "unable to open" in text:
        return UsageError(f"{path} can't be opened ({text}); check the folder and its permissions")
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")) or "disk is full" in text or "disk I/O" in text:
        return ArenaError(
            f"{path}: the disk is full or failed ({text}) while {doing}; what was stored before is kept. "
            "Free space, or name a store on another disk"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "locked" in text:
        return ArenaError(
            f"{path}: another process held the store for more than {BUSY_S:.0f} s while {doing}"
        )
    if name.startswith("SQLITE_CORRUPT") or "malformed" in text:
        return ArenaError(f"{path} is damaged ({text}); restore it from a copy or start a new store")
    return ArenaError(f"{path}: {text or type(original).__name__} while {doing}")


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _at_rest(path: Path) -> bool:
    """Whether SQLite would refuse to read: a store with a write-ahead log wants to make its index beside it, which can't
    be done in a folder that may not be written. Without a log nobody is writing, and the file alone is the whole."""
    return not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()


def _check_file(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; a store is one file, such as {path / 'episodes.sqlite'}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}; make it first")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; a store is one file")
    if not path.exists():
        if not create:
            raise UsageError(f"there is no store at {path}; `tiltyard run … --store {path}` makes one")
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"{path} can't be read ({error.strerror}); check its permissions") from None
    if head and head != MAGIC:
        raise UsageError(f"{path} is not a tiltyard store (it is no SQLite file); name another file")
