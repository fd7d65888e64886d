"""Whose is it? The id that everything of ours in a container engine is labelled with, and whether its owner lives.

An owner is a process: its pid, when it started, the boot of its machine and its pid namespace, since a pid alone comes
back. What can't be known from here (another machine's, another container's process) is never taken for dead.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LABEL = "tiltyard.owner"
_LINUX = sys.platform.startswith("linux")


@dataclass(frozen=True, slots=True)
class Owner:
    """As text: ``PID:START:BOOT:NAMESPACE``."""

    pid: int
    start: str
    boot: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.boot}:{self.namespace}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        pid, *rest = text.split(":")
        if len(rest) != 3 or not pid.isdecimal():
            return None
        return cls(int(pid), *rest)


def owner_id() -> Owner:
    """This process. A forked child is an owner of its own."""
    pid = os.getpid()
    return Owner(pid, _start(pid) or "0", _boot(), _namespace())


def lives(owner: Owner) -> bool | None:
    """Whether this owner is alive; None if that can't be known from here."""
    if owner.boot != _boot() or owner.namespace != _namespace():
        return None
    return _start(owner.pid) == owner.start


def _start(pid: int) -> str | None:
    """When a process started, in the system's own words; None if there is no such process (or a dead one that nobody
    has collected)."""
    if _LINUX:
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    try:
        done = subprocess.run(
            ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            timeout=10,
            check=False,
            text=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "0"
    state, _, start = done.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else "-".join(start.replace(":", ".").split())


@cache
def _boot() -> str:
    if _LINUX:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"],
            capture_output=True,
            timeout=10,
            check=False,
            text=True,
        )
        return done.stdout.strip() or "unknown"
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0"
