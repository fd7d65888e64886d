"""Is a task fit to teach? See :func:`validate`."""

from tiltyard.check.report import TaskReport, ValidationReport
from tiltyard.check.validate import validate

__all__ = ["TaskReport", "ValidationReport", "validate"]
