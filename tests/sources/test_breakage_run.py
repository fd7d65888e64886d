"""Breaking from end to end: real cells, a real git repository, the command, and a model's server on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.players.model_server import Fail, Say, serving
from tests.sources.breakage_code import FILES, repository, write
from typer.testing import CliRunner

from tiltyard.cells import make_wall
from tiltyard.cli import app
from tiltyard.errors import ArenaError, UsageError
from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.sources.breakage import BreakReport, breakage
from tiltyard.sources.breakage.observing import observe
from tiltyard.sources.breakage.subject import subject_of_task
from tiltyard.task import Files, Task, Test
from tiltyard.workers import Interrupted

WALL = os.environ.get("TILTYARD_TEST_WALL", "auto")
ASKED: dict[str, Any] = {"count": 4, "seed": 3, "wall": WALL, "environment": False, "breaks": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> BreakReport:
    """The library, broken; looked at by several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILTYARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        repo = repository(tmp_path_factory.mktemp("repo") / "shop")
        report = breakage(repo, workers=1, **ASKED)
        for task in report.tasks:
            dict(task.start)  # while the cache is there
        return report


def graded(task: Task) -> tuple[float | None, float | None]:
    wall = make_wall(WALL)
    try:
        referee = Referee(wall)
        start, reference = (
            referee.grade(task, task.start),
            referee.grade(task, task.reference.over(task.start)),
        )
    finally:
        wall.close()
    return start.reward, reference.reward


def test_a_repository_becomes_tasks_that_the_referee_confirms(broken: BreakReport) -> None:
    assert len(broken.tasks) == 4 and broken.fates["kept"] == 4
    levels = [task.metadata.difficulty for task in broken.tasks]
    assert levels == sorted(levels, reverse=True)  # type: ignore[type-var]
    assert len({task.id for task in broken.tasks}) == 4
    for task in broken.tasks[:2]:
        assert graded(task) == (0.0, 1.0), task.id


def test_what_a_task_is_made_of(broken: BreakReport) -> None:
    for task in broken.tasks:
        assert task.grading == "pytest" and task.reward == "all" and task.shell and task.start.image
        assert task.fail_to_pass and task.pass_to_pass
        assert {*task.reference} <= {"shop/ledger.py", "shop/money.py"}
        for path, data in task.reference.items():
            assert data.decode() == FILES[path] and task.start[path] != data
            kept = [line for line in FILES[path].splitlines() if line.strip().startswith("#")]
            assert "def" in task.start[path].decode() and all(
                line in task.start[path].decode() for line in kept
            )
        about = dict(task.metadata.extra)
        assert (task.metadata.source, task.metadata.created, task.metadata.license) == (
            "shop",
            "2024-05-07",
            "MIT",
        )
        assert len(about["base_commit"]) == 40 and about["failing"] == str(len(task.fail_to_pass))
        assert "broken" in task.metadata.tags
        for test_id in task.fail_to_pass:
            path, name = test_id.split("[")[0].partition("::")[::2]
            seen = task.start.get(path, b"").decode()
            assert f"def {name.rpartition('::')[2]}(" not in seen  # what fails is not there to be run
            assert task.suite[path].decode() == FILES[path]


def test_the_prompt_reports_and_names_neither_test_nor_place(broken: BreakReport) -> None:
    for task in broken.tasks:
        assert re.search(r"(?s)```python\n.+\n```\n\nThis \w+ .+ It should ", task.prompt), task.prompt
        for test_id in task.fail_to_pass:
            assert test_id.split("[")[0].rpartition("::")[2] not in task.prompt
        assert ".py" not in task.prompt and "assert" not in task.prompt and "line" not in task.prompt


def test_the_same_seed_gives_the_same_pool_whatever_the_workers(broken: BreakReport, tmp_path: Path) -> None:
    again = breakage(str(repository(tmp_path / "shop")), workers=2, **ASKED)
    assert [t.digest for t in again.tasks] == [t.digest for t in broken.tasks]
    assert [t.prompt for t in again.tasks] == [t.prompt for t in broken.tasks]
    assert again.as_json() | {"seconds": 0} == broken.as_json() | {"seconds": 0}


def test_tasks_of_calls_and_of_programs_are_broken_too(tmp_path: Path) -> None:
    pool = load("builtin", tasks=["median", "io_word_count"])
    report = breakage(pool, count=4, seed=1, workers=1, wall=WALL)
    assert len(report.tasks) == 4
    assert {task.grading for task in report.tasks} == {"calls", "stdio"}
    for task in report.tasks:
        origin = pool["median" if task.grading == "calls" else "io_word_count"]
        assert task.reward == "all" and task.hidden == origin.hidden and task.visible == origin.visible
        assert ("broken_from", origin.digest) in task.metadata.extra
        assert "> " in task.prompt and (
            "Given this on standard input" in task.prompt or "median(" in task.prompt
        )
    assert graded(next(task for task in report.tasks if task.grading == "stdio")) == (0.0, 1.0)


def test_a_folder_without_git_and_one_that_can_not_be_broken(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain")
    (plain / "venv").mkdir()
    (plain / "venv" / "test_no.py").write_text("def test_no():\n    assert False\n")
    report = breakage(plain, count=1, kinds=["arithmetic"], wall=WALL, environment=False)
    assert len(report.tasks) == 1 and not any(p.startswith("venv") for p in report.tasks[0].start)
    assert [(s.tests, s.left_out) for s in report.sources] == [(11, 0)]
    failing = write(
        tmp_path / "failing", {"a.py": "x = 1\n", "test_a.py": "def test_a():\n    assert 1 == 2\n"}
    )
    with pytest.raises(ArenaError, match="0 tests pass on the working code"):
        breakage(failing, count=1, wall=WALL, environment=False)
    with pytest.raises(UsageError, match="no code with tests"):
        breakage(write(tmp_path / "bare", {"a.py": "x = 1\n"}), count=1, wall=WALL, environment=False)
    with pytest.raises(UsageError, match="no git repository"):
        breakage(plain, rev="v1", wall=WALL, environment=False)


def test_what_falls_out_and_why() -> None:
    reference = "def first(xs):\n    if not xs:\n        return None\n    found = xs[0]\n    if found == 'zz':\n        return 'z'\n    return found\n"
    hidden = (
        Test("one", "assert first([4, 5]) == 4"),
        Test("two", "assert first('ab') == 'a'"),
        Test("none", "assert first([]) is None"),
    )
    start = Files({"solution.py": "def first(xs): ...\n"})
    task = Task("first", "Write first.", start, hidden, Files({"solution.py": reference}), entry=("first",))
    report = breakage(Pool("p", "1", (task,)), count=50, wall=WALL)
    assert 0 < len(report.tasks) < 50
    assert report.fates["not noticed"] and report.fates["looks injected"]
    assert sum(report.fates.values()) == sum(s.candidates for s in report.sources)
    places = [(t.start["solution.py"], t.prompt) for t in report.tasks]
    assert len({*places}) == len(places)


def test_what_wavers_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that only shows under one hash seed makes no task; one that does not end neither."""
    monkeypatch.setattr("tiltyard.sources.breakage.ready.LEAST_S", 0.5)
    one, two = wavering()
    code = (
        "import time\n\n\ndef order(words):\n    return sorted({*words})\n\n\n"
        "def count(n):\n    seen = []\n    while n > 0:\n        time.sleep(0.001)\n        n -= 1\n    return n\n\n\n"
        "def two():\n    return 2\n"
    )
    tests = (
        f"from m import count, order, two\n\n\ndef test_order():\n    assert order([{one!r}, {two!r}]) == [{one!r}, {two!r}]\n\n\n"
        "def test_count():\n    assert count(3) == 0\n\n\ndef test_two():\n    assert two() == 2\n"
    )
    repo = write(tmp_path / "w", {"m.py": code, "test_m.py": tests})
    report = breakage(repo, count=9, kinds=["call", "statement"], wall=WALL, environment=False)
    # ``sorted`` for ``list``, ``sleep`` gone, ``n -= 1`` gone
    assert not report.tasks and dict(+report.fates) == {"unstable": 1, "not noticed": 1, "hangs": 1}


def wavering() -> tuple[str, str]:
    """Two words in their order, which a set of both has under the hash seed 1 and not under 0."""
    code = "for n in range(99):\n    print([*{f'a{n}', f'b{n}'}][0])"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in "01"
    ]
    first, second = (run.stdout.split() for run in said)
    n = next(n for n in range(99) if first[n][0] == "b" and second[n][0] == "a")
    return f"a{n}", f"b{n}"


def test_what_tests_do_is_seen_in_a_cell() -> None:
    task = load("builtin")["lru_cache"]
    subject = subject_of_task(task)
    wall = make_wall(WALL)
    try:
        calls = observe(wall, subject.task, subject.task.start, [0, 3], "calls", subject.targets, 60.0)
        lines = observe(wall, subject.task, subject.task.start, [3], "lines", subject.targets, 60.0)
    finally:
        wall.close()
    assert {*calls} == {0, 3} and all(seen.passed for seen in calls.values())
    first = calls[0].trace[0]
    assert (first["fn"], first["as"], first["name"]) == ("LRUCache", "new", "lru_cache")
    [[file, reached, functions]] = lines[3].trace
    assert file == 0 and len(reached) > 5 and all(depth >= 0 for _, depth in functions)


# -------------------------------------------------------------------------------------------------------- the command


def test_the_command_writes_a_pool_that_reads_back(tmp_path: Path) -> None:
    repo, out = repository(tmp_path / "shop"), tmp_path / "broken"
    asked = ["break", str(repo), "--out", str(out), "-n", "2", "--no-environment", "--wall", WALL, "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    pool = load(str(out))
    assert list(pool.ids) == said["tasks"] and len(pool) == 2
    assert graded(pool.tasks[0]) == (0.0, 1.0)
    again = CliRunner().invoke(app, asked)
    assert (
        again.exit_code == 1 and isinstance(again.exception, UsageError) and "exists" in str(again.exception)
    )


def test_the_command_shows_where_breaks_fall_out_and_that_there_were_too_few(tmp_path: Path) -> None:
    out = tmp_path / "broken.jsonl"
    asked = [
        "break",
        "builtin",
        "--task",
        "median",
        "--kinds",
        "slice,return,boundary",
        "--out",
        str(out),
        "-n",
        "99",
    ]
    result = CliRunner().invoke(app, [*asked, "--wall", WALL])
    assert result.exit_code == 1, result.output  # median has fewer
    assert "tried" in result.stdout and "kept" in result.stdout and str(out) in result.stdout
    assert 0 < len(load(str(out))) < 99
    listed = CliRunner().invoke(app, ["break", "x", "--out", str(out), "--kinds", "help"])
    assert "boundary" in listed.stdout and "one of two arguments" not in listed.stdout


def test_an_interrupted_run_keeps_what_works() -> None:
    pool = load("builtin", tasks=["median", "rle_encode"])

    class Bar:
        def __init__(self, title: str) -> None:
            self.title, self.seen = title, 0

        def begin(self, total: int) -> None: ...
        def end(self) -> None: ...
        def advance(self, result: Any) -> None:
            self.seen += 1
            if self.title == "breaking" and self.seen == 2:
                os.kill(os.getpid(), 2)

    with pytest.raises(Interrupted) as interrupted:
        breakage(pool, count=60, workers=1, wall=WALL, progress=Bar)
    report = interrupted.value.partial
    assert interrupted.value.exit_code == 130 and report.interrupted
    assert 2 <= len(report.tasks) < 60


def test_a_model_writes_the_bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    repo, out = repository(tmp_path / "shop"), tmp_path / "bugs.jsonl"

    def brain(asked: Any) -> Any:
        if "def shares" in asked.prompt:
            code = asked.prompt.partition("```python\n")[2].partition("```")[0]
            return Say(f"Here it is:\n```python\n{code.replace('n < more', 'n <= more')}```\n")
        if "def book" in asked.prompt:
            return Say("```python\ndef other(self):\n    return 1\n```")
        return Say("I can't think of any.")

    with serving(brain) as server:
        model = ["--player", "openai:m-1", "--base-url", server.base("openai"), "--retries", "0"]
        asked = [
            "break",
            str(repo),
            "--out",
            str(out),
            "-n",
            "3",
            "--no-environment",
            "--wall",
            WALL,
            "--json",
        ]
        result = CliRunner().invoke(app, [*asked, *model])
    assert result.exit_code == 1, result.output  # one bug is fewer than three
    assert json.loads(result.stdout)["kinds"] == {"model": 1}, result.stdout
    assert "answers of the model are no changed function" in result.stderr
    [task] = load(str(out)).tasks
    assert b"n <= more" in task.start["shop/money.py"] and "shares(" in task.prompt
    assert (
        "tools" not in server.requests[0].body
        and "subtle mistake" in server.requests[0].body["messages"][0]["content"]
    )


def test_a_model_that_can_not_be_asked_at_all_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    repo, out = write(tmp_path / "shop"), tmp_path / "bugs.jsonl"
    with serving(lambda asked: Fail(401)) as server:
        model = ["--player", "openai:m-1", "--base-url", server.base("openai"), "--retries", "0"]
        asked = ["break", str(repo), "--out", str(out), "-n", "1", "--no-environment", "--wall", WALL]
        result = CliRunner().invoke(app, [*asked, *model])
    assert isinstance(result.exception, ArenaError) and "can't be asked for bugs" in str(result.exception)
    assert not out.exists()
    wrong = CliRunner().invoke(app, [*asked, "--player", "noop"])
    assert isinstance(wrong.exception, UsageError) and "anthropic:MODEL" in str(wrong.exception)
