"""Where the code that runs inside cells lies, and how an interpreter is told to begin with it.

Every ``inside`` folder of the package (``cells/inside``, ``referee/inside``) is found by its path, without importing
anything, so this room needs to know nothing of the rooms above. In a cell the folders together are the package
``_tiltyard``; a program is a module of it with a ``main``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

PACKAGE = "_tiltyard"
ROOT = Path(__file__).resolve().parent.parent


@cache
def inside_folders() -> tuple[str, ...]:
    """Absolute paths of the inside folders, sorted."""
    return tuple(sorted(str(p) for p in ROOT.glob("*/inside") if p.is_dir()))


@lru_cache(maxsize=64)  # asked at every start; two looks at the disk cost more than the message
def has_program(name: str) -> bool:
    """Whether an inside folder has the module ``name``."""
    return name.isidentifier() and any((Path(f) / f"{name}.py").is_file() for f in inside_folders())


def package_lines(folders: Sequence[str] | None = None) -> str:
    """Python that makes the package ``_tiltyard``, in one line."""
    paths = list(inside_folders() if folders is None else folders)
    return f"import sys; p = type(sys)({PACKAGE!r}); p.__path__ = {paths!r}; sys.modules[{PACKAGE!r}] = p"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter for what runs in cells. ``site`` is True where its installed packages are wanted."""

    path: str
    site: bool = False

    def argv(self) -> tuple[str, ...]:
        """Up to and without the arguments of ``boot.launch``. No user site, no script folder on ``sys.path``, no
        bytecode written; by default nothing but the standard library, so that no package of the arena is found."""
        flags = ("-s", "-P", "-B") if self.site else ("-s", "-S", "-P", "-B")
        return (self.path, *flags, "-c", f"{package_lines()}; from {PACKAGE}.boot import launch; launch()")
