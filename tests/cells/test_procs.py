"""Finding and killing processes, from a reaper of its own: a fresh interpreter that is told what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conformance import find, none_left

from tiltyard.cells.inside import procs

pytestmark = pytest.mark.skipif(not procs.LINUX, reason="these checks look at /proc")

HEAD = """
import os, signal, subprocess, sys, time
from tiltyard.cells.inside import procs
procs.become_reaper()
def reap():
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0: return True
        except ChildProcessError: return False
def sleep(seconds=1000, shell=''):
    return subprocess.Popen(['sh', '-c', shell + f'sleep {MARK} & sleep {MARK}'], start_new_session=True).pid
def wait_for(n):
    while len(procs.descendants()) < n: time.sleep(0.01)
"""


def reaper(code: str, mark: str) -> str:
    whole = HEAD.replace("{MARK}", mark) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def mark() -> str:
    return str(10**9 + int.from_bytes(os.urandom(4), "big"))


def test_everything_below_dies(mark: str) -> None:
    code = """
    sleep(); sleep(shell='setsid '); wait_for(6)
    assert procs.kill_descendants(reap)
    print(procs.descendants(), reap())
    """
    assert reaper(code, mark) == "set() False"
    assert not find(mark)


def test_those_to_be_spared_live_with_what_is_below_them(mark: str) -> None:
    code = """
    keep = sleep(); sleep(); wait_for(6)
    assert procs.kill_descendants(reap, {keep})
    print(len(procs.descendants()), len(procs.descendants({keep})))
    assert procs.kill_descendants(reap)
    """
    assert reaper(code, mark) == "3 0"
    assert not find(mark)


def test_the_table_finds_the_same(mark: str) -> None:
    code = """
    keep = sleep(); sleep(); wait_for(6)
    print(procs._descendants_by_table(os.getpid(), ()) == procs.descendants())
    print(len(procs._descendants_by_table(os.getpid(), {keep})))
    procs.kill_descendants(reap)
    """
    assert reaper(code, mark).split() == ["True", "3"]


def test_use_is_counted(mark: str) -> None:
    code = """
    big = 'import threading, time; x = bytearray(100 << 20); [threading.Thread(target=time.sleep, args=(99,)).start() for _ in range(4)]; print(flush=True); time.sleep(99)'
    child = subprocess.Popen([sys.executable, '-c', big], stdout=subprocess.PIPE)
    child.stdout.readline()
    tasks, memory = procs.tasks_and_memory([child.pid], 1 << 40)
    tasks2, exact = procs.tasks_and_memory([child.pid], 1)
    print(tasks, tasks2, memory >> 20 >= 100, 100 <= exact >> 20 <= memory >> 20)
    procs.kill_descendants(reap)
    """
    assert reaper(code, mark) == "5 5 True True"


def test_shared_pages_count_once(mark: str) -> None:
    code = """
    x = bytearray(os.urandom(1)) * (64 << 20)
    kids = []
    for _ in range(5):
        kids.append(os.fork())
        if kids[-1] == 0: time.sleep(99)
    time.sleep(0.2)
    _, memory = procs.tasks_and_memory(kids, 200 << 20)
    print(memory < 100 << 20)
    procs.kill_descendants(reap)
    """
    assert reaper(code, mark) == "True"


def test_a_sweep_kills_by_folder_and_by_environment(mark: str, tmp_path: Path) -> None:
    base = str(tmp_path / "tiltyard-0123")
    Path(base).mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": f"{base}/home"}
    by_env = subprocess.Popen(["sleep", mark], cwd="/", env=env)
    by_folder = subprocess.Popen(["sleep", mark], cwd=base, env={"PATH": os.environ["PATH"]})
    other = subprocess.Popen(["sleep", mark], cwd="/")
    time.sleep(0.1)
    procs.sweep(base.encode())
    assert (by_env.wait(30), by_folder.wait(30), other.poll()) == (-9, -9, None)
    other.kill()
    other.wait()
    assert none_left(mark)


def test_the_table_of_other_systems_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/bin/ps").exists():
        pytest.skip("no /bin/ps here")
    monkeypatch.setattr(procs, "LINUX", False)
    table = {pid: (parent, group) for pid, parent, group in procs._table()}
    assert table[os.getpid()] == (os.getppid(), os.getpgid(0))
