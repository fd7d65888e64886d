"""The referee: turns a submission's bytes into a verdict, in cells that the player never touched.

``Referee(wall).grade(task, files)`` is the whole interface. It never raises for what a submission does: a crash, hang,
flood or look-alike of a broken machine is a failed test. A failure of the arena itself is retried in fresh cells and
then makes the verdict void. Where it is in doubt which of the two it was, the reference is graded in the same slot: if
that works, it was the submission.
"""

from tiltyard.referee.grade import Referee
from tiltyard.referee.result import Examined

__all__ = ["Examined", "Referee"]
