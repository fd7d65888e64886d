"""Harm is seen, laid at the right door, and never a neighbour's: subjects that leave things, hang and bring us down."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.redteam.test_redteam_own import CALLS

from tiltyard.cells.protocol import Wall
from tiltyard.redteam import run as running
from tiltyard.redteam import stock
from tiltyard.redteam.case import Case
from tiltyard.redteam.play import Batch, Setup
from tiltyard.redteam.report import CaseResult
from tiltyard.redteam.stock import Stock, left
from tiltyard.redteam.subject import Played
from tiltyard.task import Files, Task

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are followed on Linux")


class Fake:
    """A grader in this very process: what a submission's text says is done, then it scores 0."""

    tools = False

    def __init__(self, doings: dict[str, Callable[[], None]], wall: Wall) -> None:
        self.doings = doings

    def grade(self, task: Task, files: Files) -> Played:
        text = files["solution.py"].decode()
        if text in self.doings:
            self.doings[text]()
        return Played(1.0 if text == "honest" else 0.0)

    def play(self, task: Task, actions: Sequence[Any]) -> Played:
        raise AssertionError


def results(tmp_path: Path, **doings: Callable[[], None]) -> dict[str, CaseResult]:
    """Play a case for each of these doings, in one batch, and one that does nothing."""
    names = [*doings, "nothing"]
    cases = tuple(
        Case(name, "function", CALLS.id, "test", files=Files({"solution.py": name})) for name in names
    )
    setup = Setup("process", {CALLS.id: CALLS}, tmp_path, make=partial(Fake, doings))
    honest = (("honest", Files({"solution.py": "honest"})),)
    found, controls, _ = running._play([Batch(CALLS.id, cases, honest, ())], setup, 1, None)
    assert not any(control.failed for control in controls)
    return {result.name: result for result in found}


def leave_a_process() -> None:
    # its own session and parent: nobody but a reaper still knows of it
    subprocess.run(["/bin/sh", "-c", "setsid sleep 300 >/dev/null 2>&1 &"], check=True)


def leave_a_file() -> None:
    Path(tempfile.gettempdir(), "left-by-a-test").write_text("x")


def leave_a_folder() -> None:
    Path(tempfile.gettempdir(), "folder", "inner").mkdir(parents=True)


def test_what_is_left_is_laid_at_the_door_of_who_left_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock, "PATIENCE_S", 2.0)  # it stays, however long one waits
    found = results(tmp_path, process=leave_a_process, file=leave_a_file, folder=leave_a_folder)
    assert found["nothing"].harm == ()
    assert len(found["process"].harm) == 1 and "sleep" in found["process"].harm[0]
    assert found["file"].harm == ("'left-by-a-test' was left in the temporary folder",)
    assert found["folder"].harm == ("'folder' was left in the temporary folder",)
    assert {name: result.outcome for name, result in found.items()} == {
        "process": "harmed", "file": "harmed", "folder": "harmed", "nothing": "held",
    }  # fmt: skip
    assert not Path(tempfile.gettempdir(), "left-by-a-test").exists()


def test_an_exception_out_of_a_grading_is_harm_and_void(tmp_path: Path) -> None:
    def fail() -> None:
        raise KeyError("x")

    found = results(tmp_path, fails=fail)
    assert found["fails"].void == "KeyError: 'x'"
    assert found["fails"].harm == ("an exception came out of the grading: KeyError",)


def test_who_brings_the_worker_down_is_found_out(tmp_path: Path) -> None:
    found = results(tmp_path, kills=lambda: os.kill(os.getpid(), 9))
    assert found["nothing"].outcome == "held"
    assert found["kills"].outcome == "harmed"
    assert "brought down" in found["kills"].harm[0] and "SIGKILL" in str(found["kills"].void)


def test_who_never_comes_back_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadline_s(setup: Setup, batch: Batch) -> float:
        return 5.0 if any(case.name == "hangs" for case in batch.cases) else 300.0

    monkeypatch.setattr(running, "_deadline_s", deadline_s)
    found = results(tmp_path, hangs=lambda: time.sleep(600))
    assert found["nothing"].outcome == "held"
    assert found["hangs"].outcome == "harmed"
    assert "did not finish within 5 s" in str(found["hangs"].void)


def test_a_neighbours_file_is_nobodys_harm() -> None:
    me = os.geteuid()
    before = Stock({"/tmp": {"old": (1, 1, me)}})
    after = Stock(
        {"/tmp": {"old": (1, 2, me), "new": (2, 2, me), "tiltyard-x": (3, 3, me), ".arena_drop": (4, 4, me)}}
    )
    assert left(before, after) == (["'.arena_drop' was left in /tmp"], ["'new' was left in /tmp"])
    certain, possible = left(before, after, again=["'new' was left in /tmp"])
    assert "'new' was left in /tmp" in certain and possible == []
    assert left(Stock(sysv=frozenset({"shm 1"})), Stock(sysv=frozenset({"shm 1", "shm 2"})))[0] == [
        "System V shm 2 was left"
    ]


@pytest.mark.parametrize("harm", [(), ("x",)])
@pytest.mark.parametrize("void", [None, "y"])
@pytest.mark.parametrize("reward", [None, 0.0, 0.5])
def test_the_worst_that_is_true_of_a_case_is_its_outcome(harm, void, reward) -> None:
    outcome = CaseResult("a", "t", "c", reward, void, harm).outcome
    expected = "harmed" if harm else "void" if void else "paid" if reward else "held"
    assert outcome == expected
    assert CaseResult("a", "t", "c", skipped="z").outcome == "skipped"
