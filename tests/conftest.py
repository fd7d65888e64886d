"""Fixtures for all rooms: the walls that this machine has. Every test that asks for ``wall`` runs on each of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tiltyard.cells import make_wall
from tiltyard.cells.protocol import Wall
from tiltyard.errors import ArenaError

pytest_plugins = ["tests.leftovers"]
# helpers whose asserts are to say what they found
pytest.register_assert_rewrite("conformance", "conformance_hostile", "copies", "breakage_code", "histories")


def pytest_configure() -> None:
    """Where a shell started this in the background, Ctrl-C is ignored, here and in all that is started."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test makes images or environments in the user's cache, or finds any there."""
    before = os.environ.get("TILTYARD_CACHE")
    os.environ["TILTYARD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TILTYARD_CACHE"]
    else:
        os.environ["TILTYARD_CACHE"] = before


@pytest.fixture(scope="session", params=["process", "namespace"])
def wall(request: pytest.FixtureRequest) -> Iterator[Wall]:
    """Each wall that works here; one that does not is skipped with its own reason."""
    try:
        made = make_wall(request.param)
    except ArenaError as error:
        pytest.skip(f"the {request.param} wall can't be had here: {error}")
    yield made
    made.close()
