"""``breakage``: working code with good tests becomes tasks, by breaking it on purpose.

Promises: the same seed gives the same tasks, byte for byte, however many workers; each task was graded: the original code
1, the broken code 0; what was done when it is interrupted is in the report. Never: changes what it is given.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tiltyard.cells import make_wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.mutate import OPERATORS
from tiltyard.mutate import mutations as _needs_libcst
from tiltyard.sources.breakage.crew import Finder, Preparer, Trier, Validator
from tiltyard.sources.breakage.draw import Break, Change, drawn
from tiltyard.sources.breakage.making import with_image
from tiltyard.sources.breakage.opening import is_repository, open_pool, open_repository
from tiltyard.sources.breakage.ready import Ready
from tiltyard.sources.breakage.report import BreakReport, Broken, Source, Trial
from tiltyard.sources.breakage.subject import Subject
from tiltyard.task import Task
from tiltyard.workers import Done, Interrupted, Progress, Stop, work

MAX_BREAKS = 5
READY_S, FIND_S, TRIAL_S = 3600.0, 600.0, 1800.0
SPARE = 8
"""Breaks that work beyond those that are wanted, for some do not validate: one in so many, and one."""
Bugs = Callable[[Sequence[Ready], int], list[tuple[int, Change]]]
"""Writes bugs into subjects: (number of the subject, change), about so many."""


def breakage(
    spec: Any,
    *,
    count: int = 50,
    seed: int = 0,
    kinds: Sequence[str] = (),
    breaks: int = 1,
    workers: int = 1,
    wall: str = "auto",
    tasks: Sequence[str] = (),
    tags: Sequence[str] = (),
    rev: str = "HEAD",
    environment: bool = True,
    packages: Sequence[str] = (),
    python: str = "",
    bugs: Bugs | None = None,
    progress: Callable[[str], Progress] | None = None,
) -> BreakReport:
    """Break a repository (its folder), or the tasks of a pool (whatever ``tiltyard.pool.load`` takes), into up to ``count``
    tasks, the best hidden first. ``kinds`` are names of ``mutate.OPERATORS`` (none: all); ``breaks`` the most changes at
    once; ``bugs`` writes bugs where operators would make changes. ``progress`` makes a bar with that title.

    Raises UsageError, ArenaError, and :class:`Interrupted` with the report so far.
    """
    chosen = _checked(count, kinds, breaks)
    work_ = _Work(
        spec, count, seed, chosen, breaks, workers, wall, bugs, progress or (lambda title: _Quiet())
    )
    subjects, left_out = _opened(spec, wall, tasks, tags, rev, environment, packages, python)
    return work_.run(subjects, left_out)


def _checked(count: int, kinds: Sequence[str], breaks: int) -> tuple[str, ...]:
    _needs_libcst("")  # one that is missing is missed before any work is done
    if count < 1:
        raise UsageError(f"count: found {count}; expected a whole number from 1 on")
    if not 1 <= breaks <= MAX_BREAKS:
        raise UsageError(f"breaks: found {breaks}; expected a whole number from 1 to {MAX_BREAKS}")
    if unknown := sorted({*kinds} - OPERATORS.keys()):
        raise UsageError(f"kinds: found {unknown[0]!r}; expected some of {', '.join(OPERATORS)}")
    return tuple(kind for kind in OPERATORS if not kinds or kind in kinds)


def _opened(
    spec: Any, wall: str, tasks: Sequence[str], tags: Sequence[str], rev: str, environment: bool, packages: Sequence[str],
    python: str,
) -> tuple[list[Subject], list[Source]]:  # fmt: skip
    if is_repository(spec):
        if tasks or tags:
            raise UsageError(
                f"{spec} is a repository and has no tasks to choose from; leave --task and --tag out"
            )
        return [open_repository(spec, rev=rev, environment=environment, packages=packages, python=python)], []
    if rev != "HEAD":
        raise UsageError(f"--rev: found {rev!r}, but {spec} is no git repository; expected none")
    opened = make_wall(wall)
    try:
        return open_pool(spec, opened, tasks=tasks, tags=tags)
    finally:
        opened.close()


class _Quiet:
    def begin(self, total: int) -> None: ...
    def advance(self, result: Any) -> None: ...
    def end(self) -> None: ...


@dataclass
class _Stopped(Exception):
    signum: int | None


@dataclass
class _Work:
    spec: Any
    count: int
    seed: int
    kinds: tuple[str, ...]
    breaks: int
    workers: int
    wall: str
    bugs: Bugs | None
    progress: Callable[[str], Progress]

    def run(self, subjects: Sequence[Subject], left_out: Sequence[Source]) -> BreakReport:
        self.begun = time.monotonic()
        self.sources = list(left_out)
        self.fates: Counter[str] = Counter()
        self.ready: list[Ready] = []
        self.best: dict[str, Broken] = {}
        self.valid: dict[str, tuple[Broken, Task]] = {}
        self.kinds_of: dict[str, str] = {}
        self.rejected: set[str] = set()
        self.voids: Counter[str] = Counter()
        try:
            self._make_ready(subjects)
            self._break(self._order())
        except _Stopped as stopped:
            raise Interrupted(self._report(interrupted=True), stopped.signum) from None
        except KeyboardInterrupt:  # while a model was asked
            raise Interrupted(self._report(interrupted=True), signal.SIGINT) from None
        return self._report()

    def _make_ready(self, subjects: Sequence[Subject]) -> None:
        for n, found in self._all(list(subjects), Preparer, READY_S, "looking at the tests"):
            ready, source = (
                found if not isinstance(found, str) else (None, Source(subjects[n].name, problem=found))
            )
            if ready is not None and not ready.problem:
                self.ready.append(ready)
            self.sources.append(source)
        if not self.ready:
            why = "; ".join(f"{s.name}: {s.problem}" for s in self.sources[:3]) or "it has no task"
            raise ArenaError(f"nothing of {self.spec} can be broken ({why})")

    def _order(self) -> list[tuple[int, Break]]:
        """All breaks, in the order in which they are to be tried: the subjects in turn."""
        if self.bugs is not None:
            written = self.bugs(self.ready, 2 * self.count)
            return [(number, Break((change,))) for number, change in written]
        jobs = [(n, path) for n, ready in enumerate(self.ready) for path in sorted(ready.reach)]
        make = partial(Finder, self.ready, self.kinds)
        changes: dict[int, list[Change]] = {}
        for n, found in self._all(jobs, lambda wall: make(), FIND_S, "finding what can be changed"):
            if not isinstance(found, str):
                changes.setdefault(jobs[n][0], []).extend(found)
        queues = [
            drawn(changes.get(n, []), self.breaks, f"{self.seed} {ready.subject.task.digest}")
            for n, ready in enumerate(self.ready)
        ]
        by_name = {ready.subject.name: len(queues[n]) for n, ready in enumerate(self.ready)}
        self.sources = [replace(s, candidates=by_name.get(s.name, 0)) for s in self.sources]
        longest = max(map(len, queues), default=0)
        return [(n, queue[at]) for at in range(longest) for n, queue in enumerate(queues) if at < len(queue)]

    def _break(self, order: list[tuple[int, Break]]) -> None:
        """Try in that order until enough work, then validate; go on where too few do."""
        at = 0
        try:
            while at < len(order) and len(self.valid) < self.count:
                at += self._try(order[at:])
                self._validate()
        except _Stopped:
            self._validate_quietly()
            raise

    def _missing(self) -> int:
        need = self.count - len(self.valid)
        return need + need // SPARE + 1 if need > 0 else 0

    def _try(self, order: Sequence[tuple[int, Break]]) -> int:
        bar = self.progress("breaking")
        bar.begin(self._missing())
        try:
            return self._tried(order, bar)
        finally:
            bar.end()

    def _tried(self, order: Sequence[tuple[int, Break]], bar: Progress) -> int:
        """Try until enough work; returns how many were tried. What counts is the order, not who is done first."""
        want, new, done = self._missing(), 0, 0
        waiting: dict[int, Trial] = {}
        make = partial(Trier, self.wall, self.ready, self.seed)
        with Stop() as stop:
            for result in work(order, make, workers=self.workers, stop=stop, deadline_s=lambda job: TRIAL_S):
                void = Trial("", "void", "", reason=getattr(result, "reason", ""))
                waiting[result.job] = result.value if isinstance(result, Done) else void
                while done in waiting and new < want:
                    trial = waiting.pop(done)
                    done += 1
                    if self._fold(trial):
                        new += 1
                        bar.advance(trial)
                if new >= want and not stop.count:
                    stop.ask()  # those at work finish what they are at, and it counts for nothing
        if stop.signum is not None or (new < want and done < len(order)):
            raise _Stopped(stop.signum)
        return done

    def _fold(self, trial: Trial) -> bool:
        """Whether it is one more that works."""
        broken = trial.broken
        if broken is None:
            self.fates[trial.fate] += 1
            self.voids[trial.reason] += trial.fate == "void"
            return False
        if broken.likeness in self.rejected:
            self.fates["not validated"] += 1
            return False
        other = self.best.get(broken.likeness)
        self.kinds_of[broken.mark] = trial.kind
        if other is None:
            self.best[broken.likeness] = broken
            return True
        self.fates["the same"] += 1
        if broken.hiddenness > other.hiddenness and other.mark not in self.valid:
            self.best[broken.likeness] = broken
        return False

    def _validate(self) -> None:
        known = {ready.subject.name: n for n, ready in enumerate(self.ready)}
        todo = [b for b in self.best.values() if b.mark not in self.valid]
        todo.sort(key=lambda b: (-b.hiddenness, b.mark))
        jobs = [(known[broken.subject], broken) for broken in todo]
        for n, found in self._all(jobs, partial(Validator, ready=self.ready), TRIAL_S, "validating"):
            if isinstance(found, str) or found is None:
                self.fates["void" if isinstance(found, str) else "not validated"] += 1
                self.voids[str(found)] += isinstance(found, str)
                del self.best[todo[n].likeness]
                self.rejected.add(todo[n].likeness)
            else:
                self.valid[todo[n].mark] = found

    def _validate_quietly(self) -> None:
        """What works when it is interrupted is graded still, unless it is interrupted again."""
        try:
            self._validate()
        except (_Stopped, ArenaError):
            return

    def _all(
        self, jobs: list[Any], make: Callable[[str], Any], deadline_s: float, title: str
    ) -> Iterator[tuple[int, Any]]:
        """The result of each job in the jobs' order, or the reason (a text) why there is none."""
        if not jobs:
            return
        found: dict[int, Any] = {}
        bar = self.progress(title)
        bar.begin(len(jobs))
        try:
            with Stop() as stop:
                for result in work(
                    jobs,
                    partial(make, self.wall),
                    workers=self.workers,
                    stop=stop,
                    deadline_s=lambda job: deadline_s,
                ):
                    found[result.job] = result.value if isinstance(result, Done) else result.reason
                    bar.advance(_Step("failed" if isinstance(found[result.job], str) else "done"))
        finally:
            bar.end()
        yield from sorted(found.items())
        if len(found) < len(jobs):
            raise _Stopped(stop.signum)

    def _report(self, *, interrupted: bool = False) -> BreakReport:
        made = sorted(self.valid.values(), key=lambda pair: (-pair[0].hiddenness, pair[0].mark))[: self.count]
        kinds = Counter(self.kinds_of[broken.mark] for broken, _ in made)
        self.fates |= {"kept": len(made), "not needed": len(self.valid) - len(made)}
        images = {ready.subject.name for ready in self.ready if ready.subject.as_image}
        tasks = tuple(with_image(task) if broken.subject in images else task for broken, task in made)
        spent = time.monotonic() - self.begun
        sources = tuple(self.sources)
        return BreakReport(
            tasks, self.count, sources, +self.fates, kinds, +self.voids, self.seed, spent, interrupted
        )


@dataclass(frozen=True, slots=True)
class _Step:
    outcome: str
