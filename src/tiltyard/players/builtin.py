"""The players that need no model: they measure the arena and the tasks, and show that a replay is exact.

noop scores what handing in the untouched start is worth, random what thoughtless actions are, and reference, which is
shown the solution, must score 1. All are deterministic for a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.players.protocol import Player
from tiltyard.task import Task

Action = dict[str, Any]


def noop(observation: str, rng: random.Random, /) -> Action:
    """Submits at once."""
    return {"tool": "submit"}


_BODIES = ("return 0", "return None", "return ''", "return []", "return args[0]")


def random_player(observation: str, rng: random.Random, /) -> Action:
    """Views, tests, writes or submits, by chance. What it writes defines the wrong name, so it can't score by luck."""
    choice = rng.choice(("view", "tests", "write", "submit"))
    if choice == "view":
        return {"tool": "view_file", "path": "solution.py"}
    if choice == "tests":
        return {"tool": "run_tests"}
    if choice == "submit":
        return {"tool": "submit"}
    content = f"def _f(*args, **kw):\n    {rng.choice(_BODIES)}\n"
    return {"tool": "write_file", "path": "solution.py", "content": content}


class ReplayPlayer:
    """Plays these actions again, in their order, in each episode; then submits, if the episode goes on."""

    def __init__(self, actions: Iterable[Any]) -> None:
        self.actions = tuple(actions)
        self._next = 0

    def begin(self, task: Task, seed: int | None) -> None:
        self._next = 0

    def __call__(self, observation: str, rng: random.Random, /) -> Any:
        self._next += 1
        return self.actions[self._next - 1] if self._next <= len(self.actions) else {"tool": "submit"}


class ReferencePlayer:
    """Writes the task's reference files (those that differ from the start) and submits: it must score 1.

    Raises UsageError at ``begin`` if no tool could write one of them: a file that is no text.
    """

    def __init__(self) -> None:
        self._actions = ReplayPlayer(())

    def begin(self, task: Task, seed: int | None) -> None:
        self._actions = ReplayPlayer(reference_actions(task))

    def __call__(self, observation: str, rng: random.Random, /) -> Any:
        return self._actions(observation, rng)


def reference_actions(task: Task) -> list[Action]:
    """The actions by which a player hands in the task's reference."""
    actions: list[Action] = []
    for path, data in task.reference.items():
        if path in task.protected or task.start.get(path) == data:
            continue
        try:
            content = data.decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError(
                f"task {task.id!r}: the reference file {path!r} is no text; no tool could write it"
            ) from None
        actions.append({"tool": "write_file", "path": path, "content": content})
    return [*actions, {"tool": "submit"}]


MAKERS: Mapping[str, Callable[[], Player]] = {
    "noop": lambda: noop,
    "random": lambda: random_player,
    "reference": ReferencePlayer,
}


def make_player(name: str) -> Player:
    """A new player of that name: one of MAKERS, ``anthropic:MODEL`` or ``openai:MODEL``. Raises UsageError."""
    from tiltyard.players.model import ModelPlayer, is_model, model_settings, price_of

    if is_model(name):
        settings = model_settings(name)
        return ModelPlayer(settings, price=price_of(settings.model))
    if name not in MAKERS:
        models = "anthropic:MODEL, openai:MODEL"
        raise UsageError(f"found the player {name!r}; expected one of {', '.join(MAKERS)}, {models}")
    return MAKERS[name]()
