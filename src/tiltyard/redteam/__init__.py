"""Every known way of cheating a grader, played against a pool: nothing may be paid, nothing harmed.

``redteam`` plays a corpus (our own, or a folder's) against the arena, or against a grader of somebody else's, and
returns a :class:`Report`. Above ``rollout``, below ``cli``; docs/redteam.md says how it is used.
"""

from __future__ import annotations

from tiltyard.redteam.case import Case
from tiltyard.redteam.folder import Corpus, read_corpus
from tiltyard.redteam.own import own_cases, templates
from tiltyard.redteam.report import CaseResult, ControlResult, Report
from tiltyard.redteam.run import redteam

__all__ = [
    "Case",
    "CaseResult",
    "ControlResult",
    "Corpus",
    "Report",
    "own_cases",
    "read_corpus",
    "redteam",
    "templates",
]
