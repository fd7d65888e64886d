"""What the oldest interpreters that run in cells (3.9) do not have. Nothing else than that is here."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

UNION: type = getattr(types, "UnionType", types.GenericAlias)
"""Of ``int | None``."""

if sys.version_info >= (3, 10):  # noqa: UP036

    def paired(left: Iterable[Any], right: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """``zip`` of two that are of one length. ValueError if they are not."""
        return zip(left, right, strict=True)

else:

    def paired(left: Iterable[Any], right: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """``zip`` of two that are of one length. ValueError if they are not."""
        end, rest = object(), iter(right)
        for one in left:
            other = next(rest, end)
            if other is end:
                raise ValueError("the second is shorter than the first")
            yield one, other
        if next(rest, end) is not end:
            raise ValueError("the second is longer than the first")
