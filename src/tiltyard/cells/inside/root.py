"""The root folder that all cells of a server share: read-only, with what an interpreter needs and nothing else.

:func:`build` makes it on a tmpfs in this process's own mount namespace, moves into it, and lets the machine's root
go: from then on nothing of the machine can be reached by any path but what is named here. Every cell lays its own
writable folders (``WRITABLE``) and its own /proc over the empty ones.
"""

# Paths here are text and bytes for system calls, in processes that must stay small: no pathlib.
# ruff: noqa: PTH101, PTH102, PTH103, PTH106, PTH110, PTH112, PTH113, PTH114, PTH115, PTH120, PTH207, PTH208, PTH211

from __future__ import annotations

import glob
import os
import stat
import sys

from . import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WRITABLE = ("/workspace", "/home", "/tmp")
CELL = "/cell"
"""Where a cell mounts the one tmpfs that is behind its writable folders."""

STASH = "/stash"

_SYSTEM = (
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share/zoneinfo",
)
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
_ETC = {
    "passwd": "root:x:0:0::/:/bin/false\nplayer:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nplayer:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost cell\n",
}


def needed(packages: bool) -> list[str]:
    """Folders that this interpreter needs, beyond the system's: its own, those of libraries that it has mapped, and
    its installed packages if they are wanted."""
    found: list[str] = []
    for prefix in dict.fromkeys((sys.base_prefix, sys.base_exec_prefix, os.path.realpath(sys.base_prefix))):
        if prefix == "/usr":
            continue
        for name in ("bin", "lib", "lib64", "share/zoneinfo"):
            found.append(f"{prefix}/{name}")
    if packages:
        found += [path for path in sys.path if path.startswith("/") and os.path.isdir(path)]
        found.append(f"{sys.prefix}/bin")
        found += [f"{sys.prefix}/pyvenv.cfg"] if sys.prefix != sys.base_prefix else []
    found += [os.path.dirname(os.path.realpath(sys.executable)), os.path.dirname(sys.executable)]
    covered = [*_SYSTEM, *_LINKS]
    shown: list[str] = []
    for path in [*found, *_mapped()]:
        if os.path.exists(path) and not _within(path, covered):
            covered.append(path)
            shown.append(path)
    return shown


def _mapped() -> list[str]:
    """Folders of the files that are mapped into this process (a library outside the usual places)."""
    folders: dict[str, None] = {}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                path = line.rstrip("\n").partition("/")[2]
                if ".so" in path.rpartition("/")[2] and not path.endswith(" (deleted)"):
                    folders[os.path.dirname(f"/{path}")] = None
    except OSError:
        pass
    return [folder for folder in folders if folder != "/"]


def _within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def scratch() -> str:
    """A folder of the machine's on which something may be mounted, where nobody else sees it."""
    return next(path for path in ("/tmp", "/mnt", "/var") if os.path.isdir(path))


def build(packages: bool, hidden: Iterable[str], show: Callable[[], None] = lambda: None) -> list[str]:
    """Make the root and move into it. ``hidden`` are folders that must not be seen, whatever was asked for; ``show`` is
    called while the machine's root is at ``/old``. Returns what lies where a cell will have its own folder: the n-th of
    these is at ``STASH/n``, too. Raises OSError naming the step that failed."""
    extra = needed(packages)
    base = scratch()
    lock.mount("none", "/", None, lock.REC | lock.PRIVATE)
    lock.mount("tmpfs", base, "tmpfs", lock.NOSUID, "size=4m,mode=755")
    os.mkdir(f"{base}/old", 0o700)
    lock.pivot(base, f"{base}/old")
    for path in ("/proc", "/dev", "/etc", "/usr/local/bin", "/empty", CELL, *WRITABLE):
        os.makedirs(path, 0o755)
    for path in (*_SYSTEM, *_LINKS, *extra):
        _show(path)
    _hide_packages(packages, extra)
    for path in hidden:
        if os.path.isdir(path):
            lock.bind("/empty", path)
    _devices()
    _etc()
    for name in ("python", "python3"):
        try:
            os.symlink(sys.executable, f"/usr/local/bin/{name}")
        except OSError:
            pass  # it has one there, or is at home in that folder
    # of this process's own namespace: a cell may mount its own only where one is seen, and gets its ids through it
    lock.mount("proc", "/proc", "proc", lock.NOSUID | lock.NODEV | lock.NOEXEC)
    stashed = _stash(extra)
    show()
    lock.unmount("/old")
    os.rmdir("/old")
    lock.mount("none", "/", None, lock.BIND | lock.REMOUNT | lock.RDONLY | lock.NOSUID)
    os.chdir("/")
    return stashed


def _stash(extra: Iterable[str]) -> list[str]:
    """An interpreter may be at home below a folder that cells have for themselves, such as /home."""
    stashed = [path for path in extra if _within(path, WRITABLE) and os.path.exists(path)]
    for n, path in enumerate(stashed):
        if _within(path, WRITABLE[:1]):
            raise OSError(
                0, f"{path} is needed by the interpreter, and {WRITABLE[0]} is the player's: use another one"
            )
        at = f"{STASH}/{n}"
        if os.path.isdir(path):
            os.makedirs(at, 0o755)
        else:
            os.makedirs(STASH, 0o755, exist_ok=True)
            with open(at, "xb"):
                pass
        lock.bind(path, at)
    return stashed


def _show(path: str) -> None:
    source = f"/old{path}"
    if os.path.islink(source):
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            os.symlink(os.readlink(source), path)
    elif os.path.isdir(source):
        os.makedirs(path, 0o755, exist_ok=True)
        lock.bind(source, path)
    elif os.path.isfile(source):
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        with open(path, "xb"):
            pass
        lock.bind(source, path)


def _hide_packages(packages: bool, extra: Iterable[str]) -> None:
    """No installed package is seen, unless packages were asked for, and then only this interpreter's: what is
    installed on the machine is not part of a task, and may be the arena itself with the answers in it."""
    kept = sys.path if packages else []
    for folder in dict.fromkeys([*_SYSTEM, *extra]):
        for name in ("site-packages", "dist-packages"):
            for path in glob.glob(f"{folder}/python*/{name}") + glob.glob(f"{folder}/{name}"):
                if path not in kept:
                    lock.bind("/empty", path)


def _devices() -> None:
    for name, (major, minor) in _DEVICES.items():
        try:
            os.mknod(f"/dev/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            os.chmod(f"/dev/{name}", 0o666)
        except PermissionError:  # an ordinary user may show a device, and not make one
            with open(f"/dev/{name}", "xb"):
                pass
            lock.bind(f"/old/dev/{name}", f"/dev/{name}", device=True)
    links = {
        "fd": "/proc/self/fd",
        "stdin": "/proc/self/fd/0",
        "stdout": "/proc/self/fd/1",
        "stderr": "/proc/self/fd/2",
    }
    for name, target in {**links, "shm": "/tmp"}.items():
        os.symlink(target, f"/dev/{name}")


def _etc() -> None:
    for name, text in _ETC.items():
        with open(f"/etc/{name}", "x", encoding="ascii") as file:
            file.write(text)
    try:
        with open("/old/etc/ld.so.cache", "rb") as source, open("/etc/ld.so.cache", "xb") as file:
            file.write(source.read(2 << 20))
    except OSError:
        pass  # not every C library has one
    try:
        os.mkdir("/etc/alternatives", 0o755)
        for name in os.listdir("/old/etc/alternatives"):
            os.symlink(os.readlink(f"/old/etc/alternatives/{name}"), f"/etc/alternatives/{name}")
    except OSError:
        pass  # Debian's; commands like awk are links through it
