"""The clock of a fork server and all its cells, stopped at one instant."""

from __future__ import annotations

import datetime

_standing: list[object] = []


def stand(instant: str) -> None:
    """From here on wall-clock time is this instant (UTC). OSError: time-machine does not fit this interpreter."""
    try:
        import time_machine
    except ImportError as error:
        raise OSError(0, f"the clock can't be stopped in this interpreter: {error}") from None
    when = datetime.datetime.fromisoformat(instant).replace(tzinfo=datetime.UTC)
    traveller = time_machine.travel(when, tick=False)
    traveller.start()
    _standing.append(traveller)  # its module stays importable: the clock asks it
