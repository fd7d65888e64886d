"""What worker processes do: make subjects ready, find changes, try breaks, grade what was made. One class for each.

Each holds what is costly (walls), and what it gives back depends on its job alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError
from tiltyard.referee import Referee
from tiltyard.sources.breakage.draw import Break, Change, changes_of
from tiltyard.sources.breakage.making import task_of
from tiltyard.sources.breakage.ready import Ready, make_ready
from tiltyard.sources.breakage.report import Broken, Source, Trial
from tiltyard.sources.breakage.subject import Subject
from tiltyard.sources.breakage.trial import Bench
from tiltyard.task import Task


class Walls:
    """The walls of a worker, one for each hash seed, opened when first needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: dict[int, Wall] = {}

    def __call__(self, hash_seed: int) -> Wall:
        if hash_seed not in self.made:
            self.made[hash_seed] = make_wall(self.name, hash_seed=hash_seed)
        return self.made[hash_seed]

    def close(self) -> None:
        for wall in self.made.values():
            wall.close()


class Preparer:
    """Makes subjects ready."""

    def __init__(self, wall: str) -> None:
        self.walls = Walls(wall)

    def close(self) -> None:
        self.walls.close()

    def __call__(self, subject: Subject) -> tuple[Ready, Source]:
        begun = time.monotonic()
        try:
            ready = make_ready(self.walls, subject)
        except ArenaError as error:
            ready = Ready(subject, subject.task, problem=str(error))
        tests = len(ready.task.hidden) if not ready.problem else 0
        spent = time.monotonic() - begun
        return ready, Source(subject.name, tests, ready.left_out, problem=ready.problem, seconds=spent)


class Finder:
    """Finds the changes of files."""

    def __init__(self, ready: Sequence[Ready], kinds: Sequence[str]) -> None:
        self.ready, self.kinds = ready, kinds

    def close(self) -> None:
        pass

    def __call__(self, job: tuple[int, str]) -> list[Change]:
        number, path = job
        ready = self.ready[number]
        return changes_of(path, ready.task.start[path], self.kinds, ready.reach[path])


class Trier:
    """Tries breaks."""

    def __init__(self, wall: str, ready: Sequence[Ready], seed: int) -> None:
        self.walls = Walls(wall)
        self.bench = Bench(self.walls, ready, seed)

    def close(self) -> None:
        self.walls.close()

    def __call__(self, job: tuple[int, Break]) -> Trial:
        return self.bench.try_break(*job)


class Validator:
    """Grades what was made: the original code is worth 1, the broken code 0."""

    def __init__(self, wall: str, ready: Sequence[Ready]) -> None:
        self.ready = ready
        self.walls = Walls(wall)

    def close(self) -> None:
        self.walls.close()

    def __call__(self, job: tuple[int, Broken]) -> tuple[Broken, Task] | None:
        number, broken = job
        referee = Referee(self.walls(0))
        for _ in range(2):
            task = task_of(self.ready[number], broken)
            start = referee.grade(task, task.start)
            failed = tuple(o.id for o in start.outcomes if not o.passed)
            if start.void is not None or start.reward != 0.0:
                return None
            if task.grading == "pytest" and {*failed} != {*task.fail_to_pass}:
                # a test that no line led to: it fails too, or does not when the others run beside it
                kept = tuple(i for i in broken.passing if i not in failed)
                broken = replace(broken, failing=failed, passing=kept)
                continue
            reference = referee.grade(task, task.reference.over(task.start))
            return (broken, task) if reference.reward == 1.0 else None
        return None
