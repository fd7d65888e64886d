import json
import math
import pickle
from dataclasses import replace
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiltyard.records import (
    EpisodeRecord,
    StepRecord,
    action_from_json,
    canonical_action,
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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_an_action_comes_back_equal_and_its_text_is_canonical(action):
    text = canonical_action(action)
    assert text.isascii()
    assert action_from_json(text) == action
    assert canonical_action(action_from_json(text)) == text


def test_the_order_of_keys_does_not_matter():
    assert canonical_action({"b": 1, "a": 2}) == canonical_action({"a": 2, "b": 1}) == '{"a":2,"b":1}'


def test_what_is_no_json_is_named_without_an_address():
    class Number(IntEnum):
        ONE = 1

    class Liar(dict):
        def items(self):
            raise RuntimeError("no")

    deep = []
    for _ in range(5000):
        deep = [deep]
    loop = {}
    loop["me"] = loop
    assert canonical_action(object()) == '{"$not_json":"object"}'
    assert canonical_action({"x": {1, 2}}) == '{"x":{"$not_json":"set"}}'
    assert canonical_action(Number.ONE) == "1"
    assert canonical_action((1, 2)) == "[1,2]"
    assert "$not_json" in canonical_action(deep)
    assert "$not_json" in canonical_action(loop)
    assert "$not_json" in canonical_action(Liar())
    assert "$not_json" in canonical_action(10**5000)
    assert json.loads(canonical_action("\ud800\0")) == "\ud800\0"


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
