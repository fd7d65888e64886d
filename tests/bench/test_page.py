"""A page and its figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiltyard.bench import BenchReport, write_page
from tiltyard.bench.machine import describe
from tiltyard.bench.stats import Timing
from tiltyard.errors import UsageError

GUIDE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def report(ms: float = 3.25) -> BenchReport:
    walls = {"namespace": {"episode": Timing.of([ms / 1e3])}}
    return BenchReport(describe(), {"command": "tiltyard bench --wall namespace"}, walls)


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nbelow\n")
    write_page(page, report())
    text = page.read_text()
    assert text.startswith("above\n<!-- figures: begin -->\n")
    assert text.endswith("<!-- figures: end -->\nbelow\n")
    assert "old" not in text
    assert "tiltyard bench --wall namespace" in text
    assert "3.25" in text


def test_writing_twice_leaves_the_last_figures_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- figures: begin -->\n<!-- figures: end -->\n")
    write_page(page, report(3.25))
    write_page(page, report(4.75))
    assert "3.25" not in page.read_text()
    assert page.read_text().count("| episode | 4.75 / 4.75 |") == 1


def test_a_page_without_marks_stays_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    for text in ("no marks", "<!-- figures: end --> <!-- figures: begin -->"):
        page.write_text(text)
        with pytest.raises(UsageError, match="figures: begin"):
            write_page(page, report())
        assert page.read_text() == text
    with pytest.raises(UsageError, match="can't be read"):
        write_page(tmp_path / "none.md", report())


def test_the_guide_has_a_place_for_figures(tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text(GUIDE.read_text(encoding="utf-8"), encoding="utf-8")
    write_page(page, report())
    assert "3.25" in page.read_text(encoding="utf-8")
