"""The store on a PostgreSQL server of its own, and what both databases promise: writers at once, kills, migrations."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from tests.postgres import Server
from tests.records.test_store import RECORD, RUN, WRITER

from tiltyard.errors import ArenaError, UsageError
from tiltyard.records import EpisodeRecord, StepRecord, Store, postgres, schema
from tiltyard.records.store import place_name


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """An empty place for a store, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "s.sqlite")
    return str(request.getfixturevalue("postgres_url"))


@contextmanager
def raw(where: str) -> Any:
    url = where if "://" in where else f"sqlite:///{where}"
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


# -- many writers --------------------------------------------------------------------------------------------------


def test_eight_processes_write_at_once_from_an_empty_database(postgres_url: str) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, postgres_url, f"w{n}", "25"], stdout=subprocess.DEVNULL
        )
        for n in range(8)
    ]
    assert [writer.wait(timeout=240) for writer in writers] == [0] * 8
    with Store(postgres_url, create=False) as store:
        assert store.count() == 200
        for n in range(8):
            found = list(store.episodes(task=f"w{n}"))
            assert [record.number for record in found] == list(range(25))
            assert all(s.observation == f"w{n}/{r.number}/{i}" for r in found for i, s in enumerate(r.steps))
    with raw(postgres_url) as connection:
        versions = (
            connection.exec_driver_sql("select version from tiltyard_schema order by 1").scalars().all()
        )
        assert versions == list(range(1, schema.VERSION + 1))


def test_ten_writers_killed_at_random_moments_lose_the_episode_in_flight_at_most(postgres_url: str) -> None:
    # for SQLite see the killed runs in tests/report
    dice, where = random.Random(20261130), postgres_url
    Store(where).close()
    for turn in range(10):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, where, f"turn{turn}", "1000000"], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(dice.random() * 0.15)  # any moment will do, that of a busy machine too
        writer.kill()
        said = [first, *writer.stdout]
        writer.wait(timeout=60)
        writer.stdout.close()
        told = len([line for line in said if line.endswith("\n") and line.strip()])
        assert told >= 1
        with Store(where, create=False) as store:
            found = list(store.episodes(task=f"turn{turn}"))
            # what it told of is there; one more may be, whose telling was cut off
            assert len(found) in (told, told + 1)
            assert [record.number for record in found] == list(range(len(found)))
            assert all(len(record.steps) == 5 for record in found)
            store.add(RECORD)
    with Store(where, readonly=True) as store:
        assert len(list(store.episodes(task="median"))) == 10


# -- a server that goes away ---------------------------------------------------------------------------------------


def test_a_server_that_restarts_costs_no_episode_and_doubles_none(
    postgres_server: Server, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "RETRY_S", 300.0)  # on a busy machine a restart may take long
    with Store(postgres_url) as store:
        run = store.add_run(RUN)
        under_way, failures = threading.Event(), list[BaseException]()

        def write() -> None:
            try:
                for number in range(120):
                    store.add(replace(RECORD, run=run, number=number))
                    if number == 20:
                        under_way.set()
                store.finish_run(run)
            except BaseException as error:
                failures.append(error)
            finally:
                under_way.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert under_way.wait(timeout=300)
        postgres_server.stop()
        postgres_server.start()
        writer.join(timeout=300)
        assert not writer.is_alive() and not failures
        assert [record.number for record in store.episodes(run=run)] == list(range(120))
        assert store.runs()[0].finished


def test_a_commit_whose_answer_is_lost_is_not_stored_twice(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiltyard.records.store.RETRY_PAUSE_S", 0.0)
    with Store(postgres_url) as store:
        plain, lost = store._write, []

        @contextmanager
        def write() -> Any:
            with plain() as connection:
                yield connection
            if not lost:
                lost.append(True)
                raise OperationalError("COMMIT", None, Exception("gone"), connection_invalidated=True)

        monkeypatch.setattr(store, "_write", write)
        id = store.add(RECORD)
        assert lost and store.count() == 1
        assert store.episode(id) == replace(RECORD, id=id)


def test_a_server_that_stays_away_is_said(monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    monkeypatch.setattr(postgres, "RETRY_S", 0.0)
    with Store(postgres_url) as store:
        monkeypatch.setattr(store, "_write", _broken)
        with pytest.raises(ArenaError, match="while storing an episode"):
            store.add(RECORD)
        assert store.count() == 0


@contextmanager
def _broken() -> Any:
    raise OperationalError("INSERT", None, Exception("gone"), connection_invalidated=True)
    yield


# -- places that are no store --------------------------------------------------------------------------------------


def test_urls_that_lead_nowhere_are_said_without_the_password(tmp_path: Any) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UsageError, match="can't be reached") as caught:
        Store(f"postgresql://me:hunter2@/x?host={tmp_path}")
    assert "hunter2" not in str(caught.value) and "***" in str(caught.value)
    for url in ("mysql://me:hunter2@h/x", "postgresql://me:hunter2@h:port/x", "://hunter2"):
        with pytest.raises(UsageError, match=r"postgresql://USER@HOST") as caught:
            Store(url)
        assert "hunter2" not in str(caught.value)


def test_a_place_is_named_without_its_password() -> None:
    assert place_name("/a/b.sqlite") == "/a/b.sqlite"
    assert place_name("postgresql://me:hunter2@h/x") == "postgresql://me:***@h/x"
    assert "hunter2" not in place_name("postgresql://me:hunter2@h:port/x")
    assert "hunter2" not in place_name("postgresql://me@h/x?password=hunter2&sslpassword=hunter2")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install 'tiltyard\[postgres\]'"):
        Store("postgresql://h/x")


def test_databases_that_are_not_ours(postgres_server: Server, postgres_url: str) -> None:
    for readonly in (True, False):
        with pytest.raises(UsageError, match="empty"):
            Store(postgres_url, create=False, readonly=readonly)
    with raw(postgres_url) as connection:
        assert (
            connection.exec_driver_sql("select count(*) from pg_tables where schemaname = 'public'").scalar()
            == 0
        )
        connection.exec_driver_sql("create table customers (id int)")
    with pytest.raises(UsageError, match="customers"):
        Store(postgres_url)
    with pytest.raises(UsageError, match="createdb"):
        Store(postgres_url.replace("/db", "/nodb"))
    # beside other tables, in a schema of its own
    with raw(postgres_url) as connection:
        connection.exec_driver_sql("create schema yard")
    with Store(postgres_url + "&options=-csearch_path%3Dyard") as store:
        store.add(RECORD)
    with raw(postgres_url) as connection:
        assert connection.exec_driver_sql("select count(*) from yard.episodes").scalar() == 1


def test_a_database_that_is_only_read(postgres_url: str) -> None:
    with Store(postgres_url) as store:
        id = store.add(RECORD)
    with Store(postgres_url, readonly=True) as store:
        assert store.episode(id).task == "median"
        with pytest.raises(UsageError, match="reading only"):
            store.add(RECORD)
        with store.snapshot() as connection, pytest.raises(Exception, match="read-only"):
            connection.exec_driver_sql("delete from steps")
    with raw(postgres_url) as connection:
        connection.exec_driver_sql("insert into tiltyard_schema values (999, '2030', '9.9')")
    with pytest.raises(UsageError, match="newer tiltyard"):
        Store(postgres_url)


# -- versions ------------------------------------------------------------------------------------------------------

COUNTS = "step_count, invalid_count, truncated_by, text_chars"
STEP = StepRecord('{"tool":"list_files"}', "a.py  3 bytes", invalid=True)
CUT = EpisodeRecord(
    task="t",
    task_digest="d",
    player="p",
    seed=1,
    observation="ünï",
    steps=(STEP, replace(STEP, invalid=False), replace(STEP, truncated=True, truncated_by="steps")),
    reward=0.0,
)


def test_what_a_report_asks_of_steps_is_the_same_written_or_brought_up_to_date(where: str) -> None:
    query = f"select number, {COUNTS} from episodes order by number"
    records = [CUT, replace(RECORD, number=1), replace(CUT, steps=(), number=2)]
    with Store(where) as store:
        for record in records:
            store.add(record)
    with raw(where) as connection:
        written = connection.exec_driver_sql(query).all()
        assert written[0] == (0, 3, 2, "steps", 3 + 3 * (len(STEP.action) + len(STEP.observation)))
        assert written[2] == (2, 0, 0, "", 3)
        for name in COUNTS.split(", "):
            connection.exec_driver_sql(f"alter table episodes drop column {name}")
        connection.exec_driver_sql("delete from tiltyard_schema where version >= 3")
    with Store(where, readonly=True) as store:
        assert [record.digest for record in store.episodes()] == [record.digest for record in records]
        with pytest.raises(UsageError, match="older tiltyard"), store.snapshot():
            pass
    with Store(where):
        pass
    with raw(where) as connection:
        assert connection.exec_driver_sql(query).all() == written


def test_a_database_of_the_first_version_is_brought_up_to_date(postgres_url: str) -> None:
    with Store(postgres_url) as store:
        id = store.add(RECORD)
    with raw(postgres_url) as connection:
        connection.exec_driver_sql("drop table messages")
        later = ("model", "ended_by", "turns", *COUNTS.split(", "), "input_tokens", "output_tokens")
        later += ("cache_read_tokens", "cache_write_tokens", "cost_usd")
        for name in later:
            connection.exec_driver_sql(f"alter table episodes drop column {name}")
        connection.exec_driver_sql("alter table steps drop column seconds")
        connection.exec_driver_sql("delete from tiltyard_schema where version > 1")
    with Store(postgres_url) as store:
        assert store.episode(id) == replace(RECORD, id=id)
        store.add(CUT)
    with raw(postgres_url) as connection:
        assert connection.exec_driver_sql("select count(*) from messages").scalar() == 0
        assert connection.exec_driver_sql("select sum(step_count) from episodes").scalar() == 5


def test_a_snapshot_does_not_see_what_is_written_after_it(where: str) -> None:
    with Store(where) as store:
        store.add(RECORD)
        with store.snapshot() as connection:
            count = "select count(*) from episodes"
            assert connection.exec_driver_sql(count).scalar() == 1
            store.add(RECORD)
            assert connection.exec_driver_sql(count).scalar() == 1
        assert store.count() == 2
