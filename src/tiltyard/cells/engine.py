"""Speaking to a container engine: the words that the container wall needs, and nothing that it does not.

:func:`connect` finds docker or podman. There are two ways to speak, with one meaning: docker's HTTP interface over its
unix socket (``engine_http``; each call costs half of what the command does), and the command itself (``engine_command``:
podman, and engines behind tcp or ssh). Whatever the engine refuses is an :class:`EngineError` with its own words.
Nothing here retries, and every call has a time limit.

Everything that is made has a name chosen by the caller before it is made, so that what a cancelled call has begun
can be found and removed; and removing what is not there is no error.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from tiltyard.errors import ArenaError, UsageError

CALL_S = 120.0
"""For a call that makes, starts, looks or removes."""
CANCELLED_S = 2.0
"""How long an engine may take to make what nobody waits for any more."""
BUILD_S = 1800.0
"""For one that takes an image in or builds one."""
KINDS = ("docker", "podman")
HOW_TO_GET = (
    "no container engine is installed; get one, for example with"
    " 'apt-get install -y --no-install-recommends docker.io iptables' (then start dockerd) or"
    " 'apt-get install -y podman', or see https://docs.docker.com/engine/install/"
)


class EngineError(ArenaError):
    """The engine refused; the message has its own words. ``missing``: what was asked for does not exist."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class About:
    """What an engine says of itself. ``local``: it shares this process's kernel, so sockets and folders can be shown
    to its containers. ``counted``: it can cap memory; ``pids``: and processes. ``runtimes``: names that it knows."""

    kind: str
    version: str
    local: bool
    counted: bool
    pids: bool
    cpu: bool
    rootless: bool
    seccomp: bool
    default_runtime: str
    runtimes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A container to be made. Always without network, capabilities and new privileges, read-only, removed at its end,
    its output logged nowhere. ``tmpfs``: folder and options; ``binds``: (folder here, folder there, writable).
    ``stdin``: its input is a stream of ours, and closed when we go. Bytes, counts and processors; 0: no cap."""

    name: str
    image: str
    argv: tuple[str, ...]
    labels: Mapping[str, str]
    user: str
    workdir: str
    env: Mapping[str, str] = field(default_factory=dict)
    tmpfs: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[tuple[str, str, bool], ...] = ()
    memory_bytes: int = 0
    processes: int = 0
    cpus: float = 0.0
    runtime: str | None = None
    stdin: bool = False
    security: tuple[str, ...] = ()
    """More ``--security-opt``; ``no-new-privileges`` is always there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A container or an image that the engine has. ``running`` is False for images."""

    id: str
    name: str
    labels: Mapping[str, str]
    running: bool = False
    created: float = 0.0
    """Seconds since 1970."""


class Stream(Protocol):
    """What goes into a process of a container and comes out of it, as long as it lives."""

    def fileno(self) -> int:
        """To be polled: something came out, or it ended."""

    def take(self) -> bytes | None:
        """What came out (b"": nothing for us), without waiting long after ``fileno`` was ready; None at the end."""

    def put(self, data: bytes) -> int:
        """Bytes taken in; 0 if it does not read now. OSError if it is gone."""

    def put_fileno(self) -> int:
        """To be polled for whether ``put`` will take more."""

    def words(self) -> str:
        """The end of what it wrote to stderr, for a message."""

    def close(self) -> None:
        """Let go of it; a process whose input it is sees the end of that. Never raises."""


class Engine(Protocol):
    """One engine. May be used from several threads, and in a forked child."""

    @property
    def kind(self) -> str: ...

    def about(self) -> About:
        """Asks it, so this also tells whether it is there at all."""

    def run(self, box: Box) -> Stream:
        """Make and start a container, with its output, and its input if the box says so. If anything goes wrong (a
        cancellation too) nothing is left of it."""

    def exec(self, name: str, argv: Sequence[str], *, user: str, workdir: str) -> Stream:
        """One more process in a container that runs."""

    def update_memory(self, name: str, memory_bytes: int) -> None: ...

    def kill(self, name: str) -> bool:
        """End a container and remove it; False if there was none."""

    def containers(self, label: str) -> list[Found]:
        """All that have this label, running or not."""

    def images(self, label: str) -> list[Found]: ...

    def image_id(self, name: str) -> str | None:
        """The digest of an image that the engine has, or None."""

    def pull(self, name: str) -> None: ...

    def tag(self, name: str, new: str) -> None: ...

    def remove_image(self, name: str) -> None: ...

    def take_in(self, tar: IO[bytes], name: str, changes: Sequence[str]) -> None:
        """Make an image of a root folder, given as a tar. ``changes`` are Dockerfile lines."""

    def build(
        self,
        context: IO[bytes],
        name: str,
        *,
        dockerfile: str,
        network: str | None,
        runtime: str | None = None,
    ) -> None:
        """Build an image of a tar with a Dockerfile in it. ``network``: "none", or None for the engine's own.
        ``runtime``: for podman; docker always builds with its default one."""


def connect(kind: str | None = None) -> Engine:
    """The engine of this kind, or the one that is there: docker before podman. It is not asked anything yet.

    DOCKER_HOST (and for podman CONTAINER_HOST) are respected. ArenaError, with how to get one, if there is none.
    """
    from tiltyard.cells.engine_command import CommandEngine
    from tiltyard.cells.engine_http import HttpEngine

    if kind is not None and kind not in KINDS:
        raise UsageError(
            f"found engine {kind!r}; expected one of {', '.join(KINDS)}, or None for what is there"
        )
    if kind in (None, "docker"):
        path = docker_socket()
        if path is not None:
            return HttpEngine(path)
    for name in KINDS if kind is None else (kind,):
        command = shutil.which(name)
        if command is not None:
            return CommandEngine(name, command)
    if kind is None:
        raise ArenaError(HOW_TO_GET)
    raise ArenaError(f"{kind} can't be used: there is no program {kind!r} on the PATH; {HOW_TO_GET}")


def docker_socket() -> str | None:
    """The path of docker's unix socket, or None where it is spoken to in another way or not there at all."""
    host = os.environ.get("DOCKER_HOST", "")
    if host:
        return host.removeprefix("unix://") if host.startswith("unix://") else None
    if os.environ.get("DOCKER_CONTEXT"):
        return None
    places = ["/var/run/docker.sock"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(f"{runtime}/docker.sock")
    places.append(str(Path.home() / ".docker/run/docker.sock"))
    return next((place for place in places if Path(place).exists()), None)


def discard(engine: Engine, name: str, *, certain: bool) -> None:
    """Remove what a failed call may have made. ``certain`` False: the call was cancelled, and the engine may make it
    only now, so it is looked for a while. Raises no ArenaError: whoever asked learns of the first failure, and what is
    left has its owner's label."""
    end = time.monotonic() + CANCELLED_S
    try:
        while not engine.kill(name) and not certain and time.monotonic() < end:
            time.sleep(0.05)
    except ArenaError:
        pass


def shares_kernel(kernel: str) -> bool:
    """Whether an engine whose kernel has this release is on this one: then it is no virtual machine's, nor another
    machine's, but by an unlikely chance; and then opening a cell says that its keeper could not be reached."""
    return os.name == "posix" and os.uname().sysname == "Linux" and os.uname().release == kernel
