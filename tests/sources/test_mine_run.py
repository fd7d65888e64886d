"""Mining a history from end to end: real commits, real cells, and a pool that the referee agrees with."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mined_history import Mined, make_history

from tiltyard.cells import make_wall
from tiltyard.errors import UsageError
from tiltyard.pool import load
from tiltyard.referee import Referee
from tiltyard.sources.mine import MineReport, mine
from tiltyard.sources.mine.lists import ALL_FLAKY, NO_FAIL_TO_PASS, NONE_PASSES, NOTHING_COLLECTED
from tiltyard.sources.mine.report import MERGED, NOT_YET
from tiltyard.task import Task

PLAIN: dict[str, Any] = {"environment": False}
"""No packages are looked for: these tests need no network."""
GOOD = ("double", "side", "mixed", "ordered", "words", "leak", "new", "merge of branch")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILTYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Mined:
    return make_history(tmp_path_factory.mktemp("history") / "box")


@pytest.fixture(scope="module")
def result(mined: Mined, tmp_path_factory: pytest.TempPathFactory) -> tuple[MineReport, Path]:
    out = tmp_path_factory.mktemp("pools") / "box"
    return mine(mined.path, out, **PLAIN), out


@pytest.fixture(scope="module")
def tasks(mined: Mined, result: tuple[MineReport, Path]) -> dict[str, Task]:
    """The tasks of the pool, by what their commit is about."""
    names = {mined.id_of(name): name for name in mined.shas}
    return {names[task.id]: task for task in load(str(result[1]))}


def test_what_came_of_each_commit(mined: Mined, result: tuple[MineReport, Path]) -> None:
    """Every commit of the history is accounted for, once."""
    report, out = result
    fell = {step.why: step.count for step in report.steps}
    assert fell == {
        "the first commit": 1, "changes no tests": 2, "changes no source": 1, MERGED: 1,
        NO_FAIL_TO_PASS: 1, NONE_PASSES: 1, NOTHING_COLLECTED: 1, ALL_FLAKY: 1,
    }  # fmt: skip
    assert {*report.tasks} == {mined.id_of(name) for name in GOOD}
    assert report.needs_prompt == (mined.id_of("half"),) and report.why_no_prompt == {"too short": 1}
    assert sum(fell.values()) + len(report.tasks) + len(report.needs_prompt) == report.commits
    assert report.left == 0 and report.flaky == 2
    assert report.written == {str(out): 8, f"{out}-needs-prompt": 1}


def test_tasks_have_their_lists(tasks: dict[str, Task]) -> None:
    """What fails before and passes after, what passes both times; flaky tests named and left out; a test that ends
    its process fails; data and helpers bring the tests that use them."""
    assert tasks["double"].fail_to_pass == ("tests/test_double.py::test_double_2",)
    assert tasks["double"].pass_to_pass == ("tests/test_double.py::test_double_1",)
    mixed = tasks["mixed"]
    assert mixed.fail_to_pass == ("tests/test_mixed.py::test_mixed_2", "tests/test_mixed.py::test_mixed_4")
    assert mixed.pass_to_pass == ("tests/test_mixed.py::test_mixed_1",)
    assert dict(mixed.metadata.extra)["flaky"] == "tests/test_mixed.py::test_mixed_3"
    ordered = tasks["ordered"]
    assert ordered.fail_to_pass == ("tests/test_ordered.py::test_ordered_3",)
    assert dict(ordered.metadata.extra)["needs_order"] == "tests/test_ordered.py::test_ordered_3"
    assert tasks["words"].fail_to_pass == ("tests/test_words.py::test_table",)
    assert {*tasks["words"].suite} == {"tests/data/table.txt", "tests/test_words.py"}
    assert tasks["merge of branch"].fail_to_pass == ("tests/test_branch.py::test_branch_2",)


def test_tasks_say_where_they_are_from(mined: Mined, tasks: dict[str, Task]) -> None:
    task = tasks["double"]
    meta, extra = task.metadata, dict(task.metadata.extra)
    assert (meta.source, meta.created, meta.license) == ("box", "2024-01-03", "MIT")
    assert meta.tags == ("repository", "mined") and task.reward == "all" and task.shell
    assert extra["commit"] == mined.shas["double"] and extra["commit_date"].startswith("2024-01-03T12:00:00")
    assert extra["upstream"] == "#12" and extra["source_lines"] == "2" and "message" not in extra
    assert "it returned the number that it was given" in task.prompt
    assert not any(".git" in path.split("/") for path in task.start)
    assert {*task.reference} == {"box/double.py"} and {*task.suite} == {"tests/test_double.py"}
    assert [test.id for test in task.visible] == ["tests/test_double.py"]


def test_prompts_give_nothing_away_and_name_what_is_new(tasks: dict[str, Task]) -> None:
    leak = tasks["leak"]
    assert "test_leak_2" not in leak.prompt and "Ask Ann." in leak.prompt
    assert dict(leak.metadata.extra)["left_out_of_prompt"] == "the name of an added test"
    new = tasks["new"]
    assert "`triple`" in new.prompt and "new_names" in new.metadata.tags
    assert new.reference.removed == {"box/old.py"} and "box/new.py" in new.reference
    assert "#9" in dict(tasks["merge of branch"].metadata.extra)["upstream"] + "#9"
    assert "Merge pull request" not in tasks["merge of branch"].prompt


def test_a_task_that_needs_a_prompt_says_so(mined: Mined, result: tuple[MineReport, Path]) -> None:
    [task] = load(f"{result[1]}-needs-prompt")
    extra = dict(task.metadata.extra)
    assert task.id == mined.id_of("half") and "needs_prompt" in task.metadata.tags
    assert (extra["needs_prompt"], extra["message"]) == ("too short", "half")
    assert "still to be written" in task.prompt


def test_the_referee_agrees(tasks: dict[str, Task]) -> None:
    """On every task the reference is worth 1 and the start 0, by the way that was found."""
    wall = make_wall()
    try:
        referee = Referee(wall)
        for name, task in tasks.items():
            assert task.way, name
            assert referee.grade(task, task.reference).reward == 1.0, name
            assert referee.grade(task, task.start).reward == 0.0, name
    finally:
        wall.close()


def test_the_same_pool_on_more_workers(result: tuple[MineReport, Path], mined: Mined, tmp_path: Path) -> None:
    """As JSON Lines and by two workers: the same tasks in the same order."""
    report = mine(mined.path, tmp_path / "box.jsonl", workers=2, keep_needs_prompt=True, **PLAIN)
    digests = {task.id: task.digest for task in load(str(result[1]))}
    again = load(str(tmp_path / "box.jsonl"))
    assert [i for i in again.ids if i in digests] == list(digests) and len(again) == len(digests) + 1
    assert {task.id: task.digest for task in again if task.id in digests} == digests
    assert report.written == {str(tmp_path / "box.jsonl"): 9} and again[mined.id_of("half")]


def test_what_lies_there_stays(mined: Mined, result: tuple[MineReport, Path]) -> None:
    """A second time nothing is run, and a prompt that somebody wrote stays. Half a line of the state is none."""
    report, out = result
    apart = Path(f"{out}-needs-prompt")
    prompt = next(apart.glob("box-*/prompt.md"))
    prompt.write_text("Somebody wrote this.")
    digest = load(str(out)).digest
    with (out / ".mine" / "state.jsonl").open("a") as state:
        state.write('{"commit": "cut off by a cra')
    again = mine(mined.path, out, **PLAIN)
    assert again.resumed == again.examined == report.examined and again.tasks == report.tasks
    assert {*again.written.values()} == {0} and load(str(out)).digest == digest
    assert prompt.read_text() == "Somebody wrote this."


def test_so_many_and_then_more(mined: Mined, tmp_path: Path) -> None:
    """``most`` takes the newest; what is found later is added, in the order of the history."""
    out, newest = tmp_path / "few", (mined.id_of("new"), mined.id_of("leak"))
    few = mine(mined.path, out, most=2, since="2024-01-15", merges=False, **PLAIN)
    assert few.tasks == newest == load(str(out)).ids and few.examined == 3
    more = mine(mined.path, out, since="2024-01-14", merges=False, **PLAIN)
    assert more.resumed == 3 and more.tasks == (*newest, mined.id_of("words"), mined.id_of("ordered"))
    assert load(str(out)).ids == more.tasks and more.written == {str(out): 2}


def test_other_places_and_settings_are_refused(
    mined: Mined, result: tuple[MineReport, Path], tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is no pool that was mined"):
        mine(mined.path, tmp_path / "taken", **PLAIN)
    with pytest.raises(UsageError, match="repeats was 3 and is 2"):
        mine(mined.path, result[1], repeats=2, **PLAIN)
    with pytest.raises(UsageError, match="is no folder; make it first"):
        mine(mined.path, tmp_path / "no" / "where", **PLAIN)
    with pytest.raises(UsageError, match="most is 0"):
        mine(mined.path, tmp_path / "x", most=0, **PLAIN)
    with (result[1] / ".mine" / "state.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another `tiltyard mine` is at work on"):
            mine(mined.path, result[1], **PLAIN)
    state = tmp_path / "odd" / ".mine" / "state.jsonl"
    state.parent.mkdir(parents=True)
    state.write_text("{}\n")
    with pytest.raises(UsageError, match="is no state of a mining"):
        mine(mined.path, tmp_path / "odd", **PLAIN)


# -- the command -----------------------------------------------------------------------------------------------------


def command(mined: Mined, out: Path, *more: str) -> list[str]:
    words = ["mine", str(mined.path), "--out", str(out), "--no-environment", *more]
    return [sys.executable, "-m", "tiltyard", *words]


def begun(process: subprocess.Popen[str], state: Path, entries: int) -> int:
    """Wait until so many commits are known; how many then are."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        known = state.read_text().count("\n") - 1 if state.exists() else 0
        if known >= entries:
            return known
        time.sleep(0.02)
    raise AssertionError(f"it ended with {process.poll()} before {entries} commits were known")


def test_it_goes_on_after_it_was_stopped(
    mined: Mined, result: tuple[MineReport, Path], tmp_path: Path
) -> None:
    """Ctrl-C writes what was found so far; ``kill -9`` loses what was in work. What was known is not examined again, and
    the pool comes out the same."""
    out = tmp_path / "box"
    known = 0
    for number, more in ((signal.SIGINT, 3), (signal.SIGKILL, 2)):
        process = subprocess.Popen(
            command(mined, out),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        known = begun(process, out / ".mine" / "state.jsonl", known + more)
        os.kill(process.pid, number)
        shown, said = process.communicate(timeout=120)
        if number == signal.SIGINT:
            assert process.returncode == 130, said
            assert "the same command goes on from here" in said and NOT_YET in shown
            assert len(load(str(out))) >= 1
    done = subprocess.run(command(mined, out, "--json"), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["resumed"] >= known and report["tasks"] == [*result[0].tasks]
    digests = {task.id: task.digest for task in load(str(result[1]))}
    assert {task.id: task.digest for task in load(str(out))} == digests


def test_the_table_of_the_command(mined: Mined, tmp_path: Path) -> None:
    done = subprocess.run(
        command(mined, tmp_path / "box", "--since", "2024-01-16", "--no-merges", "--max-lines", "100"),
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for text in (
        "in the history of box",
        "no candidate: a merge",
        "tasks, 0 of which need a prompt",
        "new tasks",
    ):
        assert text in done.stdout, text


def test_a_history_without_tasks_is_bad_news(mined: Mined, tmp_path: Path) -> None:
    done = subprocess.run(
        command(mined, tmp_path / "none", "--until", "2024-01-02"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and not (tmp_path / "none" / "pool.toml").exists()
    here = subprocess.run(
        [*command(mined, tmp_path / "x")[:4], str(tmp_path), "--out", str(tmp_path / "x")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert here.returncode == 2 and "is no git repository" in here.stderr
