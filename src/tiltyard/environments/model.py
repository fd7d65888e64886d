"""What an environment is, as data: a version of Python and pinned packages, with a digest. Nothing is run here."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from tiltyard.errors import ArenaError, UsageError
from tiltyard.task import Metadata, Task

Kind = Literal["uv", "python", "package", "compiler", "network", "hash", "conflict", "other"]
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The version of the interpreter that runs Tiltyard, as tasks write it."""
_VERSION = 2
"""Of how an environment is built: to be raised when the same pins give another one."""
_HASH = re.compile(r"\s--hash=(sha(?:256|384|512):[0-9a-f]{64,128})(?=\s|$)")
_PYTHON = re.compile(r"(\d+)\.(\d+)(?:\.\d+)?")


class BuildError(ArenaError):
    """An environment can't be had. ``kind`` says why, in one word: ``uv`` (it is missing), ``python`` (no interpreter of
    that version, or packages that need another one), ``package`` (no such package or version), ``compiler`` (it
    must be built here, and can't), ``network``, ``hash`` (an archive is not the one that was locked), ``conflict``
    (requirements that exclude each other), ``other``. The message has the words of who refused."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Environment:
    """``python`` is a version like "3.11", or "" for the one that runs Tiltyard; ``packages`` are requirements pinned
    with ``==``, sorted; each may carry its hashes as a lock file does (``x==1.0 --hash=sha256:…``). UsageError:
    a package that is not pinned, a name that is given twice, a version that is none."""

    python: str = ""
    packages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.python and _PYTHON.fullmatch(self.python) is None:
            raise UsageError(
                f"found {self.python!r} as the Python of an environment; expected one like '3.11'"
            )
        names: dict[str, str] = {}
        for text in self.packages:
            name, why = _pinned(text)
            if why:
                raise UsageError(
                    f"found {text!r} among the packages of an environment ({why}); expected 'NAME==VERSION'"
                )
            if name in names:
                raise UsageError(
                    f"found {names[name]!r} and {text!r} in one environment; expected each name once"
                )
            names[name] = text
        object.__setattr__(self, "packages", tuple(sorted(self.packages)))

    @property
    def version(self) -> str:
        """Major and minor of its Python: "3.11"."""
        found = _PYTHON.fullmatch(self.python or RUNNING)
        assert found is not None
        return f"{found[1]}.{found[2]}"

    @cached_property
    def pins(self) -> dict[str, str]:
        """Its packages by their normal names: what is pinned, without hashes."""
        return {_pinned(text)[0]: _HASH.sub("", text) for text in self.packages}

    @property
    def locked(self) -> bool:
        """Whether every package has its hashes."""
        return bool(self.packages) and all(_HASH.search(text) for text in self.packages)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the version of Python and the pins, as 64 hex digits. Hashes of archives are no part of it."""
        said = [_VERSION, self.version, sorted(f"{name} {pin}" for name, pin in self.pins.items())]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def __str__(self) -> str:
        return f"Python {self.version} with {len(self.packages)} packages"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for a repository: an environment, or None with the reason. ``notes`` say what had to be given up on
    the way (bounds on versions, the date), in plain words."""

    environment: Environment | None
    reason: str = ""
    notes: tuple[str, ...] = ()


def environment_of(task: Task) -> Environment | None:
    """The environment of a task: where it names a Python that is another one than this, or packages that are pinned
    all of them. None: it runs in the wall as it is. BuildError: pins that exclude each other."""
    return of_metadata(task.metadata)


def of_metadata(metadata: Metadata) -> Environment | None:
    """As ``environment_of``, for the metadata alone."""
    if not metadata.packages and not metadata.python:
        return None
    return _meant(metadata.python, metadata.packages)


@lru_cache(maxsize=1024)
def _meant(python: str, packages: tuple[str, ...]) -> Environment | None:
    if any(_pinned(text)[1] for text in packages):
        return None
    if python and _PYTHON.fullmatch(python) is None:
        return None  # ">=3.8": of those that say what they work with, and need nothing of their own
    try:
        found = Environment(python, packages)
    except UsageError as error:  # a name twice: who needs it gets nothing, and is told
        raise BuildError("conflict", str(error)) from None
    return found if found.packages or found.version != RUNNING else None


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(text: str) -> tuple[str, str]:
    """The normal name of a pinned requirement, and what is wrong with it."""
    from packaging.requirements import InvalidRequirement, Requirement  # most tasks have no environment

    try:
        found = Requirement(_HASH.sub("", text))
    except InvalidRequirement:
        return "", "no requirement"
    exact = [s for s in found.specifier if s.operator in ("==", "===") and not s.version.endswith(".*")]
    if found.url or len(exact) != 1 or len(found.specifier) != 1:
        return normal(found.name), "not pinned"
    return normal(found.name), ""
