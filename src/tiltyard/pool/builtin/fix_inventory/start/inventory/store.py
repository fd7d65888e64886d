"""All articles together."""

from __future__ import annotations

from collections.abc import Mapping

from .models import Item, NotEnough


class Store:
    """Articles by their number (sku)."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}

    def add(self, sku: str, name: str, stock: int = 0) -> None:
        """Add a new article. ValueError if the number is taken or the stock is negative."""
        if sku in self.items or stock < 0:
            raise ValueError(f"can't add {sku}")
        self.items[sku] = Item(sku, name, stock)

    def deliver(self, sku: str, pieces: int) -> None:
        """More pieces of an article have come in. KeyError if it is unknown."""
        self.items[sku].stock += pieces

    def reserve(self, order: str, wanted: Mapping[str, int]) -> None:
        """Reserve pieces of several articles for an order: all of them or, if an exception is raised, none.

        KeyError for an unknown article, NotEnough and ValueError as ``Item.reserve``.
        """
        done: list[tuple[Item, int]] = []
        try:
            for sku, pieces in wanted.items():
                item = self.items[sku]
                item.reserve(order, pieces)
                done.append((item, pieces))
        except (KeyError, ValueError, NotEnough):
            for item, pieces in done:
                left = item.reserved[order] - pieces
                if left:
                    item.reserved[order] = left
                else:
                    del item.reserved[order]
            raise

    def cancel(self, order: str) -> int:
        """Give all pieces of an order back; how many they were."""
        return sum(item.release(order) for item in self.items.values())

    def ship(self, order: str) -> int:
        """Ship all pieces of an order; how many they were."""
        return sum(item.ship(order) for item in self.items.values())
