"""Turns that are spread over the whole run."""

from __future__ import annotations

import time

from tiltyard.bench.rounds import Job, side_by_side
from tiltyard.errors import ArenaError


def counting(log: list[str], name: str, seconds: float = 0.0):
    def once():
        log.append(name)
        time.sleep(seconds)
        return {name: [seconds]}

    return once


def test_every_job_gets_its_turns_and_the_first_is_not_kept():
    log: list[str] = []
    jobs = [Job(name, counting(log, name), 4, 10.0) for name in "ab"]
    assert side_by_side(jobs) == {}
    assert [job.seconds for job in jobs] == [{"a": [0.0] * 4}, {"b": [0.0] * 4}]
    assert (log.count("a"), log.count("b")) == (5, 5)


def test_without_warming_the_first_turn_counts():
    log: list[str] = []
    job = Job("a", counting(log, "a"), 3, 10.0)
    side_by_side([job], warm=False)
    assert (job.done, len(log)) == (3, 3)


def test_jobs_take_turns_and_none_is_always_first():
    log: list[str] = []
    side_by_side([Job(name, counting(log, name), 6, 10.0) for name in "abc"])
    turns = [log[at : at + 3] for at in range(0, len(log), 3)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns)
    assert {turn[0] for turn in turns} == {"a", "b", "c"}


def test_a_slow_job_gets_fewer_turns_over_the_whole_run():
    log: list[str] = []
    slow = Job("slow", counting(log, "slow", 0.02), 40, 0.08)
    side_by_side([slow, Job("quick", counting(log, "quick"), 40, 10.0)])
    assert 3 <= slow.done <= 4
    measured = log[2:]
    assert "slow" in measured[-len(measured) // 2 :]
    assert measured.count("quick") == 40


def test_a_job_has_its_least_turns_whatever_they_cost():
    log: list[str] = []
    job = Job("a", counting(log, "a", 0.01), 40, 0.0, least=2)
    side_by_side([job])
    assert job.done == 2


def test_one_that_fails_is_given_up_with_its_reason_and_the_others_go_on():
    log: list[str] = []
    calls = 0

    def failing():
        nonlocal calls
        calls += 1
        if calls == 3:
            raise ArenaError("the engine went away")
        return {"x": [1.0]}

    bad, other = Job("bad", failing, 5, 10.0), Job("bad", counting(log, "same group"), 5, 10.0)
    good = Job("good", counting(log, "good"), 5, 10.0)
    assert side_by_side([bad, other, good]) == {"bad": "the engine went away"}
    assert (calls, good.done) == (3, 5)
    assert bad.failed == "the engine went away"
    assert other.done < 5


def test_a_tick_for_every_round():
    ticks: list[int] = []
    side_by_side([Job("a", lambda: {"a": [0.0]}, 7, 10.0)], tick=lambda: ticks.append(1))
    assert len(ticks) == 7
