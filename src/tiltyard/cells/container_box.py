"""From a cell's limits to a container: one place for what every container of ours is given, and what it is not."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping

from tiltyard.cells.client import NO_LIMIT
from tiltyard.cells.engine import About, Box
from tiltyard.cells.inside.container import WORKSPACE
from tiltyard.cells.owner import LABEL, owner_id
from tiltyard.cells.protocol import CellLimits

PLAYER = "1000:1000"
SLACK = 64 << 20
"""Bytes of memory that a container needs besides what runs in it: the keeper, and what the kernel charges for."""
SPARE_PROCESSES = 4
"""The keeper, a relay or two, and a moment of one more."""
_WRITABLE = ("/tmp", "/home", "/dev/shm")
PREFIX = "tiltyard-"


def make_box(
    about: About,
    limits: CellLimits,
    *,
    image: str,
    argv: tuple[str, ...],
    hash_seed: int,
    cpus: float,
    runtime: str | None,
    workspace: str | None = None,
) -> Box:
    """A container for a cell, or for one run of it on the folder ``workspace`` of this machine. What the engine says
    that it can't cap is left uncapped (see the wall's ``weaknesses``)."""
    folders = _WRITABLE if workspace is not None else (WORKSPACE, *_WRITABLE)
    user = PLAYER if workspace is None else player_of(about)
    memory = about.counted and limits.memory_bytes < NO_LIMIT
    processes = about.pids and limits.processes < NO_LIMIT
    return Box(
        name=f"{PREFIX}{secrets.token_hex(8)}",
        image=image,
        argv=argv,
        labels={LABEL: str(owner_id())},
        user=user,
        workdir=WORKSPACE,
        env=_env(hash_seed),
        tmpfs=dict.fromkeys(folders, _tmpfs(about, limits, user)),
        binds=() if workspace is None else ((workspace, WORKSPACE, True),),
        memory_bytes=memory_of(limits, limits.memory_bytes) if memory else 0,
        processes=limits.processes + SPARE_PROCESSES if processes else 0,
        cpus=cpus if about.cpu else 0.0,
        runtime=runtime,
    )


def _env(hash_seed: int) -> Mapping[str, str]:
    """PATH, and whatever else an image sets, stays."""
    return {
        "HOME": "/home",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _tmpfs(about: About, limits: CellLimits, user: str) -> str:
    options = "rw,exec,nosuid,nodev"
    if limits.disk_bytes < NO_LIMIT:
        options += f",size={limits.disk_bytes}"
    if about.kind != "docker":  # takes no number of inodes, and the owner in its own word
        return f"{options},U,mode=0755"
    if limits.disk_files < NO_LIMIT:
        options += f",nr_inodes={limits.disk_files + 1}"
    uid, gid = user.split(":")
    return f"{options},mode=0755,uid={uid},gid={gid}"


def memory_of(limits: CellLimits, memory_bytes: int) -> int:
    """A container's cap: what runs may have, what files in memory may have, and the keeper's own."""
    return memory_bytes + min(limits.disk_bytes, 1 << 40) + SLACK


def player_of(about: About) -> str:
    """Who runs where the workspace is a folder of this machine: somebody who may write there, and not root of it."""
    if about.rootless:
        return "0:0"  # there; here it is the engine's own user
    return PLAYER if os.getuid() == 0 else f"{os.getuid()}:{os.getgid()}"
