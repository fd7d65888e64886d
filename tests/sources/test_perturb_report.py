"""Solve rates on originals and on their variants: paired by lineage, with a test, shown everywhere."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.made import episode

from tiltyard import report as reporting
from tiltyard.estimates import paired_difference
from tiltyard.pool import Pool, load, to_jsonl
from tiltyard.records import RunRecord, Store
from tiltyard.report.terminal import render
from tiltyard.sources.perturb.run import with_lineage
from tiltyard.task import Task

ORIGINALS = load(
    [
        {"id": f"t{n}", "prompt": f"Write f{n}.", "stub": "", "ref": f"def f{n}():\n    return {n}\n", "hidden": [f"assert f{n}() == {n}"]}
        for n in range(6)
    ]
)  # fmt: skip


def variant(task: Task, number: int, of: Task | None = None) -> Task:
    changed = replace(task, prompt=f"{task.prompt} Told otherwise, {number}.")
    return with_lineage(changed, of or task, ("rename", "prompt"), 0, number)


VARIANTS = {task.id: [variant(task, 1), variant(task, 2)] for task in ORIGINALS}
POOL = Pool("both", "1", (*ORIGINALS, *itertools.chain(*VARIANTS.values())))


def played(
    path: Path, player: str, solved: Callable[[Task, int], float | None], tasks: list[Task], attempts: int = 4
) -> None:
    with Store(path) as store:
        head = RunRecord(
            "both", "1", POOL.digest, player, "process", 0, pool_spec="builtin", started="2026-11-30"
        )
        run = store.add_run(head)
        for n, task in enumerate(tasks):
            for attempt in range(attempts):
                record = episode(task, player, solved(task, attempt))
                store.add(replace(record, run=run, number=n * attempts + attempt, attempt=attempt))
        store.finish_run(run)


def test_pairs_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"

    def solved(task: Task, attempt: int) -> float | None:
        if task.id == "t5" or (task.id == "t0~s0v2" and attempt == 3):
            return None  # voids stand in no rate
        if "~" not in task.id:
            return 1.0
        return float(attempt % 2) if task.id.startswith(("t0", "t1")) else 1.0

    tasks = [*ORIGINALS, *VARIANTS["t0"], VARIANTS["t1"][0], VARIANTS["t2"][0], VARIANTS["t5"][0]]
    played(path, "remembers", solved, tasks)
    played(path, "other", lambda task, attempt: 1.0, [ORIGINALS[0], VARIANTS["t1"][0]])
    found = reporting.report(path, pool=POOL).perturbed
    assert found is not None and list(found.players) == ["remembers"]
    by_task = {pair.task: pair for pair in found.pairs}
    assert set(by_task) == {"t0", "t1", "t2", "t5"} and found.alone == 1  # of "other"
    assert by_task["t0"].variants == ("t0~s0v1", "t0~s0v2") and by_task["t0"].kinds == ("prompt", "rename")
    assert by_task["t0"].original == (4, 4) and by_task["t0"].perturbed == (7, 3)
    assert by_task["t5"].difference is None and found.pairs[-1].task == "t5"
    d = found.players["remembers"]
    assert d is not None and d.pairs == 3
    assert d.before.value == 1.0 and abs(d.after.value - (3 / 7 + 1 / 2 + 1) / 3) < 1e-12
    assert abs(d.value - (d.after.value - 1.0)) < 1e-12 and d.low <= d.value <= d.high
    # two differences that are not 0: of four flips two are as far from 0
    assert d.p == 0.5 and d.test == "sign flips, exact"


def test_it_is_in_the_terminal_in_json_and_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    dice = random.Random(0)
    played(path, "m", lambda task, n: float(dice.random() < (0.2 if "~" in task.id else 0.9)), list(POOL))
    found = reporting.report(path, pool=POOL)
    assert found.perturbed is not None and (d := found.perturbed.players["m"]) is not None
    assert d.pairs == 6 and d.value < -0.3 and d.high < 0 and d.p == 2 / 2**6
    said = json.loads(json.dumps(found.as_json()))["perturbed"]
    assert said["players"]["m"]["pairs"] == 6 and len(said["pairs"]) == 6
    titles = [str(getattr(thing, "title", "")) for thing in render(found)]
    assert any("told otherwise" in title.lower() for title in titles)
    pytest.importorskip("matplotlib")
    from tiltyard.report.page import page

    html = page(found)
    assert "Tasks told otherwise" in html and "sign flips" in html and "6 pairs" in html


def test_nothing_is_said_where_there_is_nothing_to_pair(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    played(path, "m", lambda task, n: 1.0, list(ORIGINALS))
    assert reporting.report(path, pool=POOL).perturbed is None
    assert reporting.report(path, pool=POOL).as_json()["perturbed"] is None


def test_lineage_over_several_steps_and_from_files(tmp_path: Path) -> None:
    first = variant(ORIGINALS[0], 1)
    second = variant(first, 7, of=first)
    pool = Pool("line", "1", (ORIGINALS[0], first, second))
    to_jsonl(pool, tmp_path / "line.jsonl")
    path = tmp_path / "s.sqlite"
    played(path, "m", lambda task, n: 1.0, [ORIGINALS[0], second])
    found = reporting.report(path, pool=str(tmp_path / "line.jsonl")).perturbed
    # what lies between was not played: a line leads to its beginning
    assert found is not None and [(p.task, p.variants) for p in found.pairs] == [("t0", (second.id,))]


def test_the_paired_test() -> None:
    same = paired_difference([(4, 2)] * 5, [(4, 2)] * 5)
    assert same is not None and same.value == 0.0 and same.p == 1.0
    assert paired_difference([(0, 0)], [(4, 1)]) is None
    few = paired_difference([(2, 2)] * 5, [(2, 0)] * 5)
    assert few is not None and few.p == 2 / 2**5 and few.value == -1.0 and few.low == -1.0 < few.high < 0
    dice = random.Random(1)
    before = [(8, sum(dice.random() < 0.7 for _ in range(8))) for _ in range(60)]
    after = [(8, sum(dice.random() < 0.3 for _ in range(8))) for _ in range(60)]
    far, again = paired_difference(before, after), paired_difference(before, after)
    assert far == again and far is not None and far.p < 0.001 and far.high < 0 and "draws" in far.test
    # where there is no difference, a p-value below 0.1 comes up about once in ten
    below = 0
    for seed in range(40):
        dice = random.Random(seed)
        sides = [[(6, sum(dice.random() < 0.5 for _ in range(6))) for _ in range(10)] for _ in range(2)]
        found = paired_difference(*sides)
        below += found is not None and found.p < 0.1
    assert 0 < below <= 10
