"""One way of cheating, as data, and what is put in the place of its tokens before it is played.

A case never runs here. ``kind`` says how it is played: ``function`` hands its files in, ``repo`` lays them over a
repository, ``tool`` plays its actions. The tokens are those of the corpus format (docs/redteam.md):

``@@ARENA_CANARY@@`` the path of a file outside the workspace that holds a secret; ``@@ARENA_ARMED@@`` becomes ``1``
only behind real walls and stays as it is elsewhere; ``@@ARENA_CANARY_URL@@`` a listener that must hear nothing;
``@@REPEAT:x:N@@`` N times x.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiltyard.task import Files

KINDS = ("function", "repo", "tool")
TOOLS = frozenset({"bash", "view_file", "write_file", "run_tests", "submit"})
"""The tools of the format. What a case calls beyond these is a part of its attack."""
CANARY, ARMED, URL = "@@ARENA_CANARY@@", "@@ARENA_ARMED@@", "@@ARENA_CANARY_URL@@"
MAX_REPEATED = 64 << 20
"""Characters that one ``@@REPEAT@@`` may become; more is cut, for the corpus too has a cap."""
_REPEAT = re.compile(r"@@REPEAT:(.{1,64}?):([0-9]{1,9})@@", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """One exploit, or one control. ``task`` is the id of the task that it is for.

    ``files`` are laid over the start files; ``delete`` names those that the solver removed; ``actions`` are a tool
    case's. ``episodes`` 2: it is played twice in a row, and the second time is the attack. ``min_python`` is the
    version of the interpreter that it needs, ``(3, 12)``. ``fixture`` names the script of its task that makes the
    workspace's git history. ``once``: what it does has nothing to do with the task (it hangs, it floods), so a few
    tasks of a pool are enough.
    """

    name: str
    kind: str
    task: str
    about: str
    """The class that it belongs to: ``comparison``, ``introspection``, …"""
    mechanism: str = ""
    source: str = ""
    files: Files = field(default_factory=Files)
    actions: tuple[Mapping[str, Any], ...] = ()
    delete: tuple[str, ...] = ()
    episodes: int = 1
    armed: bool = False
    min_python: tuple[int, ...] = ()
    fixture: str = ""
    once: bool = False

    @property
    def tools(self) -> frozenset[str]:
        """The tools that it needs: those that it uses before it submits. What comes after is refused whatever it is."""
        names: list[str] = []
        for action in self.actions:
            names.append(str(action.get("tool", "")))
            if names[-1] == "submit":
                break
        return frozenset(names) & TOOLS


@dataclass(frozen=True, slots=True)
class Tokens:
    """What stands in the place of the tokens for one play of a case."""

    canary: str
    url: str
    armed: bool

    def files(self, files: Mapping[str, bytes]) -> Files:
        """The files with their tokens replaced; bytes that are no text are looked through as well."""
        return Files({path: self._bytes(data) for path, data in files.items()})

    def actions(self, actions: tuple[Mapping[str, Any], ...]) -> list[Any]:
        """The actions with their tokens replaced, at any depth."""
        return [self._value(action) for action in actions]

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        pairs = ((URL, self.url), (CANARY, self.canary))
        return (*pairs, (ARMED, "1")) if self.armed else pairs

    def _bytes(self, data: bytes) -> bytes:
        if b"@@" not in data:
            return data
        for token, value in self._pairs():
            data = data.replace(token.encode(), value.encode())
        try:
            return _repeated(data.decode()).encode()
        except UnicodeDecodeError:
            return data

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            for token, instead in self._pairs():
                value = value.replace(token, instead)
            return _repeated(value)
        if isinstance(value, Mapping):
            return {self._value(key): self._value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(item) for item in value]
        return value


def _repeated(text: str) -> str:
    def times(found: re.Match[str]) -> str:
        what, count = found[1], int(found[2])
        return what * min(count, MAX_REPEATED // len(what))

    return _REPEAT.sub(times, text)
