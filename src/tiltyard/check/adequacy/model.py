"""What adequacy found: data, and the JSON shape of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tiltyard.mutate import Mutation, describe

Fate = Literal["killed", "survived", "equivalent", "void"]
FATES: tuple[Fate, ...] = ("killed", "survived", "equivalent")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation of a file of the reference, and what became of it.

    ``killed``: a hidden test failed (or did not end: ``timed_out``). ``survived``: every test passed, though an input is
    known on which it differs from the reference (``witness``) or none could be looked for. ``equivalent``: no
    difference was seen in as many ``inputs`` as there were. ``void``: the arena failed."""

    path: str
    mutation: Mutation
    fate: Fate
    diff: str = ""
    """Unified diff from the reference; "" for killed ones."""
    witness: Mapping[str, str] | None = None
    """``call``, and what ``reference`` and ``mutant`` do with it."""
    inputs: int = 0
    killers: tuple[str, ...] = ()
    timed_out: bool = False

    @property
    def title(self) -> str:
        return f"{self.path}: {describe(self.mutation)} ({self.mutation.operator})"

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "line": self.mutation.line,
            "scope": self.mutation.scope,
            "operator": self.mutation.operator,
            "before": self.mutation.before,
            "after": self.mutation.text,
            "diff": self.diff,
            "witness": None if self.witness is None else dict(self.witness),
            "inputs": self.inputs,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """A hidden test checks something that the player isn't told, as far as the words show. For a person to judge.

    ``kind``: ``exception``, ``empty``, ``none``, ``tie``, ``literal`` or ``name``; ``what`` is the thing itself,
    ``evidence`` the line of the test."""

    kind: str
    what: str
    test: str
    evidence: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "what": self.what, "test": self.test, "evidence": self.evidence}


@dataclass(frozen=True, slots=True)
class TaskAdequacy:
    """One task. ``problem`` says why nothing could be measured (then there are no mutants); ``void`` that the arena
    was the reason. ``possible`` counts the mutations that there are, of which ``mutants`` were tried."""

    task: str
    digest: str
    possible: int = 0
    mutants: tuple[Mutant, ...] = ()
    findings: tuple[Finding, ...] = ()
    idle: tuple[str, ...] = ()
    """Hidden tests that no mutant failed."""
    problem: str = ""
    void: bool = False
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """What a progress bar counts: ``void``, ``unfit`` or ``measured``."""
        return "void" if self.void else "unfit" if self.problem else "measured"

    def of(self, fate: Fate) -> tuple[Mutant, ...]:
        return tuple(m for m in self.mutants if m.fate == fate)

    @property
    def score(self) -> float | None:
        """Killed among killed and survived; None if there is none of either."""
        killed, survived = len(self.of("killed")), len(self.of("survived"))
        return killed / (killed + survived) if killed + survived else None

    def as_json(self) -> dict[str, Any]:
        return {
            "score": None if self.score is None else round(self.score, 4),
            "possible": self.possible,
            "killed": len(self.of("killed")),
            "timed_out": sum(m.timed_out for m in self.mutants),
            "survived": [m.as_json() for m in self.of("survived")],
            "equivalent": [m.as_json() for m in self.of("equivalent")],
            "void": len(self.of("void")),
            "idle_tests": list(self.idle),
            "unmentioned": [f.as_json() for f in self.findings],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class AdequacyReport:
    """``tasks`` in the pool's order; fewer than ``planned`` means that it was interrupted."""

    pool: str
    wall: str
    seed: int
    weak_below: float
    tasks: tuple[TaskAdequacy, ...]
    planned: int
    seconds: float = 0.0

    @property
    def weak(self) -> tuple[TaskAdequacy, ...]:
        """Tasks whose score is too low, the weakest first."""
        low = [t for t in self.tasks if t.score is not None and t.score < self.weak_below]
        return tuple(sorted(low, key=lambda t: (t.score, t.task)))

    @property
    def score(self) -> float | None:
        """Over all tasks together."""
        killed = sum(len(t.of("killed")) for t in self.tasks)
        survived = sum(len(t.of("survived")) for t in self.tasks)
        return killed / (killed + survived) if killed + survived else None

    @property
    def ok(self) -> bool:
        """Every task was measured, and none is weak."""
        return len(self.tasks) == self.planned and not self.weak and not any(t.problem for t in self.tasks)

    def as_json(self) -> dict[str, Any]:
        count = {fate: sum(len(t.of(fate)) for t in self.tasks) for fate in FATES}
        return {
            "summary": {
                "tasks": len(self.tasks),
                "mutants": sum(len(t.mutants) for t in self.tasks),
                **count,
                "score": None if self.score is None else round(self.score, 4),
                "weak": [t.task for t in self.weak],
                "problems": sum(bool(t.problem) for t in self.tasks),
                "unmentioned": sum(len(t.findings) for t in self.tasks),
                "seed": self.seed,
            },
            "tasks": {t.task: t.as_json() for t in self.tasks},
        }
