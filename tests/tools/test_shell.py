"""The shell: a real one, in real cells."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tiltyard import CodeEnv
from tiltyard.cells import Cell, CellLimits, Run, Wall
from tiltyard.errors import TaskError
from tiltyard.pool import load
from tiltyard.task import Limits
from tiltyard.tools import hands
from tiltyard.tools.shell import bash

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")

Say = Callable[..., str]


@pytest.fixture
def cell(wall: Wall) -> Iterator[Cell]:
    with wall.open({"solution.py": b"x = 1\n", "pkg/a b.txt": b"hello\n"}, CellLimits()) as cell:
        yield cell


@pytest.fixture
def say(cell: Cell) -> Say:
    def run(command: str, **limits: float) -> str:
        return bash(hands.Bench(cell, replace(Limits(run_s=60.0), **limits)), command)  # type: ignore[arg-type]

    return run


def test_a_command_is_run_in_the_workspace(say: Say) -> None:
    assert say("ls; cat 'pkg/a b.txt'") == "pkg\nsolution.py\nhello"


def test_both_streams_in_their_order(say: Say) -> None:
    assert say("echo a; echo b >&2; echo c") == "a\nb\nc"


def test_an_exit_status_is_named(say: Say) -> None:
    assert say("false") == "[exit status 1]"
    assert say("echo x; exit 7") == "x\n[exit status 7]"
    assert say("true") == "[no output]"
    assert say("no_such_command_here").endswith("[exit status 127]")


def test_the_folder_variables_functions_and_aliases_are_kept(say: Say) -> None:
    say(
        "cd pkg; export NAME='a \"b\"\n c'; plain=3; list=(1 '2 3'); greet() { echo \"hi $1\"; }; set -o pipefail"
    )
    assert say('pwd | tail -c 4; echo "$NAME"; echo $plain; echo "${list[1]}"; greet you') == (
        'pkg\na "b"\n c\n3\n2 3\nhi you'
    )
    assert say("env | grep -c ^NAME; set -o | grep pipefail").split() == ["1", "pipefail", "on"]
    assert say("cd ..; unset NAME plain") == "[no output]"
    assert say('ls; echo "[$NAME$plain]"') == "pkg\nsolution.py\n[]"


def test_exit_keeps_the_state_too(say: Say) -> None:
    assert say("cd pkg; x=5; exit 3") == "[exit status 3]"
    assert say("basename $PWD; echo $x") == "pkg\n5"


def test_a_killed_command_leaves_the_shell_as_it_was(say: Say) -> None:
    say("cd pkg; x=1")
    assert "[killed: it took longer than 2 seconds" in say("x=2; cd ..; echo begun; sleep 600", run_s=2.0)
    assert say("basename $PWD; echo $x") == "pkg\n1"
    assert "[killed by signal 9" in say("kill -9 $$")
    assert say("echo $x") == "1"


def test_what_prints_nothing_is_stopped_before_its_time(say: Say) -> None:
    shown = say("echo begun; sleep 600", run_s=12.0)  # half of it without a word
    assert shown.startswith("begun\n[killed: ") and "printed nothing for 6" in shown


def test_what_prints_now_and_then_goes_on(say: Say) -> None:
    assert say("for i in 1 2 3; do sleep 2.5; echo $i; done", run_s=10.0).split() == ["1", "2", "3"]


def test_a_stopped_shell_and_one_that_reads_end(say: Say) -> None:
    assert "[killed: " in say("kill -STOP $$", run_s=2.0)
    assert say("cat; echo done") == "done"  # nothing can be typed
    assert say("exec echo gone") == "gone"
    assert say("echo still here") == "still here"


def test_what_is_left_running_ends_with_the_command(say: Say, cell: Cell) -> None:
    assert say("(sleep 600; echo no > late) & setsid sleep 600 & echo started") == "started"
    assert say("ls") == "pkg\nsolution.py"
    seen = cell.run(Run(("python", "-c", "import os; print(os.path.exists('late'))"), wall_s=60))
    assert seen.stdout == b"False\n"


def test_a_flood_is_cut_in_the_middle(say: Say) -> None:
    shown = say("echo first; yes flood | head -c 20000000; echo last")
    assert len(shown) <= Limits().observation_chars
    assert shown.startswith("first\nflood") and shown.endswith("last") and "left out" in shown


def test_a_folder_that_is_gone(say: Say) -> None:
    say("mkdir -p deep/er; cd deep/er")
    say("rm -rf ../../deep")
    assert "is gone; back in the workspace" in say("ls")


def test_a_state_file_that_is_spoilt_fools_only_its_player(say: Say) -> None:
    say("trap - EXIT; rm -f ~/.shell_state; mkfifo ~/.shell_state")
    assert say("echo x") == "x"
    say("trap - EXIT; echo 'exit 9' > ~/.shell_state")
    assert say("echo x") == "[exit status 9]"


def test_only_a_task_that_gives_a_shell_has_one(wall: Wall) -> None:
    plain = load("builtin")["median"]
    with_shell = replace(plain, shell=True)
    assert plain.digest != with_shell.digest
    for task in (plain, with_shell):
        env = CodeEnv([task], wall=wall)
        try:
            first, _ = env.reset(seed=0)
            assert ("bash(command)" in first) is task.shell
            observation, _, _, _, info = env.step({"tool": "bash", "command": "echo $((6 * 7))"})
            assert info["invalid_action"] is not task.shell
            assert (observation == "42") is task.shell
            assert any(tool.name == "bash" for tool in env.action_space.tools) is task.shell
        finally:
            env.close()


def test_what_a_shell_changed_is_what_is_graded(wall: Wall) -> None:
    task = replace(load("builtin")["median"], shell=True)
    env = CodeEnv([task], wall=wall)
    try:
        env.reset(seed=0)
        code = task.reference["solution.py"].decode()
        env.step({"tool": "bash", "command": f"cat > solution.py <<'THE_END'\n{code}\nTHE_END"})
        *_, info = env.step({"tool": "submit"})
        assert info["verdict"]["reward"] == 1.0
    finally:
        env.close()


def test_a_shell_in_a_lesson_dict() -> None:
    row = {
        "id": "t",
        "prompt": "p",
        "stub": "def f(): pass",
        "ref": "def f(): return 1",
        "visible": [],
        "hidden": ["assert f() == 1"],
    }
    assert load([{**row, "shell": True}])["t"].shell
    with pytest.raises(TaskError, match="shell"):
        load([{**row, "shell": "yes"}])
