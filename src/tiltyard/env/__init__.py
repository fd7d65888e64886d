"""The environment: ``CodeEnv`` and its spaces. Importing this registers ``tiltyard/Code-v0`` with Gymnasium.

The names are loaded when they are used: registering needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tiltyard.env.registration import register

if TYPE_CHECKING:
    from tiltyard.env.code_env import CodeEnv
    from tiltyard.env.episode import Episode, Step
    from tiltyard.env.snapshot import Snapshot
    from tiltyard.env.spaces import ToolCallSpace, UnicodeText

_WHERE = {
    "CodeEnv": "code_env",
    "Episode": "episode",
    "Snapshot": "snapshot",
    "Step": "episode",
    "ToolCallSpace": "spaces",
    "UnicodeText": "spaces",
}

register()

__all__ = ["CodeEnv", "Episode", "Snapshot", "Step", "ToolCallSpace", "UnicodeText", "register"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tiltyard.env' has no attribute {name!r}")
    return getattr(import_module(f"tiltyard.env.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
