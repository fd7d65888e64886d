"""The container wall by name, and tasks that name an image: with an engine where there is one."""

# ruff: noqa: F401, F811  (fixtures are imported and asked for by the same name)
from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from conformance import LONG, said
from engine_fixture import Engine, docker, engine_of_the_tests

from tiltyard import CodeEnv
from tiltyard.cells import CellLimits, make_wall, probe_wall, settled_name
from tiltyard.cells.container import ContainerWall
from tiltyard.cells.container_words import options
from tiltyard.cells.image import of_machine
from tiltyard.errors import ArenaError, UsageError
from tiltyard.records import Store
from tiltyard.referee import Referee
from tiltyard.task import Files, Metadata, Task, Test

pytestmark = pytest.mark.xdist_group("container")


def test_words() -> None:
    assert options("") == {}
    assert options("exec") == {"mode": "exec"}
    assert options("podman,run,runtime=runsc,cpus=0.5,image=a/b:c@sha256:0") == {
        "engine": "podman",
        "mode": "run",
        "runtime": "runsc",
        "cpus": 0.5,
        "image": "a/b:c@sha256:0",
    }


@pytest.mark.parametrize(
    "words",
    ["vm", "exec,", ",", "exec,run", "docker,podman", "runtime", "runtime=", "mode=exec", "cpus=x", "cpus=-1", "cpus=nan",
     "Exec", "runtime=a,runtime=b"],
)  # fmt: skip
def test_other_words_are_named(words: str) -> None:
    with pytest.raises(UsageError, match="container:"):
        options(words)
    with pytest.raises(UsageError, match="container:"):
        make_wall(f"container:{words}")


@pytest.mark.parametrize(
    "name", ["namespace:exec", "process:", "containers", "auto:exec", ":exec", "paper:run"]
)
def test_only_the_container_wall_has_words(name: str) -> None:
    for ask in (make_wall, probe_wall, settled_name):
        with pytest.raises(UsageError, match=r"found wall.*expected one of auto.*container"):
            ask(name)  # type: ignore[operator]


def test_an_engine_that_was_asked_for_is_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing")
    with pytest.raises(ArenaError, match=r"container:podman.*podman"):
        make_wall("container:podman")


def test_auto_is_settled_and_a_name_stays() -> None:
    assert settled_name("auto") in ("namespace", "container", "process")
    assert settled_name("process") == "process"


def test_modes_runtimes_and_engines_by_name(docker: Engine) -> None:
    for name, mode in (
        ("container:exec", "exec"),
        ("container:run,docker,runtime=runc", "run"),
        ("container", "keeper"),
    ):
        wall = make_wall(name)
        try:
            assert isinstance(wall, ContainerWall) and wall.mode == mode and wall.name == "container"
            assert settled_name(name) == name
            with wall.open({}, CellLimits()) as cell:  # type: ignore[attr-defined]
                assert said(cell, "print(1)") == "1"
        finally:
            wall.close()
    assert (
        "runsc" in str(probe_wall("container:runtime=runsc")) or probe_wall("container:runtime=runsc") is None
    )


def test_a_run_keeps_the_name_that_it_was_asked_for(docker: Engine, tmp_path: Path) -> None:
    store = tmp_path / "e.sqlite"
    words = [
        "run",
        "builtin",
        "--task",
        "median",
        "--player",
        "reference",
        "--wall",
        "container:exec",
        "--workers",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tiltyard", *words, "--store", str(store), "--json"],
        capture_output=True,
        timeout=10 * LONG,
    )
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert told["wall"] == "container:exec" and told["mean_reward"] == 1.0
    assert b"wall: container" in done.stderr
    with contextlib.closing(Store(store)) as kept:
        assert [one.wall for one in kept.episodes()] == ["container:exec"]


# --------------------------------------------------------------------------------------------- the image of a task


def task(image: str) -> Task:
    return Task(
        id="imaged",
        prompt="Read /data/word.",
        start=Files({"solution.py": b"def word():\n    return ''\n"}),
        reference=Files({"solution.py": b"def word():\n    return open('/data/word').read()\n"}),
        hidden=(Test("test_word", "assert word() == 'from the image'"),),
        entry=("word",),
        metadata=Metadata(image=image),
    )


@pytest.fixture(scope="module")
def digest(docker: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    wall = ContainerWall()
    folder = tmp_path_factory.mktemp("image")
    (folder / "word").write_text("from the image")
    (folder / "Dockerfile").write_text(
        f"FROM {of_machine(wall.engine, wall._interpreter)}\nCOPY word /data/word\n"
    )
    words = [sys.executable, "-m", "tiltyard", "image", str(folder), "--no-network"]
    first, again = (
        subprocess.run(words, capture_output=True, timeout=LONG, check=True).stdout for _ in range(2)
    )
    assert first == again and first.startswith(b"sha256:")
    return first.decode().strip()


def test_a_task_is_played_and_graded_in_its_image(docker: Engine, digest: str) -> None:
    one = task(digest)
    with CodeEnv([one], wall="container") as env:
        env.reset(seed=0)
        env.step(
            {
                "tool": "write_file",
                "path": "solution.py",
                "content": "def word():\n    return open('/data/word').read()\n",
            }
        )
        _, reward, terminated, _, info = env.step({"tool": "submit"})
        assert (reward, terminated) == (1.0, True), info
        assert env.unwrapped.wall_name == "container"
    wall = ContainerWall()
    assert wall.with_image(digest) is wall.with_image(digest)
    assert Referee(wall).grade(one, one.start).reward == 0.0
    wall.close()


def test_an_image_that_is_not_there_is_void(docker: Engine) -> None:
    wall = ContainerWall()
    verdict = Referee(wall).grade(task("tiltyard-nowhere/nothing:1"), Files({}))
    assert verdict.void is not None and "tiltyard-nowhere/nothing:1" in verdict.void
    wall.close()


def test_a_wall_that_can_have_no_image_is_void_with_the_reason() -> None:
    wall = make_wall("process")
    try:
        verdict = Referee(wall).grade(task("sha256:" + "0" * 64), Files({}))
        assert verdict.void is not None and "container wall" in verdict.void and verdict.reward is None
        with CodeEnv([task("sha256:" + "0" * 64)], wall=wall) as env:
            env.reset(seed=0)
            _, reward, *_, info = env.step({"tool": "submit"})
            assert math.isnan(reward) and "container image" in info["void"]
    finally:
        wall.close()
