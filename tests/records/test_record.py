import json
import math
import pickle
from dataclasses import replace

import pytest

from tiltyard.records import (
    EpisodeRecord,
    StepRecord,
    run_digest,
)

VERDICT = {
    "reward": 0.5,
    "passed": 1,
    "total": 2,
    "graded": "calls",
    "flags": [],
    "void": None,
    "outcomes": [],
}


def episode(**changes):
    record = EpisodeRecord(
        task="median",
        task_digest="a" * 64,
        player="reference",
        seed=7,
        run_seed=1,
        observation="Implement median",
        steps=(
            StepRecord('{"tool":"view_file"}', "1: def median"),
            StepRecord('{"tool":"submit"}', "submitted", reward=0.5, terminated=True),
        ),
        reward=0.5,
        verdict=VERDICT,
    )
    return replace(record, **changes)


def test_the_digest_covers_what_replay_must_reproduce():
    whole = episode()
    step = whole.steps[0]
    changed = [
        episode(task_digest="b" * 64),
        episode(seed=8),
        episode(run_seed=2),
        episode(observation="Implement mode"),
        episode(steps=whole.steps[1:]),
        episode(steps=whole.steps[::-1]),
        episode(reward=0.25),
        episode(verdict={**VERDICT, "passed": 2}),
        episode(settings={"reward": "all"}),
        episode(steps=(replace(step, action="{}"), whole.steps[1])),
        episode(steps=(replace(step, observation="2"), whole.steps[1])),
        episode(steps=(replace(step, reward=1.0), whole.steps[1])),
        episode(steps=(replace(step, terminated=True), whole.steps[1])),
        episode(steps=(replace(step, truncated=True), whole.steps[1])),
        episode(steps=(replace(step, truncated_by="steps"), whole.steps[1])),
        episode(steps=(replace(step, invalid=True), whole.steps[1])),
    ]
    digests = {record.digest for record in changed}
    assert len(digests) == len(changed)
    assert whole.digest not in digests
    assert whole.digest == episode().digest


def test_the_digest_leaves_out_what_differs_between_machines():
    same = episode(
        wall="process",
        pool="elsewhere",
        pool_spec="/tmp/x",
        started="2026",
        seconds=3.0,
        versions={},
        id="e-1",
        run="r-1",
        player="replay",
        number=9,
    )
    assert same.digest == episode().digest


def test_the_reason_of_a_void_is_the_machines():
    def void(why):
        return episode(reward=None, void=why, verdict={**VERDICT, "reward": None, "void": why})

    assert void("disk full").digest == void("the worker died").digest != episode().digest


def test_nan_is_none():
    step = StepRecord("{}", "", reward=math.nan)
    assert step.reward is None
    assert episode(reward=math.nan, void="why").reward is None


@pytest.mark.parametrize("changes", [{"reward": None}, {"void": "why"}])
def test_a_reward_or_a_void_and_never_both(changes):
    with pytest.raises(ValueError, match="never both"):
        episode(**changes)


def test_a_record_survives_json_and_pickle():
    record = episode(flags=("delegated_equality",), id="e-1")
    assert EpisodeRecord.from_dict(json.loads(json.dumps(record.as_dict()))) == record
    assert pickle.loads(pickle.dumps(record)) == record
    assert record.as_dict()["digest"] == record.digest


def test_ends():
    assert episode().terminated and not episode().truncated
    assert not episode(steps=()).terminated
    cut = episode(steps=(StepRecord("{}", "", truncated=True, truncated_by="steps"),))
    assert cut.truncated and cut.truncated_by == "steps"
    assert episode().actions == [{"tool": "view_file"}, {"tool": "submit"}]


def test_run_digest_does_not_know_the_order():
    assert run_digest(["b", "a"]) == run_digest(iter(["a", "b"])) != run_digest(["a", "a"])
