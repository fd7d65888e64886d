"""Building environments: a virtual environment for each set of pins, in the cache of this machine, once.

An environment is built aside, under a lock, and moved into its place whole: whoever finds it finds all of it, eight who
want it at once build it once, and what a killed builder left behind is thrown away by the next. Wheels only, as far
as they are to be had; what must be built from source runs its own build with the rights of this user, which is said
(``progress``) and noted. No package's code runs when an interpreter starts: lines of ``.pth`` files that import,
``sitecustomize`` and ``usercustomize`` are taken out. What a living process uses is not collected.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tiltyard.environments.installing import BUILD_S, Installed, Progress, install
from tiltyard.environments.interpreters import Python, python_for
from tiltyard.environments.model import BuildError, Environment
from tiltyard.environments.uv import run_uv
from tiltyard.errors import ArenaError
from tiltyard.images import cache_folder

FAILED_S = 60.0
"""How long a failure that may pass by itself (the network) is remembered in a process; others as long as it lives."""
_ABOUT = "about.json"


@dataclass(frozen=True, slots=True)
class Built:
    """An environment in the cache. ``notes``: what was noticed when it was built; ``used``: seconds since the epoch;
    ``trusted``: top-level modules that fork servers may load (pytest, and what it needs)."""

    digest: str
    environment: Environment
    folder: Path
    python: Path
    version: str
    bytes: int
    notes: tuple[str, ...]
    used: float
    trusted: tuple[str, ...] = ()


_held: dict[Path, int] = {}
"""Locks on the environments that this process uses. They end with it."""
_failures: dict[tuple[Path, str], tuple[BuildError, float]] = {}
_lock = threading.Lock()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for fd in _held.values():
        os.close(fd)  # a copy would hold the lock for the parent as well
    _held.clear()


os.register_at_fork(after_in_child=_in_child)


def home() -> Path:
    """The folder of all environments."""
    return cache_folder() / "environments"


def build(environment: Environment, progress: Progress | None = None, *, builds: bool = True) -> Path:
    """The interpreter of this environment, built if it is not there; it stays as long as this process. ``progress`` is
    told what is done, in short lines. ``builds``: packages without a wheel may be built from source, which runs their code
    with this user's rights. BuildError: it can't be had, with the kind of reason and uv's own words."""
    folder = home() / environment.digest
    if folder not in _held:
        if not (folder / _ABOUT).is_file():
            _build_once(folder, environment, progress, builds)
        _hold(folder)
        if not (folder / _ABOUT).is_file():  # collected between the two
            return build(environment, progress, builds=builds)
    with contextlib.suppress(OSError):
        os.utime(folder / _ABOUT)  # the least recently used go first
    return folder / "bin" / "python"


def is_built(environment: Environment) -> bool:
    """Whether it is in the cache."""
    return (home() / environment.digest / _ABOUT).is_file()


def about(environment: Environment) -> Built | None:
    """What the cache knows of this environment; None: it was not built."""
    return read_about(home() / environment.digest)


def _hold(folder: Path) -> None:
    path = folder.with_name(f"{folder.name}.lock")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_SH)
    except OSError as error:
        raise ArenaError(f"can't lock {path}: {error.strerror}") from None
    with _lock:
        if folder in _held:
            os.close(fd)
        else:
            _held[folder] = fd


def _build_once(folder: Path, environment: Environment, progress: Progress | None, builds: bool) -> None:
    key = (folder, f"{builds}")
    with _lock:
        failure, until = _failures.get(key, (None, 0.0))
    if failure is not None and time.monotonic() < until:
        raise BuildError(failure.kind, str(failure))
    # another lock than the one for those who use it: they hold theirs as long as they live
    with _building(folder.with_name(f"{folder.name}.building")) as lock:
        if (folder / _ABOUT).is_file():
            return
        try:
            _build(folder, environment, progress or (lambda text: None), builds, lock)
        except BuildError as error:
            passing = error.kind in ("network", "uv", "other")
            with _lock:
                _failures[key] = error, time.monotonic() + (FAILED_S if passing else float("inf"))
            raise


@contextlib.contextmanager
def _building(path: Path) -> Iterator[int]:
    """Hold this lock; the descriptor is for children, so that nobody builds beside what a killed builder had started."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ArenaError(
            f"can't write in the cache {path.parent}: {error.strerror}; TILTYARD_CACHE names another one"
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def _build(folder: Path, environment: Environment, progress: Progress, builds: bool, lock: int) -> None:
    python = python_for(environment.version)
    for left in folder.parent.glob(f".{folder.name}.*"):  # by one who was killed; we have the lock
        shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)  # one without its last file is half of one
    progress(f"building an environment: {environment}")
    started = time.monotonic()
    try:
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ArenaError(f"can't write in {folder.parent}: {error.strerror}") from None
    try:
        partial.chmod(0o755)
        venv = [
            "venv",
            "--quiet",
            "--relocatable",
            "--no-project",
            "--allow-existing",
            "--python",
            python.path,
        ]
        run_uv([*venv, str(partial)], timeout_s=BUILD_S, keep=[lock])
        installed = install(partial, environment, python, progress, builds, lock)
        _write_about(partial, environment, python, installed)
        partial.rename(folder)
    except OSError as error:
        raise ArenaError(f"can't build an environment in {folder.parent}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    progress(f"built an environment in {time.monotonic() - started:.1f} s: {environment}")


def _write_about(venv: Path, environment: Environment, python: Python, installed: Installed) -> None:
    said = {
        "python": environment.python,
        "packages": list(environment.packages),
        "version": ".".join(map(str, python.version)),
        "notes": list(installed.notes),
        "trusted": list(installed.trusted),
        "bytes": sum(path.lstat().st_size for path in venv.rglob("*")),
    }
    (venv / _ABOUT).write_text(json.dumps(said, indent=1), encoding="utf-8")


def read_about(folder: Path) -> Built | None:
    """What is in this folder; None: no environment, or none that is whole."""
    file = folder / _ABOUT
    try:
        said = json.loads(file.read_bytes())
        environment = Environment(str(said["python"]), tuple(said["packages"]))
        return Built(
            folder.name,
            environment,
            folder,
            folder / "bin" / "python",
            str(said["version"]),
            int(said["bytes"]),
            tuple(said["notes"]),
            file.stat().st_mtime,
            tuple(map(str, said["trusted"])),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def all_built() -> tuple[Built, ...]:
    """All environments of the cache, the most recently used first."""
    folders = sorted(path for path in home().glob("*") if len(path.name) == 64)
    found = [one for one in map(read_about, folders) if one is not None]
    return tuple(sorted(found, key=lambda one: (-one.used, one.digest)))


def remove(digest: str) -> bool:
    """Remove an environment unless a process uses it (or builds it); whether it is gone."""
    folder = home() / digest
    with _removing(folder) as free:
        if not free:
            return False
        trash = folder.with_name(f".{folder.name}.gone")
        shutil.rmtree(trash, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(trash)  # in one step: nobody finds half of it
        shutil.rmtree(trash, ignore_errors=True)
        return True


@contextlib.contextmanager
def _removing(folder: Path) -> Iterator[bool]:
    with open(folder.with_name(f"{folder.name}.lock"), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
