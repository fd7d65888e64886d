"""The ``.git`` that a player of a repository finds: one commit of what it starts with, and nothing else.

No other commit, ref, reflog or object, no hooks, no remote; author, date and message are fixed, so the commit's id says
what the files are and no more. It is made once for an image, beside its tree in the cache, by the ``git`` command with
nobody's configuration. Where there is no git, there is no ``.git``: ``missing()`` says so. What the player does with
it stays in its cell: a ``.git`` is never handed in, and the referee reads none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tiltyard.errors import ArenaError
from tiltyard.images import ImageFiles
from tiltyard.images.tree import locked

WHO = "Tiltyard <start@tiltyard.invalid>"
WHEN = "946684800 +0000"
"""2000-01-01."""
MESSAGE = "start"
MAKE_S = 600.0

_SKELETON = {
    "HEAD": "ref: refs/heads/main\n",
    # what the player commits is its own business, and it need not say who it is
    "config": (
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        "[user]\n\tname = player\n\temail = player@cell.invalid\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
    ),
    # the bytes of the files are what counts: no conversion of line ends, no filter, whatever they say themselves
    "info/attributes": "* -text !eol -filter -ident !working-tree-encoding\n",
}
_FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")

_made: dict[Path, Path | None] = {}
"""By tree: the cache may be another one later."""
_lock = threading.Lock()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def missing() -> str | None:
    """Why players of repositories find no ``.git`` here, or None."""
    return None if shutil.which("git") else "there is no git command on this machine: install git"


def git_layer(image: ImageFiles) -> Path | None:
    """The folder that holds the ``.git`` of an image, made if it is not there, beside its tree; None without git.
    ArenaError: git is there and fails."""
    tree = image.tree()
    with _lock:
        if tree in _made and ((found := _made[tree]) is None or found.is_dir()):
            return found
    folder = tree.parent / "git"
    found = folder if folder.is_dir() else None
    if found is None and missing() is None:
        with locked(tree.parent.with_name(f"{tree.parent.name}.git.lock")):
            if not folder.is_dir():
                _make(image, folder)
        found = folder
    with _lock:
        _made[tree] = found
    return found


def git_files(image: ImageFiles) -> dict[str, bytes]:
    """The ``.git`` of an image, as files of its workspace; {} without git. ArenaError as above."""
    layer = git_layer(image)
    if layer is None:
        return {}
    return {str(p.relative_to(layer)): p.read_bytes() for p in sorted(layer.rglob("*")) if p.is_file()}


def _make(image: ImageFiles, folder: Path) -> None:
    for left in folder.parent.glob(".git-*"):  # by one who was killed; we have the lock
        shutil.rmtree(left, ignore_errors=True)
    try:
        partial = Path(tempfile.mkdtemp(prefix=".git-", dir=folder.parent))
    except OSError as error:
        raise ArenaError(f"can't make the .git of an image in {folder.parent}: {error.strerror}") from None
    try:
        git = partial / ".git"
        for name in _FOLDERS:
            (git / name).mkdir(parents=True)
        for name, text in _SKELETON.items():
            (git / name).write_text(text, encoding="ascii")
        _run(git, "fast-import", "--quiet", "--date-format=raw", data=b"".join(_stream(image)))
        _run(git, "read-tree", "refs/heads/main")
        for path in [partial, *partial.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        partial.rename(folder)
    except OSError as error:
        raise ArenaError(f"can't make the .git of an image in {folder.parent}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _stream(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """One commit, as ``git fast-import`` reads it."""
    for number, data in enumerate(files.values(), 1):
        yield b"blob\nmark :%d\ndata %d\n%s\n" % (number, len(data), data)
    head = f"commit refs/heads/main\nauthor {WHO} {WHEN}\ncommitter {WHO} {WHEN}\n"
    yield f"{head}data {len(MESSAGE) + 1}\n{MESSAGE}\n\n".encode()
    for number, path in enumerate(files, 1):
        yield b"M 100644 :%d %s\n" % (number, _quoted(path))


def _quoted(path: str) -> bytes:
    plain = path.isascii() and path.isprintable() and not {'"', "\\"} & {*path}
    text = path if plain else "".join(f"\\{byte:03o}" for byte in path.encode())
    return f'"{text}"'.encode()


def _run(git: Path, *words: str, data: bytes = b"") -> None:
    settings = ("core.logAllRefUpdates=false", "fastimport.unpackLimit=0", "pack.threads=1", "gc.auto=0")
    argv = ["git", *(word for one in settings for word in ("-c", one)), *words]
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(git),
        "LC_ALL": "C",
        "GIT_DIR": str(git),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
    }
    try:
        done = subprocess.run(
            argv, input=data, capture_output=True, timeout=MAKE_S, check=False, env=env, cwd=git.parent
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ArenaError(f"the .git of an image can't be made: git {words[0]}: {error}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ArenaError(
            f"the .git of an image can't be made: git {words[0]} ended with {done.returncode}: {said[:1000]}"
        )
