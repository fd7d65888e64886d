import pickle
from typing import Any

import pytest

from tiltyard.errors import TaskError, UsageError
from tiltyard.pool import Pool, UnknownTaskError, load


def make(lesson: dict[str, Any], *ids: str) -> Pool:
    tags = {"median": ["lists"], "mode": ["lists", "dicts"]}
    return load([{**lesson, "id": id_, "tags": tags.get(id_, [])} for id_ in ids])


def test_a_pool_is_a_sequence_that_knows_its_ids(lesson: dict[str, Any]) -> None:
    pool = make(lesson, "median", "mode", "mean")
    assert pool.ids == ("median", "mode", "mean")
    assert [task.id for task in pool] == list(pool.ids)
    assert len(pool) == 3
    assert pool[0] is pool["median"] and pool[-1].id == "mean"
    assert isinstance(pool[1:], Pool) and pool[1:].ids == ("mode", "mean")
    assert "mode" in pool and pool[1] in pool and "nix" not in pool
    assert pool.index(pool["mode"]) == 1
    with pytest.raises(IndexError):
        pool[3]


def test_an_unknown_id_says_what_is_near(lesson: dict[str, Any]) -> None:
    pool = make(lesson, "median", "mode")
    with pytest.raises(KeyError, match="did you mean 'median'") as caught:
        pool["medain"]
    assert isinstance(caught.value, UsageError) and isinstance(caught.value, UnknownTaskError)
    assert str(caught.value) == "no task 'medain' in pool 'tasks'; did you mean 'median'?"
    with pytest.raises(UsageError, match="it has: median, mode"):
        pool["xyzzy"]
    with pytest.raises(UsageError, match="did you mean 'median'"):
        pool["MEDIAN"]


def test_the_digest_depends_on_what_decides_rewards_and_on_the_order(lesson: dict[str, Any]) -> None:
    pool = make(lesson, "a", "b")
    assert pool.digest == make(lesson, "a", "b").digest
    assert pool.digest != make(lesson, "b", "a").digest
    assert pool.digest != pool[:1].digest
    noted = load([{**lesson, "id": id_, "meta": {"source": "elsewhere"}} for id_ in "ab"])
    assert noted.digest == pool.digest
    harder = load(
        [{**lesson, "id": id_, "hidden": [*lesson["hidden"], "assert median([1]) == 1"]} for id_ in "ab"]
    )
    assert harder.digest != pool.digest


def test_a_pool_can_be_pickled_and_compared(lesson: dict[str, Any]) -> None:
    pool = make(lesson, "a", "b")
    again = pickle.loads(pickle.dumps(pool))
    assert again == pool and again.digest == pool.digest and again["b"] == pool["b"]
    assert hash(again) == hash(pool)
    with pytest.raises(AttributeError):
        pool.name = "other"  # type: ignore[misc]


def test_two_tasks_of_one_id_make_no_pool(lesson: dict[str, Any]) -> None:
    task = make(lesson, "a")[0]
    with pytest.raises(TaskError, match="'a' more than once"):
        Pool("p", 1, (task, task))


@pytest.mark.parametrize(
    ("tasks", "tags", "ids"),
    [
        ((), (), ("median", "mode", "mean")),
        (("m*n",), (), ("median", "mean")),
        (("mean", "median"), (), ("median", "mean")),
        ((), ("lists",), ("median", "mode")),
        ((), ("lists", "dicts"), ("median", "mode")),
        (("mo*",), ("lists",), ("mode",)),
        ("mode", "dicts", ("mode",)),
    ],
)
def test_filters(lesson: dict[str, Any], tasks: Any, tags: Any, ids: tuple[str, ...]) -> None:
    pool = make(lesson, "median", "mode", "mean")
    chosen = load(pool, tasks=tasks, tags=tags)
    assert chosen.ids == ids
    assert (chosen.name, chosen.version) == (pool.name, pool.version)


@pytest.mark.parametrize(
    ("tasks", "tags", "message"),
    [
        (("medain",), (), "matches 'medain'; did you mean 'median'"),
        (("median", "x*"), (), "matches 'x\\*'; the tasks are: median, mode"),
        ((), ("list",), "has the tag 'list'; did you mean 'lists'"),
        ((), ("zzz",), "the tags are: dicts, lists"),
        (("median",), ("dicts",), "at once"),
    ],
)
def test_a_filter_that_selects_nothing_says_what_there_is(
    lesson: dict[str, Any], tasks: Any, tags: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make(lesson, "median", "mode").select(tasks, tags)


def test_an_id_with_glob_characters_can_be_named(lesson: dict[str, Any]) -> None:
    assert make(lesson, "a[1]", "a1").select(["a[1]"]).ids == ("a[1]", "a1")
    assert make(lesson, "a[x]", "b").select(["a[x]"]).ids == ("a[x]",)
