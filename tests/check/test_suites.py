"""Validation of tasks whose tests are suites for pytest: the way is found, said, and written down."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.referee.suites import suite_task, tally_task

from tiltyard.check import settled, validate
from tiltyard.pool import load, to_folder
from tiltyard.task import Metadata

FILES = suite_task(
    "import os\ndef here():\n    return os.getcwd()\ndef keep(text):\n    open('kept.txt', 'w').write(text)\n",
    "import os\nfrom solution import here, keep\ndef test_x():\n    keep('abc')\n"
    "    assert open('kept.txt').read() == 'abc' and here() == os.getcwd()\n",
    id="files",
    reward="all",
)


def test_the_way_is_found_and_said(tmp_path: Path) -> None:
    report = validate([tally_task(), FILES], repeats=1, state=tmp_path / "state.jsonl")
    assert report.ok and report.ways == {"in-process": 1, "remote": 1}, report.tasks
    ways = {one.task: one.way for one in report.tasks}
    assert ways == {"tally": "remote", "files": "in-process"}
    assert report.as_json()["tasks"]["files"] == {"outcome": "fit", "reason": "", "way": "in-process"}
    again = validate([tally_task(), FILES], repeats=1, state=tmp_path / "state.jsonl")
    assert again.resumed == 2 and {one.task: one.way for one in again.tasks} == ways


def test_what_was_found_is_written_down(tmp_path: Path) -> None:
    pool = load([tally_task(), FILES])
    made = settled(pool)
    assert [task.way for task in made] == ["remote", "in-process"]
    assert [test.id for test in made["files"].hidden] == ["test_solution.py::test_x"]
    assert made.digest != pool.digest and settled(made).digest == made.digest
    to_folder(made, tmp_path / "settled")
    assert load(tmp_path / "settled").digest == made.digest


def test_why_a_suite_is_unfit() -> None:
    passing = tally_task(id="passing", start=tally_task().reference.over(tally_task().start), pass_to_pass=())
    wrong = replace(tally_task(id="wrong"), reference=tally_task().start)
    needy = suite_task("import nosuch_package\nx = 1\n", "from solution import x\ndef test_x(): assert x\n")
    needy = replace(needy, id="needy", metadata=Metadata(packages=("nosuch_package",)))
    found = {one.task: one for one in validate([passing, wrong, needy], repeats=1).tasks}
    assert {one.outcome for one in found.values()} == {"unfit"}
    assert "the untouched start scores 1" in found["passing"].reason
    assert "the reference scores 0" in found["wrong"].reason
    assert (
        "tried remote: 2 of 9 pass" in found["wrong"].reason and "in-process: 2 of 9" in found["wrong"].reason
    )
    assert "ModuleNotFoundError" in found["needy"].reason and "nosuch_package" in found["needy"].reason


def test_the_command_writes_fit_tasks(tmp_path: Path) -> None:
    to_folder(load([FILES]), tmp_path / "pool")
    out = tmp_path / "settled.jsonl"
    command = [sys.executable, "-m", "tiltyard", "validate", str(tmp_path / "pool"), "--repeats", "1"]
    done = subprocess.run(
        [*command, "--settled", str(out)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "suites: 1 in-process" in done.stdout
    assert json.loads(out.read_text())["way"] == "in-process"
    assert load(out)["files"].way == "in-process"
