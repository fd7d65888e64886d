"""What a task that was made of another one says of it, in ``Metadata.extra``: kept when a pool is written and read."""

from __future__ import annotations

from tiltyard.task import Metadata

OF, OF_DIGEST, HOW = "perturbed_of", "perturbed_of_digest", "perturbation"
"""Keys: id and digest of the original; the kinds of changes, the seed and the number of the variant, for each time that
it was told otherwise ("rename+prompt seed=0 variant=1; prompt seed=2 variant=1")."""


def lineage(metadata: Metadata) -> tuple[str, str] | None:
    """Id and digest of the original of a task that was told otherwise, or None."""
    extra = dict(metadata.extra)
    return (extra[OF], extra[OF_DIGEST]) if extra.get(OF) and extra.get(OF_DIGEST) else None


def kinds_of(metadata: Metadata) -> frozenset[str]:
    """The kinds of changes that went into a task since its original."""
    steps = dict(metadata.extra).get(HOW, "").split("; ")
    return frozenset(kind for step in steps for kind in step.partition(" ")[0].split("+") if kind)
