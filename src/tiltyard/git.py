"""Reading git repositories, by the ``git`` command. Never writes to one, never runs what one holds.

Someone else's repository may carry hooks, filters, a pager and a configuration that names programs: nothing of it is
obeyed (no hooks, no external diff, no text conversion, no replaced objects), nor is the user's own configuration.
Everything is asked of objects, never of a work tree, so a bare repository does as well and nothing is checked out.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiltyard.errors import UsageError
from tiltyard.task import path_problem

MAX_OUTPUT = 1 << 30
TIMEOUT_S = 600.0
MAX_LINKS = 8
_NULL = "0" * 40
_REGULAR = ("100644", "100755", "100664")
_LINK = "120000"
_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "diff.external=",
    "core.quotePath=true",
    "core.pager=cat",
    "safe.directory=*",
    "protocol.allow=never",
    "gc.auto=0",
)
_FORMAT = "%H%x00%P%x00%aI%x00%cI%x00%B%x1e"


class GitError(UsageError):
    """A repository can't be read, or has no such commit; the message has git's own words."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. Dates in ISO 8601 with the author's or committer's own zone."""

    sha: str
    parents: tuple[str, ...]
    author_date: str
    commit_date: str
    message: str

    @property
    def parent(self) -> str:
        """The first parent, "" for a root."""
        return self.parents[0] if self.parents else ""


@dataclass(frozen=True, slots=True)
class Change:
    """A file that differs between two trees. ``status``: A added, M modified, D deleted, R renamed (from ``old``)."""

    path: str
    status: str
    old: str = ""


class Repository:
    """The repository at ``path``: a work tree, its ``.git``, or a bare one. GitError: it is none, or git is missing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()
        if not self.path.is_dir():
            raise GitError(f"{self.path} is no folder; expected a git repository")
        inner = self.path / ".git"
        self._git_dir = inner if inner.exists() else self.path
        if inner.is_file():  # a linked work tree, or a submodule
            said = inner.read_text(errors="replace").removeprefix("gitdir:").strip()
            self._git_dir = (self.path / said).resolve()
        if not (self._git_dir / "HEAD").is_file():
            raise GitError(f"{self.path} is no git repository (it has no HEAD)")

    def __repr__(self) -> str:
        return f"Repository({str(self.path)!r})"

    @property
    def name(self) -> str:
        """What it is called: the last part of its address, or of its path."""
        for said in (self.remote, str(self.path)):
            parts = [p for p in re.split(r"[/:\\]", said.rstrip("/")) if p not in ("", ".git", "repo")]
            if parts:
                return parts[-1].removesuffix(".git").rpartition("+")[2]
        return "repository"

    def commit(self, rev: str = "HEAD") -> Commit:
        """The commit that ``rev`` names. GitError: none is."""
        sha = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").strip()
        if not sha:
            raise GitError(f"{self.path} has no commit {rev!r}")
        return next(_commits(self._text("log", "-1", f"--format={_FORMAT}", sha)))

    def has(self, rev: str) -> bool:
        """Whether there is such a commit."""
        return bool(
            self._try("rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}").strip()
        )

    def log(
        self, rev: str = "HEAD", *, since: str = "", until: str = "", paths: Sequence[str] = ()
    ) -> Iterator[Commit]:
        """The history of ``rev`` along first parents, newest first. Dates as git reads them (``2024-01-01``)."""
        asked = ["log", "--first-parent", f"--format={_FORMAT}"]
        asked += [f"--since={since}"] if since else []
        asked += [f"--until={until}"] if until else []
        yield from _commits(self._text(*asked, self.commit(rev).sha, "--", *paths))

    def history(
        self, rev: str = "HEAD", *, since: str = "", until: str = ""
    ) -> Iterator[tuple[Commit, tuple[Change, ...]]]:
        """All that ``rev`` comes from, side branches too, newest first: each commit with what it changed against its
        first parent. One call of git, however long the history is."""
        asked = ["log", "-z", "--name-status", "-M", "--diff-merges=first-parent", "--root", "--no-ext-diff"]
        asked += ["--date-order", f"--format=%x1e{_FORMAT.removesuffix('%x1e')}%x1f"]
        asked += [f"--since={since}"] if since else []
        asked += [f"--until={until}"] if until else []
        for record in self._text(*asked, self.commit(rev).sha).split("\x1e")[1:]:
            head, _, names = record.partition("\x1f")
            for commit in _commits(head):
                yield commit, _changes(names.lstrip("\0\n").split("\0"))

    @property
    def remote(self) -> str:
        """The address that it was cloned from, as its configuration has it; "" if none. It may hold a password."""
        return self._try("config", "--get", "remote.origin.url").strip()

    def changed(self, rev: str, base: str = "") -> tuple[Change, ...]:
        """What a commit changed against its first parent (or ``base``), sorted by path; a root's files are all new."""
        commit = self.commit(rev)
        against = base or commit.parent
        asked = ["diff-tree", "-r", "-z", "-M", "--name-status", "--no-commit-id", "--no-ext-diff"]
        asked += [against, commit.sha] if against else ["--root", commit.sha]
        return _changes(self._text(*asked).split("\0"))

    def files(self, rev: str) -> dict[str, bytes]:
        """The regular files of a commit, by path. A link to a file of the tree becomes that file's content; other links,
        submodules, and paths that no workspace can have are left out."""
        entries = [entry for entry in self._tree(rev) if path_problem(entry[0]) is None]
        blobs = self._blobs([sha for _, _, sha in entries])
        links = {
            path: blobs[sha].decode("utf-8", "surrogateescape")
            for path, mode, sha in entries
            if mode == _LINK
        }
        out = {path: blobs[sha] for path, mode, sha in entries if mode != _LINK}
        for path in links:
            target = _followed(path, links)
            if target in out:
                out[path] = out[target]
        return dict(sorted(out.items()))

    def read(self, rev: str, path: str) -> bytes | None:
        """One file of a commit, None if it is not there."""
        found = [sha for name, mode, sha in self._tree(rev, path) if name == path and mode != _LINK]
        return self._blobs(found)[found[0]] if found else None

    def paths(self, rev: str) -> tuple[str, ...]:
        """The paths of a commit's files, links included, sorted."""
        return tuple(path for path, _, _ in self._tree(rev))

    def diff(self, old: str, new: str, paths: Sequence[str] = ()) -> str:
        """The unified diff between two commits (``--binary`` is not used: such changes are only named)."""
        asked = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "-M", "--full-index"]
        return self._text(*asked, self.commit(old).sha, self.commit(new).sha, "--", *paths)

    # -- git -------------------------------------------------------------------------------------------------------

    def _tree(self, rev: str, path: str = "") -> list[tuple[str, str, str]]:
        """(path, mode, blob) of files and links, sorted by path."""
        said = self._text(
            "ls-tree", "-r", "-z", "--full-tree", self.commit(rev).sha, "--", *([path] if path else [])
        )
        found = []
        for line in said.split("\0"):
            facts, tab, name = line.partition("\t")
            mode, kind, sha = facts.split(" ") if tab else ("", "", "")
            if kind == "blob" and mode in (*_REGULAR, _LINK):
                found.append((name, mode, sha))
        return sorted(found)

    def _blobs(self, shas: Sequence[str]) -> dict[str, bytes]:
        wanted = list(dict.fromkeys(shas))
        data = self._run(("cat-file", "--batch"), "".join(f"{sha}\n" for sha in wanted).encode())
        out, at = dict[str, bytes](), 0
        for sha in wanted:
            end = data.index(b"\n", at)
            *_, kind, size = data[at:end].split(b" ") if b" missing" not in data[at:end] else (b"", b"")
            if kind != b"blob":
                raise GitError(
                    f"{self.path} has lost the object {sha}; expected a whole clone (git fsck says more)"
                )
            out[sha] = data[end + 1 : end + 1 + int(size)]
            at = end + 2 + int(size)
        return out

    def _text(self, *args: str) -> str:
        return self._run(args).decode("utf-8", "surrogateescape")

    def _try(self, *args: str) -> str:
        try:
            return self._text(*args)
        except GitError:
            return ""

    def _run(self, args: Sequence[str], data: bytes = b"") -> bytes:
        settings = [part for setting in _CONFIG for part in ("-c", setting)]
        command = ["git", "--no-replace-objects", f"--git-dir={self._git_dir}", *settings, *args]
        try:
            done = subprocess.run(
                command,
                input=data,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
                env=_environment(),
                cwd="/",
            )
        except FileNotFoundError:
            raise GitError("found no 'git' command; install git to read repositories") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {args[0]} took longer than {TIMEOUT_S:g} s in {self.path}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[:500] or f"exit status {done.returncode}"
            raise GitError(f"git {args[0]} failed in {self.path}: {said}")
        if len(done.stdout) > MAX_OUTPUT:
            raise GitError(
                f"git {args[0]} gave {len(done.stdout)} bytes in {self.path}; expected at most {MAX_OUTPUT}"
            )
        return done.stdout


def _environment() -> dict[str, str]:
    """Nothing of the user's: no configuration, no other repository, no prompts, messages in English."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _commits(text: str) -> Iterator[Commit]:
    for record in text.split("\x1e"):
        fields = record.lstrip("\n").split("\0", 4)
        if len(fields) == 5:
            sha, parents, author_date, commit_date, message = fields
            yield Commit(sha, tuple(parents.split()), author_date, commit_date, message.strip())


def _changes(words: Sequence[str]) -> tuple[Change, ...]:
    """What ``--name-status -z`` says, sorted by path."""
    parts, found = iter(words), list[Change]()
    for status in parts:
        if status:
            old = next(parts) if status[0] in "RC" else ""
            found.append(Change(next(parts), status[0], old))
    return tuple(sorted(found, key=lambda change: change.path))


def _followed(path: str, links: dict[str, str]) -> str:
    """Where a link of a tree leads within it, "" if it leads out or round."""
    for _ in range(MAX_LINKS):
        if path not in links:
            return path
        target = links[path]
        if target.startswith("/"):
            return ""
        parts = path.split("/")[:-1]
        for part in target.split("/"):
            if part == "..":
                if not parts:
                    return ""
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        path = "/".join(parts)
    return ""


def find_repository(folder: str | os.PathLike[str], name: str) -> Repository:
    """The repository called ``name`` (``boltons``, ``mahmoud/boltons``) in a folder of repositories, or ``folder`` itself
    if it is one. Looked for as OWNER/NAME, OWNER__NAME, OWNER+NAME and NAME, with ``.git`` or ``/repo`` behind, then
    as any OWNER with that NAME. GitError: none, or more than one."""
    root = Path(folder).expanduser().absolute()
    if not root.is_dir():
        raise GitError(f"{root} is no folder; expected one with the repositories of the rows in it")
    owner, _, short = name.rpartition("/")
    owner = owner.rpartition("/")[2]
    stems = [f"{owner}/{short}", f"{owner}__{short}", f"{owner}+{short}", f"{owner}-{short}"] if owner else []
    for stem in [*stems, short]:
        for end in ("", ".git", "/repo", "/repo.git"):
            if (found := _repository(root / f"{stem}{end}")) is not None:
                return found
    others = sorted(root.iterdir())
    if not owner:
        named = [path for path in others if re.split(r"__|\+", path.name.removesuffix(".git"))[-1] == short]
        found_all = [
            repo for path in named for end in ("", "repo") if (repo := _repository(path / end)) is not None
        ]
        if len(found_all) == 1:
            return found_all[0]
        if found_all:
            said = ", ".join(str(repo.path) for repo in found_all)
            raise GitError(f"found more than one repository {name!r} in {root}: {said}; keep one")
    whole = _repository(root)
    if whole is not None and whole.name.lower() == short.lower():
        return whole
    raise GitError(
        f"found no repository {name!r} in {root}; expected a clone at {root / (stems[1] if stems else short)}"
    )


def _repository(path: Path) -> Repository | None:
    try:
        return Repository(path)
    except (GitError, OSError):
        return None
