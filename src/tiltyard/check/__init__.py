"""Is a task fit to teach? See :func:`validate`."""

from tiltyard.check.examine import validate
from tiltyard.check.report import TaskReport, ValidationReport

__all__ = ["TaskReport", "ValidationReport", "validate"]
