"""The crew with real processes: death, hanging, stopping, and what is left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tiltyard import workers as room
from tiltyard.errors import ArenaError, UsageError
from tiltyard.workers import Done, Lost, Stop, usable_cores, work


class Doubler:
    def __call__(self, job):
        return (os.getpid(), 2 * job)

    def close(self):
        pass


class Does:
    """Does what the job says."""

    def __init__(self, folder=None):
        self.folder = folder

    def __call__(self, job):
        what, argument = job
        if what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "exit":
            os._exit(argument)
        if what == "hang":
            time.sleep(600)
        if what == "deaf":
            while True:
                try:
                    time.sleep(600)
                except BaseException:
                    pass
        if what == "raise":
            raise ValueError(argument)
        if what == "big":
            return "x" * argument
        if what == "unpicklable":
            return lambda: None
        if what == "print":
            print(argument, flush=True)
            os.write(1, argument.encode())
        return argument

    def close(self):
        if self.folder:
            Path(self.folder, f"closed-{os.getpid()}").touch()


def results(jobs, make=Does, **options):
    return {result.job: result for result in work(jobs, make, **options)}


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_every_job_comes_back_once(workers):
    found = list(work(list(range(60)), Doubler, workers=workers))
    assert sorted((r.job, r.value[1]) for r in found) == [(n, 2 * n) for n in range(60)]
    pids = {r.value[0] for r in found}
    assert os.getpid() not in pids and len(pids) <= workers


def test_no_worker_means_here():
    assert {r.value for r in work([1, 2], Doubler, workers=0)} == {(os.getpid(), 2), (os.getpid(), 4)}


def test_no_jobs():
    assert list(work([], Doubler, workers=4)) == []


@pytest.mark.parametrize("workers", [-1, 100_000, 1.5, True, "2"])
def test_an_impossible_number_of_workers(workers):
    with pytest.raises(UsageError, match="workers"):
        list(work([1], Doubler, workers=workers))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_dies_costs_its_job_only(workers):
    jobs = [("die", 0) if n % 7 == 3 else ("exit", 3) if n == 20 else ("ok", n) for n in range(30)]
    found = results(jobs, workers=workers)
    assert len(found) == 30
    for n, (what, _) in enumerate(jobs):
        if what == "ok":
            assert found[n] == Done(n, n)
        elif what == "die":
            assert found[n] == Lost(n, "the worker died (killed by SIGKILL, out of memory?)")
        else:
            assert found[n] == Lost(n, "the worker died (exit status 3)")


def test_a_job_that_fails_or_says_what_can_t_be_sent():
    found = results([("raise", "no"), ("unpicklable", 0), ("ok", 1)], workers=1)
    assert "ValueError: no" in found[0].reason
    assert isinstance(found[1], Lost)
    assert found[2] == Done(2, 1)


def test_big_results():
    found = results([("big", 5_000_000)] * 4, workers=2)
    assert [len(found[n].value) for n in range(4)] == [5_000_000] * 4


def test_a_worker_that_hangs_is_killed_at_the_deadline():
    found = results(
        [("hang", 0), ("ok", 1), ("ok", 2)], workers=1, deadline_s=lambda job: 0.5 if job[0] == "hang" else 60
    )
    assert found[0].reason == "the worker did not finish within 0 s and was killed"
    assert (found[1], found[2]) == (Done(1, 1), Done(2, 2))


class Unready:
    def __init__(self):
        raise ArenaError("no cell can be opened: the disk is full")


class Misused:
    def __init__(self):
        raise UsageError("no such player")


class Buggy:
    def __init__(self):
        raise ZeroDivisionError


class Dead:
    def __init__(self):
        os._exit(9)


def test_workers_that_can_t_get_ready():
    with pytest.raises(ArenaError, match="disk is full"):
        list(work([1, 2], Unready, workers=2))
    with pytest.raises(UsageError, match="no such player"):
        list(work([1, 2], Misused, workers=2))
    with pytest.raises(ArenaError, match="ZeroDivisionError"):
        list(work([1, 2], Buggy, workers=2))
    assert {type(r) for r in work([1, 2], Dead, workers=2)} == {Lost}


def test_every_worker_is_closed_and_gone(tmp_path):
    seen = results([("ok", n) for n in range(20)], lambda: Does(tmp_path), workers=3)
    assert len(seen) == 20
    pids = [int(path.name.split("-")[1]) for path in tmp_path.iterdir()]
    assert 1 <= len(pids) <= 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_leaving_the_results_early_ends_the_workers(tmp_path):
    results = work([("ok", 1), ("hang", 0), ("hang", 0)], lambda: Does(tmp_path), workers=3)
    assert next(results) == Done(0, 1)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 60
    assert list(tmp_path.iterdir())


def test_stop_once_keeps_what_is_nearly_done_and_drops_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("tiltyard.workers.GRACE_S", 1.0)
    stop = Stop()
    found = []
    jobs = [("ok", n) for n in range(5)] + [("hang", 0)] + [("ok", n) for n in range(1000)]
    for result in work(jobs, lambda: Does(tmp_path), workers=1, stop=stop):
        found.append(result)
        if len(found) == 5:
            stop.ask()
    assert found == [Done(n, n) for n in range(5)]
    assert len(list(tmp_path.iterdir())) == 1  # it was closed, and not killed


def test_stop_twice_kills_at_once():
    stop = Stop()
    begun = time.monotonic()
    threading.Timer(0.5, lambda: (stop.ask(), stop.ask())).start()
    assert list(work([("deaf", 0)] * 2, Does, workers=2, stop=stop)) == []
    assert time.monotonic() - begun < 60


def test_from_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.extend(work(list(range(10)), Doubler, workers=2)))
    thread.start()
    thread.join(60)
    assert sorted(r.value[1] for r in found) == list(range(0, 20, 2))


def test_what_a_job_prints_goes_to_stderr():
    code = """
    from test_workers import Does
    from tiltyard.workers import work
    print([r.value for r in work([("print", "NOISE")], Does, workers=1)])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "['NOISE']\n"
    assert done.stderr.count("NOISE") == 2


KILLED = """
import os, sys
from test_workers import Does
from tiltyard.workers import work

class Tells(Does):
    def __call__(self, job):
        os.write(2, f"{os.getpid()}\\n".encode())
        return super().__call__(job)

list(work([("deaf", 0)] * 2, Tells, workers=2))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the children of a killed process")
def test_workers_die_with_a_parent_that_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=Path(__file__).parent, stderr=subprocess.PIPE, text=True
    )
    assert parent.stderr is not None
    pids = [int(parent.stderr.readline()) for _ in range(2)]
    parent.kill()
    parent.wait()
    parent.stderr.close()
    until = time.monotonic() + 60
    while any(_runs(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Cores:
    def __call__(self, job):
        time.sleep(0.05)
        return (os.getpid(), sorted(os.sched_getaffinity(0)))

    def close(self):
        pass


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="this system does not bind processes to cores"
)
def test_a_worker_stays_on_one_core_and_the_cores_are_shared_evenly():
    ours = sorted(os.sched_getaffinity(0))
    found = dict(r.value for r in work(list(range(40)), Cores, workers=2 * len(ours)))
    cores = [core for (core,) in found.values()]
    assert set(cores) <= set(ours)
    if len(found) == 2 * len(ours):
        assert sorted(cores) == sorted(ours * 2)
    assert sorted(os.sched_getaffinity(0)) == ours


class Busy:
    """Waits a little; which process it was."""

    def __call__(self, job):
        time.sleep(0.02)
        return os.getpid()

    def close(self):
        pass


def at_work(monkeypatch, idle_s, jobs, of=3):
    """How many processes did these jobs with ``of`` times as many workers as processors, and what they had in common."""
    shares = []

    @contextmanager
    def share():
        shares.append("entered")
        yield
        shares.append("left")

    monkeypatch.setattr(room, "idle_s", idle_s)
    monkeypatch.setattr(room, "shared", [share])
    found = {result.value for result in work(list(range(jobs)), Busy, workers=of * usable_cores())}
    return len(found), shares


def test_only_as_many_work_as_there_are_processors_while_these_are_busy(monkeypatch):
    assert at_work(monkeypatch, lambda: 0.0, 60 * usable_cores()) == (usable_cores(), [])


def test_all_work_where_processors_are_idle_though_there_is_work(monkeypatch):
    def idle():
        return time.monotonic() * usable_cores()

    assert at_work(monkeypatch, idle, 120 * usable_cores()) == (3 * usable_cores(), ["entered", "left"])


def test_all_work_where_nobody_knows_who_is_idle(monkeypatch):
    assert at_work(monkeypatch, lambda: None, 60 * usable_cores()) == (
        3 * usable_cores(),
        ["entered", "left"],
    )


def test_a_worker_each_is_not_watched(monkeypatch):
    count, shares = at_work(monkeypatch, lambda: pytest.fail("asked"), 60 * usable_cores(), of=1)
    assert (count, shares) == (usable_cores(), [])


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this system does not count it")
def test_idle_time_is_of_our_processors():
    begun, before = time.monotonic(), room.idle_s()
    time.sleep(0.2)
    after = room.idle_s()
    assert before is not None and 0 <= after - before <= (time.monotonic() - begun + 0.1) * usable_cores()
    core = min(os.sched_getaffinity(0))
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        assert 0 < room.idle_s() <= after
    finally:
        os.sched_setaffinity(0, ours)
