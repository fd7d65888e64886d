"""Which of a task's limits an environment overrides; checked when the environment is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.task import Limits


def limit_changes(limits: Limits | Mapping[str, Any] | None, max_steps: int | None) -> dict[str, Any]:
    """The fields to replace: all of a Limits, those of a mapping, and ``steps``. UsageError for a wrong one."""
    changes: dict[str, Any] = {}
    known = [f.name for f in fields(Limits)]
    if isinstance(limits, Limits):
        changes = {name: getattr(limits, name) for name in known}
    elif limits is not None:
        if not isinstance(limits, Mapping):
            raise UsageError(
                f"found limits of type {type(limits).__name__}; expected a Limits, or a mapping of its fields"
            )
        changes = dict(limits)
    if max_steps is not None:
        changes["steps"] = max_steps
    _check_changes(changes, known)
    return changes


def _check_changes(changes: Mapping[str, Any], known: Iterable[str]) -> None:
    known = tuple(known)
    for name, value in changes.items():
        if name not in known:
            raise UsageError(f"found the limit {name!r}; expected one of {', '.join(known)}")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise UsageError(f"found {value!r} as the limit {name!r}; expected a finite number above 0")
        if isinstance(value, float) and isinstance(getattr(Limits(), name), int):
            raise UsageError(f"found {value!r} as the limit {name!r}; expected a whole number")
