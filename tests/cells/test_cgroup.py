"""Control groups: caps hold, homes of the living are left alone, those of the dead are removed."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tiltyard.cells.inside import cgroup
from tiltyard.cells.programs import package_lines

PLACES, MISSING = cgroup.find() if sys.platform == "linux" else ([], dict.fromkeys(cgroup.WANTED, "no Linux"))
needs_groups = pytest.mark.skipif(not PLACES, reason=f"no control groups here: {MISSING}")


@pytest.fixture
def home() -> Iterator[cgroup.Home]:
    home = cgroup.Home(PLACES, f"{os.getpid()}-{secrets.token_hex(4)}")
    yield home
    home.remove()


def paths(home: cgroup.Home) -> list[Path]:
    return [Path(place.path, home.name) for place in home.places]


def in_group(group: cgroup.Group, code: str) -> tuple[int, str]:
    """Exit status and output of code that runs in a group."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            group.enter()
            os.dup2(write, 1)
            os.execv(sys.executable, [sys.executable, "-S", "-c", textwrap.dedent(code)])
        finally:
            os._exit(99)
    os.close(write)
    with os.fdopen(read) as out:
        said = out.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def test_every_controller_is_found_or_its_absence_explained() -> None:
    found = [c for place in PLACES for c in place.controllers]
    assert sorted([*found, *MISSING]) == sorted(cgroup.WANTED)
    assert all(MISSING.values())


@needs_groups
def test_a_process_that_enters_is_in_the_group_with_all_its_children(home: cgroup.Home) -> None:
    group = cgroup.Group(home, "cell-0")
    rc, said = in_group(group, "import subprocess; subprocess.run(['cat', '/proc/self/cgroup'])")
    assert rc == 0
    assert said.count(f"{home.name}/cell-0") == len(home.places)


@needs_groups
def test_memory_is_capped_and_kills_are_counted(home: cgroup.Home) -> None:
    if "memory" not in home.controllers:
        pytest.skip(MISSING["memory"])
    group = cgroup.Group(home, "cell-0")
    group.cap(16 << 20, 100)
    assert in_group(group, "x = bytes(range(256)) * (8 << 12); print('kept')") == (0, "kept\n")
    assert group.memory_kills() == 0
    assert in_group(group, "x = bytes(range(256)) * (200 << 12); print('kept')") == (-9, "")
    assert group.memory_kills() == 1
    group.cap(400 << 20, 100)  # up, and down again: neither order of the two caps may be refused
    assert in_group(group, "x = bytes(range(256)) * (200 << 12); print('kept')") == (0, "kept\n")
    group.cap(16 << 20, 100)
    assert in_group(group, "x = bytes(range(256)) * (200 << 12); print('kept')")[0] == -9


@needs_groups
def test_processes_are_capped(home: cgroup.Home) -> None:
    if "pids" not in home.controllers:
        pytest.skip(MISSING["pids"])
    group = cgroup.Group(home, "cell-0")
    group.cap(1 << 30, 5)
    code = """
    import os
    pids = []
    try:
        for n in range(20):
            pid = os.fork()
            if pid == 0:
                import time; time.sleep(60); os._exit(0)
            pids.append(pid)
    except BlockingIOError:
        print(len(pids))
    for pid in pids:
        os.kill(pid, 9); os.waitpid(pid, 0)
    """
    assert in_group(group, code) == (0, "4\n")


@needs_groups
def test_a_group_can_be_made_again_and_through_descriptors_alone(home: cgroup.Home) -> None:
    cgroup.Group(home, "cell-0")
    again = cgroup.Home.handed_over(
        [cgroup.Place("", p.version, p.controllers) for p in home.places], home.fds
    )
    group = cgroup.Group(again, "cell-0")
    group.cap(64 << 20, 10)
    rc, said = in_group(group, "print(open('/proc/self/cgroup').read())")
    assert rc == 0 and f"{home.name}/cell-0" in said


@needs_groups
def test_removing_takes_everything() -> None:
    home = cgroup.Home(PLACES, f"{os.getpid()}-{secrets.token_hex(4)}")
    for n in range(3):
        cgroup.Group(home, f"cell-{n}")
    assert all(path.is_dir() for path in paths(home))
    home.remove()
    assert not any(path.exists() for path in paths(home))
    home.remove()


@needs_groups
def test_a_home_in_use_is_left_alone_and_one_of_the_dead_is_removed(home: cgroup.Home) -> None:
    code = f"""
    {package_lines()}
    from _tiltyard import cgroup
    import os
    dead = cgroup.Home(cgroup.find()[0], 'dead-{secrets.token_hex(4)}')
    cgroup.Group(dead, 'cell-0')
    print(dead.name, flush=True)
    os.kill(os.getpid(), 9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    left = [Path(place.path, done.stdout.strip()) for place in PLACES]
    assert all(path.is_dir() for path in left)
    cgroup.sweep(PLACES)
    assert all(path.is_dir() for path in left)  # too young: its maker might not have locked it yet
    for path in (*left, *paths(home)):
        os.utime(path, (0, 0))
    end = time.monotonic() + 30
    while any(path.exists() for path in left) and time.monotonic() < end:
        cgroup.sweep(PLACES)
    assert not any(path.exists() for path in left)
    assert all(path.is_dir() for path in paths(home))


@needs_groups
@pytest.mark.parametrize("moment", ["flock", "open"])
def test_a_home_that_is_swept_away_before_it_is_locked_is_made_again(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    where = [Path(place.path, cgroup.PREFIX + name) for place in PLACES]
    module = cgroup.fcntl if moment == "flock" else cgroup.os
    real, swept = getattr(module, moment), set[Path]()

    def late(*args: Any, **kwargs: Any) -> Any:
        for path in set(where) - swept:
            if path.exists():
                swept.add(path)
                os.utime(path, (0, 0))  # as if its maker had not run for long
                assert cgroup._remove_if_abandoned(str(path))
        return real(*args, **kwargs)

    monkeypatch.setattr(module, moment, late)
    home = cgroup.Home(PLACES, name)
    try:
        monkeypatch.undo()
        assert swept == set(where)
        cgroup.Group(home, "cell-0")
        assert all((path / "cell-0").is_dir() for path in paths(home))
        for path in paths(home):
            os.utime(path, (0, 0))
            assert not cgroup._remove_if_abandoned(str(path))
    finally:
        home.remove()


def test_a_folder_of_a_group_is_found_below_its_mount(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    below = cgroup._below
    assert below(str(tmp_path), "/", "/a/b") == f"{tmp_path}/a/b"
    assert below(str(tmp_path), "/", "/") == str(tmp_path)
    assert below(str(tmp_path), "/docker/x", "/docker/x/a") == f"{tmp_path}/a"  # what is mounted is a part
    assert below(str(tmp_path), "/", "/not/there") == str(tmp_path)
    assert below(str(tmp_path), "/", "/../outside") == str(tmp_path)


def test_version_2_takes_one_group_that_hands_most_controllers_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree as systemd makes it for a user; only the files that are read. A process has one group in it: there must
    never be two places."""
    here = tmp_path / "user.slice" / "app.slice" / "run.scope"
    here.mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    handed = {
        tmp_path: "cpu memory pids",
        here.parent.parent: "memory pids",
        here.parent: "memory pids",
        here: "",
    }
    for path, down in handed.items():
        (path / "cgroup.subtree_control").write_text(f"{down}\n")
        (path / "cgroup.type").write_text("domain\n")
    locked: set[str] = set()
    monkeypatch.setattr(cgroup, "_trouble", lambda path: "locked" if Path(path).name in locked else "")

    def place(*wanted: str) -> tuple[str, ...] | None:
        found, _ = cgroup._place_v2(wanted, str(tmp_path), str(here))
        return None if found is None else (Path(found.path).name, *found.controllers)

    assert place("memory", "pids") == ("app.slice", "memory", "pids")
    assert place("memory", "pids", "cpu") == (tmp_path.name, "memory", "pids", "cpu")
    locked.add(tmp_path.name)
    assert place("memory", "pids", "cpu") == ("app.slice", "memory", "pids")
    locked |= {"app.slice", "user.slice"}
    found, reasons = cgroup._place_v2(("memory", "cpu", "io"), str(tmp_path), str(here))
    assert found is None
    assert reasons["memory"] == reasons["cpu"] == "locked" and "offers" in reasons["io"]
