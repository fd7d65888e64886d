"""The machine that a run was made on, in a few words; and lending the run only some of its processors.

No host name, user or path: a report can be published as it is.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiltyard import __version__
from tiltyard.errors import UsageError
from tiltyard.workers import usable_cores

BUSY = 0.5
"""Load for each processor, at the start of a run, from which on its figures are those of a busy machine."""


def describe() -> dict[str, Any]:
    """The machine, as plain data."""
    cores, load = usable_cores(), _load()
    return {
        "tiltyard": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": cores,
        "memory_gib": _memory_gib(),
        "user": "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else "an ordinary user",
        "date": datetime.now(UTC).date().isoformat(),
        "load_at_start": load,
        "busy": load is not None and load > BUSY * cores,
    }


def command_line(argv: Sequence[str]) -> str:
    """A command to be published with its figures: paths are reduced to the names of their files."""
    return shlex.join(["tiltyard", *(word.rsplit("/", 1)[-1] or word for word in argv)])


@contextlib.contextmanager
def only(cores: int | None) -> Iterator[None]:
    """Use so many processors, this process and all that it starts; None: as they are. UsageError if there are fewer,
    or the system can't do it."""
    if cores is None:
        yield
        return
    if not hasattr(os, "sched_setaffinity"):
        raise UsageError("this system can't lend a process some of its processors; leave --cores out")
    before = os.sched_getaffinity(0)
    if not 1 <= cores <= len(before):
        raise UsageError(
            f"found {cores} processors to use; expected 1 to {len(before)}, which this process has"
        )
    os.sched_setaffinity(0, set(sorted(before)[:cores]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1)
    except (AttributeError, ValueError, OSError):
        return None
