"""A PostgreSQL server for tests, as an ordinary user, on a socket in a folder of its own: no port, nothing shared.

Ends with the session, and also when the test run is killed: its keeper reads a pipe from us and stops it at the end.
"""

from __future__ import annotations

import getpass
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 180.0
KEEPER = (
    """trap "" INT TERM; "$@" & read -r how; [ "$how" = stop ] && kill -INT $! || kill -QUIT $!; wait $!"""
)


class NoServer(Exception):
    """Why there is no PostgreSQL here."""


def program(name: str) -> str:
    found = shutil.which(name)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda p: int(p.parts[-3]))
    if found is None and not places:
        raise NoServer(f"no {name} on this machine; apt-get install postgresql")
    return found if found is not None else str(places[-1])


def ordinary() -> dict[str, Any]:
    """As whom the server runs: ourselves, or, because it refuses root, its own user or nobody."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise NoServer("root may not run a PostgreSQL server, and there is no other user")


class Server:
    """``url()`` makes an empty database. ``stop`` and ``start`` are for tests of a server that goes away."""

    def __init__(self) -> None:
        self.who = ordinary()
        self.initdb, self.postgres = program("initdb"), program("postgres")
        self.numbers = itertools.count()
        self.place = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has at most 107 bytes
        self.keeper: subprocess.Popen[bytes] | None = None
        try:
            if self.who:
                os.chown(self.place, self.who["user"], self.who["group"])
            self._run(
                self.initdb, "-D", "data", "-U", "tilt", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
            )
            self.start()
        except BaseException:
            self.close()
            raise

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd=self.place, capture_output=True, text=True, timeout=PATIENCE_S, **self.who
        )
        if done.returncode:
            raise NoServer(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout)[-400:]}")

    def start(self) -> None:
        server = [self.postgres, "-D", "data", "-k", str(self.place), "-c", "listen_addresses="]
        server += ["-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=60"]
        with (self.place / "log").open("ab") as log:
            self.keeper = subprocess.Popen(
                ["sh", "-c", KEEPER, "sh", *server],
                cwd=self.place,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                **self.who,
            )
        self._wait()

    def _wait(self) -> None:
        import psycopg

        assert self.keeper is not None
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=10).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > end or self.keeper.poll() is not None:
                    log = (self.place / "log").read_text()[-400:]
                    raise NoServer(f"the server does not come up: {error}; {log}") from None
                time.sleep(0.05)

    def stop(self, how: bytes = b"stop\n") -> None:
        """As for maintenance: sessions are cut off, and what was committed is written. ``b""``: at once."""
        if self.keeper is not None:
            self.keeper.communicate(how, timeout=PATIENCE_S)
            self.keeper = None

    def close(self) -> None:
        try:
            self.stop(b"")  # nothing of it is needed again
        finally:
            shutil.rmtree(self.place, ignore_errors=True)

    def dsn(self, database: str) -> str:
        return f"host={self.place} user=tilt dbname={database}"

    def url(self) -> str:
        import psycopg

        name = f"db{next(self.numbers)}"
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return f"postgresql://tilt@/{name}?host={self.place}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="no psycopg: the extra `postgres` is not installed")
    try:
        server = Server()
    except NoServer as reason:
        pytest.skip(f"no PostgreSQL for {getpass.getuser()}: {reason}")
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """An empty database."""
    return postgres_server.url()
