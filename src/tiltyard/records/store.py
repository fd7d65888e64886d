"""The store: where records are kept. SQLite by default, PostgreSQL by URL, one transaction an episode.

Promises: an episode is stored whole or not at all; any number of threads and processes may write at once; an older
store is brought up to date on opening; a database that is no store, or one of a newer tiltyard, is never changed. Errors
are UsageError (a wrong file, no permission, an unknown id) or ArenaError (a full or failing disk), in plain words and
without a URL's password. A forked child may go on using a Store: it gets connections of its own. A server that restarts
costs a write some seconds, and neither loses an episode nor stores it twice.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Engine, func, inspect, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from tiltyard import __version__
from tiltyard.errors import ArenaError, TiltyardError, UsageError
from tiltyard.records import postgres, rows, schema, sqlite
from tiltyard.records.model import MAX_SEED, EpisodeRecord, RunRecord

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that can be taken for a digit."""
ID_LENGTH = 10
RETRY_PAUSE_S = 0.2
PAGE = 200
"""Episodes read at once; databases cap the number of parameters of a query."""


def now() -> str:
    """This moment in UTC, ISO format with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def new_id(kind: str) -> str:
    """A short, readable id: ``e-4m2k0vx7ta`` for an episode, ``r-…`` for a run. 50 random bits."""
    return f"{kind}-" + "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))


class Store:
    """Episodes and runs, kept in ``path_or_url``: a file, or ``postgresql://USER@HOST:PORT/DATABASE``.

    ``create=False`` refuses to make a new one; ``readonly=True`` never writes (and implies ``create=False``).
    """

    def __init__(
        self, path_or_url: str | os.PathLike[str], *, create: bool = True, readonly: bool = False
    ) -> None:
        text = os.fspath(path_or_url)
        self.readonly = readonly
        self._create = create and not readonly
        self._older = False
        """An older store that is only read: what it lacks is filled in, and nothing is changed."""
        self._pid = os.getpid()
        self._lock = threading.Lock()
        text = text.removeprefix("sqlite:///")
        if "://" in text:
            self._path = None
            self.where, self._engine = _engine_for_url(text, readonly=readonly)
        else:
            if not text or text == ":memory:":
                raise UsageError("a store needs a file name, such as episodes.sqlite")
            self._path = Path(text)
            self.where = text
            self._engine = sqlite.engine_for(self._path, create=create and not readonly, readonly=readonly)
        try:
            self._open()
        except BaseException:
            self._engine.dispose()
            raise

    # -- opening and closing -------------------------------------------------------------------------------------

    def _open(self) -> None:
        with self._errors("opening it"):
            version = self._version()
            if version == schema.VERSION:
                return
            if version > schema.VERSION:
                raise UsageError(
                    f"{self.where} was written by a newer tiltyard (store version {version}, this one reads up to "
                    f"{schema.VERSION}); upgrade tiltyard"
                )
            if self.readonly:
                self._older = True
                return
            if self._path is not None:
                sqlite.use_wal(self._engine)
            self._migrate()

    def _version(self) -> int:
        """0 for an empty database. Raises UsageError for a database that is something else's."""
        with self._engine.connect() as connection:
            tables = set(inspect(connection).get_table_names())
            if schema.schema_table.name in tables:
                found = connection.execute(select(func.max(schema.schema_table.c.version))).scalar()
                return int(found or 0)
        if tables:
            some = ", ".join(sorted(tables)[:3])
            other = "file" if self._path is not None else "database"
            raise UsageError(
                f"{self.where} is a database, but no tiltyard store (its tables: {some}); name another {other}"
            )
        if self.readonly or (self._path is None and not self._create):
            raise UsageError(f"{self.where} is empty: no tiltyard store")
        return 0

    def _migrate(self) -> None:
        with self._write() as connection:
            # read again inside the transaction: another process may have been first
            if self._path is None:
                postgres.lock_for_migration(connection)
            schema.schema_table.create(connection, checkfirst=True)
            done = int(connection.execute(select(func.max(schema.schema_table.c.version))).scalar() or 0)
            for version in range(done, schema.VERSION):
                schema.MIGRATIONS[version](connection)
                connection.execute(
                    schema.schema_table.insert().values(version=version + 1, applied=now(), by=__version__)
                )

    @property
    def older(self) -> bool:
        """Whether it is a store of an older tiltyard, opened for reading only and so left as it is."""
        return self._older

    def close(self) -> None:
        """Give the connections back. The store may not be used after it. May be called twice."""
        if os.getpid() == self._pid:
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.where!r})"

    # -- writing -------------------------------------------------------------------------------------------------

    def add_run(self, run: RunRecord) -> str:
        """Keep a run's head; returns its id. ``run.started`` "" means now."""
        _check_seed(run.seed)
        values = {
            name: getattr(run, name)
            for name in rows.names(schema.runs)
            if name not in ("id", "settings", "versions")
        }
        values |= {
            "settings": dict(run.settings),
            "versions": dict(run.versions),
            "started": run.started or now(),
        }
        return self._insert(
            "r",
            lambda connection, new: connection.execute(schema.runs.insert().values({**values, "id": new})),
        )

    def finish_run(self, run: str) -> None:
        """Note that a run came to its end."""
        done = update(schema.runs).where(schema.runs.c.id == run).values(finished=now())
        self._transaction("finishing a run", lambda connection: connection.execute(done))

    def add(self, record: EpisodeRecord) -> str:
        """Keep an episode, whole, in one transaction; returns its id (a new one, whatever ``record.id`` is)."""
        _check_seed(record.seed)
        row = rows.episode_row(record)
        parts = (
            (schema.steps, [rows.step_row(n, step) for n, step in enumerate(record.steps)]),
            (schema.messages, [rows.message_row(n, message) for n, message in enumerate(record.messages)]),
        )

        def insert(connection: Connection, new: str) -> None:
            connection.execute(schema.episodes.insert().values({**row, "id": new}))
            for table, many in parts:
                if many:
                    connection.execute(table.insert(), [{**values, "episode": new} for values in many])

        return self._insert("e", insert)

    def _insert(self, kind: str, insert: Callable[[Connection, str], Any]) -> str:
        for attempt in range(5):
            new, losses = new_id(kind), list[_Lost]()
            try:
                self._transaction("storing an episode", partial(_with_id, insert, new), losses)
                return new
            except IntegrityError as error:
                # either the id is taken (try another one) or the run does not exist (no other id helps)
                if attempt == 4 or "FOREIGN KEY" in str(error.orig).upper():
                    raise UsageError(
                        f"{self.where}: the record does not fit the store: {error.orig}"
                    ) from None
                # a commit reached the server and its answer not us: what has this id is this very episode
                if losses and self._has(kind, new):
                    return new
        raise AssertionError("unreachable")

    def _transaction(
        self, doing: str, write: Callable[[Connection], Any], losses: list[_Lost] | None = None
    ) -> None:
        """Write, and again where the server went away in the middle; ``losses`` says how often it did."""
        losses = [] if losses is None else losses
        end = time.monotonic() + postgres.RETRY_S
        while True:
            try:
                with self._errors(doing, retried=True), self._write() as connection:
                    write(connection)
                return
            except _Lost as lost:
                losses.append(lost)
                if time.monotonic() > end:
                    raise lost.explained from lost
                time.sleep(RETRY_PAUSE_S)

    def _has(self, kind: str, id: str) -> bool:
        table = schema.runs if kind == "r" else schema.episodes
        with self._errors("reading it"), self._read() as connection:
            return connection.execute(select(table.c.id).where(table.c.id == id)).first() is not None

    # -- reading -------------------------------------------------------------------------------------------------

    def runs(self) -> list[RunRecord]:
        """All runs, the oldest first."""
        with self._errors("reading it"), self._read() as connection:
            table = schema.runs
            found = connection.execute(select(table).order_by(table.c.started, table.c.id))
            return [RunRecord(**row) for row in found.mappings()]

    def episodes(
        self, run: str | None = None, task: str | None = None, player: str | None = None
    ) -> Iterator[EpisodeRecord]:
        """The episodes that fit, by run and place in it. Read in pages, so that any number of them
        fits into memory."""
        table = schema.episodes
        wanted = select(table.c.id).order_by(table.c.run.nulls_first(), table.c.number, table.c.id)
        for column, value in ((table.c.run, run), (table.c.task, task), (table.c.player, player)):
            if value is not None:
                wanted = wanted.where(column == value)
        with self._errors("reading it"), self._read() as connection:
            ids = list(connection.execute(wanted).scalars())
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE]
            found = {record.id: record for record in self._load(table.c.id.in_(page))}
            yield from (found[id] for id in page if id in found)

    def episode(self, id: str) -> EpisodeRecord:
        """The episode with this id, or with an id that begins so (``4m2`` is as good as ``e-4m2``). UsageError if
        there is none, or more than one."""
        table = schema.episodes
        wanted = id if id.startswith("e-") else f"e-{id}"
        if not id or not all(c in ALPHABET for c in wanted[2:]):
            raise UsageError(f"{id!r} is no episode's id; one looks like e-4m2k0vx7ta")
        found = self._load(table.c.id.startswith(wanted), at_most=4)
        if len(found) == 1 or (found and found[0].id == wanted):
            return found[0]
        if found:
            some = ", ".join(record.id for record in found)
            raise UsageError(
                f"{id!r} begins the ids of several episodes in {self.where}: {some} …; write more of it"
            )
        raise UsageError(f"no episode {id!r} in {self.where} ({self.count()} episodes there)")

    def count(self, run: str | None = None) -> int:
        """How many episodes there are, in all or in one run."""
        wanted = select(func.count()).select_from(schema.episodes)
        if run is not None:
            wanted = wanted.where(schema.episodes.c.run == run)
        with self._errors("reading it"), self._read() as connection:
            return int(connection.execute(wanted).scalar_one())

    def _load(self, which: ColumnElement[bool], *, at_most: int | None = None) -> list[EpisodeRecord]:
        with self._errors("reading it"), self._read() as connection:
            have = self._columns(connection)
            order = (schema.episodes.c.id,)
            found = rows.found(connection, schema.episodes, have, which, order, at_most)
            ids = [row["id"] for row in found]
            steps, messages = (
                rows.by_episode(rows.found(connection, t, have, t.c.episode.in_(ids), (t.c.episode, t.c.n)))
                for t in (schema.steps, schema.messages)
            )
        return [rows.episode(row, steps.get(row["id"], ()), messages.get(row["id"], ())) for row in found]

    def _columns(self, connection: Connection) -> Mapping[str, set[str]] | None:
        """By table, where the store is an older one; None: all that there are."""
        if not self._older:
            return None
        found = inspect(connection)
        return {name: {c["name"] for c in found.get_columns(name)} for name in found.get_table_names()}

    # -- connections ---------------------------------------------------------------------------------------------

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        if self.readonly:
            raise UsageError(f"{self.where} was opened for reading only")
        with self._own().connect() as plain:
            connection = plain.execution_options(tiltyard_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with self._own().connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for reading with queries of one's own (over ``tiltyard.records.schema``), in one transaction that
        sees the store as it is now, whatever others write meanwhile. Rows come as they are asked for; whoever reads many
        asks for them with ``yield_per``. UsageError if the store is an older one that was opened for reading only."""
        if self._older:
            raise UsageError(f"{self.where} is a store of an older tiltyard; open it once for writing")
        with self._errors("reading it"), self._own().connect() as plain:
            options: dict[str, Any] = {} if self._path else {"isolation_level": "REPEATABLE READ"}
            yield plain.execution_options(**options)

    def _own(self) -> Engine:
        with self._lock:
            if os.getpid() != self._pid:
                # a forked child: the parent's connections are the parent's, so they are dropped and not closed
                self._engine.dispose(close=False)
                self._pid = os.getpid()
            return self._engine

    @contextmanager
    def _errors(self, doing: str, *, retried: bool = False) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            if self._path is not None:
                raise sqlite.explain(error, self._path, doing) from error
            explained = postgres.explain(error, self.where, doing)
            if retried and postgres.lost(error):
                raise _Lost(explained) from error
            raise explained from error
        except SQLAlchemyError as error:
            raise ArenaError(f"{self.where}: {error} while {doing}") from error


def place_name(where: str) -> str:
    """A store's file or URL as it may be shown: without a password."""
    if "://" not in where:
        return where
    try:
        return _shown(make_url(where))
    except (SQLAlchemyError, ValueError):
        return "the store"


def _shown(url: URL) -> str:
    secret = {key: "***" for key in url.query if "password" in key}
    return url.update_query_dict(secret).render_as_string(hide_password=True)


class _Lost(ArenaError):
    """The server went away in the middle of a write, which is tried again."""

    def __init__(self, explained: TiltyardError) -> None:
        super().__init__(str(explained))
        self.explained = explained


def _engine_for_url(text: str, *, readonly: bool) -> tuple[str, Engine]:
    """How the database is called in messages, and an engine on it."""
    try:
        url = make_url(text)
    except (SQLAlchemyError, ValueError):
        raise UsageError(
            "the store's URL is no database that can be used here: it can't be understood; expected a file or "
            "postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    where = _shown(url)
    if url.drivername not in postgres.NAMES:
        raise UsageError(
            f"{where} is no database that can be used here; expected a file or postgresql://USER@HOST:PORT/DATABASE"
        )
    return where, postgres.engine_for(url, readonly=readonly)


def _with_id(insert: Callable[[Connection, str], Any], id: str, connection: Connection) -> None:
    insert(connection, id)


def _check_seed(seed: int) -> None:
    if not 0 <= seed <= MAX_SEED:
        raise UsageError(f"a seed of {seed}; a record can keep 0 to {MAX_SEED}")
