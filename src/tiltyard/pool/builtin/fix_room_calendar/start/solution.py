"""Bookings of one room on one day. Times are minutes since midnight; a booking holds from start up to, not including, end."""

from __future__ import annotations


class Taken(Exception):
    """The room is not free then."""


class RoomCalendar:
    """Bookings that never overlap. Two bookings may touch: one may begin when another ends."""

    def __init__(self, opens: int = 8 * 60, closes: int = 20 * 60) -> None:
        self.opens = opens
        self.closes = closes
        self._bookings: list[tuple[int, int, str]] = []

    def bookings(self) -> list[tuple[int, int, str]]:
        """All bookings as (start, end, who), by start."""
        return sorted(self._bookings)

    def book(self, start: int, end: int, who: str) -> None:
        """Add a booking.

        ValueError if it is empty (end not after start) or not within the opening hours; Taken if it overlaps
        another booking. Nothing changes then.
        """
        self._check(start, end)
        if not self.is_free(start, end):
            raise Taken(f"taken between {start} and {end}")
        self._bookings.append((start, end, who))

    def _check(self, start: int, end: int) -> None:
        if end <= start:
            raise ValueError("a booking must end after it starts")
        if start < self.opens or end > self.closes:
            raise ValueError("outside the opening hours")

    def is_free(self, start: int, end: int) -> bool:
        """Whether no booking overlaps the time from start to end."""
        for other_start, other_end, _ in self._bookings:
            if other_start <= start <= other_end or other_start <= end <= other_end:
                return False
        return True

    def cancel(self, start: int) -> str:
        """Remove the booking that begins at ``start`` and return whose it was. KeyError if there is none."""
        for booking in self._bookings:
            if booking[0] == start:
                self._bookings.remove(booking)
                return booking[2]
        raise KeyError(start)

    def move(self, start: int, new_start: int) -> None:
        """Move the booking that begins at ``start``; it keeps its length and its owner.

        It may overlap its own old time. KeyError if there is no such booking; ValueError and Taken as ``book``
        raises them: the booking stays where it was then.
        """
        end = next((e for s, e, _ in self._bookings if s == start), start)
        who = self.cancel(start)
        self.book(new_start, new_start + end - start, who)

    def gaps(self, length: int) -> list[tuple[int, int]]:
        """The free times of at least ``length`` minutes within the opening hours, as (start, end), in order."""
        found = []
        free_from = self.opens
        for start, end, _ in self.bookings():
            if start - free_from >= length:
                found.append((free_from, start))
            free_from = end
        if self.closes - free_from >= length:
            found.append((free_from, self.closes))
        return found
