"""One real wall for the environment's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from env_tasks import ADD, DOUBLE

from tiltyard.cells import Wall, make_wall
from tiltyard.env import CodeEnv


@pytest.fixture(scope="session")
def wall() -> Iterator[Wall]:
    made = make_wall(os.environ.get("TILTYARD_TEST_WALL", "auto"))
    yield made
    made.close()


@pytest.fixture
def env(wall: Wall) -> Iterator[CodeEnv]:
    with CodeEnv([ADD, DOUBLE], wall=wall) as made:
        yield made
