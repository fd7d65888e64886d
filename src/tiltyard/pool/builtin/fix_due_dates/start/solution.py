"""Dates of instalments."""

from __future__ import annotations

from datetime import date

LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Whether the year has a 29 February (Gregorian calendar)."""
    return year % 4 == 0


def month_length(year: int, month: int) -> int:
    """Days of a month (1 to 12)."""
    return LENGTHS[month - 1] + (month == 2 and is_leap(year))


def add_months(day: date, months: int) -> date:
    """The same day of the month, ``months`` later (or earlier, if negative); the month's last day if it is shorter."""
    year = day.year + (day.month + months) // 12
    month = (day.month + months) % 12 or 12
    return date(year, month, min(day.day, month_length(year, month)))


def schedule(first: date, count: int, every: int = 1) -> list[date]:
    """``count`` due dates, ``every`` so many months, beginning with ``first``.

    Each has the day of ``first``, or is the last day of its month if the month is shorter.
    """
    dates = []
    due = first
    for _ in range(count):
        dates.append(due)
        due = add_months(due, every)
    return dates


def day_number(day: date) -> int:
    """Days since the beginning of the year 1, in which 1 January is day 1."""
    before = day.year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + sum(month_length(day.year, m) for m in range(1, day.month)) + day.day


def days_overdue(due: date, today: date, grace: int = 0) -> int:
    """Days since ``due`` and ``grace`` more days have gone by; 0 if they haven't yet."""
    return max(0, day_number(today) - day_number(due) - grace)


def next_due(first: date, today: date, every: int = 1) -> date:
    """The first due date of the endless schedule that is not before ``today``."""
    n = 0
    while (due := schedule(first, n + 1, every)[-1]) < today:
        n += 1
    return due
