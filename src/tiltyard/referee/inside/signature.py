"""The parameters of a function of one side, for ``inspect.signature`` and ``__code__.co_argcount`` on the other.

Names and kinds cross, and default values towards a test; annotations and the code itself never do.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any


def parameters(function: Callable[..., Any], *, values: bool) -> list[Any]:
    """``[name, kind, has a default, the default]`` of each. AttributeError: it has no signature.

    ``values`` False: the defaults themselves are kept back, for a test may keep there what it expects
    (``lambda got, want=want: …``)."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        raise AttributeError("__signature__") from None
    return [
        [
            p.name,
            int(p.kind),
            p.default is not p.empty,
            p.default if values and p.default is not p.empty else ...,
        ]
        for p in found
    ]


def attribute(name: str, described: Any, called: str) -> Any:
    """``__signature__``, ``__code__`` or ``__defaults__`` of a function that is described so. AttributeError: no."""
    try:
        made = [
            inspect.Parameter(
                str(text),
                inspect._ParameterKind(kind),
                default=default if has is True else inspect.Parameter.empty,
            )
            for text, kind, has, default in described
        ]
        signature = inspect.Signature(made)
    except (ValueError, TypeError):
        raise AttributeError(name) from None
    if name == "__signature__":
        return signature
    plain = [p for p in made if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if name == "__defaults__":
        return tuple(p.default for p in plain if p.default is not p.empty) or None
    only = [p for p in made if p.kind is p.KEYWORD_ONLY]
    rest = [p for p in made if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    flags = (
        3 | 4 * any(p.kind is p.VAR_POSITIONAL for p in rest) | 8 * any(p.kind is p.VAR_KEYWORD for p in rest)
    )
    names = tuple(p.name for p in (*plain, *only, *rest))
    return types.SimpleNamespace(
        co_name=called, co_argcount=len(plain), co_kwonlyargcount=len(only), co_varnames=names, co_flags=flags,
        co_posonlyargcount=sum(p.kind is p.POSITIONAL_ONLY for p in plain),
    )  # fmt: skip


FROM_SIGNATURE = frozenset({"__signature__", "__code__", "__defaults__"})
