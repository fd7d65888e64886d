"""Where the code that runs inside cells lies, and how an interpreter is told to begin with it.

Every ``inside`` folder of the package (``cells/inside``, ``referee/inside``) is found by its path, without importing
anything, so this room needs to know nothing of the rooms above. In a cell the folders together are the package
``_tiltyard``; a program is a module of it with a ``main``.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import MAGIC_NUMBER, cache_from_source
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


def uncached_lines() -> str:
    """Python, in one line, after which inside modules are compiled from their source and no bytecode file is read."""
    loader = "type('L', (m.SourceFileLoader,), {'get_code': lambda s, n: s.source_to_code(s.get_data(s.path), s.path)})"
    finders = "sys.path_importer_cache.update({f: m.FileFinder(f, (L, ['.py'])) for f in p.__path__})"
    return f"import importlib.machinery as m; L = {loader}; {finders}"


@cache
def all_compiled() -> bool:
    """Whether there is a valid bytecode file for every inside module, for an interpreter of this one's version.

    Where only some are compiled, the memory of two fork servers, and so addresses and the order of sets of objects in
    their cells, was seen to differ: it is all of them or none."""
    for folder in inside_folders():
        for source in Path(folder).glob("*.py"):
            try:
                head = Path(cache_from_source(str(source))).read_bytes()[:16]
                facts = source.stat()
            except OSError:
                return False
            stamp = (int(facts.st_mtime) & 0xFFFFFFFF, facts.st_size & 0xFFFFFFFF)
            if head[:4] != MAGIC_NUMBER or struct.unpack("<III", head[4:]) != (0, *stamp):
                return False
    return True


_LEFT_LATER = "asynchat asyncore binhex distutils formatter imp parser smtpd symbol"
"""Modules of the standard library of 3.9 and 3.10 that later ones lack."""


@cache
def _of_sys() -> str:
    """Python, in one line, after which ``sys`` has what came with 3.10."""
    names = " ".join(sorted({*sys.stdlib_module_names, *_LEFT_LATER.split()}))
    own = (
        "open('/proc/self/cmdline').read().split(chr(0))[:-1] if sys.platform == 'linux' else list(sys.argv)"
    )
    return (
        f"sys.stdlib_module_names = getattr(sys, 'stdlib_module_names', None) or frozenset({names!r}.split()); "
        f"sys.orig_argv = getattr(sys, 'orig_argv', None) or ({own})"
    )


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter for what runs in cells. ``site`` is True where its installed packages are wanted, ``venv`` where it
    is a virtual environment's. ``safe_path``: it knows ``-P``, as all do from 3.11 on."""

    path: str
    site: bool = False
    venv: bool = False
    safe_path: bool = True

    def argv(self) -> tuple[str, ...]:
        """Up to and without the arguments of ``boot.launch``. No user site, no script folder on ``sys.path``, no
        bytecode written; by default nothing but the standard library, so that no package of the arena is found."""
        site = ("-s",) if self.site else ("-s", "-S")
        flags = (*site, "-P", "-B") if self.safe_path else (*site, "-B")
        lines = f"{self.first()}{package_lines()}; from {PACKAGE}.boot import launch; launch()"
        return (self.path, *flags, "-c", lines)

    def first(self) -> str:
        """What ``-c`` must begin with: before anything is imported the current folder is off the path, and what inside
        code needs of ``sys`` is there."""
        return "" if self.safe_path else f"import sys; del sys.path[0]; {_of_sys()}; "

    def search_path(self, usual: str) -> str:
        """PATH for what runs: in a virtual environment its programs come first, so that a shell's ``python`` is it."""
        return f"{self.path.rpartition('/')[0]}:{usual}" if self.venv else usual
