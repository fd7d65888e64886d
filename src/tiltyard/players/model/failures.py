"""What a failed request means: worth another try, and when; the end of the episode; or of the whole run.

Promises: anything that an SDK raises is told apart by what it is, never by the words of a person. Never: puts a key or
a whole page of HTML into a reason.
"""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltyard.players.model.wire import Nonsense, brief

AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 that pass."""
HOPELESS = frozenset({401, 403, 404})
"""Statuses that no other request would escape: a wrong key, a model that is not there."""
MAX_ASKED_S = 600.0
"""The longest wait that a server may ask for."""
_FULL = (
    "context_length_exceeded",
    "exceed_context_size_error",
    "prompt is too long",
    "maximum context length",
    "context window",
)
_BROKE = ("insufficient_quota", "credit balance", "billing_error", "billing_hard_limit")


class ModelFailed(Exception):
    """The model could not be asked; the episode is void, and the message is the reason."""


class Hopeless(ModelFailed):
    """No episode of this run could go better: the key is wrong, the model is not there, the account is empty."""


@dataclass(frozen=True, slots=True)
class Failure:
    """``kind`` is a word for counts ("429", "timeout", "connection", "nonsense"); ``after_s`` what the server asked
    for, if it did. ``full``: the conversation no longer fits, which is no failure of the server."""

    kind: str
    reason: str
    again: bool = False
    hopeless: bool = False
    full: bool = False
    after_s: float | None = None


def failure_of(error: BaseException, sdk: Any) -> Failure | None:
    """What this error says, or None if it is none of a server's."""
    if isinstance(error, Nonsense):
        return Failure("nonsense", str(error), again=True)
    if isinstance(error, (TimeoutError, sdk.APITimeoutError)):
        return Failure("timeout", "the server did not answer in time", again=True)
    if isinstance(error, sdk.APIStatusError):
        return _status(error)
    if isinstance(error, sdk.APIConnectionError):
        cause = error.__cause__
        detail = f" ({type(cause).__name__})" if cause is not None else ""
        return Failure("connection", f"the connection failed or was cut{detail}", again=True)
    if isinstance(error, sdk.APIError):
        return Failure("nonsense", f"the SDK can't read the answer ({type(error).__name__})", again=True)
    if isinstance(
        error, ValueError | OSError
    ):  # what an SDK does not wrap: a body cut in the middle of a character
        return Failure("nonsense", f"the answer can't be read ({type(error).__name__})", again=True)
    return None


def _status(error: Any) -> Failure:
    status = int(error.status_code)
    said = _said(error)
    lower = said.lower()
    reason = f"the server answered {status}" + (f": {said}" if said else "")
    if status in (400, 402, 413, 422, 429, 500) and any(mark in lower for mark in _BROKE):
        return Failure(str(status), reason, hopeless=True)
    if status in (400, 413, 422, 500) and any(mark in lower for mark in _FULL):
        return Failure(str(status), reason, full=True)
    headers = error.response.headers
    again = status in AGAIN or status >= 500
    if (word := headers.get("x-should-retry")) in ("true", "false"):
        again = word == "true"
    return Failure(
        str(status),
        reason,
        again=again,
        hopeless=not again and status in HOPELESS,
        after_s=asked_s(headers) if again else None,
    )


def _said(error: Any) -> str:
    """The server's own words, in one short line, with its code for the error."""
    body = error.body
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        parts = [inner.get("code"), inner.get("type"), inner.get("message")]
        words = [part for part in parts if isinstance(part, str) and part]
        return " ".join(": ".join(words).split())[:300]
    if isinstance(inner, str) and inner:
        return brief(inner.encode("utf-8", "replace"))
    return ""


def asked_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """How long the server asks to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date."""
    text = headers.get("retry-after-ms")
    if text is not None and (ms := _number(text)) is not None:
        return min(ms / 1000, MAX_ASKED_S)
    text = headers.get("retry-after")
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return min(seconds, MAX_ASKED_S)
    try:
        at = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, at - (time.time() if now is None else now)), MAX_ASKED_S)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
