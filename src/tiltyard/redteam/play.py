"""A worker's bench: a batch of cases against one task, honest work beside and after them, and a look at what is left.

Promises: each case ends in a CaseResult, whatever it does; a case has a canary and a listener of its own; after a
batch the wall is closed, and nothing may be left then. What a batch left is laid at one case's door by playing each of
them again alone. Runs in a worker process of its own, never in the caller's: it collects every child that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tiltyard.cells import make_wall
from tiltyard.cells.inside.procs import descendants
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError
from tiltyard.redteam import stock
from tiltyard.redteam.canary import Canary, Listener
from tiltyard.redteam.case import Case, Tokens
from tiltyard.redteam.report import CaseResult, ControlResult
from tiltyard.redteam.subject import Arena, Played, Subject, loosened, submission, tight_limits, tightened
from tiltyard.referee import Referee
from tiltyard.referee.prepare import prepared
from tiltyard.task import Files, Task

REAL_WALLS = frozenset({"namespace", "container"})
HONEST_TRIES = 3
"""For tasks that judge the time of a call: honest work that a busy machine slowed down is tried again."""
MIN_SECRET = 24
"""Characters from which on the text of a hidden test is looked for in what a player saw."""

MakeSubject = Callable[[Wall], Subject]


@dataclass(frozen=True, slots=True)
class Setup:
    """What all batches have in common. ``make`` makes the subject on a wall; None: the arena itself. ``wall`` is the
    name of the wall that it stands on. ``tasks`` are all that cases name."""

    wall: str
    tasks: Mapping[str, Task]
    root: Path
    """A folder of the run's, removed by who made it: what workers make lies there, so that a killed one leaves nothing."""
    make: MakeSubject | None = None
    python: str | None = None
    timed: frozenset[str] = frozenset()
    secrets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Cases that are played one after the other against one task. ``honest`` and ``wrong`` are what a control hands
    in, by name."""

    task: str
    cases: tuple[Case, ...]
    honest: tuple[tuple[str, Files], ...]
    wrong: tuple[tuple[str, Files], ...]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """``outcome`` and ``reward`` are for the bar."""

    cases: tuple[CaseResult, ...]
    controls: tuple[ControlResult, ...]


def bound_s(task: Task) -> float:
    """Seconds within which a verdict must come: it is tried again once and compared with the reference, and a minute
    for a busy machine. Beyond it the grading hangs, which is harm."""
    limits = tight_limits(task)
    return 3 * (limits.load_s + limits.grade_s) + 60.0


class Bench:
    """See the module's first lines. ``close`` gives everything back."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        stock.become_reaper()
        self._known = descendants()
        self._settled: dict[str, Task] = {}
        # world-searchable: code of other users must be able to reach the canary, or it would show nothing
        self._root = Path(tempfile.mkdtemp(prefix="bench-", dir=setup.root)).resolve()
        self._root.chmod(0o755)
        self._first = stock.take(self.setup.root)
        self._temp = stock.PrivateTemp(self._root)
        self._wall().close()  # one that can't be had is found here, before any case is blamed

    def close(self) -> None:
        self._temp.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def __call__(self, batch: Batch) -> BatchResult:
        try:
            return self._judged(batch)
        except ArenaError as error:  # no wall can be had at the moment: nothing is known of these cases
            nothing = [CaseResult(case.name, case.task, case.about, void=str(error)) for case in batch.cases]
            return BatchResult(tuple(nothing), ())

    def _judged(self, batch: Batch) -> BatchResult:
        with self._turn(fcntl.LOCK_SH):
            result, ours, (certain, possible) = self._batch(batch)
            if possible and self.setup.wall not in REAL_WALLS:
                certain += self._batch(batch, possible)[2][0]
        if not ours and not certain:
            return result
        for number, case in enumerate(batch.cases):
            harm = self._alone(replace(batch, cases=(case,)))
            result = _blamed(result, number, harm)
            ours = [what for what in ours if what not in harm]
        if ours and not any(case.harm for case in result.cases):
            # left once and not again: it is told of the batch's last case, for it must not get lost
            result = _blamed(result, len(batch.cases) - 1, ours)
        return result

    def _alone(self, batch: Batch) -> tuple[str, ...]:
        """What a case does when it is the only one that is played. In places that are not ours alone, what bears an
        exploit's mark is its doing; the rest may be a neighbour's, and counts if it comes again."""
        with self._turn(fcntl.LOCK_EX):
            stock.remove_marked(self._first)
            result, ours, (certain, possible) = self._batch(batch)
            if possible and self.setup.wall not in REAL_WALLS:
                _, more, (again, _) = self._batch(batch, possible)
                certain += [*more, *again]
            stock.remove_marked(self._first)
        return (*result.cases[0].harm, *dict.fromkeys((*ours, *certain)))

    @contextlib.contextmanager
    def _turn(self, kind: int) -> Iterator[None]:
        # workers lock a file: a case that is played again alone has the machine, as far as it is ours, for itself
        with (self.setup.root / "turns").open("a") as file:
            fcntl.flock(file, kind)
            yield

    def _wall(self) -> Wall:
        for pause in (0.5, 2.0):
            with contextlib.suppress(ArenaError):  # a machine that is very busy may have one a moment later
                return make_wall(self.setup.wall, python=self.setup.python)
            time.sleep(pause)
        return make_wall(self.setup.wall, python=self.setup.python)

    def _task(self, id: str, wall: Wall) -> Task:
        """The task with what it leaves open found out, once. Where that fails it is played as it is, and is void."""
        if id not in self._settled:
            self._settled[id] = self.setup.tasks[id]
            with contextlib.suppress(ArenaError):
                self._settled[id] = Referee(wall).settled(self.setup.tasks[id])
        return self._settled[id]

    def _batch(
        self, batch: Batch, again: Iterable[str] = ()
    ) -> tuple[BatchResult, list[str], tuple[list[str], list[str]]]:
        """Play it on a fresh wall: the results, what was left where all is ours, and what is new in shared places
        (for certain an exploit's, possibly one's; see ``stock.left``)."""
        wall = self._wall()
        before = stock.take(self.setup.root)
        plays = [_Play(case, self._root, self.setup) for case in batch.cases]
        controls: list[ControlResult] = []
        pids: set[int] = set()
        try:
            task = self._task(batch.task, wall)
            hard, easy = tightened(task), loosened(task)
            for each in (hard, easy):
                # here and not in two threads at once: in Python 3.11 parsing in one can fail because of the other
                prepared(each)
            subject = self.setup.make(wall) if self.setup.make is not None else Arena(wall)
            for number, play in enumerate(plays):
                beside = _Beside(self, subject, easy, batch, number, play.case.name)
                play.run(subject, hard)
                controls += beside.results()
            for name, files in batch.honest:
                controls.append(self._control(subject, easy, name, files, 1.0))
            for name, files in batch.wrong:
                controls.append(self._control(subject, easy, name, files, 0.0))
            pids = descendants() - self._known
        finally:
            wall.close()
        ours = stock.survivors(self._known) + stock.groups_of(pids) + stock.left_in(self._temp.path)
        for path in self._temp.path.iterdir():  # the next batch must not be blamed for it
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        results = tuple(play.finished() for play in plays)
        return (
            BatchResult(results, tuple(controls)),
            ours,
            stock.left(before, stock.take(self.setup.root), again, {play.mark for play in plays}),
        )

    def _control(
        self, subject: Subject, task: Task, name: str, files: Files, expected: float, beside: str = ""
    ) -> ControlResult:
        tries = HONEST_TRIES if expected and task.id in self.setup.timed else 1
        for _ in range(tries):
            try:
                played = subject.grade(task, submission(task, files))
            except Exception as error:
                played = Played(None, f"{type(error).__name__}: {error}")
            if played.reward == expected:
                break
        when = "beside" if beside else "after"
        return ControlResult(name, task.id, expected, played.reward, played.void, when, beside)


class _Beside:
    """An honest grading that goes on while a case is played."""

    def __init__(
        self, bench: Bench, subject: Subject, task: Task, batch: Batch, number: int, case: str
    ) -> None:
        self._found: list[ControlResult] = []
        self._thread: threading.Thread | None = None
        if not batch.honest:
            return
        name, files = batch.honest[number % len(batch.honest)]

        def grade() -> None:
            self._found.append(bench._control(subject, task, name, files, 1.0, case))

        self._thread = threading.Thread(target=grade, daemon=True)
        self._thread.start()

    def results(self) -> list[ControlResult]:
        if self._thread is not None:
            self._thread.join()
        return self._found


class _Play:
    """One case, from its tokens to its result."""

    def __init__(self, case: Case, root: Path, setup: Setup) -> None:
        self.case = case
        self._setup = setup
        self._canary = Canary(root)
        self._listener = Listener()
        self._harm: list[str] = []
        self._played = Played(None, "it was not played")
        self._seconds = 0.0

    @property
    def mark(self) -> str:
        """What an exploit puts into the names of what it leaves, so that they can be laid at this play's door."""
        return self._canary.path.parent.name

    def run(self, subject: Subject, task: Task) -> None:
        """Play it, as often as it has episodes; the best reward counts, and it should be the last's."""
        armed = self._setup.wall in REAL_WALLS
        tokens = Tokens(str(self._canary.path), self._listener.url, armed)
        begun = time.monotonic()
        found: list[Played] = []
        for _ in range(self.case.episodes):
            try:
                if self.case.kind == "tool":
                    found.append(subject.play(task, tokens.actions(self.case.actions)))
                else:
                    files = submission(task, tokens.files(self.case.files), self.case.delete)
                    found.append(subject.grade(task, files))
            except ArenaError as error:
                found.append(Played(None, str(error)))
            except Exception as error:  # nothing that a submission does may raise: this is a find
                found.append(Played(None, f"{type(error).__name__}: {error}"))
                self._harm.append(f"an exception came out of the grading: {type(error).__name__}")
        self._seconds = time.monotonic() - begun
        self._played = max(found, key=lambda played: (played.void is not None, played.reward or 0.0))
        flags = tuple(sorted({flag for played in found for flag in played.flags}))
        self._played = replace(self._played, flags=flags)
        self._look_through([text for played in found for text in played.seen], task)

    def _look_through(self, seen: list[str], task: Task) -> None:
        if self._canary.seen_in(*seen):
            self._harm.append("the canary's secret was shown")
        known = "\n".join([task.prompt, *(t.code + t.stdin + t.stdout for t in task.visible)])
        hidden = [t.code.strip() for t in task.hidden]
        for secret in (*self._setup.secrets.get(task.id, ()), *(t for t in hidden if len(t) >= MIN_SECRET)):
            if secret not in known and any(secret in text for text in seen):
                self._harm.append("a hidden test was shown")
                break

    def finished(self) -> CaseResult:
        """Its result, when everything that it started is dead."""
        self._listener.close()
        harm = [*self._harm, *self._canary.harm(), *self._listener.harm()]
        shutil.rmtree(self._canary.path.parent, ignore_errors=True)
        case, played = self.case, self._played
        return CaseResult(
            name=case.name,
            task=case.task,
            about=case.about,
            reward=played.reward,
            void=played.void,
            harm=tuple(harm),
            flags=played.flags,
            seconds=self._seconds,
        )


def _blamed(result: BatchResult, number: int, harm: Any) -> BatchResult:
    """The result with this harm added to the case of that number."""
    cases = list(result.cases)
    whole = dict.fromkeys((*cases[number].harm, *harm))
    cases[number] = replace(cases[number], harm=tuple(whole))
    return replace(result, cases=tuple(cases))
