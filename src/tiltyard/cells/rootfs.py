"""This machine's Python as a root folder in a tar: the interpreter, its standard library, what they link to, a shell.

The same files give the same tar. Everything lies where it lies here, so that what has paths built in finds its
own; but what is in a folder that a cell mounts over (``HIDDEN``) is put below ``MOVED``, and libraries among it are
linked where every loader looks. Nothing is taken along but what is named here: no configuration, no keys, no home.
"""

# Paths go from one system call to a tar, as text: no pathlib there.
# ruff: noqa: PTH110, PTH114, PTH115, PTH119, PTH120

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from tiltyard.cells.process import PATH
from tiltyard.cells.programs import Interpreter
from tiltyard.errors import ArenaError

HIDDEN = ("/home", "/tmp", "/workspace", "/dev", "/proc", "/sys", "/run")
MOVED = "/opt/machine"
_VERSION = 3
"""Of what is made here: to be raised when the same files give another root folder."""

_NAMES = "test tests idlelib tkinter turtledemo lib2to3 ensurepip"
_LEFT_OUT = frozenset(_NAMES.split())
_PACKAGES = frozenset(("site-packages", "dist-packages"))
_USUAL = """sh ash awk basename cat chmod cmp cp cut date dd diff dirname du echo env expr false find grep head id kill
ln ls md5sum mkdir mkfifo mktemp mv nice od printf ps pwd readlink realpath rm rmdir sed seq setsid sha256sum sleep sort
stat tail tar tee test timeout touch tr true truncate uname uniq wc which xargs yes"""
_COMMANDS = tuple(_USUAL.split())
_WANTED = ("git", "rg")
"""What players of repositories use, where this machine has it; nobody's busybox does."""
_FOLDERS = ("dev", "proc", "sys", "tmp", "home", "workspace", "root", "etc", "opt", "usr/local/bin", "run")
_ROOT_LINKS = ("bin", "sbin", "lib", "lib64", "lib32")
_ETC = {
    "passwd": "root:x:0:0::/:/bin/false\nplayer:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nplayer:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_LOADER_CACHE = "/etc/ld.so.cache"
_ASK = """
import os, sys, sysconfig
print(os.path.realpath(sys.executable))
paths = sysconfig.get_paths()
for path in dict.fromkeys([paths['stdlib'], paths['platstdlib'], *sys.path]):
    if os.path.isdir(path): print(os.path.realpath(path))
"""


def there(path: str) -> str:
    """Where a path of this machine is found in the root folder."""
    hidden = any(path == folder or path.startswith(f"{folder}/") for folder in HIDDEN)
    return f"{MOVED}{path}" if hidden else path


@dataclass(frozen=True, slots=True)
class Machine:
    """What the root folder holds. ``digest`` changes with the names, sizes or times of its files."""

    path: str
    """By which the interpreter is called."""
    real: str
    files: tuple[str, ...]
    digest: str

    @classmethod
    def look(cls, python: Interpreter) -> Machine:
        """ArenaError if the interpreter can't be asked for its folders."""
        real, folders = _ask(python)
        files = tuple(sorted({real, *_modules(folders)}))
        digest = hashlib.sha256(f"{_VERSION} {python.path}\n".encode())
        for path in (*files, _config(python.path), _LOADER_CACHE, shutil.which("busybox") or ""):
            try:
                seen = os.lstat(path)
            except OSError:
                continue
            digest.update(f"{path} {seen.st_size} {seen.st_mtime_ns} {seen.st_mode}\n".encode())
        return cls(python.path, real, files, digest.hexdigest())

    def write(self, file: IO[bytes]) -> None:
        """The root folder as a tar. What links to what is asked of ``ldd``."""
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            root = _Root(tar)
            programs = [self.real, *_commands(root)]
            libraries = _libraries([*programs, *(path for path in self.files if path.endswith(".so"))])
            for path in [*self.files, *programs, *libraries]:
                root.file(path)
            if os.path.exists(_LOADER_CACHE):
                root.file(_LOADER_CACHE)
            _link_moved(root, libraries)
            for name in ("/usr/local/bin/python", "/usr/local/bin/python3", there(self.path)):
                root.link(name, there(self.real))
            if os.path.exists(config := _config(self.path)):
                root.text(there(config), _moved_config(config))


def _config(python: str) -> str:
    """Beside the interpreter, by which it knows that it is a virtual environment's."""
    return f"{os.path.dirname(os.path.dirname(python))}/pyvenv.cfg"


def _moved_config(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        lines = [line.partition("=") for line in file.read().splitlines()]
    return "".join(
        f"{key}{eq}{_moved_value(value) if key.strip() == 'home' else value}\n" for key, eq, value in lines
    )


def _moved_value(value: str) -> str:
    return f" {there(value.strip())}"


def _ask(python: Interpreter) -> tuple[str, list[str]]:
    """The interpreter's own file, and the folders on its path."""
    flags = ["-s"] if python.site else ["-s", "-S"]
    try:
        done = subprocess.run(
            [python.path, *flags, "-c", _ASK],
            capture_output=True,
            timeout=60,
            check=True,
            text=True,
            cwd="/",
            env={},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ArenaError(f"{python.path} can't be asked for its folders: {error}") from None
    real, *folders = done.stdout.splitlines()
    return real, list(dict.fromkeys(folder for folder in folders if folder != "/"))


def _modules(folders: list[str]) -> Iterator[str]:
    """Files below these folders, each once; of packages, those of folders that are named."""
    for top in folders:
        for at, names, files in os.walk(top):
            names[:] = sorted(n for n in names if f"{at}/{n}" not in folders and not _is_left_out(at, n, top))
            for name in sorted(files):
                if not name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc")):
                    yield f"{at}/{name}"


def _is_left_out(at: str, name: str, top: str) -> bool:
    if os.path.basename(top) in _PACKAGES:
        return False
    return name in _PACKAGES or (at == top and (name in _LEFT_OUT or name.startswith("config-")))


def _commands(root: _Root) -> list[str]:
    """Link a shell and small commands, to busybox or else to what this machine has under those names; what that is."""
    busybox = shutil.which("busybox")
    if busybox is not None:
        found = dict.fromkeys(_COMMANDS, os.path.realpath(busybox))
    else:
        seen = {name: shutil.which(name, path=PATH) for name in _COMMANDS}
        found = {name: os.path.realpath(path) for name, path in seen.items() if path is not None}
    seen = {name: shutil.which(name, path=PATH) for name in _WANTED}
    found |= {name: os.path.realpath(path) for name, path in seen.items() if path is not None}
    if "sh" not in found:
        raise ArenaError("no shell can be found for an image; install busybox, or give image= a name")
    for name, path in found.items():
        if path != f"/usr/bin/{name}":
            root.link(f"/usr/bin/{name}", there(path))
    root.link("/bin/sh", "/usr/bin/sh")
    root.link("/bin/env", "/usr/bin/env")
    return list(dict.fromkeys(found.values()))


def _libraries(paths: list[str]) -> list[str]:
    """Shared libraries that these link to, with the loader, each by the path at which it is looked for."""
    found: dict[str, None] = {}
    for at in range(0, len(paths), 200):
        argv = ["ldd", *paths[at : at + 200]]
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                timeout=120,
                check=False,
                text=True,
                env={"LC_ALL": "C", "PATH": PATH},
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ArenaError(
                f"what Python links to can't be found: ldd: {error}; give image= a name instead"
            ) from None
        for line in done.stdout.splitlines():
            words = line.split()
            path = words[2] if "=>" in words and len(words) > 2 else words[0] if words else ""
            if path.startswith("/") and not path.endswith(":"):
                found[path] = None
    return list(found)


def _link_moved(root: _Root, libraries: Iterable[str]) -> None:
    """A library that is moved is looked for where it was; the C library's folder is looked through in any case."""
    usual = next((os.path.dirname(os.path.realpath(p)) for p in libraries if "/libc." in p), "/usr/lib")
    for path in libraries:
        placed = _without_links(path)
        if there(placed) != placed:
            root.link(f"{usual}/{os.path.basename(path)}", there(placed))


def _without_links(path: str) -> str:
    """The same file by a path of which only the last part may be a link."""
    folder, name = os.path.split(path)
    return f"{os.path.realpath(folder)}/{name}"


class _Root:
    """A root folder on its way into a tar. Each path goes in once, with the folders above it."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.seen: set[str] = set()
        self.links: dict[str, str] = {}
        for name in _ROOT_LINKS:
            if os.path.islink(f"/{name}"):  # /usr has all
                self.link(f"/{name}", os.readlink(f"/{name}"))
                self.links[name] = os.path.normpath(f"/{os.readlink(f'/{name}')}")
        for name in _FOLDERS:
            self.folder(f"/{name}", 0o1777 if name in ("tmp", "workspace", "home") else 0o755)
        for name, text in _ETC.items():
            self.text(f"/etc/{name}", text)

    def _new(self, path: str) -> str | None:
        """The name for the tar, with the root folder's own links followed; None if it is there already."""
        first, slash, rest = path.strip("/").partition("/")
        name = f"{self.links[first]}/{rest}".strip("/") if slash and first in self.links else path.strip("/")
        if not name or name in self.seen:
            return None
        self.folder(os.path.dirname(f"/{name}"))
        self.seen.add(name)
        return name

    def folder(self, path: str, mode: int = 0o755) -> None:
        name = self._new(path) if path.strip("/") else None
        if name is not None:
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, mode
            self.tar.addfile(info)

    def link(self, path: str, target: str) -> None:
        name = self._new(path) if path != target else None
        if name is not None:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
            self.tar.addfile(info)

    def text(self, path: str, text: str) -> None:
        name = self._new(path)
        if name is not None:
            add_bytes(self.tar, name, text.encode())

    def file(self, source: str) -> None:
        """A file, or what a link leads to, at the place of the link."""
        try:
            with open(source, "rb") as file:
                seen = os.fstat(file.fileno())
                name = self._new(there(_without_links(source))) if stat.S_ISREG(seen.st_mode) else None
                if name is None:
                    return
                info = tarfile.TarInfo(name)
                info.size, info.mtime = seen.st_size, int(seen.st_mtime)
                info.mode = 0o755 if seen.st_mode & 0o111 else 0o644
                self.tar.addfile(info, file)
        except OSError as error:
            raise ArenaError(f"{source} can't be put into an image ({error.strerror})") from None


def add_bytes(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    """A file of these bytes, the same in each tar."""
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))
