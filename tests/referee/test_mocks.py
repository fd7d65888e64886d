"""Stand-ins of unittest.mock in the hands of a solution behave as in one process."""

from __future__ import annotations

from textwrap import dedent

from tests.referee.conftest import make_task
from tiltyard.cells.protocol import Wall
from tiltyard.referee import Referee
from tiltyard.task import Files

SOLUTION = """
import random

LIMIT = 3

def enter(f):
    with f as inner:
        return inner.read(LIMIT), len(f)

def lines(names):
    return [line for name in names for line in open(name)]

def roll():
    return random.randint(1, 6)

class Jar:
    def size(self):
        return 2
    def twice(self):
        return 2 * self.size()
"""
TESTS = [
    """
    from unittest.mock import MagicMock
    f = MagicMock()
    f.__enter__.return_value = f
    f.__len__.return_value = 5
    f.read.return_value = "abc"
    assert enter(f) == ("abc", 5)
    f.__enter__.assert_called_once_with()
    f.__exit__.assert_called_once_with(None, None, None)
    f.read.assert_called_once_with(3)
    """,
    """
    import io
    from unittest import mock
    files = {"a": "1\\n2\\n", "b": "3\\n"}
    with mock.patch("solution.open", create=True, side_effect=lambda name: io.StringIO(files[name])) as opened:
        assert lines(["a", "b"]) == ["1\\n", "2\\n", "3\\n"]
    assert [c.args for c in opened.call_args_list] == [("a",), ("b",)]
    """,
    """
    from unittest.mock import patch
    import solution
    with patch("solution.random") as chance, patch.object(solution, "LIMIT", 4):
        chance.randint.return_value = 9
        assert solution.roll() == 9 and solution.LIMIT == 4
        chance.randint.assert_called_once_with(1, 6)
    assert solution.roll() in range(1, 7) and solution.LIMIT == 3
    """,
    """
    from unittest.mock import patch
    with patch.object(Jar, "size", return_value=7) as size:
        assert Jar().twice() == 14
        size.assert_called_once()
    assert Jar().twice() == 4
    """,
]


def test_mocks_and_patches_of_the_solution(wall: Wall) -> None:
    task = make_task(SOLUTION, TESTS)
    verdict = Referee(wall).grade(task, task.reference)
    assert [(o.id, o.reason) for o in verdict.outcomes if not o.passed] == []
    wrong = dedent(SOLUTION).replace("read(LIMIT)", "read(4)").replace("randint(1, 6)", "randint(0, 6)")
    assert [o.passed for o in Referee(wall).grade(task, Files({"solution.py": wrong})).outcomes] == [
        False,
        True,
        False,
        True,
    ]
