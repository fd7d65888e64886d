"""Breaking working code on purpose, to make tasks of it: see :func:`breakage`.

``subject`` (what is broken), ``ready`` (its tests, and what they reach), ``draw`` (which breaks are tried), ``trial`` (one of
them), ``symptoms`` and ``prompt`` (what the player is told), ``making`` (the task), ``bugs`` (faults written by a model), ``run``.
"""

from tiltyard.sources.breakage.report import FATES, BreakReport, Source
from tiltyard.sources.breakage.run import Bugs, breakage

__all__ = ["FATES", "BreakReport", "Bugs", "Source", "breakage"]
