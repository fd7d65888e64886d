"""It is a real Gymnasium environment: the checker has nothing to say, make and make_vec work."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator

import gymnasium
import pytest
from env_tasks import ADD, DOUBLE, SOLVE
from gymnasium.utils.env_checker import check_env

from tiltyard.cells import Wall
from tiltyard.env import CodeEnv, register

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    before = gymnasium.logger.min_level
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert gymnasium.logger.min_level == before


def test_checker_has_nothing_to_say(wall: Wall) -> None:
    env = CodeEnv([ADD, DOUBLE], wall=wall)
    check_env(env)
    env.close()


@pytest.mark.parametrize("seed", range(8))
def test_checker_whatever_action_it_samples(wall: Wall, seed: int) -> None:
    env = CodeEnv([ADD], wall=wall)
    env.action_space.seed(seed)
    check_env(env, skip_render_check=True)
    env.close()


def test_checker_through_make() -> None:
    made = gymnasium.make("tiltyard/Code-v0", tasks=[ADD, DOUBLE], max_steps=5)
    check_env(made.unwrapped)
    made.close()


def test_make_plays() -> None:
    with gymnasium.make("tiltyard/Code-v0", tasks=[ADD]) as made:
        observation, info = made.reset(seed=1, options={"task_id": "add"})
        assert observation in made.observation_space
        assert info["task_id"] == "add"
        made.step(SOLVE)
        assert made.step({"tool": "submit"})[1:4] == (1.0, True, False)


def test_default_tasks_are_the_bundled_ones() -> None:
    with gymnasium.make("tiltyard/Code-v0") as made:
        assert made.unwrapped.pool.name == "builtin"


@pytest.mark.parametrize(
    "code",
    [
        "import gymnasium, tiltyard; gymnasium.spec('tiltyard/Code-v0')",
        "import tiltyard.env, gymnasium; gymnasium.spec('tiltyard/Code-v0')",
        "import tiltyard, gymnasium; gymnasium.spec('tiltyard/Code-v0')",
        "import tiltyard; from gymnasium import spec; spec('tiltyard/Code-v0')",
        "from tiltyard import CodeEnv; import gymnasium; gymnasium.spec('tiltyard/Code-v0')",
        "import gymnasium; gymnasium.make('tiltyard.env:tiltyard/Code-v0', disable_env_checker=True).close()",
        "import tiltyard, sys; assert not {'gymnasium', 'numpy'} & set(sys.modules)",
    ],
)
def test_imports(code: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


def test_registering_twice_does_nothing() -> None:
    before = gymnasium.registry["tiltyard/Code-v0"]
    register()
    assert gymnasium.registry["tiltyard/Code-v0"] is before


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector(mode: str) -> None:
    envs = gymnasium.make_vec(
        "tiltyard/Code-v0", num_envs=2, vectorization_mode=mode, tasks=[ADD], max_steps=4
    )
    try:
        first, infos = envs.reset(seed=[1, 2])
        assert first[0].startswith("Write add(a, b).")
        assert list(infos["task_id"]) == ["add", "add"]
        seen, rewards, terminated, truncated, _ = envs.step((SOLVE, {"tool": "submit"}))
        assert seen[0].startswith("Wrote solution.py")
        assert seen[1].startswith("Submitted.")
        assert list(rewards) == [0.0, 0.25]
        assert list(terminated) == [False, True]
        assert not truncated.any()
        seen, rewards, terminated, _, infos = envs.step(({"tool": "submit"}, {"tool": "submit"}))
        assert seen[1] == first[1], "the next step resets"
        assert list(rewards) == [1.0, 0.0]
        assert list(terminated) == [True, False]
        assert infos["passed"][0] == 4
        assert envs.action_space.contains(envs.action_space.sample())
    finally:
        envs.close()


def test_async_vector_without_shared_memory() -> None:
    envs = gymnasium.make_vec(
        "tiltyard/Code-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False},
        tasks=[ADD],
    )
    try:
        envs.reset(seed=1)
        assert envs.step(({"tool": "list_files"}, {"tool": "list_files"}))[0][1].startswith("lib.py")
    finally:
        envs.close()


def test_wrappers_may_take_a_wall_object(wall: Wall) -> None:
    made = gymnasium.make("tiltyard/Code-v0", tasks=[ADD], wall=wall)
    made.reset(seed=1)
    assert made.spec is not None
    made.close()
