"""Many episodes at once, what they came to, and playing one of them again."""

from tiltyard.rollout.again import ReplayResult, replay
from tiltyard.rollout.play import record_of
from tiltyard.rollout.runs import run
from tiltyard.rollout.slots import Slot, plan
from tiltyard.rollout.summary import EpisodeResult, RunSummary, Tally
from tiltyard.workers import Interrupted

__all__ = [
    "EpisodeResult",
    "Interrupted",
    "ReplayResult",
    "RunSummary",
    "Slot",
    "Tally",
    "plan",
    "record_of",
    "replay",
    "run",
]
