"""The process wall: the conformance list, and what is this wall's own."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import ALL, LONG, Check, eventually, find, none_left, py, said, still_works
from conformance_hostile import ATTEMPTS, CHECKS, attempts

from tiltyard.cells import (
    WALLS,
    CellLimits,
    CellLost,
    ProcessWall,
    Run,
    client,
    make_wall,
    probe_wall,
    process,
)
from tiltyard.errors import ArenaError, UsageError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these checks look at /proc")


@pytest.fixture(scope="module")
def wall() -> Iterator[ProcessWall]:
    wall = ProcessWall()
    yield wall
    wall.close()


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cells of a test have their folders, and nothing else is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def inside(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir()]


def the_keeper() -> int:
    """The pid of the only keeper that is a child of ours."""
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    (pid,) = [p for p in children if b"\0keeper\0" in Path(f"/proc/{p}/cmdline").read_bytes()]
    return int(pid)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: ProcessWall, check: Check) -> None:
    check.on(wall)


@pytest.mark.parametrize("what", ATTEMPTS)
def test_what_hostile_code_attempts_is_real(what: str, tmp_path: Path) -> None:
    """The same attempts as in the list, made without a wall, on a process that lets itself be looked into: those that a
    machine lets anybody make succeed, and none fails for a mistake of ours."""
    child = "import os, time\nCHILD = os.fork()\nif CHILD == 0: time.sleep(1000)\n"
    code = (
        f"import signal\nCHILD = 0\n{attempts(what, '[CHILD]')}\nif CHILD: os.kill(CHILD, signal.SIGKILL)\n"
    )
    if what in ("ptrace", "process_vm", "descriptors of others"):
        # forked late, when what is to be read is in its memory too
        code = code.replace("NUMBERS, PIDS, got", f"{child}NUMBERS, PIDS, got").replace("CHILD = 0\n", "", 1)
    elif what in ("mounts", "the machine's settings"):
        pytest.skip("what would work here is not to be done to this machine")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LONG, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    got = json.loads(done.stdout)
    mistakes = {errno.EINVAL, errno.EFAULT, errno.EBADF, errno.E2BIG, errno.ENOMSG, -1}
    wrong = {name: number for name, number in got.items() if number in mistakes}
    assert not {
        name for name in wrong if not name.startswith(("setns", "unshare 0x80", "unshare 0x10000000"))
    }, got
    if 0 not in got.values():  # a machine that is a cell itself
        pytest.skip(f"this machine refuses it to everybody: {got}")


# ------------------------------------------------------------------------------------------------ walls by name


def test_walls_by_name() -> None:
    assert make_wall("process").name == "process"
    assert make_wall().name in WALLS
    assert probe_wall("process") is None
    with pytest.raises(UsageError, match=r"'wax'.*auto.*process"):
        make_wall("wax")
    with pytest.raises(UsageError, match="wax"):
        probe_wall("wax")


def test_a_wall_that_can_not_be_had_is_no_other_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiltyard.cells.namespace", None)
    assert make_wall("auto").name == "process"
    with pytest.raises(ArenaError, match="namespace"):
        make_wall("namespace")


def test_weaknesses_are_told(wall: ProcessWall) -> None:
    text = " ".join(wall.weaknesses)
    assert "file system" in text and "network" in text and "same user" in text


def test_what_the_list_leaves_out_is_a_weakness_that_is_told(wall: ProcessWall) -> None:
    told = {weakness.partition(":")[0] for weakness in wall.weaknesses}
    assert {
        check.unless["process"].partition(":")[0] for check in CHECKS if "process" in check.unless
    } <= told
    assert all(set(check.unless) <= {"process"} for check in CHECKS), "the other walls promise all of it"


def test_another_hash_seed_is_another_order(wall: ProcessWall) -> None:
    code = "print(list({'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}))"
    other = make_wall("process", hash_seed=7)
    with wall.open({}, CellLimits()) as one, other.open({}, CellLimits()) as two:  # type: ignore[attr-defined]
        assert said(one, code) != said(two, code)


# ---------------------------------------------------------------------------------------------- interpreters


def test_another_interpreter_has_its_packages(wall: ProcessWall) -> None:
    found = subprocess.run([sys.executable, "-c", "import pytest"], env={}, capture_output=True, check=False)
    if found.returncode != 0:
        pytest.skip("pytest is not one of this interpreter's own packages")
    code = "try: import pytest; print('has packages')\nexcept ImportError: print('bare')"
    other = ProcessWall(python=sys.executable)
    with wall.open({}, CellLimits()) as one, other.open({}, CellLimits()) as two:
        assert (said(one, code), said(two, code)) == ("bare", "has packages")


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-python"):
        make_wall("process", python="/no-such-python")
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    wall = make_wall("process", python=str(python))
    cell = wall.open({}, CellLimits())
    python.unlink()
    with pytest.raises(ArenaError, match="No such file") as error:
        py(cell, "print(1)")
    assert not isinstance(error.value, CellLost)
    assert cell.run(Run(("true",), wall_s=LONG)).rc == 0
    cell.close()


# ---------------------------------------------------------------------------------------- nothing is left behind


def test_close_removes_the_folder(wall: ProcessWall, temp: Path) -> None:
    cell = wall.open({"a/b/c": b"x"}, CellLimits())
    said(
        cell,
        "import os, tempfile; tempfile.mkdtemp(); os.mkfifo('f'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)",
    )
    assert len(inside(temp)) == 1
    cell.close()
    assert inside(temp) == []


def test_links_in_the_folder_are_not_followed_when_it_is_removed(
    wall: ProcessWall, temp: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "canary").write_text("alive")
    cell = wall.open({}, CellLimits())
    said(
        cell,
        f"import os; os.symlink({str(outside)!r}, 'link'); os.symlink({str(outside)!r}, os.path.expanduser('~/link'))",
    )
    cell.close()
    assert inside(temp) == []
    assert (outside / "canary").read_text() == "alive"


def test_a_keeper_that_is_killed_by_a_player_is_its_doing(wall: ProcessWall, temp: Path) -> None:
    cell = wall.open({}, CellLimits())
    marker = f"5{os.urandom(4).hex()}"
    code = f"""
    import os, subprocess, time
    subprocess.Popen(['sleep', '1{int(marker, 16)}'], start_new_session=True)
    subprocess.Popen(['sh', '-c', 'cd /; sleep 1{int(marker, 16)}'], start_new_session=True)
    os.kill(os.getppid(), 9)
    time.sleep(1000)
    """
    with pytest.raises(CellLost) as error:
        py(cell, code)
    assert error.value.during_run
    assert none_left(f"1{int(marker, 16)}")
    assert inside(temp) == []
    with pytest.raises(CellLost) as error:
        cell.read("x", max_bytes=1)
    assert not error.value.during_run


def test_a_keeper_that_is_killed_between_runs_is_the_arenas_doing(wall: ProcessWall, temp: Path) -> None:
    cell = wall.open({"x": b"x"}, CellLimits())
    os.kill(the_keeper(), signal.SIGKILL)
    with pytest.raises(CellLost) as error:
        cell.read("x", max_bytes=1)
    assert not error.value.during_run
    assert inside(temp) == []


def test_a_keeper_that_is_stopped_is_lost(
    wall: ProcessWall, temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "GRACE_S", 1.0)
    monkeypatch.setattr(process, "END_S", 1.0)
    cell = wall.open({}, CellLimits())
    marker = str(10**9 + int.from_bytes(os.urandom(4), "big"))
    code = (
        f"import os, signal; os.kill(os.getppid(), signal.SIGSTOP); os.execvp('sleep', ['sleep', '{marker}'])"
    )
    with pytest.raises(CellLost) as error:
        py(cell, code, wall_s=0.5)
    assert error.value.during_run
    assert none_left(marker)
    assert inside(temp) == []


def test_sigterm_to_a_keeper_ends_the_cell(wall: ProcessWall, temp: Path) -> None:
    cell = wall.open({}, CellLimits())
    os.kill(the_keeper(), signal.SIGTERM)
    assert eventually(lambda: inside(temp) == [])
    with pytest.raises(CellLost):
        cell.read("x", max_bytes=1)


def owner(code: str, temp: Path) -> subprocess.Popen[bytes]:
    head = "from tiltyard.cells import *\ncell = make_wall('process').open({}, CellLimits())\nprint('open', flush=True)\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temp)},
    )


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "SIGINT", "exit", "error", "_exit"])
def test_however_the_owner_ends_nothing_is_left(tmp_path: Path, end: str) -> None:
    marker = str(10**9 + int.from_bytes(os.urandom(4), "big"))
    run = f"cell.run(Run(('sh', '-c', 'setsid sleep {marker} & sleep {marker}'), wall_s=1000))"
    ends = {"exit": "raise SystemExit", "error": "1/0", "_exit": "import os; os._exit(3)"}
    process = owner(ends.get(end, run), tmp_path)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"open\n"
        if end not in ends:
            assert eventually(lambda: len(find(f"sleep\0{marker}")) == 2)
            process.send_signal(signal.Signals[end])
        process.wait(LONG)
    finally:
        process.kill()
        process.communicate()
    assert none_left(marker)
    assert eventually(lambda: inside(tmp_path) == [])


def test_ctrl_c_during_a_run_ends_the_cell(wall: ProcessWall, temp: Path) -> None:
    cell = wall.open({}, CellLimits())
    marker = str(10**9 + int.from_bytes(os.urandom(4), "big"))

    main = threading.main_thread().ident
    assert main is not None
    begin = time.monotonic()

    def interrupt() -> None:
        eventually(lambda: find(marker))
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        cell.run(Run(("sleep", marker), wall_s=1000))
    thread.join()
    assert time.monotonic() - begin < LONG
    assert none_left(marker) and inside(temp) == []
    with pytest.raises(CellLost, match="interrupted"):
        cell.list(max_entries=1)


def test_closing_the_wall_closes_its_cells(temp: Path) -> None:
    wall = ProcessWall()
    cells = [wall.open({}, CellLimits()) for _ in range(3)]
    wall.close()
    assert inside(temp) == []
    with pytest.raises(CellLost):
        cells[0].list(max_entries=1)
    wall.close()


def test_a_thousand_requests_use_nothing_up(wall: ProcessWall, temp: Path) -> None:
    with wall.open({}, CellLimits()) as cell:
        fds = Path(f"/proc/{the_keeper()}/fd")
        cell.write("f", b"")
        if not os.access(fds, os.R_OK):
            pytest.skip("only root may look at a keeper's descriptors")
        before = len(inside(fds))
        for n in range(1000):
            cell.write("f", b"%d" % n)
            cell.read("f", max_bytes=10)
        cell.run(Run(("true",), wall_s=LONG))
        cell.capture(**ALL)
        assert len(inside(fds)) <= before


# -------------------------------------------------------------------------------------- failures of the machine


def test_no_room_for_temporary_files_is_told_in_the_systems_words(wall: ProcessWall, temp: Path) -> None:
    shutil.rmtree(temp)
    with pytest.raises(ArenaError, match="No such file") as error:
        wall.open({}, CellLimits())
    assert str(temp) in str(error.value)
    temp.mkdir()


def test_no_descriptors_left_is_told_in_the_systems_words(tmp_path: Path) -> None:
    code = """
    import os, resource
    from tiltyard.cells import *
    from tiltyard.errors import ArenaError
    wall = make_wall('process')
    wall.open({}, CellLimits()).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
    held = []
    try:
        while True: held.append(os.open('/dev/null', os.O_RDONLY))
    except OSError: pass
    for room in range(12):
        try: wall.open({}, CellLimits()).close(); print('worked')
        except ArenaError as error: assert 'Too many open files' in str(error), error
        os.close(held.pop())
    """
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 0, done.stderr
    assert "worked" in done.stdout
    assert inside(tmp_path) == []


@pytest.fixture
def small_disk(temp: Path) -> Iterator[Path]:
    size = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(temp)]
    if (
        shutil.which("mount") is None
        or subprocess.run(size, capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("no small disk can be mounted here (that takes root)")
    yield temp
    subprocess.run(["umount", "-l", str(temp)], check=True)


def test_a_full_disk_is_the_arenas_doing(wall: ProcessWall, small_disk: Path) -> None:
    with wall.open({}, CellLimits()) as cell:
        cell.write("small", b"x")
        with pytest.raises(ArenaError, match="No space left"):
            cell.write("big", bytes(1 << 20))
        assert [e.path for e in cell.list(max_entries=9).entries] == ["small"]
        still_works(cell)
    with pytest.raises(ArenaError, match="No space left"):
        wall.open({"big": bytes(1 << 20)}, CellLimits())
    assert inside(small_disk) == []


def test_processes_are_limited_for_an_ordinary_user(wall: ProcessWall) -> None:
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC)[0])"
    with wall.open({}, CellLimits()) as cell:
        most = int(said(cell, code))
    if os.getuid() == 0:
        assert most == resource.getrlimit(resource.RLIMIT_NPROC)[0]
    else:
        assert 64 < most < 100_000


def test_a_player_can_not_raise_its_limits(wall: ProcessWall) -> None:
    code = """
    import resource
    for what in ('CPU', 'FSIZE', 'DATA', 'NOFILE', 'CORE'):
        soft, hard = resource.getrlimit(getattr(resource, 'RLIMIT_' + what))
        print(what, soft == hard, soft)
    """
    limits = CellLimits(cpu_s=7.5, memory_bytes=300 << 20, open_files=99, file_bytes=12345)
    with wall.open({}, limits) as cell:
        assert said(cell, code).splitlines() == [
            "CPU True 8",
            "FSIZE True 12345",
            f"DATA True {300 << 20}",
            "NOFILE True 99",
            "CORE True 0",
        ]


def test_setuid_programs_give_nothing(wall: ProcessWall) -> None:
    with wall.open({}, CellLimits()) as cell:
        assert "NoNewPrivs:\t1" in said(cell, "print(open('/proc/self/status').read())")


def test_what_the_cell_uses_too_much_of_is_said(wall: ProcessWall) -> None:
    with wall.open({}, CellLimits(processes=10)) as cell:
        result = py(cell, "import subprocess\nfor _ in range(50): subprocess.Popen(['sleep', '1000'])")
        assert b"[killed: more than 10 processes and threads]" in result.stderr
        assert (result.rc, result.timed_out) == (-9, False)
