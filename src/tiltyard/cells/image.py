"""The images that cells of the container wall are made of.

A cell's image is a *base* with the package's inside folders on top, in ``/opt/tiltyard``. The base is an image that
somebody names (a task's own), or one made here from this machine's Python: the interpreter, its standard library, the
libraries that they link to, a shell and a few commands. No registry is needed for that. Both are tagged by what
is in them, made once, and labelled, so that ``collect`` can find them. Two processes that make the same at the same
time do it twice, and nothing breaks.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tiltyard.cells.engine import Engine
from tiltyard.cells.kit import Kit
from tiltyard.cells.process import PATH
from tiltyard.cells.programs import Interpreter, inside_folders
from tiltyard.cells.rootfs import Machine, add_bytes
from tiltyard.errors import ArenaError, UsageError

LABEL = "tiltyard.image"
"""On every image that is made here; its value says what it is: ``base``, ``cell`` or ``task``."""
INSIDE = "/opt/tiltyard"
KIT = "/opt/kit"
"""Where the packages of a kit (``tiltyard.cells.kit``) lie in a cell's image."""
_VERSION = 2
"""Of how a cell's image is made: to be raised when the same input gives another one."""


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


def of_cell(
    engine: Engine, base: str, *, own: bool, runtime: str | None = None, kit: Kit | None = None
) -> str:
    """The name of the image of cells on this base. ``own``: the base was made here, from this machine's Python.
    ``kit``: with its packages."""
    base_id = engine.image_id(base)
    if base_id is None:
        if own:
            raise ArenaError(f"the image {base!r} was there a moment ago, and is not any more")
        engine.pull(base)
        base_id = engine.image_id(base)
    files = {**dict(_inside_files()), **dict(_kit_files(kit or Kit()))}
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
        f"FROM {base}\nUSER 0:0\nCOPY inside {INSIDE}\nCOPY kit {KIT}\n"
        f'RUN ["python3", "-m", "compileall", "-q", "{INSIDE}", "{KIT}"]\n'
        f'LABEL {LABEL}="cell"\n'
    )


def _inside_files() -> Iterator[tuple[str, bytes]]:
    for folder in map(Path, inside_folders()):
        for path in sorted(folder.glob("*.py")):
            yield f"inside/{folder.parent.name}/{path.name}", path.read_bytes()


def _kit_files(kit: Kit) -> Iterator[tuple[str, bytes]]:
    """The Python files of a kit's packages. It must be without compiled parts: the image may be of another machine."""
    yield "kit/README", b"Packages that graders need: see tiltyard.cells.kit.\n"
    for name, folder in kit.packages:
        single = Path(folder) / f"{name}.py"
        if single.is_file():
            yield f"kit/{name}.py", single.read_bytes()
        for path in sorted((Path(folder) / name).rglob("*.py")):
            yield f"kit/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _context(files: dict[str, bytes]) -> IO[bytes]:
    """A tar that is the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in sorted(files.items()):
            add_bytes(tar, path, data)
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
