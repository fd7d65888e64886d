"""What is worked out of a task once, and not at every grading."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from tiltyard.task import Task

_T = TypeVar("_T")


def once_a_task(most: int) -> Callable[[Callable[[Task], _T]], Callable[[Task], _T]]:
    """Remembers what was worked out for the latest ``most`` tasks, by their digests: to hash a whole task costs
    milliseconds. Two threads that ask for the same at the same time may both do the work."""

    def decorate(work: Callable[[Task], _T]) -> Callable[[Task], _T]:
        known: OrderedDict[str, _T] = OrderedDict()
        lock = threading.Lock()

        @functools.wraps(work)
        def remembered(task: Task) -> _T:
            with lock:
                if task.digest in known:
                    known.move_to_end(task.digest)
                    return known[task.digest]
            made = work(task)
            with lock:
                known[task.digest] = made
                while len(known) > most:
                    known.popitem(last=False)
            return made

        return remembered

    return decorate
