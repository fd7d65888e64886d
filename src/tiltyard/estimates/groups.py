"""Groups of attempts that were played: what each of them bought, and how many of them bought nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import comb

MIXED, EQUAL, ALONE, VOID = "mixed", "equal", "alone", "void"
KINDS = (MIXED, EQUAL, ALONE, VOID)


def group_kind(counted: int, lowest: float | None, highest: float | None) -> str:
    """``mixed``: the rewards differ, and every attempt that counts has an advantage. ``equal``: they do not.
    ``alone``: one attempt counts, and has nothing to be compared with. ``void``: none counts.

    ``lowest`` and ``highest`` are over the ``counted`` attempts that are not void. Compared as they are, without a
    tolerance: equal counts of passed tests give equal floats.
    """
    if counted == 0:
        return VOID
    if counted == 1:
        return ALONE
    return EQUAL if lowest == highest else MIXED


@dataclass(slots=True)
class GroupTally:
    """Counts over groups, by kind: groups, their sandboxes (episodes) and their generations (steps).

    An attempt that is void inside a mixed group bought nothing either; ``void`` counts those everywhere.
    """

    groups: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    sandboxes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    generations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def add(self, kind: str, *, counted: int, voids: int, steps: int, void_steps: int) -> None:
        """One group: ``steps`` are those of the ``counted`` attempts, ``void_steps`` those of the ``voids``."""
        self.groups[kind] += 1
        if kind != VOID:
            self.sandboxes[kind] += counted
            self.generations[kind] += steps
        self.sandboxes[VOID] += voids
        self.generations[VOID] += void_steps

    def no_gradient(self, of: Mapping[str, int]) -> float | None:
        """The share of ``groups``, ``sandboxes`` or ``generations`` that bought no gradient; None of nothing."""
        total = sum(of.values())
        return 1.0 - of[MIXED] / total if total else None


def all_equal_share(counts: Mapping[float, int], k: int) -> float | None:
    """The share of all k-subsets of the attempts whose rewards are all the same, Σ C(nᵥ, k) / C(n, k): what groups of
    ``k`` would have wasted, unbiased (the U-statistic of "all equal"; Hoeffding 1948). None with fewer than k attempts.
    """
    total = sum(counts.values())
    if total < k or k < 1:
        return None
    return sum(comb(n, k) for n in counts.values()) / comb(total, k)
