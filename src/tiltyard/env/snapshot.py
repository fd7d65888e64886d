"""An episode at one point, as plain data, and how its cell is brought there again.

Between two steps no process of the player is alive, so a cell is what lies in it. A snapshot holds that, packed by the
cell's own keeper (see ``cells.protocol.Copying``), and the steps. A copy of the episode opens a cell from the packed one
when it needs a cell: what was random stays what it was, a run of the tests that took a minute is not run again, and
code finds what it left, down to FIFOs, links, modes and the order of a folder.

Where there is no packed cell (none was open yet, the wall can't, it would be larger than ``walls.MAX_PACKED``, or it has
what can't be copied), and where a cell was lost, the recorded actions are played in a fresh one, after those that are in
the packed cell if there is one, and every observation is compared. That costs what the steps did cost. Code that does
something else each time it runs, and shows it, can't be brought back like this: then the episode is void, with the
reason.

What is packed is for keepers: nothing here looks into it. Never holds a cell, a path of the machine, or anything of a
task but its id and digests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tiltyard.cells.protocol import PackedCell
from tiltyard.env.episode import Episode, Step, own_copy
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import Pool
from tiltyard.task import Task


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An episode at one point. Frozen, picklable, good for any number of restores, in any process that has the same
    tasks. It holds a kilobyte, the texts of its steps, and the packed cell: the bytes of what was written there (of a
    repository, of what was changed) and some 50 bytes for each file and folder, 64 MiB at the most. Copies of one
    snapshot in one process share these bytes."""

    task_id: str
    task_digest: str
    played_digest: str
    """The digest of the task with what the environment overrides: its limits and its reward rule."""
    seed: int | None
    """What reset was given."""
    observation: str
    """The first one."""
    steps: tuple[Step, ...]
    tokens: int
    elapsed_s: float
    """Seconds of ``Limits.episode_s`` that are used."""
    generator: Mapping[str, Any]
    """The state of the environment's generator, with which a later reset draws its task."""
    generator_seed: int
    packed: PackedCell | None = field(default=None, repr=False)
    """What lay in the cell; None: the steps tell (see the module's first lines)."""

    @classmethod
    def of(
        cls,
        episode: Episode,
        played: Task,
        elapsed_s: float,
        generator: np.random.Generator,
        seed: int,
        packed: PackedCell | None,
    ) -> Snapshot:
        """The episode as it is now; shares nothing with it that can be changed."""
        return cls(
            task_id=episode.task.id,
            task_digest=episode.task.digest,
            played_digest=played.digest,
            seed=episode.seed,
            observation=episode.observation,
            steps=tuple(map(_own_step, episode.steps)),
            tokens=episode.tokens,
            elapsed_s=elapsed_s,
            generator=own_copy(generator.bit_generator.state),
            generator_seed=seed,
            packed=packed,
        )

    def task_in(self, pool: Pool, as_played: Callable[[Task], Task]) -> Task:
        """The pool's own task of that id. UsageError if it is not the one that was played, in the way it was."""
        found = f"found a snapshot of the task {self.task_id!r}"
        if self.task_id not in pool.ids:
            raise UsageError(
                f"{found}, which is not in the pool {pool.name!r}; expected one of a task that is"
            )
        task = pool[self.task_id]
        if task.digest != self.task_digest:
            raise UsageError(
                f"{found} with the digest {self.task_digest[:12]}…, and the one in the pool {pool.name!r} has "
                f"{task.digest[:12]}…: it is another task; expected the pool that the snapshot was taken with"
            )
        if as_played(task).digest != self.played_digest:
            raise UsageError(
                f"{found}, played with other limits or another reward rule than this environment has; "
                "expected the same max_steps, limits and reward as those of the environment it was taken from"
            )
        return task

    def episode(self, task: Task) -> Episode:
        """The episode, to go on from here; shares nothing with any other that can be changed."""
        return Episode(
            task, self.seed, self.observation, steps=list(map(_own_step, self.steps)), tokens=self.tokens
        )

    def new_generator(self) -> np.random.Generator:
        """A generator that goes on as the one of the snapshot does."""
        bits = getattr(np.random, self.generator["bit_generator"])()
        bits.state = own_copy(dict(self.generator))
        return np.random.Generator(bits)


def checked(snapshot: object) -> Snapshot:
    """The snapshot. UsageError if it is something else."""
    if not isinstance(snapshot, Snapshot):
        raise UsageError(f"found a snapshot of type {type(snapshot).__name__}; expected what snapshot() gave")
    return snapshot


def checked_count(k: object) -> int:
    """How many forks. UsageError if that is no whole number above 0."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise UsageError(f"found k={k!r}; expected a whole number of forks, 1 or more")
    return int(k)


def play_again(steps: Sequence[Step], after: int, play: Callable[[str], str], why: str) -> None:
    """Bring a cell that has the first ``after`` of these steps behind it to where all of them brought the old one.
    ``play`` carries out an action and gives the observation. ArenaError if one comes out different, with ``why`` it was
    needed."""
    for number, step in enumerate(steps[after:], after + 1):
        if play(step.action) != step.observation:
            raise ArenaError(f"{why}, and step {number} of the episode came out different when played again")


def _own_step(step: Step) -> Step:
    return replace(step, info=own_copy(step.info))
