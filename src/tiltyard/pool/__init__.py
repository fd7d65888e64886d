"""Tasks and where they come from: formats, importers, the bundled pool.

``load`` turns what a caller names (a file, a folder, a list) into a :class:`Pool`, or raises one ``TaskError`` with
every problem of every task. Nothing of a task is executed here; ``tiltyard validate`` does that, in cells.
"""

from tiltyard.pool.collection import Pool, UnknownTaskError
from tiltyard.pool.dump import to_dict, to_folder, to_jsonl
from tiltyard.pool.loading import load, load_lenient
from tiltyard.pool.show import describe, summary

__all__ = [
    "Pool",
    "UnknownTaskError",
    "describe",
    "load",
    "load_lenient",
    "summary",
    "to_dict",
    "to_folder",
    "to_jsonl",
]
