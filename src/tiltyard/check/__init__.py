"""Is a task fit to teach? See :func:`validate`, and :func:`settled` for what suites leave open."""

from tiltyard.check.examine import settled, validate
from tiltyard.check.report import TaskReport, ValidationReport

__all__ = ["TaskReport", "ValidationReport", "settled", "validate"]
