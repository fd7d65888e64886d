"""An episode on a repository: an image as its start, a shell with git, and a submission of what was changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tiltyard import CodeEnv
from tiltyard.cells.protocol import Wall
from tiltyard.cells.start_git import missing
from tiltyard.env.workspace import workspace
from tiltyard.images import Images
from tiltyard.pool.repository import repository_task
from tiltyard.task import Files, Metadata, Task

START = {
    "README.md": b"A package.\n",
    "lib/__init__.py": b"",
    "lib/core.py": b"def double(x):\n    return x\n",
    "lib/old.py": b"raise ImportError('this must go')\n",
    "tests/test_core.py": b"from lib.core import double\n\n\ndef test_zero():\n    assert double(0) == 0\n",
}
SUITE = b"""import importlib.util

from lib.core import double


def test_zero():
    assert double(0) == 0


def test_two():
    assert double(2) == 4


def test_old_is_gone():
    assert importlib.util.find_spec("lib.old") is None
"""
SOLVED = "def double(x):\n    return 2 * x\n"
_T = "tests/test_core.py"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-repositories"))


def task(start: Files) -> Task:
    return repository_task(
        "lib/double",
        "double() does not double, and lib/old.py is to be removed.",
        start,
        {_T: SUITE},
        [f"{_T}::test_two", f"{_T}::test_old_is_gone"],
        [f"{_T}::test_zero"],
        Files({"lib/core.py": SOLVED.encode()}, removed={"lib/old.py"}),
        metadata=Metadata(source="lib"),
    )


@pytest.fixture(params=["image", "plain"])
def env(request: pytest.FixtureRequest, wall: Wall) -> Iterator[CodeEnv]:
    start = Images().add(START) if request.param == "image" else Files(START)
    with CodeEnv([task(start)], wall=wall) as made:
        made.reset(seed=0)
        yield made


def do(env: CodeEnv, tool: str, **arguments: Any) -> str:
    observation, _, _, _, info = env.step({"tool": tool, **arguments})
    assert not info["invalid_action"], observation
    return str(observation)


def submit(env: CodeEnv) -> tuple[float, dict[str, Any]]:
    _, reward, terminated, _, info = env.step({"tool": "submit"})
    assert terminated and "void" not in info, info
    return float(reward), info


def test_solved_by_a_change_and_a_removal(env: CodeEnv) -> None:
    do(env, "write_file", path="lib/core.py", content=SOLVED)
    do(env, "bash", command="rm lib/old.py")
    reward, info = submit(env)
    assert reward == 1.0 and "left_out" not in info
    assert "+    return 2 * x" in info["patch"] and "deleted file" in info["patch"]
    assert "README" not in info["patch"], "what was not changed is not handed in"


def test_what_was_not_removed_counts(env: CodeEnv) -> None:
    do(env, "write_file", path="lib/core.py", content=SOLVED)
    reward, info = submit(env)
    assert reward == 0.0 and [o["passed"] for o in info["verdict"]["outcomes"]].count(False) == 1


def test_nothing_done_is_nothing_handed_in(env: CodeEnv) -> None:
    reward, info = submit(env)
    assert reward == 0.0 and info["patch"] == ""


def test_a_cell_that_was_only_looked_at_hands_in_nothing(env: CodeEnv) -> None:
    do(env, "bash", command="ls; cat lib/core.py; python -c 'import lib.core'")
    assert submit(env)[1]["patch"] == ""


def test_moving_a_folder(env: CodeEnv) -> None:
    do(env, "bash", command="mv lib other")
    reward, info = submit(env)
    assert reward == 0.0 and "other/core.py" in info["patch"] and "lib/core.py" in info["patch"]


def test_a_copy_of_an_episode_has_the_same_workspace(env: CodeEnv) -> None:
    do(env, "bash", command="rm lib/old.py; echo n > new.txt")
    (copy,) = env.fork(1)
    with copy:
        assert "new.txt" in do(copy, "list_files") and "lib/old.py" not in do(copy, "list_files")
        do(copy, "write_file", path="lib/core.py", content=SOLVED)
        assert submit(copy)[0] == 1.0
    assert submit(env)[0] == 0.0


@pytest.mark.skipif(missing() is not None, reason=f"{missing()}")
def test_the_players_git_is_its_own(wall: Wall) -> None:
    with CodeEnv([task(Images().add(START))], wall=wall) as env:
        env.reset(seed=0)
        assert "start" in do(env, "bash", command="git log --oneline | cat")
        assert ".git" not in do(env, "list_files")
        do(env, "write_file", path="lib/core.py", content=SOLVED)
        do(env, "bash", command="git rm -q lib/old.py && git commit -qam solved && git log --format=%s")
        reward, info = submit(env)
        assert reward == 1.0 and ".git" not in info["patch"]


def test_a_history_among_start_files_shows_nothing(wall: Wall) -> None:
    leaky = Images().add({**START, ".git/HEAD": b"ref: refs/heads/x\n", ".git/packed-refs": b"the-answer"})
    with CodeEnv([task(leaky)], wall=wall) as env:
        env.reset(seed=0)
        assert "the-answer" not in do(env, "bash", command="cat .git/packed-refs; ls -a")
        do(env, "write_file", path="lib/core.py", content=SOLVED)
        do(env, "bash", command="rm lib/old.py")
        reward, info = submit(env)
        assert reward == 1.0 and ".git" not in info["patch"]


def test_what_a_capture_could_not_look_at_is_as_it_was() -> None:
    place = workspace(task(Files(START)))
    rest = {p: b for p, b in START.items() if p != "lib/old.py"}
    assert place.submission(rest).removed == {"lib/old.py"}
    assert place.submission(rest, [("lib/old.py", "larger than 9 bytes")]).removed == frozenset()
    assert place.submission(rest, [("lib", "deeper than 1 folders")]).removed == frozenset()
    assert place.submission(rest, [("…", "and 7 more")]).removed == frozenset()
    assert place.submission(rest, [("lib", "link")]).removed == {"lib/old.py"}
    of_image = workspace(task(Images().add(START)))
    assert dict(of_image.submission({**rest, "n": b"n"})) == {"n": b"n"}
    assert of_image.submission(START) == Files()


def test_limits_of_a_command_are_the_tasks(wall: Wall) -> None:
    with CodeEnv([task(Images().add(START))], wall=wall, limits={"run_s": 1.5}) as env:
        env.reset(seed=0)
        assert "killed" in do(env, "bash", command="sleep 60").lower() or "time" in do(
            env, "bash", command="sleep 60"
        )


def test_a_copy_after_what_can_not_be_done_again(env: CodeEnv) -> None:
    do(
        env,
        "bash",
        command="rm lib/old.py; head -c 12 /dev/urandom | base64 > lib/random.txt; mkdir -p a/b; rm -r tests",
    )
    do(
        env,
        "bash",
        command="date +%N; git add -A 2>/dev/null; mkfifo pipe; ln -s lib link; ls -lR --time-style=+%N",
    )
    seen = "ls -lR --time-style=+%N; cat lib/random.txt; git status --short 2>/dev/null; git diff --cached --stat 2>/dev/null"
    snapshot = env.snapshot()
    assert snapshot.packed is not None
    assert len(snapshot.packed.data) < 50_000
    forks = env.fork(2)
    expected = do(env, "bash", command=seen)
    for fork in forks:
        with fork:
            assert do(fork, "bash", command=seen) == expected
            do(
                fork,
                "bash",
                command="git checkout -q -- tests 2>/dev/null || git reset -q --hard; rm -rf lib/random.txt a",
            )
            do(fork, "write_file", path="lib/core.py", content=SOLVED)
    env.restore(snapshot)
    assert do(env, "bash", command=seen) == expected
    do(env, "write_file", path="lib/core.py", content=SOLVED)
    assert submit(env)[0] == 1.0
