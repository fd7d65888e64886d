"""What a model is asked with, and how its server is reached. Data, and the checks of it.

``ModelSettings`` can change what a model does, and is kept with a run; ``Reach`` can't, and is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from tiltyard.errors import UsageError

APIS = ("anthropic", "openai")
PROTOCOLS = ("native", "text", "code")
"""``native``: the API's own tool calls; ``text``: fenced blocks; ``code``: one block of code, which is submitted."""

MAX_STOP = 16


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """``api`` is the protocol on the wire, ``model`` the name that its server knows. None: the server's default.

    ``system`` None is the protocol's own prompt. ``effort`` is a word such as "low" or "high". ``max_tokens`` caps one
    answer, ``max_turns`` the answers of an episode and ``max_total_tokens`` what all of them take and give; at either
    cap the work is submitted as it is. ``stop`` are texts at which an answer ends. ``options`` are added to each
    request as they are. Raises UsageError.
    """

    api: str
    model: str
    protocol: str = "native"
    system: str | None = None
    temperature: float | None = None
    effort: str | None = None
    max_tokens: int = 8192
    max_turns: int = 50
    max_total_tokens: int | None = None
    stop: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", tuple(self.stop))
        _one_of("the model's API", self.api, APIS)
        _one_of("the protocol", self.protocol, PROTOCOLS)
        if not self.model or not self.model.isprintable():
            raise UsageError(f"found the model {self.model!r}; expected a name, as in {self.api}:MODEL")
        if self.temperature is not None and not (
            math.isfinite(self.temperature) and 0 <= self.temperature <= 2
        ):
            raise UsageError(f"found the temperature {self.temperature!r}; expected a number from 0 to 2")
        for name in ("max_tokens", "max_turns", "max_total_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise UsageError(f"{name}: found {value!r}; expected a whole number from 1 on")
        if len(self.stop) > MAX_STOP or not all(isinstance(s, str) and s for s in self.stop):
            raise UsageError(f"stop: found {list(self.stop)!r}; expected at most {MAX_STOP} texts")
        try:
            json.dumps(dict(self.options), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise UsageError(f"options: found what is no JSON ({error})") from None

    @property
    def name(self) -> str:
        """As in ``--player``."""
        return f"{self.api}:{self.model}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; only what is not the default."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("api", "model") or (value != f.default and value not in ((), {})):
                out[f.name] = list(value) if isinstance(value, tuple) else value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What :meth:`as_dict` wrote."""
        return cls(**{name: value for name, value in data.items() if name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class Reach:
    """``base_url`` None is the API's own. A request may take ``timeout_s``; one that fails in a way that may pass is
    tried ``retries`` times more, after about ``backoff_s``, twice that, and so on up to ``max_backoff_s``, and never
    sooner than the server asks."""

    base_url: str | None = None
    timeout_s: float = 600.0
    retries: int = 8
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0

    def __post_init__(self) -> None:
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise UsageError(f"found the base URL {self.base_url!r}; expected http://… or https://…")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise UsageError(f"found a request timeout of {self.timeout_s!r} s; expected more than 0")
        if type(self.retries) is not int or not 0 <= self.retries <= 100:
            raise UsageError(f"found {self.retries!r} retries; expected a whole number from 0 to 100")


def _one_of(what: str, found: str, known: tuple[str, ...]) -> None:
    if found not in known:
        raise UsageError(f"{what}: found {found!r}; expected one of {', '.join(known)}")
