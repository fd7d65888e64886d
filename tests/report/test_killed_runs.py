"""Runs that are killed in the middle, on both databases: what was finished is there, the store opens, the run goes on."""

from __future__ import annotations

import os
import random
import signal
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
import os, sys
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
    # each run is a process of its own, forked from one that has imported everything: to import costs a second
    for line in sys.stdin:
        where, attempts, resume = line.rstrip("\\n").split("\\t")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                rollout.run([TASK], "noop", attempts=int(attempts), seed=3, workers=0, wall="process", store=where,
                            progress=Told(), resume=resume or None)
                code = 0
            finally:
                os._exit(code)
        print("pid", child, flush=True)
        _, status = os.waitpid(child, 0)
        print("\\nend", os.waitstatus_to_exitcode(status), flush=True)
"""


def test_a_run_that_is_killed_ten_times_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    where, script = str(tmp_path / "s.sqlite"), tmp_path / "runner.py"
    script.write_text(RUNNER)
    dice, run, told = random.Random(11), "", set[str]()
    runner = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert runner.stdin is not None and runner.stdout is not None
    for kills in range(11):
        print(where, EPISODES, run, sep="\t", file=runner.stdin, flush=True)
        said, pid, patience = list[str](), 0, dice.choice((1, 2, 3))
        for line in runner.stdout:
            if line.startswith("pid "):
                pid = int(line.split()[1])
            elif line.startswith("end "):
                break
            elif line.strip():
                said.append(line)
            if kills < 10 and pid and len(said) >= patience:
                time.sleep(dice.random() * 0.05)  # any moment will do
                os.kill(pid, signal.SIGKILL)
                pid, patience = 0, 10**6
        # 0: on a machine that lets this process wait, the run may come to its end before it is killed
        assert int(line.split()[1]) in ((-9, 0) if kills < 10 else (0,))
        told |= {one.strip() for one in said if one.startswith("e-") and len(one.strip()) == 12}
        with Store(where, create=False) as store:
            kept = list(store.episodes())
            assert told <= {record.id for record in kept}
            assert len(kept) <= len(told) + kills + 1  # a kill can come between the keeping and the telling
            assert all(record.steps and record.void is None for record in kept)
            (head,) = store.runs()
            run = head.id
    runner.communicate(timeout=60)
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
