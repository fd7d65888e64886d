"""Tasks and where they come from: formats, importers, the bundled pool.

``load`` turns what a caller names (a file, a folder, a list) into a :class:`Pool`, or raises one ``TaskError`` with
every problem of every task. Nothing of a task is executed here; ``tiltyard validate`` does that, in cells.
"""

from tiltyard.pool.collection import Pool, UnknownTaskError
from tiltyard.pool.loading import load, load_lenient

__all__ = ["Pool", "UnknownTaskError", "load", "load_lenient"]
