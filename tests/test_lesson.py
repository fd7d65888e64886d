"""The lesson that this project was founded on, with our CodeEnv: its loop runs, and its four ways to break it don't."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tiltyard import CodeEnv
from tiltyard.cells import Wall, make_wall
from tiltyard.check import validate
from tiltyard.players import run_episode
from tiltyard.rollout import run

MEDIAN: dict[str, Any] = {
    "id": "median",
    "prompt": "median(xs): the middle value, the mean of the two middle ones for an even count; ValueError if empty.",
    "stub": "def median(xs):\n    raise NotImplementedError\n",
    "ref": (
        "def median(xs):\n"
        "    if not xs:\n"
        "        raise ValueError('nothing to take the median of')\n"
        "    s = sorted(xs)\n"
        "    half = len(s) // 2\n"
        "    return s[half] if len(s) % 2 else (s[half - 1] + s[half]) / 2\n"
    ),
    "visible": ["assert median([3, 1, 2]) == 2"],
    "hidden": [
        "assert median([3, 1, 2]) == 2",
        "assert median([1, 2, 3, 4]) == 2.5",
        "assert median([5]) == 5",
        "try:\n    median([])\nexcept ValueError:\n    pass\nelse:\n    raise AssertionError('no ValueError')",
    ],
    "meta": {"source": "test", "created": "2026-11", "difficulty": None},
}
DOUBLE: dict[str, Any] = {
    "id": "double",
    "prompt": "double(x): twice x.",
    "stub": "def double(x):\n    raise NotImplementedError\n",
    "ref": "def double(x):\n    return 2 * x\n",
    "visible": ["assert double(1) == 2"],
    "hidden": ["assert double(1) == 2", "assert double(-3) == -6", "assert double('ab') == 'abab'"],
    "meta": {"source": "test", "created": "2026-11", "difficulty": 1},
}
TASKS = [MEDIAN, DOUBLE]


@pytest.fixture(scope="module")
def wall() -> Iterator[Wall]:
    made = make_wall(os.environ.get("TILTYARD_TEST_WALL", "auto"))
    yield made
    made.close()


def write(content: str) -> dict[str, str]:
    return {"tool": "write_file", "path": "solution.py", "content": content}


def score(env: CodeEnv, content: str, task_id: str = "median") -> float:
    """What a solution is worth, its tests run before."""
    env.reset(task_id=task_id)
    env.step(write(content))
    env.step({"tool": "run_tests"})
    _, reward, terminated, _, _ = env.step({"tool": "submit"})
    assert terminated
    return reward


# -- the loop ----------------------------------------------------------------------------------------------------


def baseline(env: CodeEnv, policy: Any, seed: int) -> dict[str, Any]:
    """The loop as a user writes it: seed, step, both ends, env.task["id"]."""
    rng = random.Random(seed)
    observation, _ = env.reset(seed=seed)
    for steps in range(1, 1000):
        observation, reward, terminated, truncated, _ = env.step(policy(observation, rng))
        if terminated or truncated:
            return {"task": env.task["id"], "reward": reward, "steps": steps, "truncated": truncated}
    raise AssertionError("an episode without end")


def test_baselines(wall: Wall) -> None:
    def fixer(observation: str, rng: random.Random) -> dict[str, Any]:
        if "Implement" in observation or "solution.py (" in observation:
            task = MEDIAN if "median" in observation else DOUBLE
            return write(task["ref"])
        return {"tool": "submit"}

    with CodeEnv(TASKS, max_steps=12, wall=wall) as env:
        noop = [baseline(env, lambda o, r: {"tool": "submit"}, s) for s in range(10)]
        assert {e["reward"] for e in noop} == {0.0}
        assert {e["task"] for e in noop} == {"median", "double"}
        fixed = [baseline(env, fixer, s) for s in range(10)]
        assert {e["reward"] for e in fixed} == {1.0}
        assert [e["task"] for e in fixed] == [e["task"] for e in noop]
        endless = baseline(env, lambda o, r: {"tool": "view_file", "path": "solution.py"}, 0)
        assert (endless["reward"], endless["steps"], endless["truncated"]) == (0.0, 12, True)


# -- 1: leak the answer key --------------------------------------------------------------------------------------


def test_hidden_tests_can_not_be_read(wall: Wall) -> None:
    """A player that opens every file that it can see or guess, and solves by heart whatever asserts it finds."""
    with CodeEnv([MEDIAN], wall=wall) as env:
        observation, _ = env.reset()
        names = [line.split()[0] for line in env.step({"tool": "list_files"})[0].split("\n")]
        names += [
            "test_hidden.py",
            "../test_hidden.py",
            "hidden",
            "tests/test_hidden.py",
            "/proc/self/environ",
        ]
        seen = observation + "".join(env.step({"tool": "view_file", "path": name})[0] for name in names)
        known = dict(re.findall(r"assert median\((\[.*?\])\) == (\d+)", seen))
        assert known == {"[3, 1, 2]": "2"}, "only the visible test can be known"
        cases = "".join(f"    if xs == {x}:\n        return {y}\n" for x, y in known.items())
        env.step(write(f"def median(xs):\n{cases}"))
        assert env.step({"tool": "submit"})[1] == 0.25


# -- 2: fake the score -------------------------------------------------------------------------------------------

EQUAL_TO_ALL = "class X:\n    __eq__ = lambda self, other: True\n\n\ndef median(xs):\n    return X()\n"
FORGED_LINE = "import json, os\nprint(json.dumps({'passed': 4, 'total': 4}), flush=True)\nos._exit(0)\n"


@pytest.mark.parametrize("exploit", [EQUAL_TO_ALL, FORGED_LINE], ids=["equal to all", "forged line"])
def test_a_faked_score_is_zero(wall: Wall, exploit: str) -> None:
    with CodeEnv([MEDIAN], wall=wall) as env:
        assert score(env, exploit) == 0.0
        assert score(env, MEDIAN["ref"]) == 1.0, "and an honest solution after it is still 1"


# -- 3: make it nondeterministic ---------------------------------------------------------------------------------

UNORDERED = {
    **DOUBLE,
    "id": "letters",
    "prompt": "letters(xs): the texts of the list, each once.",
    "stub": "def letters(xs):\n    raise NotImplementedError\n",
    "ref": "def letters(xs):\n    return set(xs)\n",
    "visible": [],
    "hidden": [
        "assert len(letters(['b', 'a', 'c'])) == 3",
        "assert list(letters(['b', 'a', 'c'])) == ['b', 'c', 'a']",
    ],
}


def ordered_as_seed_0() -> dict[str, Any]:
    """The same task with the order that hash seed 0 gives, so that a run with one seed can't tell."""
    import subprocess
    import sys

    code = "print(list({'b', 'a', 'c'}))"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    order = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return {
        **UNORDERED,
        "hidden": [UNORDERED["hidden"][0], f"assert list(letters(['b', 'a', 'c'])) == {order.stdout}"],
    }


def test_a_test_of_set_order_makes_a_task_unfit() -> None:
    report = validate([ordered_as_seed_0(), MEDIAN], repeats=5)
    outcomes = {task.task: (task.outcome, task.reason) for task in report.tasks}
    assert outcomes["letters"][0] == "unfit"
    assert outcomes["letters"][1]
    assert outcomes["median"] == ("fit", "")


# -- 4: share state between environments -------------------------------------------------------------------------


class SometimesRight:
    """Writes the solution, half of it or nothing, by chance, in several steps: any mix-up of folders changes a reward."""

    def begin(self, task: Any, seed: int | None) -> None:
        self.reference = task.reference["solution.py"].decode()
        self.turn = 0

    def __call__(self, observation: str, rng: random.Random) -> dict[str, Any]:
        self.turn += 1
        if self.turn == 1:
            self.right = rng.random() < 0.5
            return write("value = 'wrong'\n")
        if self.turn == 2:
            return write(
                self.reference if self.right else "def median(xs):\n    return 2\n\n\ndouble = median\n"
            )
        if self.turn == 3:
            return {"tool": "run_tests"}
        return {"tool": "submit"}


def test_eight_workers_give_the_serial_rewards() -> None:
    def rewards(workers: int) -> tuple[list[Any], str]:
        summary = run(TASKS, SometimesRight(), episodes=24, workers=workers, seed=5)
        assert not summary.voids
        return [(r.task, r.reward) for r in summary.results], summary.digest

    serial, digest = rewards(1)
    assert len({r for _, r in serial}) > 2, "all alike would show nothing"
    assert rewards(8) == (serial, digest)


def test_environments_side_by_side_share_nothing(wall: Wall) -> None:
    envs = [CodeEnv([DOUBLE], wall=wall) for _ in range(8)]
    try:
        for env in envs:
            env.reset()
        for n, env in enumerate(envs):
            env.step(write(DOUBLE["ref"] if n % 2 else f"def double(x):\n    return {n}\n"))
        assert [env.step({"tool": "submit"})[1] for env in envs] == [0.0, 1.0, 1 / 3, 1.0, 0.0, 1.0, 0.0, 1.0]
    finally:
        for env in envs:
            env.close()


def test_run_episode_is_the_same_loop(wall: Wall) -> None:
    with CodeEnv(TASKS, wall=wall) as env:
        result = run_episode(env, lambda o, r: {"tool": "submit"}, 3)
        by_hand = baseline(env, lambda o, r: {"tool": "submit"}, 3)
    assert (result.task, result.reward, result.steps) == (
        by_hand["task"],
        by_hand["reward"],
        by_hand["steps"],
    )
