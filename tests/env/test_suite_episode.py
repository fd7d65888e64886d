"""An episode on a task whose tests are suites for pytest."""

from __future__ import annotations

from tests.referee.suites import SOLVED, tally_task

from tiltyard import CodeEnv
from tiltyard.cells.protocol import Wall


def test_an_episode(wall: Wall) -> None:
    env = CodeEnv([tally_task(protected=frozenset({"tests/test_mean.py"}))], wall=wall)
    try:
        first, _ = env.reset(seed=0)
        assert "pytest tests/test_mean.py" in first and "tests/test_mean.py (" in first
        assert "test_median" not in first and "solution.py" not in first
        seen, *_ = env.step({"tool": "run_tests"})
        assert seen.endswith("2 of 2 visible tests passed")
        refused, *_ = env.step({"tool": "write_file", "path": "tests/test_mean.py", "content": ""})
        assert "protected" in refused
        env.step({"tool": "write_file", "path": "tally/core.py", "content": SOLVED})
        _, reward, terminated, _, info = env.step({"tool": "submit"})
        assert (reward, terminated) == (1.0, True) and info["verdict"]["graded"] == "pytest-remote"
        assert "test_median" not in seen
    finally:
        env.close()
