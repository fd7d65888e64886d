"""Ratios, from figures that are known."""

from __future__ import annotations

import pytest

from tiltyard.bench.stats import Timing
from tiltyard.bench.targets import Ratio, judged, ratios


def at(ms: float) -> Timing:
    return Timing.of([ms / 1e3])


def rate(per_second: float, each: int = 1) -> Timing:
    return Timing.of([each / per_second], each=each)


NAMESPACE = {
    "episode": at(10.0),
    "reset": at(2.9),
    "view_file": at(0.19),
    "write_file": at(0.21),
    "submit": at(12.0),
    "repository_reset": at(10.0),
    "repository_copy": at(41.0),
    "repository_pytest": at(30.0),
    "steady_workers_1": rate(60.0),
    "steady_workers_2": rate(114.0),
    "steady_workers_8": rate(109.0),
    "episodes_64_serial": rate(50.0, 64),
    "episodes_64_workers_2": rate(80.0, 64),
    "episodes_64_workers_8": rate(80.0, 64),
}
WALLS = {
    "namespace": NAMESPACE,
    "process": {"episode": at(49.0)},
    "container:run": {"episode": at(300.0)},
    "container:exec": {"episode": at(60.0)},
}
FLOORS = {"fork_and_wait": at(0.9), "clone_and_wait": at(0.3)}


def found(**changes) -> dict[str, Ratio]:
    arguments = {"walls": WALLS, "floors": FLOORS, "cores": 2, "episodes": 64, **changes}
    arguments.setdefault("instead", {"fresh_pytest": at(89.0)})
    walls, floors = arguments.pop("walls"), arguments.pop("floors")
    return {ratio.name: ratio for ratio in ratios(walls, floors, **arguments)}


@pytest.mark.parametrize(
    ("name", "value", "met"),
    [
        ("episodes_per_second", 114.0, True),
        ("episode_vs_docker_run", 30.0, True),
        ("episode_vs_docker_exec", 6.0, True),
        ("episode_vs_process_wall", 4.9, False),
        ("reset_above_2_ms_in_forks", 3.0, True),
        ("view_file_ms", 0.19, True),
        ("write_file_ms", 0.21, False),
        ("submit_ms", 12.0, True),
        ("repository_reset_ms", 10.0, True),
        ("repository_copy_ms", 41.0, False),
        ("warm_pytest_vs_fresh", 2.967, False),
        ("two_workers_vs_one", 1.9, True),
        ("eight_workers_vs_two", 109 / 114, True),
        ("two_workers_vs_one_64_episodes", 1.6, False),
        ("eight_workers_vs_two_64_episodes", 1.0, True),
    ],
)
def test_each(name, value, met):
    ratio = found()[name]
    assert ratio.value == pytest.approx(value, abs=2e-3)
    assert ratio.met is met
    assert ratio.why == ""


def test_the_list_is_complete():
    assert len(found()) == 15


def test_a_reset_below_two_milliseconds_is_met():
    walls = {**WALLS, "namespace": {**NAMESPACE, "reset": at(1.5)}}
    assert found(walls=walls)["reset_above_2_ms_in_forks"].met is True


def test_what_was_not_measured_is_neither_met_nor_missed():
    walls = {"namespace": NAMESPACE}
    ratio = found(walls=walls)["episode_vs_docker_run"]
    assert (ratio.value, ratio.met) == (None, None)
    assert ratio.why == "the container:run wall was not measured"
    assert found(instead={})["warm_pytest_vs_fresh"].why == "a fresh python -m pytest was not measured"
    nothing = found(walls={}, floors={})
    assert {ratio.met for ratio in nothing.values()} == {None}
    assert all(ratio.why for ratio in nothing.values())


def test_a_missing_measure_is_named():
    walls = {"namespace": {k: v for k, v in NAMESPACE.items() if k != "steady_workers_8"}}
    assert "steady_workers_8" in found(walls=walls)["eight_workers_vs_two"].why


def test_targets_for_two_processors_are_judged_on_two():
    on_four = found(cores=4)
    assert on_four["two_workers_vs_one"].value == 1.9
    assert on_four["two_workers_vs_one"].met is None
    assert "--cores 2" in on_four["two_workers_vs_one"].why
    assert on_four["submit_ms"].met is True


def test_the_sign_of_a_target():
    assert judged("x", 5.0, ">=", 5).met is True
    assert judged("x", 4.999, ">=", 5).met is False
    assert judged("x", 0.5, "<=", 0.5).met is True
    assert judged("x", 0.50001, "<=", 0.5).met is False
    assert judged("x", None, "<=", 0.5, "no file").as_json() == {
        "value": None,
        "target": "<= 0.5",
        "met": None,
        "why": "no file",
    }
