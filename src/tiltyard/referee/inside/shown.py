"""Values in words, for reports that people read: bounded, and the same in every process.

No address is shown, and sets are shown in the order of their elements' texts. A ``repr`` of the code under test is run:
only where that code is no submission.
"""

from __future__ import annotations

import re
from typing import Any

MAX_TEXT = 4000
MAX_DEPTH = 8
MAX_ITEMS = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|(?<=[( <])0x[0-9a-fA-F]{8,}")
_PLAIN = (int, float, complex, bool, type(None), type(Ellipsis), range, slice)


def shown(value: Any, names: dict[int, str] | None = None, depth: int = 0) -> str:
    """The value as an expression where it is plain data, else by its own ``repr``. ``names``: by ``id``, what some
    objects are called."""
    kind = type(value)
    if names and id(value) in names:
        return names[id(value)]
    try:
        if kind in (str, bytes):
            return _cut(repr(value[: 2 * MAX_TEXT]))
        if kind in _PLAIN:
            return _cut(repr(value))
        if depth >= MAX_DEPTH:
            return "..."
        if kind in (list, tuple, set, frozenset):
            return _cut(_several(value, kind, names, depth))
        if kind is dict:
            pairs = list(value.items())[:MAX_ITEMS]
            inner = [f"{shown(k, names, depth + 1)}: {shown(v, names, depth + 1)}" for k, v in pairs]
            return _cut("{" + ", ".join(inner + ["..."] * (len(value) > MAX_ITEMS)) + "}")
        if isinstance(value, BaseException):
            return _cut(f"{kind.__name__}({', '.join(shown(a, names, depth + 1) for a in value.args)})")
        if isinstance(value, type) or (hasattr(value, "__qualname__") and hasattr(value, "__code__")):
            return str(value.__qualname__).rpartition(".")[2]
        text = repr(value)
        if type(text) is not str:
            return f"<{kind.__name__}>"
        text = _cut(_ADDRESS.sub("", text))
        if isinstance(value, (list, dict, set, frozenset, tuple)) and not text.startswith(
            (kind.__name__, "<")
        ):
            return f"{kind.__name__}({text})"  # of a class that shows itself as what it is built on
        return text
    except Exception as error:
        return f"<{kind.__name__} whose repr raises {type(error).__name__}>"


def _several(value: Any, kind: type, names: dict[int, str] | None, depth: int) -> str:
    items = list(value)
    texts = [shown(item, names, depth + 1) for item in items[:MAX_ITEMS]]
    if kind in (set, frozenset):
        texts = sorted(shown(item, names, depth + 1) for item in items)[:MAX_ITEMS]
    texts += ["..."] * (len(items) > MAX_ITEMS)
    inner = ", ".join(texts)
    if kind is list:
        return f"[{inner}]"
    if kind is tuple:
        return f"({inner},)" if len(texts) == 1 else f"({inner})"
    if not texts:
        return f"{kind.__name__}()"
    return f"{{{inner}}}" if kind is set else f"frozenset({{{inner}}})"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
