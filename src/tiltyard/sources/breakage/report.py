"""What became of each break that was tried, and of each subject: data, and the JSON shape of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tiltyard.task import Files, Task

Fate = Literal[
    "kept", "no change", "looks injected", "not noticed", "does not load", "all fail", "hangs", "one does nothing",
    "unstable", "nothing to tell", "the same", "not validated", "void", "not needed",
]  # fmt: skip
FATES: Mapping[Fate, str] = {
    "no change": "does not compile, or is the same program",
    "looks injected": "could not be written as a person would",
    "not noticed": "no test fails",
    "does not load": "tests can't be collected, or the code can't be imported",
    "all fail": "every test fails",
    "hangs": "a test does not end",
    "one does nothing": "one of several breaks is noticed by no test",
    "unstable": "tests fail at one time, in one order or under one hash seed, and not at another",
    "nothing to tell": "no call shows the difference, so that no report can be written",
    "the same": "behaves as another one does; the better hidden one is kept",
    "not validated": "the referee does not give the original 1 and the broken code 0",
    "void": "the arena failed",
    "not needed": "works, but as many as were wanted are better hidden",
    "kept": "is a task now",
}
"""In the order in which a break can fall out."""


@dataclass(frozen=True)
class Broken:
    """A break that works: all that makes a task of a subject. ``changed`` are the files with the fault in them, ``failing``
    and ``passing`` the tests that reach it; ``likeness`` is the same for those that behave the same and lie in the same
    function; ``distance`` is how many functions lie between a failing test and the change, ``lines`` how many it has."""

    subject: str
    mark: str
    changed: Files
    failing: tuple[str, ...]
    passing: tuple[str, ...]
    prompt: str
    likeness: str
    kinds: tuple[str, ...]
    distance: int
    lines: int

    @property
    def hiddenness(self) -> float:
        return hiddenness(len(self.failing), self.distance, self.lines, self.kinds)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """As a task's metadata has them."""
        numbers = (("failing", len(self.failing)), ("distance", self.distance), ("changed_lines", self.lines))
        return (("breaks", " ".join(self.kinds)), *((name, str(number)) for name, number in numbers))


OBVIOUS = frozenset({"exception", "return", "body"})


def hiddenness(failing: int, distance: int, lines: int, kinds: Collection[str] = ()) -> float:
    """From 0 (everybody sees it) to 1: few tests notice it, it lies far below what they call, and it is small. Of some kinds
    the message or the missing result leads there at once."""
    few = 1 / (1 + math.log2(failing))
    far = 1 - 1 / (1 + distance)
    plain = bool(kinds) and {*kinds} <= OBVIOUS
    return round((0.5 * few + 0.3 * far + 0.2 / lines) * (0.6 if plain else 1.0), 3)


@dataclass(frozen=True)
class Trial:
    """One break that was tried."""

    subject: str
    fate: Fate
    kind: str
    broken: Broken | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """What a progress bar counts."""
        return "works" if self.broken is not None else "falls out"


@dataclass(frozen=True)
class Source:
    """A subject, as far as it can be broken. ``problem``: why it can't be, "" if it can."""

    name: str
    tests: int = 0
    left_out: int = 0
    """Tests that fail or waver on the working code."""
    candidates: int = 0
    problem: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        return "left out" if self.problem else "ready"


@dataclass(frozen=True)
class BreakReport:
    """``tasks`` the best hidden first; fewer than ``wanted`` where no more could be made, or it was interrupted."""

    tasks: tuple[Task, ...]
    wanted: int
    sources: tuple[Source, ...]
    fates: Counter[str] = field(default_factory=Counter)
    """By fate; every break that was tried is counted once."""
    kinds: Counter[str] = field(default_factory=Counter)
    """By kind, of those that were kept."""
    voids: Counter[str] = field(default_factory=Counter)
    """By the reason, how often the arena failed."""
    seed: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        """Plain data, the same for the same seed but for ``seconds``."""
        return {
            "tasks": [task.id for task in self.tasks],
            "wanted": self.wanted,
            "tried": sum(self.fates.values()),
            "fates": {fate: self.fates[fate] for fate in FATES if self.fates[fate]},
            "kinds": dict(sorted(self.kinds.items())),
            "voids": dict(sorted(self.voids.items())),
            "sources": [
                {"name": s.name, "tests": s.tests, "left_out": s.left_out, "candidates": s.candidates, "problem": s.problem}
                for s in self.sources
            ],
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
        }  # fmt: skip
