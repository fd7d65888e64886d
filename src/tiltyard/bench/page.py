"""Putting a run's figures into a page, between two marks. Nothing else of the page is touched."""

from __future__ import annotations

from pathlib import Path

from tiltyard.bench.report import BenchReport
from tiltyard.errors import UsageError


def marks(report: BenchReport) -> tuple[str, str]:
    """Between which marks the figures of this report belong: walls and samples have a place each."""
    what = "figures" if report.samples is None else "samples"
    return f"<!-- {what}: begin -->", f"<!-- {what}: end -->"


def write_page(path: str | Path, report: BenchReport) -> None:
    """Replace what stands between the marks. UsageError if the page can't be read, or has not both of them."""
    page, (begin, end) = Path(path), marks(report)
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{page} can't be read: {error}") from None
    head, found, rest = text.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        raise UsageError(
            f"{page} has no place for figures; expected a line {begin!r} and, below it, one {end!r}"
        )
    try:
        page.write_text(f"{head}{begin}\n\n{report.markdown()}\n{end}{tail}", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{page} can't be written: {error.strerror}") from None
