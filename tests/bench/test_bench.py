"""The bench itself, on real walls, in its quick form."""

from __future__ import annotations

import json

import pytest

from tiltyard.bench import lane_names, run_bench
from tiltyard.bench.fleets import LONG, fleet, measure_name, steady_rate
from tiltyard.bench.lanes import Lane, lane_wall
from tiltyard.bench.lesson import POOL, TASK
from tiltyard.bench.spans import profile
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.referee import Referee

STEPS = ("reset", "view_file", "write_file", "run_tests", "submit", "episode")


def test_the_task_is_one_of_the_lesson():
    assert len(TASK.hidden) == 8
    assert TASK.grading == "calls"
    assert len(POOL) == 1


def test_the_start_does_not_pass_and_the_reference_does(wall: Wall):
    referee = Referee(wall)
    assert referee.grade(TASK, TASK.start).reward == 0.0
    assert referee.grade(TASK, TASK.reference).reward == 1.0


def test_a_quick_run_has_every_measure_and_ends():
    report = run_bench(["process"], quick=True, repeats=1, profiled=True)
    found = json.loads(json.dumps(report.as_json(), allow_nan=False))
    measures = found["walls"]["process"]
    episodes = found["settings"]["episodes"]
    fleets = [measure_name(workers, episodes) for workers in (1, 2, 4, 8)]
    assert set(STEPS) | set(fleets) <= measures.keys()
    for measure in measures.values():
        assert 0 < measure["median_ms"] <= measure["p99_ms"]
        assert measure["per_second"] > 0
    assert found["floors"].keys() == {"fork_and_wait", "clone_and_wait", "python_isolated", "true"}
    assert {"fresh_python", "fresh_pytest"} <= found["instead"].keys()
    for measures in found["walls"].values():
        assert {"repository_reset", "repository_copy", "repository_pytest"} <= measures.keys()
    assert {"docker_run", "docker_exec"} <= found["absent"].keys() | found["instead"].keys()
    assert found["ratios"]["episode_vs_process_wall"]["why"] == "the namespace wall was not measured"
    assert found["profile"]["process"]["spans"][0]["path"] == ["episode"]
    assert found["machine"]["cores"] >= 1


def test_walls_that_are_absent_are_said_with_their_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", "/nowhere")
    report = run_bench(quick=True, repeats=1, fleets=False)
    assert set(lane_names()) <= report.walls.keys() | report.absent.keys()
    assert "container" not in report.walls
    assert report.absent["container"]
    assert report.absent["container:run"] == report.absent["container"]
    assert "container" in report.absent["docker_run"]
    assert "process" in report.walls


def test_a_wall_that_was_named_and_is_absent_stops_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("container", "container:exec"):
        with pytest.raises(ArenaError, match=f"the {name} wall can't be had here"):
            run_bench([name], quick=True, repeats=1)


def test_a_name_that_is_no_walls():
    with pytest.raises(UsageError, match=r"found the wall 'glass'; expected one of .*process"):
        run_bench(["glass"])


def test_an_episode_that_does_not_score_is_no_measurement(wall: Wall):
    lane = Lane(wall.name, wall)
    try:
        lane.reset()
        with pytest.raises(ArenaError, match="submit went wrong"):
            lane.act({"tool": "submit"})
        lane.reset()
        with pytest.raises(ArenaError, match="went wrong"):
            lane.act({"tool": "view_file", "path": "no_such_file.py"})
        assert lane.episode()["episode"][0] > 0
    finally:
        lane.env.close()


def test_forks_are_measured_where_they_are_offered(wall: Wall):
    lane = Lane(wall.name, wall)
    try:
        if not lane.forks:
            pytest.skip("this build offers no copies of an episode")
        assert lane.fork()["fork"][0] > 0
        assert lane.episode()["episode"][0] > 0
    finally:
        lane.env.close()


def test_a_profile_adds_up():
    found = profile("process", 2)
    rows = {row.path: row for row in found.rows}
    episode = rows[("episode",)]
    assert episode.calls == 1.0
    below = sum(row.total_ms for row in found.rows if len(row.path) == 2)
    assert episode.total_ms == pytest.approx(below + episode.self_ms, abs=0.01)
    names = {path[-1] for path in rows}
    assert {"open a cell", "cell.read", "cell.write", "cell.run @visible", "cell.close"} <= names
    assert {"cell.capture", "start the solution", "start the examiner", "load", "tests"} <= names
    assert rows[("episode", "submit", "open a cell")].calls == 2.0


def test_a_profile_leaves_the_rooms_as_they_were():
    from tiltyard.referee import calls

    before = calls._Reports.next
    profile("process", 1)
    assert calls._Reports.next is before


def test_a_fleet_and_its_names():
    assert measure_name(1, 64) == "episodes_64_serial"
    assert measure_name(8, 64) == "episodes_64_workers_8"
    found = fleet("process", 2, 2)
    assert list(found) == ["episodes_2_workers_2"]


def test_the_steady_rate_is_what_one_more_episode_costs():
    start, each = 0.5, 0.01
    short, long = start + 64 * each, start + 64 * LONG * each
    steady = steady_rate([short], [long], 64)
    assert steady is not None
    assert steady.per_second == pytest.approx(100.0)
    assert steady_rate([short], [], 64) is None
    assert steady_rate([2.0], [1.0], 64) is None


def test_lane_walls():
    assert lane_names()[-1] == "process"
    wall = lane_wall("process")
    assert wall.name == "process"
    wall.close()
