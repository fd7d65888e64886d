"""``run_bench``: every measure of every wall at hand, side by side in one run. ``run_samples``: a model's samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tiltyard.bench import fleets as many
from tiltyard.bench import instead, machine
from tiltyard.bench.floors import Floors
from tiltyard.bench.lanes import Lane, check_names, lane_names
from tiltyard.bench.report import BenchReport
from tiltyard.bench.repository import FreshPytest, RepositoryLane
from tiltyard.bench.rounds import Job, side_by_side
from tiltyard.bench.samples import grade_samples
from tiltyard.bench.spans import Profile, profile
from tiltyard.bench.stats import Timing
from tiltyard.bench.targets import ratios
from tiltyard.errors import ArenaError
from tiltyard.workers import Progress

REPEATS = 200
REPOSITORY = " repository"
"""After a wall's name: the job that measures it with a repository."""
PROFILED = 100
FLEET_TURNS = 5


@dataclass(frozen=True, slots=True)
class Tick:
    """What a progress bar is told of a turn."""

    outcome: str = "measured"


@dataclass(frozen=True, slots=True)
class _Size:
    """How much is measured. ``budget_s``: of one wall's one kind of measure."""

    repeats: int
    budget_s: float
    episodes: int
    fleet_turns: int
    fleet_budget_s: float
    profiled: int


def run_bench(
    walls: Sequence[str] | None = None,
    *,
    repeats: int = REPEATS,
    quick: bool = False,
    profiled: bool = False,
    fleets: bool = True,
    cores: int | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> BenchReport:
    """Measure the walls (``lane_names``), or all that can be had here.

    ``repeats``: turns of each measure; slow walls get fewer, spread as far. ``quick``: a few turns of everything, for
    a look and not for publishing. ``profiled``: also say where an episode's time goes. ``cores``: use only so many
    processors. ``fleets=False`` leaves out the many episodes at once. ``command``: how the run was asked for, to be kept. Raises UsageError for a name that is no wall's, and
    ArenaError, with the reason, if a wall that was named can't be had or none can.
    """
    names = list(dict.fromkeys(walls)) if walls else list(lane_names())
    check_names(names)
    size = _Size(repeats, 30.0, many.EPISODES, FLEET_TURNS, 60.0, PROFILED)
    if quick:
        size = _Size(min(repeats, 5), 2.0, 8, 1, 2.0, 5)
    with machine.only(cores):
        report = BenchReport(
            machine.describe(),
            {"repeats": size.repeats, "quick": quick, "episodes": size.episodes, "command": command},
        )
        return _Run(report, names, bool(walls), size, progress).result(profiled, fleets)


def run_samples(
    samples: str | Path,
    problems: str | Path | None = None,
    *,
    workers: int = 2,
    rows: str = "auto",
    wall: str = "auto",
    published: bool = True,
    each: int | None = None,
    cores: int | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> BenchReport:
    """``grade_samples`` as a report with its machine; the arguments are those of the two functions above."""
    with machine.only(cores):
        report = BenchReport(machine.describe(), {"command": command})
        bar = _Counting(progress)
        try:
            found = grade_samples(
                samples,
                problems,
                workers=workers,
                rows=rows,
                wall=wall,
                published=published,
                each=each,
                begin=bar.begin,
                tick=bar.tick,
            )
        finally:
            bar.end()
        return replace(report, samples=found)


class _Counting:
    """A progress bar that is told of many at once, or none."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress

    def begin(self, total: int) -> None:
        if self.progress is not None:
            self.progress.begin(total)

    def tick(self, count: int) -> None:
        for _ in range(count if self.progress is not None else 0):
            assert self.progress is not None
            self.progress.advance(Tick("judged"))

    def end(self) -> None:
        if self.progress is not None:
            self.progress.end()


class _Run:
    """One run, phase after phase: single measures, then fleets, then the profile."""

    def __init__(
        self, report: BenchReport, names: list[str], named: bool, size: _Size, progress: Progress | None
    ) -> None:
        self.report, self.names, self.named, self.size, self.progress = report, names, named, size, progress
        self.absent: dict[str, str] = {}
        self.walls: dict[str, dict[str, Timing]] = {}

    def result(self, profiled: bool, fleets: bool) -> BenchReport:
        floors, others = self._one_at_a_time()
        if fleets:
            self._fleets()
        report = replace(
            self.report,
            walls=self.walls,
            floors=floors,
            instead=others,
            absent=self.absent,
            ratios=ratios(
                self.walls,
                floors,
                cores=self.report.machine["cores"],
                episodes=self.size.episodes,
                instead=others,
            ),
        )
        profiles = tuple(self._profiles()) if profiled else ()
        return replace(report, profiles=profiles)

    # -- phases ------------------------------------------------------------------------------------------------

    def _one_at_a_time(self) -> tuple[dict[str, Timing], dict[str, Timing]]:
        size = self.size
        with contextlib.ExitStack() as stack:
            lanes = dict(self._lanes(stack))
            floors = stack.enter_context(Floors(_preloaded()))
            jobs = [Job("floors", floors.once, size.repeats, size.budget_s)]
            jobs += self._instead(stack, lanes)
            for name, lane in lanes.items():
                jobs.append(Job(name, lane.steps, size.repeats, size.budget_s))
                jobs.append(Job(name, lane.episode, size.repeats, size.budget_s))
                if lane.forks:
                    jobs.append(Job(f"{name} fork", lane.fork, size.repeats, size.budget_s))
                else:
                    self.absent[f"fork, {name}"] = "this build offers no copies of an episode"
            jobs += self._repositories(stack, lanes)
            self._side_by_side(jobs, size.repeats)
        found: dict[str, dict[str, Timing]] = {}
        for job in jobs:
            timings = {name: Timing.of(seconds) for name, seconds in job.seconds.items()}
            found.setdefault(job.group.removesuffix(" fork").removesuffix(REPOSITORY), {}).update(timings)
        self.walls = {name: found[name] for name in lanes if found.get(name)}
        return found.get("floors", {}), {n: found[n][n] for n in instead.NAMES if found.get(n)}

    def _lanes(self, stack: contextlib.ExitStack) -> Iterator[tuple[str, Lane]]:
        reasons: dict[str, str] = {}
        opened = 0
        for name in self.names:
            wall = name.partition(":")[0]
            if wall not in reasons:
                try:
                    lane = Lane(name)
                    stack.callback(lane.close)
                    lane.play()
                except ArenaError as error:
                    if self.named:
                        raise
                    reasons[wall] = str(error)
                else:
                    opened += 1
                    yield name, lane
                    continue
            self.absent[name] = reasons[wall]
        if not opened:
            raise ArenaError(f"no wall can be had here: {'; '.join(reasons.values())}")

    def _repositories(self, stack: contextlib.ExitStack, lanes: Mapping[str, Lane]) -> Iterator[Job]:
        """What cells of repositories cost in each wall; its modes are told apart by the lesson's episode."""
        size = self.size
        try:
            fresh = FreshPytest()
            stack.callback(fresh.close)
            yield Job(instead.PYTEST, fresh.measure, size.repeats, size.budget_s)
            for name, lane in lanes.items():
                if ":" not in name:
                    repository = RepositoryLane(lane.wall)
                    stack.callback(repository.close)
                    yield Job(f"{name}{REPOSITORY}", repository.measure, size.repeats, size.budget_s)
                    yield Job(f"{name}{REPOSITORY}", repository.copy, size.repeats, size.budget_s)
        except ArenaError as error:
            self.absent["repositories"] = str(error)

    def _instead(self, stack: contextlib.ExitStack, lanes: Mapping[str, Lane]) -> list[Job]:
        size = self.size
        plain = stack.enter_context(instead.plain_files())
        jobs = [Job(instead.FRESH, plain.fresh, size.repeats, size.budget_s)]
        container = next((lane for name, lane in lanes.items() if name.startswith("container")), None)
        try:
            if container is None:
                raise ArenaError("no container engine that a wall could use was found")
            containers = instead.Containers(plain, container.wall)
        except ArenaError as error:
            self.absent |= {instead.RUN: str(error), instead.EXEC: str(error)}
            return jobs
        stack.callback(containers.close)
        jobs.append(Job(instead.RUN, containers.run, size.repeats, size.budget_s))
        jobs.append(Job(instead.EXEC, containers.exec, size.repeats, size.budget_s))
        return jobs

    def _fleets(self) -> None:
        size = self.size
        jobs = []
        for name, measures in self.walls.items():
            if ":" in name:
                continue  # the modes of a wall are told apart one at a time
            episode_s = measures["episode"].median_ms / 1e3
            lengths = [size.episodes]
            if size.episodes * many.LONG * episode_s < size.fleet_budget_s:
                lengths.append(size.episodes * many.LONG)
            jobs += [
                Job(
                    name,
                    partial(many.fleet, name, workers, episodes),
                    size.fleet_turns,
                    size.fleet_budget_s,
                    least=1,
                )
                for episodes in lengths
                for workers in many.WORKERS
            ]
        self._side_by_side(jobs, size.fleet_turns, warm=False)
        for job in jobs:
            for measure, seconds in job.seconds.items():
                episodes = int(measure.split("_")[1])
                self.walls[job.group][measure] = Timing.of(seconds, each=episodes)
        for name in self.walls:
            seconds_of = {m: s for job in jobs if job.group == name for m, s in job.seconds.items()}
            for workers in many.WORKERS:
                short = seconds_of.get(many.measure_name(workers, size.episodes), [])
                long = seconds_of.get(many.measure_name(workers, size.episodes * many.LONG), [])
                if (steady := many.steady_rate(short, long, size.episodes)) is not None:
                    self.walls[name][f"steady_workers_{workers}"] = steady

    def _profiles(self) -> Iterator[Profile]:
        for name in self.walls:
            with self._noting(f"profile, {name}"):
                yield profile(name, self.size.profiled)

    # -- what phases share -------------------------------------------------------------------------------------

    def _side_by_side(self, jobs: Sequence[Job], turns: int, *, warm: bool = True) -> None:
        tick: Callable[[], None] = lambda: None  # noqa: E731
        if self.progress is not None:
            bar = self.progress
            bar.begin(turns)
            tick = lambda: bar.advance(Tick())  # noqa: E731
        try:
            self.absent |= side_by_side(jobs, warm=warm, tick=tick)
        finally:
            if self.progress is not None:
                self.progress.end()

    @contextlib.contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except ArenaError as error:
            self.absent[what] = str(error)


def _preloaded() -> tuple[str, ...]:
    """The modules of a warm interpreter: those of the namespace wall's server, if this build has one."""
    try:
        from tiltyard.cells.servers import PRELOAD
    except ImportError:
        return ("json", "re", "random", "unittest")
    return PRELOAD
