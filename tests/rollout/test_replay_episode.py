import json
from dataclasses import replace

import pytest

from tiltyard.errors import UsageError
from tiltyard.records import Store
from tiltyard.rollout import replay, run
from tiltyard.rollout.again import play_again

TASK = {
    "id": "add",
    "prompt": "Write add(a, b).",
    "stub": "def add(a, b):\n    raise NotImplementedError\n",
    "ref": "def add(a, b):\n    return a + b\n",
    "visible": ["assert add(1, 2) == 3"],
    "hidden": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
    "meta": {"source": "test", "created": "2026-11", "difficulty": None},
}


class Busy:
    """Uses every tool, makes mistakes, and scores a half."""

    name = "busy"

    def begin(self, task, seed):
        self.actions = iter(
            [
                {"tool": "list_files"},
                "this is no action",
                {"tool": "view_file", "path": "nowhere.py"},
                {"tool": "write_file", "path": "solution.py", "content": "def add(a, b):\n    return 0\n"},
                {
                    "tool": "replace_text",
                    "path": "solution.py",
                    "old": "return 0",
                    "new": "return 3  # é, \ud83c",
                },
                {"tool": "run_tests"},
                {"tool": "submit"},
            ]
        )

    def __call__(self, observation, rng):
        return next(self.actions)


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.jsonl"
    path.write_text(json.dumps(TASK) + "\n")
    return path


@pytest.fixture
def played(tmp_path, pool):
    summary = run(str(pool), Busy(), store=tmp_path / "s.sqlite", seed=9)
    assert summary.total.mean_reward == 0.5 and not summary.voids
    return tmp_path / "s.sqlite", summary.results[0].id


def test_an_episode_is_the_same_when_played_again(played):
    store, id = played
    result = replay(store, id)
    assert result.same and result.difference == ""
    assert result.again.digest == result.recorded.digest
    assert result.again.steps == result.recorded.steps and len(result.recorded.steps) == 7
    assert [step.invalid for step in result.recorded.steps] == [
        False,
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    assert result.as_json()["same"] is True and result.as_json()["reward"] == {"recorded": 0.5, "again": 0.5}


def test_by_the_beginning_of_its_id_and_from_an_open_store(played):
    path, id = played
    with Store(path) as store:
        assert replay(store, id[:6]).same


def test_a_truncated_episode(tmp_path, pool):
    summary = run(str(pool), lambda observation, rng: {"tool": "run_tests"}, store=tmp_path / "t")
    result = replay(tmp_path / "t", summary.results[0].id)
    assert result.same and result.recorded.truncated_by == "steps" and result.recorded.reward == 0.0


def changed(record, n=None, **changes):
    if n is None:
        return replace(record, **changes)
    steps = list(record.steps)
    steps[n] = replace(steps[n], **changes)
    return replace(record, steps=tuple(steps))


@pytest.mark.parametrize(
    ("n", "changes", "found"),
    [
        (
            None,
            {"observation": "Write sub(a, b)."},
            "the first observation differs:\n--- recorded\n+++ played again",
        ),
        (
            0,
            {"observation": "solution.py  1 byte"},
            'step 1 ({"tool":"list_files"}): the observation differs',
        ),
        (5, {"reward": 1.0}, "reward was 1.0 and is 0.0"),
        (6, {"reward": 1.0}, "reward was 1.0 and is 0.5"),
        (1, {"invalid": False}, "invalid was False and is True"),
        (4, {"action": '{"tool":"run_tests"}'}, "step 5"),
        (None, {"verdict": {"reward": 0.5}}, "the verdict differs"),
        (None, {"reward": 0.75}, "the digest was"),
    ],
)
def test_the_first_difference_is_shown(played, n, changes, found):
    store, id = played
    with Store(store) as opened:
        record = changed(opened.episode(id), n, **changes)
    result = play_again(record)
    assert not result.same
    assert found in result.difference


def test_an_episode_with_fewer_or_more_steps(played):
    with Store(played[0]) as opened:
        record = opened.episode(played[1])
    longer = replace(record, steps=(*record.steps, record.steps[0]))
    assert "8 steps were recorded, and it ended after 7" in play_again(longer).difference
    shorter = replace(record, steps=record.steps[:2])
    assert "the verdict differs" in play_again(shorter).difference


def test_a_long_difference_is_cut(played):
    with Store(played[0]) as opened:
        record = opened.episode(played[1])
    result = play_again(replace(record, observation="\n".join(map(str, range(500)))))
    assert "more lines" in result.difference and len(result.difference.split("\n")) < 60


def test_a_task_that_changed_is_not_compared(played, pool):
    pool.write_text(json.dumps(TASK | {"hidden": ["assert add(1, 2) == 4"]}) + "\n")
    with pytest.raises(UsageError, match="is not the one that was played"):
        replay(*played)


def test_a_task_or_a_pool_that_is_gone(played, pool):
    pool.write_text(json.dumps(TASK | {"id": "plus"}) + "\n")
    with pytest.raises(UsageError, match="no task 'add'"):
        replay(*played)
    moved = pool.rename(pool.with_name("moved.jsonl"))
    with pytest.raises(UsageError, match="no such file"):
        replay(*played)
    moved.write_text(json.dumps(TASK) + "\n")
    assert replay(*played, pool=str(moved)).same


def test_tasks_that_were_python_objects(tmp_path):
    summary = run([TASK], "reference", store=tmp_path / "s")
    with pytest.raises(UsageError, match="name its pool"):
        replay(tmp_path / "s", summary.results[0].id)
    assert replay(tmp_path / "s", summary.results[0].id, pool=[TASK]).same


def test_a_void_is_not_compared(tmp_path, pool):
    summary = run(str(pool), lambda observation, rng: 1 / 0, store=tmp_path / "s")
    with pytest.raises(
        UsageError, match=r"is void \(the player raised ZeroDivisionError: division by zero\)"
    ):
        replay(tmp_path / "s", summary.results[0].id)


def test_an_episode_or_store_that_is_not_there(played, tmp_path):
    with pytest.raises(UsageError, match="no episode"):
        replay(played[0], "e-zzz")
    with pytest.raises(UsageError, match="there is no store"):
        replay(tmp_path / "no", "e-1")


def test_a_recorded_episode_as_a_player(played, tmp_path):
    store, id = played
    bigger = [TASK, TASK | {"id": "other"}]
    summary = run(bigger, f"replay:{store}#{id}", attempts=2, store=tmp_path / "again")
    assert [(r.task, r.reward) for r in summary.results] == [("add", 0.5)] * 2
    assert summary.player == f"replay:{store}#{id}"
    with Store(store) as before, Store(tmp_path / "again") as now:
        old, new = before.episode(id), now.episode(summary.results[0].id)
    assert old.steps == new.steps and old.verdict == new.verdict
