"""Is a task fit to teach? See :func:`validate`, and :func:`settled` for what suites leave open; :func:`grade` for what
others handed in (``check.grading``)."""

from tiltyard.check.examine import settled, validate
from tiltyard.check.grading import Graded, GradeReport, grade
from tiltyard.check.predictions import Prediction, prediction_rows, read_predictions
from tiltyard.check.report import TaskReport, ValidationReport

__all__ = [
    "GradeReport",
    "Graded",
    "Prediction",
    "TaskReport",
    "ValidationReport",
    "grade",
    "prediction_rows",
    "read_predictions",
    "settled",
    "validate",
]
