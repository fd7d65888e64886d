import os
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from tiltyard.errors import ArenaError, UsageError
from tiltyard.records import EpisodeRecord, RunRecord, StepRecord, Store, schema
from tiltyard.records.model import MAX_SEED

RECORD = EpisodeRecord(
    task="median",
    task_digest="a" * 64,
    player="reference",
    seed=7,
    run_seed=1,
    observation="Implement median",
    steps=(
        StepRecord('{"tool":"view_file"}', "1: def median", invalid=True),
        StepRecord('{"tool":"submit"}', "submitted", reward=0.5, terminated=True),
    ),
    reward=0.5,
    verdict={"reward": 0.5, "outcomes": [{"id": "hidden/0", "passed": True, "reason": ""}]},
    flags=("delegated_equality",),
    wall="namespace",
    pool="builtin",
    settings={"reward": "all"},
    started="2026-11-01T00:00:00+00:00",
    seconds=0.25,
)
RUN = RunRecord(pool="p", pool_version="1", pool_digest="d", player="noop", wall="process", seed=3)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    where = tmp_path / "s.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Store(where) as store:
        yield store


def test_an_episode_comes_back_equal(store):
    id = store.add(RECORD)
    back = store.episode(id)
    assert back == replace(RECORD, id=id)
    assert back.digest == RECORD.digest
    assert len(id) == 12 and id.startswith("e-")


def test_a_void_is_null_and_comes_back(store):
    id = store.add(
        replace(
            RECORD,
            reward=float("nan"),
            void="the worker died",
            steps=(StepRecord("{}", "", reward=float("nan")),),
        )
    )
    back = store.episode(id)
    assert back.reward is None and back.void == "the worker died" and back.steps[0].reward is None
    with store.snapshot() as raw:
        assert raw.exec_driver_sql("select count(*) from episodes where reward is null").scalar() == 1
        assert raw.exec_driver_sql("select count(*) from steps where reward is null").scalar() == 1


@given(text=st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back_equal(store, text):
    for value in (text, "\x01json:" + text):
        record = replace(RECORD, observation=value, task=value, steps=(StepRecord("{}", value),))
        back = store.episode(store.add(record))
        assert (back.observation, back.task, back.steps[0].observation) == (value, value, value)
        assert back.digest == record.digest


def test_episodes_by_run_task_and_player_in_the_order_of_the_plan(store):
    run = store.add_run(RUN)
    other = store.add_run(RUN)
    for number in (2, 0, 1):
        store.add(replace(RECORD, run=run, number=number, task=f"t{number}"))
    store.add(replace(RECORD, run=other, player="noop"))
    assert [record.task for record in store.episodes(run=run)] == ["t0", "t1", "t2"]
    assert [record.number for record in store.episodes(task="t2")] == [2]
    assert [record.run for record in store.episodes(player="noop")] == [other]
    assert list(store.episodes(run=run, player="noop")) == []
    assert store.count() == 4 and store.count(run) == 3


def test_more_episodes_than_a_page(store):
    ids = [store.add(replace(RECORD, number=n)) for n in range(450)]
    assert [record.id for record in store.episodes()] == ids
    assert all(record.steps == RECORD.steps for record in store.episodes())


def test_runs(store):
    run = store.add_run(replace(RUN, settings={"attempts": 2}))
    (found,) = store.runs()
    assert found.id == run and found.settings == {"attempts": 2} and found.started and not found.finished
    store.finish_run(run)
    assert store.runs()[0].finished >= found.started


def test_an_episode_of_a_run_that_is_not_there(store):
    with pytest.raises(UsageError, match="does not fit"):
        store.add(replace(RECORD, run="r-nowhere"))
    assert store.count() == 0


def test_an_id_by_its_beginning(store, monkeypatch):
    ids = iter(["e-aa00000000", "e-aa00000000", "e-ab00000000"])
    monkeypatch.setattr("tiltyard.records.store.new_id", lambda kind: next(ids))
    store.add(RECORD)
    second = store.add(RECORD)  # an id that is taken is not an error: another one is drawn
    assert second == "e-ab00000000"
    assert store.episode("ab").id == second
    assert store.episode("e-ab").id == second
    with pytest.raises(UsageError, match="several episodes"):
        store.episode("a")
    with pytest.raises(UsageError, match="no episode 'zz'"):
        store.episode("zz")
    for bad in ("", "e-", "%", "a%", "e_a", "A'"):
        with pytest.raises(UsageError):
            store.episode(bad)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_seed_that_no_column_holds(store, seed):
    with pytest.raises(UsageError, match="seed"):
        store.add(replace(RECORD, seed=seed))
    store.add(replace(RECORD, seed=MAX_SEED))


def test_an_episode_is_stored_whole_or_not_at_all(store):
    broken = replace(
        RECORD, steps=(RECORD.steps[0], StepRecord(None, "x"))
    )  # NOT NULL fails at the second step
    with pytest.raises(UsageError):
        store.add(broken)
    assert store.count() == 0
    assert list(store.episodes()) == []
    store.add(RECORD)
    assert store.count() == 1


# -- files that are no store ---------------------------------------------------------------------------------------


def test_a_store_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="there is no store"):
        Store(tmp_path / "no.sqlite", create=False)
    with pytest.raises(UsageError, match="there is no store"):
        Store(tmp_path / "no.sqlite", readonly=True)
    assert list(tmp_path.iterdir()) == []


def test_things_that_are_no_store(tmp_path):
    (tmp_path / "text").write_text("hello, I am a text file of some length, no database\n" * 9)
    (tmp_path / "short").write_text("x")
    with sqlite3.connect(tmp_path / "other.sqlite") as raw:
        raw.execute("create table customers (id)")
    raw.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    with pytest.raises(UsageError, match="not a tiltyard store"):
        Store(tmp_path / "text")
    with pytest.raises(UsageError, match="not a tiltyard store"):
        Store(tmp_path / "short")
    with pytest.raises(UsageError, match="customers"):
        Store(tmp_path / "other.sqlite")
    with pytest.raises(UsageError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(UsageError, match="no folder"):
        Store(tmp_path / "a" / "b.sqlite")
    with pytest.raises(UsageError, match="not a regular file"):
        Store("/dev/null")
    for empty in ("", ":memory:"):
        with pytest.raises(UsageError, match="file name"):
            Store(empty)
    with pytest.raises(UsageError, match="no database"):
        Store("nosuchdb://host/x")
    assert (tmp_path / "other.sqlite").read_bytes() == before
    assert (tmp_path / "text").read_text().startswith("hello")


def test_a_file_as_an_url(tmp_path):
    with Store(f"sqlite:///{tmp_path}/s") as store:
        store.add(RECORD)
    with Store(tmp_path / "s", create=False) as store:
        assert store.count() == 1


def test_the_tables_can_be_made_in_postgresql():
    for table in schema.metadata.sorted_tables:
        text = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert f"CREATE TABLE {table.name}" in text


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="empty"):
        Store(tmp_path / "empty", readonly=True)
    with Store(tmp_path / "empty") as store:
        store.add(RECORD)


def test_a_store_of_a_newer_tiltyard(tmp_path):
    Store(tmp_path / "s").close()
    with sqlite3.connect(tmp_path / "s") as raw:
        raw.execute("insert into tiltyard_schema values (999, '2030', '9.9')")
    raw.close()
    with pytest.raises(UsageError, match=r"newer tiltyard \(store version 999"):
        Store(tmp_path / "s")


def test_an_older_store_is_brought_up_to_date(tmp_path, monkeypatch):
    with Store(tmp_path / "s") as store:
        id = store.add(RECORD)

    def second(connection):
        connection.exec_driver_sql("create table extra (x integer)")

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, second))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with Store(tmp_path / "s", readonly=True) as store:
        assert store.episode(id).digest == RECORD.digest
    with Store(tmp_path / "s") as store:
        assert store.episode(id).digest == RECORD.digest
    with sqlite3.connect(tmp_path / "s") as raw:
        assert [row[0] for row in raw.execute("select version from tiltyard_schema order by 1")] == [
            *range(1, schema.VERSION + 1)
        ]
        assert raw.execute("select count(*) from extra").fetchone() == (0,)
    raw.close()


def test_reading_only(tmp_path):
    with Store(tmp_path / "s%20#?.sqlite") as store:
        id = store.add(RECORD)
    with Store(tmp_path / "s%20#?.sqlite", readonly=True) as store:
        assert store.episode(id).task == "median"
        with pytest.raises(UsageError, match="reading only"):
            store.add(RECORD)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write any file")
def test_a_file_that_may_not_be_written(tmp_path):
    path = tmp_path / "s"
    Store(path).close()
    path.chmod(0o444)
    with Store(path) as store, pytest.raises(UsageError, match="can't be written"):
        store.add(RECORD)
    path.chmod(0)
    with pytest.raises(UsageError, match="can't be read"):
        Store(path)


FULL_AT_ONCE = """
import resource, signal, sys
from tiltyard.errors import ArenaError
from tiltyard.records import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    Store(sys.argv[1])
except ArenaError as error:
    sys.stdout.write(str(error))
"""


def test_a_disk_that_is_full_from_the_start(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_AT_ONCE, tmp_path / "s.sqlite"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "s.sqlite" in done.stdout and "full or failed" in done.stdout and done.returncode == 0, done


def test_a_store_in_a_folder_that_may_not_be_written_can_be_read(tmp_path):
    path = tmp_path / "kept" / "s.sqlite"
    path.parent.mkdir()
    with Store(path) as store:
        id = store.add(RECORD)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        if os.access(path.parent, os.W_OK):
            pytest.skip("root may write any folder")
        with Store(path, readonly=True) as store:
            assert store.episode(id).task == RECORD.task
    finally:
        path.parent.chmod(0o755)


FULL = """
import resource, signal, sys
from dataclasses import replace
from tests_record import RECORD
from tiltyard.errors import ArenaError
from tiltyard.records import Store
store = Store(sys.argv[1])
store.add(RECORD)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for _ in range(1000):
        store.add(replace(RECORD, observation="x" * 5000))
except ArenaError as error:
    print(error)
"""


def test_a_disk_that_is_full(tmp_path):
    # a cap on file size gives the same error from the system as a full disk does, without needing a disk
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "tests_record.py").write_text(
        "from tiltyard.records import EpisodeRecord\n"
        "RECORD = EpisodeRecord(task='t', task_digest='d', player='p', seed=1, reward=0.0)\n"
    )
    path = tmp_path / "s.sqlite"
    done = subprocess.run(
        [sys.executable, tmp_path / "full.py", path], capture_output=True, text=True, timeout=120, check=True
    )
    assert "disk is full" in done.stdout and "s.sqlite" in done.stdout, done
    with Store(path) as store:
        assert store.count() >= 1
        assert all(record.task == "t" for record in store.episodes())


# -- many writers --------------------------------------------------------------------------------------------------

WRITER = """
import sys
from tiltyard.records import EpisodeRecord, StepRecord, Store
path, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store(path) as store:
    for n in range(count):
        steps = tuple(StepRecord("{}", f"{me}/{n}/{i}") for i in range(5))
        store.add(EpisodeRecord(task=me, task_digest="d", player="p", seed=n, number=n, steps=steps, reward=0.0))
        print(n, flush=True)
"""


def test_eight_processes_write_at_once_from_an_empty_start(tmp_path):
    path = tmp_path / "s.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, f"w{n}", "25"], stdout=subprocess.DEVNULL)
        for n in range(8)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 8
    with Store(path) as store:
        assert store.count() == 200
        for n in range(8):
            found = list(store.episodes(task=f"w{n}"))
            assert [record.number for record in found] == list(range(25))
            assert all(s.observation == f"w{n}/{r.number}/{i}" for r in found for i, s in enumerate(r.steps))
        assert len({record.id for record in store.episodes()}) == 200


def test_eight_threads_write_at_once(store):
    def write(me):
        for n in range(20):
            store.add(replace(RECORD, task=me, number=n))

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count() == 160


def test_a_writer_killed_in_the_middle_loses_the_episode_in_flight_at_most(tmp_path):
    path = tmp_path / "s.sqlite"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, "w", "100000"], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= 30:
            break
    time.sleep(0.02)
    writer.kill()
    told = 30
    for line in writer.stdout:
        told = int(line) if line.endswith("\n") and line.strip() else told
    writer.wait()
    writer.stdout.close()
    with Store(path) as store:
        found = list(store.episodes())
        assert len(found) in (told + 1, told + 2)  # what it told of is there, and one more may be
        assert all(len(record.steps) == 5 for record in found)
        store.add(RECORD)


def test_a_forked_child_goes_on_with_connections_of_its_own(store):
    store.add(RECORD)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.add(replace(RECORD, task="child"))
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.add(RECORD)
    assert sorted(record.task for record in store.episodes()) == ["child", "median", "median"]


def test_a_store_that_another_process_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("tiltyard.records.sqlite.BUSY_S", 0.05)
    with Store(tmp_path / "s") as store:
        raw = sqlite3.connect(tmp_path / "s", isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(ArenaError, match="another process held the store"):
                store.add(RECORD)
            assert store.count() == 0  # readers don't wait
        finally:
            raw.close()
        store.add(RECORD)
