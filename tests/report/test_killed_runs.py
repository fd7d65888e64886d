"""Runs that are killed in the middle, on both databases: what was finished is there, the store opens, the run goes on."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.report.made import POOL

from tiltyard import rollout
from tiltyard.records import Store
from tiltyard.report import report

EPISODES = 24
RUNNER = """
import sys
from tiltyard import rollout

TASK = {
    "id": "one", "prompt": "Return 1.", "entry": ["f"], "start": {"solution.py": "def f():\\n    return 0\\n"},
    "hidden": ["assert f() == 1"], "reference": {"solution.py": "def f():\\n    return 1\\n"},
}

class Told:
    def begin(self, total): print("begin", flush=True)
    def advance(self, result): print(result.id, flush=True)
    def end(self): pass

if __name__ == "__main__":
    where, attempts, resume = sys.argv[1], int(sys.argv[2]), sys.argv[3] or None
    rollout.run([TASK], "noop", attempts=attempts, seed=3, workers=0, wall="process", store=where, progress=Told(), resume=resume)
"""


def test_a_run_that_is_killed_ten_times_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    where, script = str(tmp_path / "s.sqlite"), tmp_path / "runner.py"
    script.write_text(RUNNER)
    dice, run, told = random.Random(11), "", set[str]()
    for kills in range(11):
        runner = subprocess.Popen(
            [sys.executable, script, where, str(EPISODES), run], stdout=subprocess.PIPE, text=True
        )
        assert runner.stdout is not None
        said = []
        for line in runner.stdout:
            said.append(line)
            if kills < 10 and len(said) > dice.choice((0, 1, 2)):
                break
        time.sleep(dice.random() * 0.05)  # any moment will do
        if kills < 10:
            runner.kill()
        said += list(runner.stdout)
        # 0: on a machine that lets this process wait, the run may come to its end before it is killed
        assert runner.wait(timeout=120) in ((-9, 0) if kills < 10 else (0,))
        runner.stdout.close()
        told |= {line.strip() for line in said if line.startswith("e-") and line.endswith("\n")}
        with Store(where, create=False) as store:
            kept = list(store.episodes())
            assert told <= {record.id for record in kept}
            assert len(kept) <= len(told) + kills + 1  # a kill can come between the keeping and the telling
            assert all(record.steps and record.void is None for record in kept)
            (head,) = store.runs()
            run = head.id
    with Store(where, readonly=True) as store:
        assert sorted(record.number for record in store.episodes(run=run)) == list(range(EPISODES))
        assert store.runs()[0].finished
    (player,) = report(where).players.values()
    assert player.counted == EPISODES and player.no_gradient.by_kind["groups"]["equal"] == 1


def test_a_real_run_with_workers_goes_into_postgresql(postgres_url: str, tmp_path: Path) -> None:
    found: list[Any] = []
    for where in (postgres_url, str(tmp_path / "s.sqlite")):
        summary = rollout.run(
            POOL[:2], "reference", attempts=2, workers=2, wall="process", store=where, pool_spec="builtin"
        )
        assert summary.total.mean_reward == 1.0
        found.append((summary, report(where, pool=POOL).as_json()))
    (first, in_postgres), (second, in_sqlite) = found
    assert first.digest == second.digest
    for out in (
        in_postgres,
        in_sqlite,
    ):  # two runs take different times, and their episodes have ids of their own
        out["players"]["reference"].pop("seconds")
        for row in out["players"]["reference"]["tasks"]:
            row.pop("best")
    assert in_postgres == in_sqlite
