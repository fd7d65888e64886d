"""What perturbation makes and says: data only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiltyard.task import Task

KINDS = ("rename", "files", "constants", "reorder", "prompt")
"""In the order in which they are named; ``constants`` is done first, for it reads the prompt as it was."""


class CantError(Exception):
    """A kind of change does not apply to a task; the message says why, in words that can be counted."""


@dataclass(frozen=True, slots=True)
class Change:
    """A task after one kind of change. ``detail`` says what was changed, for people."""

    task: Task
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """One variant of a task. ``task`` None: none was made, ``reason`` says why. ``kinds`` went into it; ``left_out``
    are those that were asked for and did not, with the reason."""

    of: str
    variant: int
    task: Task | None
    kinds: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    reward: float | None = None

    @property
    def outcome(self) -> str:
        """``kept`` or ``dropped``, for the progress bar."""
        return "dropped" if self.task is None else "kept"


@dataclass(frozen=True, slots=True)
class PerturbReport:
    """``made`` in the pool's order, variant by variant. ``planned`` above their number: it was interrupted."""

    pool: str
    seed: int
    kinds: tuple[str, ...]
    planned: int
    made: tuple[Made, ...]
    wall: str
    seconds: float = 0.0

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Those that were kept."""
        return tuple(one.task for one in self.made if one.task is not None)

    @property
    def by_kind(self) -> Mapping[str, Mapping[str, Any]]:
        """For each kind: in how many kept variants it is, in how many not, and why not, the most frequent reason first."""
        out: dict[str, dict[str, Any]] = {}
        for kind in self.kinds:
            why = Counter(one.left_out[kind] for one in self.made if kind in one.left_out)
            applied = sum(one.task is not None and kind in one.kinds for one in self.made)
            out[kind] = {"made": applied, "left_out": sum(why.values()), "why": dict(why.most_common())}
        return out

    @property
    def dropped(self) -> Mapping[str, int]:
        """Why no variant came of it, with counts."""
        return dict(Counter(one.reason for one in self.made if one.task is None).most_common())

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard perturb --json`` prints."""
        return {
            "pool": self.pool,
            "seed": self.seed,
            "planned": self.planned,
            "kept": len(self.tasks),
            "kinds": {kind: dict(counts) for kind, counts in self.by_kind.items()},
            "dropped": dict(self.dropped),
            "tasks": [
                {
                    "of": one.of,
                    "variant": one.variant,
                    "task": None if one.task is None else one.task.id,
                    "digest": None if one.task is None else one.task.digest,
                    "kinds": list(one.kinds),
                    "left_out": dict(one.left_out),
                    "details": dict(one.details),
                    "reason": one.reason,
                }
                for one in self.made
            ],
        }
