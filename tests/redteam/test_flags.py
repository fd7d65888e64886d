"""What was noticed is kept: a verdict's flags are in the record of an episode, and are counted for a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.redteam.test_redteam_own import CALLS

from tiltyard.players.builtin import ReplayPlayer
from tiltyard.records import Store
from tiltyard.redteam import redteam
from tiltyard.rollout import run

PROBE = """
def count(text): raise SystemExit(0)
class Bag: pass
"""


def test_flags_of_a_verdict_are_in_the_record_of_its_episode(tmp_path: Path) -> None:
    actions: list[Any] = [
        {"tool": "write_file", "path": "solution.py", "content": PROBE},
        {"tool": "submit"},
    ]
    store = str(tmp_path / "episodes.sqlite")
    summary = run([CALLS], ReplayPlayer(actions), store=store, workers=0)
    with Store(store, readonly=True) as opened:
        record = opened.episode(summary.results[0].id)
    assert record.flags == ("steering_exception",)
    assert record.verdict is not None and record.verdict["flags"] == ["steering_exception"]
    assert record.reward == 0.0


def test_flags_are_counted_for_a_run() -> None:
    report = redteam([CALLS], cases=["system_exit_in_a_call@*", "argument_is_emptied@*"])
    assert report.flags == {"steering_exception": 1}
    flags = {result.name: result.flags for result in report.results}
    assert flags["system_exit_in_a_call@words"] == ("steering_exception",)
    assert report.as_json()["cases"]["system_exit_in_a_call@words"]["flags"] == ["steering_exception"]
