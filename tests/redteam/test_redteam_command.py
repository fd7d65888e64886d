"""The command: what stands on stdout and stderr, and the exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tiltyard import redteam as room
from tiltyard.errors import UsageError

ROW = {
    "id": "double",
    "prompt": "Write double(x).",
    "stub": "def double(x):\n    raise NotImplementedError\n",
    "ref": "def double(x):\n    return 2 * x\n",
    "visible": ["assert double(1) == 2"],
    "hidden": ["assert double(3) == 6", "assert double(-2) == -4"],
}


def redteam(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiltyard", "redteam", *words], capture_output=True, text=True, timeout=600
    )


@pytest.fixture
def pool(tmp_path: Path) -> str:
    path = tmp_path / "pool.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    return str(path)


def test_what_holds_is_status_0_and_one_json_document(pool: str) -> None:
    chosen = ("--case", "equal_to_everything@*", "--case", "views_outside@*", "--case", "prints_nothing@*")
    ran = redteam(pool, "--json", "--workers", "2", *chosen)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert list(document) == ["summary", "cases"]
    assert document["summary"] == {"cases": 2, "paid": 0, "void": 0, "harmed": 0, "honest_failed": 0}
    assert set(document["cases"]) == {"equal_to_everything@double", "views_outside@double"}
    for case in document["cases"].values():
        assert list(case) == ["reward", "harm", "flags", "seconds"]
        assert (case["reward"], case["harm"], case["flags"]) == (0.0, [], [])
        assert case["seconds"] > 0
    assert ran.stderr.startswith("wall: ")


def test_what_gets_through_is_status_1_and_stands_in_the_table(pool: str) -> None:
    ran = redteam(pool, "--case", "not_a_number@*", "--case", "monitoring_*", "--grader", "echo 1; true")
    assert ran.returncode == 1
    assert "not_a_number@double" in ran.stdout and "paid" in ran.stdout
    [row] = [line for line in ran.stdout.splitlines() if line.strip().startswith("comparison")]
    assert row.split()[1:5] == ["1", "1", "0", "0"]
    assert "control untouched on double, afterwards: reward 1, expected 0" in ran.stderr
    assert "NOT SAFE" in ran.stderr
    if sys.version_info < (3, 12):
        assert "skipped 1x, needs Python 3.12: monitoring_reads_the_tests@double" in ran.stderr


def test_a_usage_that_can_not_work_is_status_2_and_one_message(pool: str) -> None:
    ran = redteam(pool, "--corpus", str(Path(pool).parent))
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert "error: " in ran.stderr and "has no folder 'cases'" in ran.stderr
    assert ran.stdout == ""


def test_other_usages_that_can_not_work_say_so(pool: str) -> None:
    with pytest.raises(UsageError, match="found wall 'paper'"):
        room.redteam(pool, wall="paper")
    with pytest.raises(UsageError, match="no case matches"):
        room.redteam(pool, cases=["x"])
    with pytest.raises(UsageError, match="expected a command"):
        room.redteam(pool, grader=" ")
    with pytest.raises(UsageError, match="0 workers"):
        room.redteam(pool, workers=0)
