"""Putting a run's figures into a page, between two marks. Nothing else of the page is touched."""

from __future__ import annotations

from pathlib import Path

from tiltyard.bench.report import BenchReport
from tiltyard.errors import UsageError

BEGIN = "<!-- figures: begin -->"
END = "<!-- figures: end -->"


def write_page(path: str | Path, report: BenchReport) -> None:
    """Replace what stands between the marks. UsageError if the page can't be read, or has not both of them."""
    page = Path(path)
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{page} can't be read: {error}") from None
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UsageError(
            f"{page} has no place for figures; expected a line {BEGIN!r} and, below it, one {END!r}"
        )
    try:
        page.write_text(f"{head}{BEGIN}\n\n{report.markdown()}\n{END}{tail}", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{page} can't be written: {error.strerror}") from None
