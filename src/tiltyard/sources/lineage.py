"""What a task that was made of another one says of it, in ``Metadata.extra``: kept when a pool is written and read."""

from __future__ import annotations

from tiltyard.task import Metadata

OF, OF_DIGEST, HOW = "perturbed_of", "perturbed_of_digest", "perturbation"
"""Keys: id and digest of the task that it was made of; the kinds of changes, the seed and the number of the variant."""


def lineage(metadata: Metadata) -> tuple[str, str] | None:
    """Id and digest of the task that one was made of, or None."""
    extra = dict(metadata.extra)
    return (extra[OF], extra[OF_DIGEST]) if extra.get(OF) and extra.get(OF_DIGEST) else None
