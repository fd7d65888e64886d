"""What a player is. One page; everything else in this room keeps to it.

A player is called with the newest observation and a ``random.Random`` that is seeded for the episode, and returns an
action: a dict, a tool call object or a JSON string (``tiltyard.tools.parse_action`` has the forms), or an awaitable of
one. All of its randomness comes from that generator, so that the same seed plays the same episode.

A player that waits for a server which is not its own says so with an attribute ``clock_stands = True``: the episode's
clock then stands while it is called, for how busy that server is must not decide a reward.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import Any, Protocol, runtime_checkable

from tiltyard.task import Task


class Player(Protocol):
    """Picks actions. A plain or an async function is a player."""

    def __call__(self, observation: str, rng: random.Random, /) -> Any | Awaitable[Any]: ...


@runtime_checkable
class Prepared(Protocol):
    """A player that is told of each episode before it starts; ``seed`` is the episode's, or None."""

    def begin(self, task: Task, seed: int | None) -> Any: ...
