"""Mining: a history in, a pool of tasks out.

Commits that could be tasks are examined one by one on several workers, newest first; then the merges whose commits gave
none. What is found is kept at once (``state``), so a mining that is stopped, or killed, goes on where it was: at most
the commits in work are examined again. The pool is the same whatever the number of workers. Nothing that lies in
it already is changed: a task whose prompt somebody wrote keeps it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from tiltyard.errors import UsageError
from tiltyard.git import Repository
from tiltyard.images import Images
from tiltyard.sources.mine.dig import TASK, VOID, Digger, Entry, Settings
from tiltyard.sources.mine.finish import SAME_TESTS, finish, needs_prompt, once_each
from tiltyard.sources.mine.history import Bounds, Candidate, Found, find_candidates
from tiltyard.sources.mine.output import Output
from tiltyard.sources.mine.report import MERGED, NOT_YET, MineReport, Step
from tiltyard.sources.mine.state import State
from tiltyard.task import Task
from tiltyard.workers import Done, Interrupted, Progress, Stop, work

CHUNK = 16
"""Commits that are handed out before it is looked whether there are enough tasks: the same on any number of workers."""
BUILD_S = 2400.0


@dataclass(frozen=True, slots=True)
class Dug:
    """What the progress bar is told of a commit: ``task``, ``needs prompt``, ``none`` or ``void``."""

    outcome: str


def mine(
    repository: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    rev: str = "HEAD",
    since: str = "",
    until: str = "",
    most: int | None = None,
    workers: int = 1,
    wall: str = "auto",
    python: str = "",
    extra: Sequence[str] = (),
    environment: bool = True,
    repeats: int = 3,
    merges: bool = True,
    bounds: Bounds | None = None,
    keep_needs_prompt: bool = False,
    name: str = "",
    progress: Progress | None = None,
) -> MineReport:
    """Mine the history of ``rev`` into the pool ``out``, a folder (a new one, or that of an earlier mining) or a ``.jsonl``
    file.

    ``since`` and ``until`` are dates; ``most``: no more tasks than this. ``python`` and ``extra`` (requirements) are for the
    environments; "" and (): what each commit declares; with ``environment`` False cells are used as they are. Tests are run ``repeats`` times before and after. Tasks without a
    good prompt go to a pool of their own beside ``out``, or with ``keep_needs_prompt`` into it, with a tag. Raises
    UsageError (arguments, ``out``), GitError, ArenaError (no wall), and Interrupted with the report so far, once
    everything that was found is written.
    """
    begun = time.monotonic()
    home = Repository(repository)
    settings = Settings(str(home.path), name or home.name, wall, python, tuple(extra), environment, repeats)
    _check(settings, most)
    output = Output(Path(out), settings.name)
    kept = {key: value for key, value in asdict(settings).items() if key not in ("wall", "repository")}
    state = State(output.state_folder, kept)
    try:
        found = find_candidates(home, rev, since=since, until=until, bounds=bounds)
        miner = _Miner(home, settings, state, most, keep_needs_prompt, workers, progress)
        with Stop() as stop:
            miner.dig(found, merges, stop)
        report = miner.report(found, merges)
        pool, apart = miner.divided()
        report = replace(report, written=output.write(pool, apart), seconds=time.monotonic() - begun)
    finally:
        state.close()
    if stop.count:
        raise Interrupted(report, stop.signum)
    return report


def _check(settings: Settings, most: int | None) -> None:
    if settings.repeats < 1:
        raise UsageError(f"repeats is {settings.repeats}; expected at least 1")
    if most is not None and most < 1:
        raise UsageError(f"most is {most}; expected at least 1 task")


class _Miner:
    """The state of one mining."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        state: State,
        most: int | None,
        keep_needs_prompt: bool,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.repository, self.settings, self.state, self.most = repository, settings, state, most
        self.keep_needs_prompt, self.workers, self.progress = keep_needs_prompt, workers, progress
        self.images = Images()
        self.resumed = 0
        self.made: dict[str, Task] = {}
        self.looked: dict[str, Candidate] = {}
        """All candidates whose entries are known, in the order in which they were handed out."""
        self.covered: set[str] = set()
        """Merges whose commits are tasks."""

    def dig(self, found: Found, merges: bool, stop: Stop) -> None:
        """Examine the commits, and then the merges that are left."""
        total = len(found.commits) + (len(found.merges) if merges else 0)
        if self.progress is not None:
            self.progress.begin(total)
        try:
            self._examine(found.commits, stop)
            if merges and not stop.count:
                self.covered = {c.sha for c in found.merges if {*c.side} & {*self.made}}
                self._examine([c for c in found.merges if c.sha not in self.covered], stop)
        finally:
            if self.progress is not None:
                self.progress.end()

    def _examine(self, candidates: Sequence[Candidate], stop: Stop) -> None:
        size = len(candidates) if self.most is None else CHUNK
        for at in range(0, len(candidates), size or 1):
            if stop.count or self._enough():
                return
            chunk = candidates[at : at + size]
            fresh = [c for c in chunk if c.sha not in self.state.known]
            for candidate in chunk:
                if candidate.sha in self.state.known:
                    self.resumed += 1
                    self._take(candidate, self.state.known[candidate.sha])
            make = partial(Digger, self.settings)
            for end in work(
                fresh, make, workers=self.workers, stop=stop, deadline_s=lambda _: _deadline_s(self.settings)
            ):
                entry = end.value if isinstance(end, Done) else Entry(fresh[end.job].sha, VOID, end.reason)
                self.state.add(entry)
                self._take(fresh[end.job], entry)

    def _take(self, candidate: Candidate, entry: Entry) -> None:
        self.looked[candidate.sha] = candidate
        outcome = "void" if entry.outcome == VOID else "none"
        if entry.outcome == TASK:
            task = finish(self.repository, self.settings.name, candidate, entry, self.images)
            self.made[candidate.sha] = task
            outcome = "needs prompt" if needs_prompt(task) else "task"
        if self.progress is not None:
            self.progress.advance(Dug(outcome))

    def _enough(self) -> bool:
        counted = [t for t in self.made.values() if self.keep_needs_prompt or not needs_prompt(t)]
        return self.most is not None and len(counted) >= self.most

    def divided(self) -> tuple[list[Task], list[Task]]:
        """The tasks of the pool and those that stand apart, newest first, each change once."""
        tasks, _ = once_each(self._in_order())
        good = [t for t in tasks if self.keep_needs_prompt or not needs_prompt(t)]
        apart = [t for t in tasks if needs_prompt(t) and not self.keep_needs_prompt]
        return good[: self.most], apart

    def _in_order(self) -> list[Task]:
        newest = sorted(
            self.made,
            key=lambda sha: (self.looked[sha].commit_date, self.looked[sha].is_merge, sha),
            reverse=True,
        )
        return [self.made[sha] for sha in newest]

    def report(self, found: Found, merges: bool) -> MineReport:
        """How many fell out at each step."""
        good, apart = self.divided()
        _, repeated = once_each(self._in_order())
        candidates = (*found.commits, *(found.merges if merges else ()))
        left = [c.sha for c in candidates if c.sha not in self.looked and c.sha not in self.covered]
        outcomes = {sha: self.state.known[sha] for sha in self.looked}
        steps = [Step(why, count, "history") for why, count in Counter(found.out.values()).most_common()]
        if not merges and found.merges:
            steps.append(Step("a merge, and merges were not wanted", len(found.merges), "history"))
        if self.covered:
            steps.append(Step(MERGED, len(self.covered), "history"))
        fell = Counter(e.outcome for e in outcomes.values() if e.outcome != TASK)
        steps += [
            Step(why, count, "tests", _example(why, outcomes.values())) for why, count in fell.most_common()
        ]
        if repeated:
            steps.append(Step(SAME_TESTS, len(repeated), "tests", repeated[0].id))
        if left:
            steps.append(Step(NOT_YET, len(left), "tests"))
        return MineReport(
            repository=self.settings.name,
            commits=found.looked_at,
            candidates=len(candidates) - len(self.covered),
            steps=tuple(steps),
            tasks=tuple(task.id for task in good),
            needs_prompt=tuple(task.id for task in (*good, *apart) if needs_prompt(task)),
            why_no_prompt=_reasons([*good, *apart]),
            flaky=sum(len(e.flaky) for e in outcomes.values()),
            ways=dict(Counter(task.way for task in (*good, *apart))),
            environments=len({(t.metadata.python, t.metadata.packages) for t in (*good, *apart)}),
            examined=len(self.looked),
            resumed=self.resumed,
            left=len(left),
        )


def _example(why: str, entries: Iterable[Entry]) -> str:
    for entry in entries:
        if entry.outcome == why and entry.detail:
            return f"{entry.commit[:10]}: {entry.detail}"
    return ""


def _reasons(tasks: Sequence[Task]) -> dict[str, int]:
    said = (dict(task.metadata.extra).get("needs_prompt", "") for task in tasks if needs_prompt(task))
    return dict(Counter(said).most_common())


def _deadline_s(settings: Settings) -> float:
    """Far more than it can honestly take: all runs, both ways of grading, an environment to build."""
    return BUILD_S + settings.run_s * (8 + 2 * settings.repeats)
