"""The namespace wall: the conformance list, and what is this wall's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conformance import CHECKS, Check

from tiltyard.cells.namespace import NamespaceWall, probe

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespace wall here: {probe()}")


@pytest.fixture(scope="module")
def wall() -> Iterator[NamespaceWall]:
    wall = NamespaceWall()
    yield wall
    wall.close()


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: NamespaceWall, check: Check) -> None:
    check.on(wall)
