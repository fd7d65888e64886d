"""The process wall: the conformance list, and what is this wall's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import conformance
import pytest
from conformance import CHECKS, LONG, Check, eventually, find, none_left, py, said

from tiltyard.cells import CellLimits, CellLost, ProcessWall, Run, client, make_wall
from tiltyard.errors import ArenaError, UsageError


@pytest.fixture(scope="module")
def wall() -> Iterator[ProcessWall]:
    wall = ProcessWall()
    yield wall
    wall.close()


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: ProcessWall, check: Check) -> None:
    check.on(wall)
