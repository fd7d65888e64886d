"""What is kept of an episode, and where it is kept.

Promises: a stored episode comes back equal, whatever characters a player wrote; its digest covers exactly what must
be the same when it is replayed; an episode is stored whole or not at all, with any number of writers at once.
Never: reads a task or a pool, runs anything, or keeps a reward that is not a finite number or None (void).
"""

from tiltyard.records.model import (
    EpisodeRecord,
    MessageRecord,
    RunRecord,
    StepRecord,
    Usage,
    run_digest,
    versions,
)
from tiltyard.records.store import Store

__all__ = [
    "EpisodeRecord",
    "MessageRecord",
    "RunRecord",
    "StepRecord",
    "Store",
    "Usage",
    "run_digest",
    "versions",
]
