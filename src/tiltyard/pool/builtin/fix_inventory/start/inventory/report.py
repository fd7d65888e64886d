"""What the warehouse wants to see."""

from __future__ import annotations

from .store import Store


def table(store: Store) -> list[tuple[str, str, int, int]]:
    """(sku, name, stock, free) of all articles, by sku."""
    return [(i.sku, i.name, i.stock, i.free) for i in sorted(store.items.values(), key=lambda i: i.sku)]


def low(store: Store, limit: int) -> list[str]:
    """The sku of the articles with fewer than ``limit`` free pieces, fewest first, equal ones by sku."""
    found = [i for i in store.items.values() if i.free < limit]
    return [i.sku for i in sorted(found, key=lambda i: (i.free, i.sku))]


def orders(store: Store) -> dict[str, dict[str, int]]:
    """What is reserved for each order: order → sku → pieces."""
    found: dict[str, dict[str, int]] = {}
    for item in store.items.values():
        for order, pieces in item.reserved.items():
            found.setdefault(order, {})[item.sku] = pieces
    return found
