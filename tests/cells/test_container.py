"""The container wall: the conformance list, its three modes, the referee on it, faults of the engine, and cleaning up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import CHECKS, LONG, Check, eventually, py, said, still_works
from engine_fixture import Engine, Unavailable, running

from tiltyard.cells import CellLimits, Run
from tiltyard.cells.container import ContainerWall


@pytest.fixture(scope="module")
def docker() -> Iterator[Engine]:
    """An engine, which DOCKER_HOST names while these tests run."""
    with tempfile.TemporaryDirectory(prefix="ty-") as folder, pytest.MonkeyPatch.context() as patch:
        try:
            with running(Path(folder) / "engine") as engine:
                patch.setenv("DOCKER_HOST", engine.host)
                yield engine
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.fixture(scope="module")
def wall(docker: Engine) -> Iterator[ContainerWall]:
    wall = ContainerWall()
    yield wall
    wall.close()


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: ContainerWall, check: Check) -> None:
    check.on(wall)
