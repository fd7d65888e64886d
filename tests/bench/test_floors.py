"""What nothing can be faster than."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiltyard.bench.floors import NAMES, Floors, spawned
from tiltyard.errors import ArenaError


def test_a_turn_has_every_floor_and_leaves_no_process():
    with Floors(["json", "no_such_module_anywhere"]) as floors:
        once = floors.once()
        assert once.keys() == NAMES.keys()
        assert all(seconds > 0 for values in once.values() for seconds in values)
        assert len(once["fork_and_wait"]) == len(once["clone_and_wait"]) > 1
        processes = [helper._process for helper in floors._helpers]
        assert [process.poll() for process in processes] == [None, None]
    assert [process.poll() for process in processes] == [0, 0]


def test_a_helper_that_ends_is_an_arena_error():
    with Floors() as floors:
        floors._helpers[0]._process.kill()
        floors._helpers[0]._process.wait()
        with pytest.raises(ArenaError, match="fork_and_wait"):
            floors.once()


def test_a_program_that_fails_has_no_time():
    with pytest.raises(ArenaError, match="ended with status 1"):
        spawned(["/bin/false" if Path("/bin/false").exists() else "/usr/bin/false"])
    with pytest.raises(ArenaError, match="can't be started"):
        spawned(["/nowhere/at/all"])
