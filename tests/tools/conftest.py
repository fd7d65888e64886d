"""A real wall for the tools, one for the whole folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tiltyard.cells import Wall, make_wall


@pytest.fixture(scope="session")
def wall() -> Iterator[Wall]:
    made = make_wall(os.environ.get("TILTYARD_TEST_WALL", "auto"))
    yield made
    made.close()
