"""The pool: an ordered, immutable collection of tasks with a name, a version and a digest.

A pool never reads a file; ``tiltyard.pool.load`` makes pools. The digest is over the digests of its tasks in their
order, so it changes with anything that can change a reward, and with what is selected.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import overload

from tiltyard.errors import Problem, TaskError, UsageError
from tiltyard.task import Task

_SHOWN = 12


class UnknownTaskError(UsageError, KeyError):
    """There is no task of that id in the pool; the message says which ids are near."""

    def __str__(self) -> str:
        # KeyError would show the message in quotes, with its line ends escaped.
        return str(self.args[0])


def some_of(names: Sequence[str]) -> str:
    """The first names of a list, in words, with a count of those left out."""
    if not names:
        return "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def near(name: str, names: Sequence[str]) -> str:
    """``"; did you mean 'x' or 'y'?"`` if names like ``name`` exist, else ``""``."""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        lowered = {n.lower(): n for n in names}
        close = [lowered[n] for n in difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


@dataclass(frozen=True)
class Pool(Sequence[Task]):
    """A frozen sequence of tasks. ``pool[0]``, ``pool["median"]``, ``pool[2:5]`` (a pool again), ``"median" in pool``.

    ``version`` is raised by the pool's author when a reward's meaning changes; where the source has none, it is the
    first 12 digits of the digest. ``left_out`` are rows of the source that can't be built on this machine, with the
    reasons. Raises :class:`TaskError` if two tasks have the same id.
    """

    name: str
    version: int | str
    tasks: tuple[Task, ...]
    left_out: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        twice = sorted(id_ for id_, n in Counter(t.id for t in self.tasks).items() if n > 1)
        if twice:
            where = f"pool {self.name!r}"
            raise TaskError(
                [Problem(where, "id", f"{id_!r} more than once", "ids that differ") for id_ in twice]
            )

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all tasks, in the pool's order."""
        return tuple(task.id for task in self.tasks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the digests of the tasks, in order, as 64 hex digits."""
        return hashlib.sha256("\n".join(task.digest for task in self.tasks).encode()).hexdigest()

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Every tag that a task has, sorted."""
        return tuple(sorted({tag for task in self.tasks for tag in task.metadata.tags}))

    @cached_property
    def _by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    @overload
    def __getitem__(self, key: int | str) -> Task: ...
    @overload
    def __getitem__(self, key: slice) -> Pool: ...
    def __getitem__(self, key: int | str | slice) -> Task | Pool:
        if isinstance(key, slice):
            return replace(self, tasks=self.tasks[key])
        if not isinstance(key, str):
            return self.tasks[key]
        if key not in self._by_id:
            hint = near(key, self.ids) or f"; it has: {some_of(self.ids)}"
            raise UnknownTaskError(f"no task {key!r} in pool {self.name!r}{hint}")
        return self._by_id[key]

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __contains__(self, item: object) -> bool:
        return item in self._by_id if isinstance(item, str) else item in self.tasks

    def __repr__(self) -> str:
        return f"Pool({self.name!r}, version {self.version!r}, {len(self)} tasks, digest {self.digest[:12]})"

    def select(self, tasks: Sequence[str] = (), tags: Sequence[str] = ()) -> Pool:
        """The tasks whose id matches one of the globs ``tasks`` and that have one of ``tags``, in the pool's order.

        An empty filter selects everything. Raises :class:`UsageError` if a glob or a tag selects nothing, or both
        together do: a typing mistake must not make a run smaller in silence.
        """
        tasks = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        tags = (tags,) if isinstance(tags, str) else tuple(tags)
        wanted = set(self.ids)
        if tasks:
            wanted = set()
            for glob in tasks:
                hits = {id_ for id_ in self.ids if id_ == glob or fnmatchcase(id_, glob)}
                if not hits:
                    hint = near(glob, self.ids) or f"; the tasks are: {some_of(self.ids)}"
                    raise UsageError(f"no task of pool {self.name!r} matches {glob!r}{hint}")
                wanted |= hits
        for tag in tags:
            if tag not in self.tags:
                hint = near(tag, self.tags) or f"; the tags are: {some_of(self.tags)}"
                raise UsageError(f"no task of pool {self.name!r} has the tag {tag!r}{hint}")
        chosen = tuple(
            t for t in self.tasks if t.id in wanted and (not tags or set(tags) & set(t.metadata.tags))
        )
        if not chosen and self.tasks:
            raise UsageError(
                f"no task of pool {self.name!r} matches {some_of(tasks)} and has one of the tags {some_of(tags)} "
                "at once; the two filters are combined, so widen one of them"
            )
        return replace(self, tasks=chosen)
