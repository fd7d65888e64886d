"""Are the hidden tests any good? See :func:`adequacy`."""

from tiltyard.check.adequacy.measure import adequacy
from tiltyard.check.adequacy.model import AdequacyReport, Finding, Mutant, TaskAdequacy

__all__ = ["AdequacyReport", "Finding", "Mutant", "TaskAdequacy", "adequacy"]
