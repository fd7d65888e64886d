"""Mining: tasks out of a repository's own history. ``mine`` is the whole of it; see ``run``."""

from tiltyard.sources.mine.history import Bounds, Candidate, Found, find_candidates
from tiltyard.sources.mine.report import MineReport, Step
from tiltyard.sources.mine.run import mine

__all__ = ["Bounds", "Candidate", "Found", "MineReport", "Step", "find_candidates", "mine"]
