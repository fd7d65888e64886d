"""A pytest plugin: after the whole run, no process, mount, control group, temp folder or shared memory is left.

Takes stock when the run starts and again when it ends; what is new and bears our marks is named and fails the run.
Marks: processes started from this checkout's ``inside`` folders or in a cell, names that begin with ``tiltyard``, and
folders of engines.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

MARK = "tiltyard"
ENGINES = "ty-"
"""How the names of the folders of the tests' own engines begin."""
PATIENCE_S = 5.0


def stock() -> set[str]:
    """Everything on this machine that bears our marks, in words."""
    return processes() | mounts(MARK, f"/{ENGINES}") | folders()


def processes() -> set[str]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc/self").exists() else ():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            started = (entry / "stat").read_text().rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            continue
        if any(b"/inside" in w and b"_tiltyard" in w for w in words):
            found.add(
                f"process {entry.name} (started at {started}): {b' '.join(words)[-120:].decode(errors='replace')}"
            )
    return found


def mounts(*marks: str) -> set[str]:
    """Those whose place has one of these in it; by default ``MARK``."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return set()
    places = [line.split()[1] for line in lines]
    return {f"mount {place}" for place in places if any(mark in place for mark in marks or (MARK,))}


def folders() -> set[str]:
    places = [Path(tempfile.gettempdir()), Path("/dev/shm"), Path("/run")]
    # os.walk: a group of another run may vanish while this looks
    found = {
        f"control group {at}/{d}" for at, dirs, _ in os.walk("/sys/fs/cgroup") for d in dirs if MARK in d
    }
    for place in places:
        try:
            found |= {
                f"left in {place}: {p.name}"
                for p in place.iterdir()
                if p.name.lstrip(".").startswith((MARK, ENGINES))
            }
        except OSError:
            continue
    return found


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_BEFORE] = stock()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput"):
        return
    end = time.monotonic() + PATIENCE_S
    while (left := stock() - session.config.stash[_BEFORE]) and time.monotonic() < end:
        time.sleep(0.1)
    session.config.stash[_LEFT] = left
    # on a machine where others run tiltyard at the same time, what they have is not ours
    if left and os.environ.get("CI"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left = terminalreporter.config.stash.get(_LEFT, set())
    if left:
        terminalreporter.section("left behind by this run (or by another one at the same time)")
        for line in sorted(left):
            terminalreporter.line(line)


_BEFORE = pytest.StashKey[set[str]]()
_LEFT = pytest.StashKey[set[str]]()
