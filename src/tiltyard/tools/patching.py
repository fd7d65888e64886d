"""``apply_patch``: a unified diff laid on the workspace, whole or not at all."""

from __future__ import annotations

from tiltyard import patches
from tiltyard.cells.protocol import CellFileError, Run
from tiltyard.errors import PlayerError
from tiltyard.tools import text
from tiltyard.tools.hands import Bench, check_size, check_writable

FUZZ = 2
"""Lines at either end of a hunk's context that may differ: models misquote those most."""


def apply_patch(bench: Bench, patch: str) -> str:
    """Apply it; which files it changed. PlayerError, with nothing changed, if it does not fit."""
    try:
        named = patches.touched(patch)
        for path in named:
            check_writable(bench, path)
        before = {path: data for path in named if (data := _read(bench, path)) is not None}
        after = patches.apply(patch, before, fuzz=FUZZ)
    except patches.PatchError as error:
        raise PlayerError(f"The patch was not applied: {error}. Nothing was changed.") from None
    changed = {path: data for path, data in after.items() if before.get(path) != data}
    gone = [path for path in before if path not in after]
    for path, data in changed.items():
        check_size(bench, path, data)
    for path, data in changed.items():
        bench.cell.write(path, data)
    if gone:
        bench.cell.run(Run(("rm", "-f", "--", *(f"./{path}" for path in gone)), wall_s=bench.limits.run_s))
    if not changed and not gone:
        return "The patch changes nothing."
    said = [f"{'changed' if path in before else 'created'} {text.name(path)}" for path in changed]
    return "Applied the patch: " + ", ".join([*said, *(f"deleted {text.name(path)}" for path in gone)]) + "."


def _read(bench: Bench, path: str) -> bytes | None:
    try:
        return bench.cell.read(path, max_bytes=bench.limits.file_bytes)
    except CellFileError:
        return None  # what the patch needs of it, it will miss
