"""The images that cells of the container wall are made of.

A cell's image is a *base* with the package's inside folders on top, in ``/opt/tiltyard``. The base is an image that
somebody names (a task's own), or one made here from this machine's Python: the interpreter, its standard library, the
libraries that they link to, a shell and a few commands. No registry is needed for that. Both are tagged by what
is in them, made once, and labelled, so that ``collect`` can find them. Two processes that make the same at the same
time do it twice, and nothing breaks.
"""

# Paths go from one system call to a tar, as text: no pathlib there.
# ruff: noqa: PTH110, PTH114, PTH115, PTH120

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tiltyard.cells.engine import Engine
from tiltyard.cells.process import PATH
from tiltyard.cells.programs import Interpreter, inside_folders
from tiltyard.errors import ArenaError, UsageError

LABEL = "tiltyard.image"
"""On every image that is made here; its value says what it is: ``base``, ``cell`` or ``task``."""
INSIDE = "/opt/tiltyard"
_VERSION = 1
"""Of what is made below: to be raised when the same input gives another image."""

_LEFT_OUT = frozenset(
    [
        "test",
        "tests",
        "idlelib",
        "tkinter",
        "turtledemo",
        "lib2to3",
        "ensurepip",
        "site-packages",
        "dist-packages",
    ]
)
_USUAL = """sh ash awk basename cat chmod cmp cp cut date dd diff dirname du echo env expr false find grep head id kill
ln ls md5sum mkdir mkfifo mktemp mv nice od printf ps pwd readlink realpath rm rmdir sed seq setsid sha256sum sleep sort
stat tail tar tee test timeout touch tr true truncate uname uniq wc which xargs yes"""
_COMMANDS = tuple(_USUAL.split())
_FOLDERS = ("dev", "proc", "sys", "tmp", "home", "workspace", "root", "etc", "opt", "usr/local/bin", "run")
_ETC = {
    "passwd": "root:x:0:0::/:/bin/false\nplayer:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "root:x:0:\nplayer:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def inside_folders_there() -> list[str]:
    """Where the inside folders lie in a cell's image."""
    return [f"{INSIDE}/{Path(folder).parent.name}" for folder in inside_folders()]


def of_machine(engine: Engine, python: Interpreter) -> str:
    """The name of an image with this interpreter; made if the engine does not have it."""
    found = Machine.look(python)
    name = f"tiltyard-python:{found.digest[:16]}"
    if engine.image_id(name) is None:
        with tempfile.TemporaryFile() as file:
            found.write(file)
            file.seek(0)
            labels = f'LABEL {LABEL}="base" tiltyard.python="{found.digest}"'
            engine.take_in(file, name, [labels, f"ENV PATH={PATH}", 'CMD ["python3"]'])
    return name


def of_cell(engine: Engine, base: str, *, own: bool, runtime: str | None = None) -> str:
    """The name of the image of cells on this base. ``own``: the base was made here, from this machine's Python."""
    base_id = engine.image_id(base)
    if base_id is None:
        if own:
            raise ArenaError(f"the image {base!r} was there a moment ago, and is not any more")
        engine.pull(base)
        base_id = engine.image_id(base)
    files = dict(_inside_files())
    digest = hashlib.sha256(f"{_VERSION} {base_id}\n".encode())
    for path, data in sorted(files.items()):
        digest.update(f"{path} {len(data)}\n".encode() + data)
    name = f"tiltyard-cell:{digest.hexdigest()[:16]}"
    if engine.image_id(name) is None:
        named = f"tiltyard-base:{str(base_id).removeprefix('sha256:')[:16]}"
        engine.tag(base, named)  # what is built from must have a name, or some builders look for it elsewhere
        context = _context({**files, "Dockerfile": _dockerfile(named).encode()})
        engine.build(context, name, dockerfile="Dockerfile", network="none", runtime=runtime)
    return name


def _dockerfile(base: str) -> str:
    return (
        f"FROM {base}\nUSER 0:0\nCOPY inside {INSIDE}\n"
        f'RUN ["python3", "-m", "compileall", "-q", "{INSIDE}"]\n'
        f'LABEL {LABEL}="cell"\n'
    )


def _inside_files() -> Iterator[tuple[str, bytes]]:
    for folder in map(Path, inside_folders()):
        for path in sorted(folder.glob("*.py")):
            yield f"inside/{folder.parent.name}/{path.name}", path.read_bytes()


def _context(files: dict[str, bytes]) -> IO[bytes]:
    """A tar that is the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in sorted(files.items()):
            _add_bytes(tar, path, data)
    out.seek(0)
    return out


def build(
    engine: Engine,
    folder: str | os.PathLike[str],
    *,
    dockerfile: str = "Dockerfile",
    network: str | None = None,
    runtime: str | None = None,
) -> str:
    """Build a task's image from its folder, once for what is in it; the digest (``sha256:…``) to be kept in the
    task's metadata. ``network="none"`` builds without any. ArenaError with the engine's own words if it fails."""
    root = Path(folder)
    if not (root / dockerfile).is_file():
        raise UsageError(
            f"found no file {dockerfile!r} in {str(root)!r}; expected the Dockerfile of an image there"
        )
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for path in sorted(root.rglob("*")):
                tar.add(path, path.relative_to(root).as_posix(), recursive=False, filter=_plain)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256")
        digest.update(f"\0{dockerfile}\0{network}".encode())
        name = f"tiltyard-task:{digest.hexdigest()[:16]}"
        found = engine.image_id(name)
        if found is None:
            file.seek(0)
            engine.build(file, name, dockerfile=dockerfile, network=network, runtime=runtime)
            found = engine.image_id(name)
    if found is None:
        raise ArenaError(f"{engine.kind} built {str(root)!r} and does not have the image")
    return found


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from one checkout to the next."""
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


# ----------------------------------------------------------------------------- this machine's Python as a root folder


@dataclass(frozen=True, slots=True)
class Machine:
    """What an image of this machine's Python holds. ``digest`` changes with the names, sizes or times of its files."""

    path: str
    """By which the interpreter is called."""
    real: str
    files: tuple[str, ...]
    digest: str

    @classmethod
    def look(cls, python: Interpreter) -> Machine:
        """ArenaError if the interpreter can't be asked for its folders."""
        real, folders = _folders(python)
        files = tuple(sorted({real, *_stdlib(folders, python.site)}))
        digest = hashlib.sha256(f"{_VERSION} {python.path}\n".encode())
        for path in (*files, "/etc/ld.so.cache", shutil.which("busybox") or ""):
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
            for name in _FOLDERS:
                root.folder(name, 0o1777 if name in ("tmp", "workspace", "home") else 0o755)
            for name, text in _ETC.items():
                _add_bytes(tar, f"etc/{name}", text.encode())
            programs = [self.real, *self._commands(root)]
            extensions = [path for path in self.files if path.endswith(".so")]
            for path in [*self.files, *programs, *_libraries([*programs, *extensions])]:
                root.file(path)
            if os.path.exists("/etc/ld.so.cache"):
                root.file("/etc/ld.so.cache")
            for name in ("usr/local/bin/python", "usr/local/bin/python3", self.path):
                root.link(name, self.real)
            if os.path.exists(config := f"{os.path.dirname(os.path.dirname(self.path))}/pyvenv.cfg"):
                root.file(config)  # beside the link: by it a virtual environment is known

    def _commands(self, root: _Root) -> list[str]:
        """A shell and small commands: busybox, or else what this machine has under those names."""
        busybox = shutil.which("busybox")
        if busybox is not None:
            root.file(busybox, "/usr/local/lib/busybox")
            for name in _COMMANDS:
                root.link(f"usr/bin/{name}", "/usr/local/lib/busybox")
            root.shell()
            return []
        found = {name: shutil.which(name, path=PATH) for name in _COMMANDS}
        if found["sh"] is None:
            raise ArenaError("no shell can be found for an image; install busybox, or give image= a name")
        for name, path in found.items():
            if path is not None:
                root.link(f"usr/bin/{name}", os.path.realpath(path))
        root.shell()
        return [os.path.realpath(path) for path in found.values() if path is not None]


def _folders(python: Interpreter) -> tuple[str, list[str]]:
    """The interpreter's own file, and the folders with its modules."""
    code = (
        "import os, sys, sysconfig; p = sysconfig.get_paths();"
        "print(os.path.realpath(sys.executable));"
        "print('\\n'.join(dict.fromkeys([p['stdlib'], p['platstdlib']])));"
        "print('\\n'.join(x for x in sys.path if os.path.isdir(x)))"
    )
    flags = ["-s"] if python.site else ["-s", "-S"]
    try:
        done = subprocess.run(
            [python.path, *flags, "-c", code],
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
    kept: list[str] = []
    for folder in dict.fromkeys(os.path.realpath(f) for f in folders if f.startswith("/")):
        if not any(folder == k or folder.startswith(f"{k}/") for k in kept):
            kept.append(folder)
    return real, kept


def _stdlib(folders: Iterable[str], packages: bool) -> Iterator[str]:
    for folder in folders:
        for at, names, files in os.walk(folder):
            names[:] = sorted(n for n in names if not _is_left_out(at, n, folder, packages))
            for name in sorted(files):
                if not name.endswith((".a", ".pyo")):
                    yield f"{at}/{name}"


def _is_left_out(at: str, name: str, top: str, packages: bool) -> bool:
    if packages and name in ("site-packages", "dist-packages"):
        return False
    return (at == top and name in _LEFT_OUT) or (at == top and name.startswith("config-"))


def _libraries(paths: list[str]) -> list[str]:
    """Shared libraries that these link to, with the loader, each by the path at which it is looked for."""
    found: dict[str, None] = {}
    for at in range(0, len(paths), 200):
        try:
            done = subprocess.run(
                ["ldd", *paths[at : at + 200]],
                capture_output=True,
                timeout=120,
                check=False,
                text=True,
                env={"LC_ALL": "C"},
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


class _Root:
    """A root folder on its way into a tar. Each path goes in once, with the folders above it, and the links by which
    it is reached."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.seen: set[str] = set()
        for name in ("bin", "sbin", "lib", "lib64", "lib32"):
            if os.path.islink(f"/{name}"):  # /usr has all
                self.link(name, os.readlink(f"/{name}"))

    def folder(self, path: str, mode: int = 0o755) -> None:
        path = path.strip("/")
        if not path or path in self.seen:
            return
        self.folder(os.path.dirname(path))
        self.seen.add(path)
        info = tarfile.TarInfo(path)
        info.type, info.mode = tarfile.DIRTYPE, mode
        self.tar.addfile(info)

    def link(self, path: str, target: str) -> None:
        path = path.strip("/")
        if path in self.seen or f"/{path}" == target:
            return
        self.folder(os.path.dirname(path))
        self.seen.add(path)
        info = tarfile.TarInfo(path)
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
        self.tar.addfile(info)

    def shell(self) -> None:
        if "bin" not in self.seen:
            self.link("bin/sh", "/usr/bin/sh")
            self.link("bin/env", "/usr/bin/env")

    def file(self, source: str, path: str | None = None) -> None:
        """A file, or what a link leads to, at ``path`` or where it lies here."""
        there = (path or self._through_links(source)).strip("/")
        if there in self.seen:
            return
        try:
            with open(source, "rb") as file:
                seen = os.fstat(file.fileno())
                if not stat.S_ISREG(seen.st_mode):
                    return
                self.folder(os.path.dirname(there))
                self.seen.add(there)
                info = tarfile.TarInfo(there)
                info.size, info.mtime = seen.st_size, int(seen.st_mtime)
                info.mode = 0o755 if seen.st_mode & 0o111 else 0o644
                self.tar.addfile(info, file)
        except OSError as error:
            raise ArenaError(f"{source} can't be put into an image ({error.strerror})") from None

    def _through_links(self, source: str) -> str:
        """The path in the image: the folder's links that the image has too are followed."""
        first, _, rest = source.strip("/").partition("/")
        if first in self.seen and os.path.islink(f"/{first}"):
            return os.path.normpath(f"/{os.readlink(f'/{first}')}/{rest}")
        return source


def _add_bytes(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))
