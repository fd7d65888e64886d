"""A report's three forms."""

from __future__ import annotations

import io
import json

from rich.console import Console

from tiltyard.bench.machine import describe, only
from tiltyard.bench.report import BenchReport
from tiltyard.bench.spans import Profile, Row
from tiltyard.bench.stats import Timing
from tiltyard.bench.targets import Ratio
from tiltyard.workers import usable_cores


def report(**changes) -> BenchReport:
    walls = {
        "namespace": {"episode": Timing.of([0.0101, 0.0102]), "steady_workers_2": Timing.of([0.005])},
        "process": {"episode": Timing.of([0.2])},
    }
    rows = (
        Row(("episode",), 1.0, 10.0, 1.0),
        Row(("episode", "submit"), 1.0, 6.0, 6.0),
        Row(("episode", "view | file"), 2.0, 3.0, 3.0),
    )
    fields = {
        "machine": {**describe(), "busy": False},
        "settings": {"quick": True},
        "walls": walls,
        "floors": {"true": Timing.of([0.0008])},
        "instead": {"fresh_python": Timing.of([0.02])},
        "ratios": (
            Ratio("good", 2.0, ">= 1", True),
            Ratio("bad", 0.5, ">= 1", False),
            Ratio("open", None, ">= 1", None, "not there"),
        ),
        "absent": {"container": "no engine"},
        "profiles": (Profile("namespace", 5, 1.5, rows),),
    }
    return BenchReport(**{**fields, **changes})


def printed(what: BenchReport, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(what.table())
    return out.getvalue()


def test_json_has_the_published_shape():
    found = json.loads(json.dumps(report().as_json(), allow_nan=False))
    assert {"machine", "walls", "floors", "ratios"} <= found.keys()
    measure = found["walls"]["namespace"]["episode"]
    assert measure.keys() == {"median_ms", "p99_ms", "per_second", "n"}
    assert measure["median_ms"] == 10.15
    assert found["ratios"]["bad"] == {"value": 0.5, "target": ">= 1", "met": False}
    assert found["ratios"]["open"]["why"] == "not there"
    assert found["absent"] == {"container": "no engine"}
    assert found["profile"]["namespace"]["spans"][1]["path"] == ["episode", "submit"]


def test_what_is_missed_is_what_was_measured():
    assert report().missed == ("bad",)


def test_table_and_page_say_the_same():
    table, page = printed(report()), report().markdown()
    for words in ("10.2 / 10.2", "container: no engine", "spawn and wait for true", "not there", "60 %"):
        assert words in table
        assert words in page


def test_an_absent_measure_is_a_dash():
    line = next(line for line in report().markdown().splitlines() if line.startswith("| steady_workers_2"))
    assert line.split("|")[2:4] == [" 200 ", " - "]


def test_spans_follow_those_they_are_in():
    lines = [line for line in report().markdown().splitlines() if line.startswith("| . ")]
    assert [line.split("|")[1].strip() for line in lines] == [". submit", ". view \\"]


def test_a_busy_machine_is_said():
    assert "busy" not in printed(report())
    busy = report(machine={**describe(), "busy": True, "load_at_start": 9.5})
    assert "load 9.5" in printed(busy)


def test_the_machine_names_no_host_and_no_user():
    import getpass
    import platform

    words = json.dumps(describe())
    assert platform.node() not in words.replace(platform.release(), "") or len(platform.node()) < 4
    assert getpass.getuser() == "root" or getpass.getuser() not in words


def test_lending_processors():
    import pytest

    from tiltyard.errors import UsageError

    before = usable_cores()
    with only(None):
        assert usable_cores() == before
    with pytest.raises(UsageError, match="processors"), only(before + 1):
        pass
    try:
        with only(1):
            assert usable_cores() == 1
    except UsageError:
        pytest.skip("this system can't lend a process some of its processors")
    assert usable_cores() == before
