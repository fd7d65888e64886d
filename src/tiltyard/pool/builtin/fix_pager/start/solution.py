"""Pages of a list, as the web shop shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Pager:
    """Cuts items into pages of ``per_page`` items. Pages are counted from 1.

    There is always at least one page, if only an empty one. Wherever a page number is taken, a number below 1
    means page 1, and a number above the last page means the last page.
    """

    def __init__(self, items: Iterable[Any], per_page: int = 10) -> None:
        """ValueError if ``per_page`` is below 1."""
        if per_page < 1:
            raise ValueError("per_page must be at least 1")
        self.items = list(items)
        self.per_page = per_page

    @property
    def pages(self) -> int:
        """How many pages there are: as many as are needed to hold all items, and at least 1."""
        return len(self.items) // self.per_page + 1

    def clamp(self, number: int) -> int:
        """The page number that is meant by ``number``."""
        return min(max(number, 1), self.pages)

    def page(self, number: int) -> list[Any]:
        """The items of a page."""
        first = (self.clamp(number) - 1) * self.per_page
        return self.items[first : first + self.per_page]

    def label(self, number: int) -> str:
        """Which items a page shows, counted from 1, e.g. ``"11-20 of 25"``.

        The second number is that of the last item on the page: ``"21-25 of 25"``. Without items: ``"0 of 0"``.
        """
        if not self.items:
            return "0 of 0"
        first = (self.clamp(number) - 1) * self.per_page
        last = first + self.per_page
        return f"{first + 1}-{last} of {len(self.items)}"

    def has_next(self, number: int) -> bool:
        """Whether there is a page after this one."""
        return self.clamp(number) < self.pages

    def links(self, number: int, around: int = 1) -> list[int | None]:
        """The page numbers to offer: the first, the last, and the current one with ``around`` on each side.

        In ascending order, with one None wherever numbers were left out.
        """
        here = self.clamp(number)
        wanted = {1, self.pages, *range(here - around, here + around + 1)}
        shown: list[int | None] = []
        before = 0
        for n in sorted(n for n in wanted if 1 <= n <= self.pages):
            if n != before + 1:
                shown.append(None)
            shown.append(n)
            before = n
        return shown
