"""What tokens cost: a table in a TOML file that its user can edit.

Each ``[[price]]`` names models by a pattern (``claude-*``) and gives USD per million tokens: ``input``, ``output``,
``cache_read``, ``cache_write`` (both default to ``input``). The longest pattern that fits counts; a table of one's
own goes before the one that is shipped. A model that no pattern fits has no known price: its cost is None, never 0.
"""

from __future__ import annotations

import fnmatch
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.records import Usage

SHIPPED = "prices.toml"
_FIELDS = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    model: str
    input: float
    output: float
    cache_read: float
    cache_write: float

    def of(self, usage: Usage) -> Usage:
        """The same, with what it cost."""
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        parts = (
            fresh * self.input,
            usage.output_tokens * self.output,
            usage.cache_read_tokens * self.cache_read,
            usage.cache_write_tokens * self.cache_write,
        )
        return replace(usage, cost_usd=math.fsum(parts) / 1e6)


def price_of(model: str, path: str | os.PathLike[str] | None = None) -> Price | None:
    """The price of a model by its name, or None. ``path`` is a table that goes before the shipped one. Raises
    UsageError for a table that can't be read or is malformed."""
    own = _read(Path(path).read_bytes, str(path)) if path is not None else []
    shipped = _read(files("tiltyard.players.model").joinpath(SHIPPED).read_bytes, SHIPPED)
    return _best(model, own) or _best(model, shipped)


def _best(model: str, prices: Iterable[Price]) -> Price | None:
    fitting = [price for price in prices if fnmatch.fnmatchcase(model, price.model)]
    return max(fitting, key=lambda price: (price.model == model, len(price.model)), default=None)


def _read(read: Any, where: str) -> list[Price]:
    try:
        table = tomllib.loads(read().decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{where} can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{where} is no TOML: {error}") from None
    rows = table.get("price")
    if not isinstance(rows, list) or set(table) != {"price"}:
        raise UsageError(f"{where}: found {', '.join(table) or 'nothing'}; expected [[price]] tables alone")
    return [_price(row, f"{where}, price {n}") for n, row in enumerate(rows, start=1)]


def _price(row: Mapping[str, Any], where: str) -> Price:
    if unknown := sorted(set(row) - {"model", *_FIELDS}):
        raise UsageError(f"{where}: found {unknown[0]!r}; expected model, {', '.join(_FIELDS)}")
    if not isinstance(row.get("model"), str) or not row["model"]:
        raise UsageError(f"{where}: found model = {row.get('model')!r}; expected a name or a pattern")
    numbers = {}
    for name in _FIELDS:
        value = row.get(name, row.get("input") if name.startswith("cache") else None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise UsageError(f"{where}: found {name} = {value!r}; expected USD per million tokens")
        numbers[name] = float(value)
    return Price(row["model"], **numbers)
