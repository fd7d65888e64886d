"""Many episodes at once, what they came to, and playing one of them again."""

from tiltyard.rollout.plan import Slot, plan
from tiltyard.rollout.play import record_of
from tiltyard.rollout.replay import ReplayResult, replay
from tiltyard.rollout.run import run
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
