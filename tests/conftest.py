"""Fixtures for all rooms: the walls that this machine has. Every test that asks for ``wall`` runs on each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError

pytest_plugins = ["tests.leftovers"]


@pytest.fixture(scope="session", params=["process", "namespace"])
def wall(request: pytest.FixtureRequest) -> Iterator[Wall]:
    """Each wall that works here; one that does not is skipped with its own reason."""
    try:
        made = make_wall(request.param)
    except ArenaError as error:
        pytest.skip(f"the {request.param} wall can't be had here: {error}")
    yield made
    made.close()
