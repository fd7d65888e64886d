"""What a red team run came to. Data only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case ended. ``reward`` None: it is void or was skipped, and one of the two says why.

    ``harm`` is what it did to the machine, in words; ``flags`` what the referee noticed; ``seconds`` wall-clock from
    the first byte handed in to the verdict."""

    name: str
    task: str
    about: str
    reward: float | None = None
    void: str | None = None
    harm: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    seconds: float = 0.0
    skipped: str | None = None

    @property
    def outcome(self) -> str:
        """``skipped``, ``harmed``, ``void``, ``paid`` or ``held``: the worst of what is true of it."""
        if self.skipped is not None:
            return "skipped"
        if self.harm:
            return "harmed"
        if self.void is not None:
            return "void"
        return "paid" if self.reward else "held"


@dataclass(frozen=True, slots=True)
class ControlResult:
    """How a control ended: honest work (``expected`` 1) or plainly wrong work (0). ``when``: "beside" an exploit or
    "after" it. ``beside`` names the case."""

    name: str
    task: str
    expected: float
    reward: float | None
    void: str | None = None
    when: str = "after"
    beside: str = ""

    @property
    def failed(self) -> bool:
        return self.reward != self.expected


@dataclass(frozen=True, slots=True)
class Tally:
    """A class of exploits in numbers. ``slowest`` in seconds."""

    cases: int
    paid: int
    void: int
    harmed: int
    slowest: float


@dataclass(frozen=True)
class Report:
    """All of a run. ``wall`` is where the cases were played; ``weaknesses`` what that wall says of itself."""

    pool: str
    wall: str
    results: tuple[CaseResult, ...]
    controls: tuple[ControlResult, ...]
    planned: int
    seconds: float
    weaknesses: tuple[str, ...] = ()
    grader: str = ""

    @property
    def played(self) -> tuple[CaseResult, ...]:
        return tuple(result for result in self.results if result.skipped is None)

    @property
    def skipped(self) -> tuple[CaseResult, ...]:
        return tuple(result for result in self.results if result.skipped is not None)

    @property
    def failed_controls(self) -> tuple[ControlResult, ...]:
        return tuple(control for control in self.controls if control.failed)

    @property
    def classes(self) -> Mapping[str, Tally]:
        """By class, in order of their names."""
        by_class: dict[str, list[CaseResult]] = {}
        for result in self.played:
            by_class.setdefault(result.about, []).append(result)
        return {name: _tally(by_class[name]) for name in sorted(by_class)}

    @property
    def total(self) -> Tally:
        return _tally(list(self.played))

    @property
    def flags(self) -> Mapping[str, int]:
        """How many cases raised each flag, the most frequent first."""
        counts = Counter(flag for result in self.played for flag in result.flags)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @property
    def ok(self) -> bool:
        """Whether nothing got through, nothing was void, nothing was harmed, and every control came out as it must."""
        total = self.total
        return not (total.paid or total.void or total.harmed or self.failed_controls) and bool(self.played)

    def as_json(self) -> dict[str, Any]:
        """The shape that ``tiltyard redteam --json`` prints. Skipped cases are no part of it."""
        total = self.total
        return {
            "summary": {
                "cases": total.cases,
                "paid": total.paid,
                "void": total.void,
                "harmed": total.harmed,
                "honest_failed": len(self.failed_controls),
            },
            "cases": {
                result.name: {
                    "reward": result.reward,
                    "harm": list(result.harm),
                    "flags": list(result.flags),
                    "seconds": round(result.seconds, 3),
                }
                for result in self.played
            },
        }


def _tally(results: list[CaseResult]) -> Tally:
    return Tally(
        cases=len(results),
        paid=sum(bool(result.reward) for result in results),
        void=sum(result.void is not None for result in results),
        harmed=sum(bool(result.harm) for result in results),
        slowest=max((result.seconds for result in results), default=0.0),
    )
