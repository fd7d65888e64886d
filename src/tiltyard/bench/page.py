"""Putting a run's figures into a page, between two marks. Nothing else of the page is touched."""

from __future__ import annotations

from pathlib import Path

from tiltyard.bench.report import BenchReport
from tiltyard.errors import UsageError

PLACES = ("figures", "samples")
"""Walls and samples have a place each: ``<!-- figures: begin -->`` to ``<!-- figures: end -->``."""


def check_page(path: str | Path, what: str) -> tuple[str, str]:
    """What stands before and after the place for ``what``, with the marks. UsageError if the page can't be read, or
    has not both of them: to be asked before a long run."""
    page, begin, end = Path(path), f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
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
    return head + begin, end + tail


def write_page(path: str | Path, report: BenchReport) -> None:
    """Replace what stands between the marks. UsageError as above, or if the page can't be written."""
    head, tail = check_page(path, PLACES[report.samples is not None])
    try:
        Path(path).write_text(f"{head}\n\n{report.markdown()}\n{tail}", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from None
