"""Which commits of a history could be tasks: those that change source and tests, within limits, each change once.

Nothing is run here; a commit that falls out does so for a reason in words. Reverts are no tasks, and what was reverted
later is none either; of changes that were made twice (a cherry-pick, a rebase) the first one counts. A merge that
brings what a single commit brings is that commit again; other merges are *merges*, to be looked at after the commits.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tiltyard.errors import UsageError
from tiltyard.git import Change, Commit, Repository
from tiltyard.sources.mine.sides import is_source, is_test_side

_REVERTS = re.compile(r"\bthis reverts commit ([0-9a-f]{7,40})", re.IGNORECASE)

# why a commit is no candidate, in the order in which it is looked at
ROOT = "the first commit"
NO_SOURCE = "changes no source"
REVERT = "a revert"
REVERTED = "reverted later"
NO_TESTS = "changes no tests"
TOO_BIG = "too big"
TWICE = "the same change as an earlier commit"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How big a candidate may be: ``lines`` of source added and taken away, ``files`` of source, ``test_files`` test-side
    files that change."""

    lines: int = 400
    files: int = 12
    test_files: int = 40


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit that could be a task. ``base`` is its first parent; ``lines`` of source that it adds and takes away;
    ``mark``: the same for the same change; ``side``: of a merge, the commits that it brings in."""

    sha: str
    base: str
    author_date: str
    commit_date: str
    message: str
    lines: int
    mark: str = ""
    side: tuple[str, ...] = ()
    is_merge: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a history holds: candidates newest first, and why each other commit is none."""

    commits: tuple[Candidate, ...]
    merges: tuple[Candidate, ...]
    out: dict[str, str] = field(default_factory=dict)

    @property
    def looked_at(self) -> int:
        return len(self.commits) + len(self.merges) + len(self.out)


def find_candidates(
    repository: Repository,
    rev: str = "HEAD",
    *,
    since: str = "",
    until: str = "",
    bounds: Bounds | None = None,
) -> Found:
    """Go through the history of ``rev``. ``since`` and ``until`` are days of the committer's date, both included, in UTC.
    GitError: it can't be read; UsageError: a date that is none."""
    bounds = bounds or Bounds()
    first, last = _day("since", since, "T00:00:00Z"), _day("until", until, "T23:59:59Z")
    history = list(repository.history(rev, since=first, until=last))
    reverted = {sha for commit, _ in history for sha in _REVERTS.findall(commit.message)}
    out: dict[str, str] = {}
    found: list[Candidate] = []
    for commit, changes in history:
        why = _plainly_none(commit, changes, reverted, bounds)
        if not why:
            candidate = _measured(repository, commit, changes)
            why = TOO_BIG if candidate.lines > bounds.lines else ""
            if not why:
                found.append(candidate)
        if why:
            out[commit.sha] = why
    fresh = _once(found, out)
    parents = {commit.sha: commit.parents for commit, _ in history}
    commits = tuple(c for c in fresh if not c.is_merge)
    merges = tuple(_with_side(c, parents) for c in fresh if c.is_merge)
    return Found(commits, merges, out)


def _day(name: str, said: str, time: str) -> str:
    """A day with a time, for git takes one without it as of the present time of day."""
    if not said:
        return ""
    try:
        return datetime.date.fromisoformat(said).isoformat() + time
    except ValueError:
        raise UsageError(f"{name} is {said!r}; expected a date like 2024-01-31") from None


def _plainly_none(commit: Commit, changes: Sequence[Change], reverted: set[str], bounds: Bounds) -> str:
    """Why a commit is no candidate, from what its history says of it; or ""."""
    paths = [path for change in changes for path in {change.path, change.old or change.path}]
    source = [path for path in paths if is_source(path)]
    tests = [change.path for change in changes if change.status != "D" and is_test_side(change.path)]
    if not commit.parents:
        return ROOT
    if not source:
        return NO_SOURCE
    if _REVERTS.search(commit.message) or re.match(r'\s*revert\b\s*[":]', commit.message, re.IGNORECASE):
        return REVERT
    if any(commit.sha.startswith(sha) for sha in reverted):
        return REVERTED
    if not tests:
        return NO_TESTS
    if len(source) > bounds.files or len(tests) > bounds.test_files:
        return TOO_BIG
    return ""


def _measured(repository: Repository, commit: Commit, changes: Sequence[Change]) -> Candidate:
    diff = repository.diff(commit.parent, commit.sha)
    lines = sum(1 for path, line in changed_lines(diff) if is_source(path) and line[1:].strip())
    return Candidate(
        commit.sha,
        commit.parent,
        commit.author_date,
        commit.commit_date,
        as_text(commit.message),
        lines,
        fingerprint(diff),
        is_merge=len(commit.parents) > 1,
    )


def changed_lines(diff: str) -> Iterator[tuple[str, str]]:
    """(path, line with its sign) of every line that a diff adds or takes away."""
    path, inside = "", False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            inside = False
        elif line.startswith("@@ "):
            inside = True
        elif not inside and line.startswith(("+++ ", "--- ")):
            name = line[4:].rstrip("\t").strip('"')
            path = name[2:] if name.startswith(("a/", "b/")) else path
        elif inside and line.startswith(("+", "-")):
            yield path, line


def fingerprint(diff: str) -> str:
    """The same for the same change, wherever it stands and however it is spaced."""
    lines = [f"{path}\0{line[0]}{''.join(line[1:].split())}" for path, line in changed_lines(diff)]
    text = "\n".join(line for line in lines if not line.endswith(("\0+", "\0-")))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def as_text(message: str) -> str:
    """A message as valid Unicode, without control characters."""
    text = message.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c for c in text if c in "\n\t" or c.isprintable())


def _once(found: Sequence[Candidate], out: dict[str, str]) -> list[Candidate]:
    """Without changes that were made before: oldest first, commits before the merges that bring them."""
    seen, kept = set[str](), set[str]()
    oldest_first = list(reversed(found))
    for candidate in sorted(oldest_first, key=lambda c: c.is_merge):
        if candidate.mark in seen:
            out[candidate.sha] = TWICE
        else:
            seen.add(candidate.mark)
            kept.add(candidate.sha)
    return [candidate for candidate in found if candidate.sha in kept]


def _with_side(merge: Candidate, parents: dict[str, tuple[str, ...]]) -> Candidate:
    """A merge with the commits that it brings in: those of its other parents that its first one does not come from."""
    main = _ancestors([merge.base], parents)
    others = list(parents.get(merge.sha, ())[1:])
    side = tuple(sorted(_ancestors(others, parents) - main))
    return replace(merge, side=side)


def _ancestors(tips: Sequence[str], parents: dict[str, tuple[str, ...]]) -> set[str]:
    found, todo = set[str](), list(tips)
    while todo:
        sha = todo.pop()
        if sha not in found and sha in parents:
            found.add(sha)
            todo += parents[sha]
    return found
