"""Removing what dead owners left in a container engine: containers, and on request images; and folders for sockets.

A container of ours ends with its owner, and the engine removes it then. What is still there was left by an engine that
was killed, or by one that failed. Nothing of a living owner is touched, nor anything without our label, nor what a
process elsewhere may own, unless it has ended: see :func:`is_left`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tiltyard.cells import image
from tiltyard.cells.engine import Engine, Found, connect
from tiltyard.cells.owner import LABEL, Owner, lives
from tiltyard.cells.reach import sweep_doors
from tiltyard.errors import ArenaError

OLD_S = 3600.0
"""A container that has ended, and whose owner can't be known from here, is left alone so long."""
KEPT_IMAGES = 2
"""Of our own kinds of images, the newest so many are kept even when images are asked for: the next run needs one."""


def collect(engine: Engine | str | None = None, *, images: bool = False) -> list[str]:
    """Remove what nobody owns any more; what was removed, in words ("container tiltyard-…", "image tiltyard-cell:…",
    "folder …"), sorted. ``images``: our images too, but for the newest; those that are in use stay. ArenaError if the
    engine can't be asked, or refuses to remove something: then everything else was tried first, and the message says
    what is left."""
    spoken_to = connect(engine) if engine is None or isinstance(engine, str) else engine
    gone = [f"folder {path}" for path in sweep_doors()]
    trouble: list[str] = []

    def remove(what: str, name: str, how: Callable[[str], object]) -> None:
        try:
            how(name)
            gone.append(f"{what} {name}")
        except ArenaError as error:
            trouble.append(f"{what} {name}: {error}")

    for found in spoken_to.containers(LABEL):
        if is_left(found):
            remove("container", found.name, spoken_to.kill)
    if images:
        for found in superfluous(spoken_to.images(image.LABEL)):
            remove("image", found.name, spoken_to.remove_image)
    if trouble:
        done = f" (removed: {', '.join(sorted(gone))})" if gone else ""
        raise ArenaError("; ".join(trouble) + done)
    return sorted(gone)


def is_left(found: Found) -> bool:
    """Whether a container is nobody's: its owner is dead; or it has ended long ago, and nobody who could own it is
    known here."""
    owner = Owner.parse(found.labels.get(LABEL, ""))
    alive = None if owner is None else lives(owner)
    if alive is None:
        return not found.running and time.time() - found.created > OLD_S
    return not alive


def superfluous(found: list[Found]) -> list[Found]:
    """Images beyond the newest of each kind; those of tasks are all kept, for their digests are written down."""
    by_kind: dict[str, list[Found]] = {}
    for one in sorted(found, key=lambda one: (-one.created, one.name)):
        by_kind.setdefault(one.labels.get(image.LABEL, ""), []).append(one)
    return [one for kind in ("cell", "base", "") for one in by_kind.get(kind, ())[KEPT_IMAGES:]]
