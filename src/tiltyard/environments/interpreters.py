"""Interpreters of this machine by their version: what runs Tiltyard, what is on PATH, pyenv's, uv's own.

Nothing is downloaded. An interpreter is asked for its version once in a process, isolated (``-I -S``), and one that
does not answer is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tiltyard.environments.model import BuildError

OLDEST = (3, 9)
"""The oldest Python that the code in cells runs on."""
_ASK_S = 30.0
_ASK = "import sys, platform; print(platform.python_implementation(), *sys.version_info[:3])"
_NAME = re.compile(r"python3\.\d+")
_FOLDER = re.compile(r"(?:cpython-)?(3)\.(\d+)(?:\.(\d+))?(?:[-.].*)?")


@dataclass(frozen=True, slots=True, order=True)
class Python:
    """An interpreter: its version and its path (no virtual environment's)."""

    version: tuple[int, int, int]
    path: str

    @property
    def minor(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


def pythons() -> tuple[Python, ...]:
    """The best interpreter of each version that cells can run, the newest first."""
    found: dict[str, Python] = {}
    for python in _all():
        if python.version[:2] >= OLDEST:
            found.setdefault(python.minor, python)
    return tuple(sorted(found.values(), reverse=True))


def python_for(version: str) -> Python:
    """The interpreter for a version like "3.9". BuildError (``python``): there is none here, or it is too old."""
    wanted = tuple(int(part) for part in version.split(".")[:2])
    if wanted < OLDEST:
        raise BuildError(
            "python", f"needs Python {version}; cells need {'.'.join(map(str, OLDEST))} or newer"
        )
    for python in _all():
        if python.version[:2] == wanted:
            return python
    have = ", ".join(sorted((p.minor for p in pythons()), key=lambda v: int(v.partition(".")[2]))) or "none"
    raise BuildError(
        "python",
        f"needs Python {version}, which was not found on PATH, in ~/.pyenv/versions or among uv's; "
        f"found: {have}; install it (for example: uv python install {version})",
    )


def _all() -> Iterator[Python]:
    """The running one first; of a version the latest patch before others, each file once."""
    own = os.path.realpath(getattr(sys, "_base_executable", sys.executable) or sys.executable)
    mine = _ask(own)
    if mine is not None:
        yield mine
    yield from _others(os.environ.get("PATH", ""), os.environ.get("PYENV_ROOT", ""), _uv_folder())


@cache
def _others(path: str, pyenv: str, uv: str) -> tuple[Python, ...]:
    found: dict[str, Python] = {}
    for file in _candidates(path, pyenv, uv):
        real = os.path.realpath(file)
        if real not in found and (python := _ask(real)) is not None:
            found[real] = python
    return tuple(sorted(found.values(), reverse=True))


def _uv_folder() -> str:
    said = os.environ.get("UV_PYTHON_INSTALL_DIR")
    data = os.environ.get("XDG_DATA_HOME") or str(Path("~/.local/share").expanduser())
    return said or f"{data}/uv/python"


def _candidates(path: str, pyenv: str, uv: str) -> Iterator[Path]:
    for folder in path.split(os.pathsep):
        if (
            not folder or Path(folder).name == "shims"
        ):  # pyenv's are scripts that start the one it was told to
            continue
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if _NAME.fullmatch(entry.name))
        except OSError:
            continue
        yield from (Path(folder) / name for name in names)
    for home in (Path(pyenv) if pyenv else Path("~/.pyenv").expanduser(), Path(uv)):
        versions = home / "versions" if (home / "versions").is_dir() else home
        try:
            folders = sorted(entry.name for entry in os.scandir(versions) if entry.is_dir())
        except OSError:
            continue
        for name in folders:
            match = _FOLDER.fullmatch(name)
            if match and (3, int(match[2])) >= OLDEST:
                yield versions / name / "bin" / "python3"


@cache
def _ask(path: str) -> Python | None:
    """What is at this path, if it is a CPython that answers."""
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", _ASK],
            capture_output=True,
            timeout=_ASK_S,
            check=True,
            text=True,
            cwd="/",
            env={},
        )
        kind, *numbers = done.stdout.split()
        major, minor, micro = (int(n) for n in numbers)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Python((major, minor, micro), path) if kind == "CPython" else None
