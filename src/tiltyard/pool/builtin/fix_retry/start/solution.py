"""Calling again what failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def delays(first: float, factor: float, longest: float, count: int) -> list[float]:
    """The waits between attempts: ``first``, then each ``factor`` times the one before, none over ``longest``."""
    found = []
    wait = first
    for _ in range(count):
        found.append(min(wait, longest))
        wait *= factor
    return found


def retry(
    call: Callable[[], Any],
    *,
    attempts: int = 3,
    on: tuple[type[BaseException], ...] = (OSError,),
    sleep: Callable[[float], Any] = lambda seconds: None,
    first: float = 1.0,
    factor: float = 2.0,
    longest: float = 60.0,
    report: Callable[[int, BaseException], Any] | None = None,
) -> Any:
    """Call ``call()`` until it returns, at most ``attempts`` times in all, and return what it returned.

    An exception of a class in ``on`` (or of a subclass) leads to another attempt, if there is one left; if that was
    the last, the exception is raised. Any other exception is raised at once. Before each attempt but the first,
    ``sleep`` is called with the seconds to wait: ``first`` before the second attempt, then ``factor`` times as long
    each time, but never longer than ``longest``. ``report``, if given, is called after each attempt that failed with
    an exception of ``on``, with the number of the attempt (from 1) and the exception; before any sleep.

    ValueError if ``attempts`` is below 1; ``call`` is not called then.
    """
    if attempts < 1:
        raise ValueError("at least one attempt is needed")
    waits = delays(first, factor, longest, attempts + 1)
    for number in range(attempts + 1):
        try:
            return call()
        except BaseException as error:
            if isinstance(error, on):
                if report is not None:
                    report(number + 1, error)
                sleep(waits[number])
            else:
                break
    return None
