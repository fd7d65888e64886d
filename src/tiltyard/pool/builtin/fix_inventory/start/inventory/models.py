"""One article of the warehouse."""

from __future__ import annotations


class NotEnough(Exception):
    """There are fewer free pieces than wanted."""


class Item:
    """An article: ``stock`` pieces are there, of which some are reserved for orders."""

    def __init__(self, sku: str, name: str, stock: int = 0, reserved: dict[str, int] = {}) -> None:
        self.sku = sku
        self.name = name
        self.stock = stock
        self.reserved = reserved

    @property
    def free(self) -> int:
        """Pieces that are there and not reserved."""
        return self.stock - sum(self.reserved.values())

    def reserve(self, order: str, pieces: int) -> None:
        """Reserve pieces for an order, on top of those that it has. NotEnough if there aren't as many free ones.

        ValueError if ``pieces`` is below 1.
        """
        if pieces < 1:
            raise ValueError("at least one piece")
        if pieces >= self.free:
            raise NotEnough(f"{self.free} of {self.name} are free, not {pieces}")
        self.reserved[order] = self.reserved.get(order, 0) + pieces

    def release(self, order: str) -> int:
        """Give the pieces back that are reserved for an order; how many they were (0 if none)."""
        return self.reserved.get(order, 0)

    def ship(self, order: str) -> int:
        """Take the reserved pieces of an order out of the stock; how many they were (0 if none)."""
        pieces = self.reserved.pop(order, 0)
        self.stock -= pieces
        return pieces
