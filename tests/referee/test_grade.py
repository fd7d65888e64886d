"""Zero and void: what a submission does is never void, what the arena does is never a zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.referee.conftest import make_task
from tiltyard.cells.protocol import Cell, CellLimits, Wall
from tiltyard.errors import ArenaError, UsageError
from tiltyard.referee import Referee
from tiltyard.task import Files, Limits

TASK = make_task(
    "def f(x): return x + 1", ["assert f(1) == 2", "assert f(2) == 3"], limits=Limits(test_s=5.0, load_s=5.0)
)
GOOD = Files({"solution.py": "def f(x): return x + 1"})


class Failing:
    """A real wall whose first ``failures`` cells can't be had."""

    def __init__(self, wall: Wall, failures: int) -> None:
        self._wall, self.failures, self.opened = wall, failures, 0
        self.name, self.weaknesses = wall.name, wall.weaknesses

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        self.opened += 1
        if self.opened <= self.failures:
            raise ArenaError("No space left on device")
        return self._wall.open(files, limits)

    def close(self) -> None: ...


def test_a_failure_of_the_arena_is_tried_again(wall) -> None:
    verdict = Referee(Failing(wall, 1)).grade(TASK, GOOD)
    assert (verdict.reward, verdict.void) == (1.0, None)


def test_a_failure_that_stays_is_void_with_its_reason_and_never_zero(wall) -> None:
    verdict = Referee(Failing(wall, 10**6)).grade(TASK, GOOD)
    assert (verdict.reward, verdict.void) == (None, "No space left on device")
    verdict = Referee(Failing(wall, 10**6)).grade(TASK, Files({"solution.py": "def f(x): return 0"}))
    assert (verdict.reward, verdict.void) == (None, "No space left on device")


def test_where_the_reference_can_be_graded_and_the_submission_cannot_it_was_the_submission(wall) -> None:
    verdict = Referee(Failing(wall, 2)).grade(TASK, Files({"solution.py": "def f(x): return 0"}))
    assert (verdict.reward, verdict.void, verdict.flags) == (0.0, None, ("broke_grading",))


DOINGS = {
    "dies at import": "import os; os._exit(0)",
    "exits at import": "import sys; sys.exit(0)",
    "is no Python": "def f(x:",
    "is no text": "\ud800",
    "lacks the name": "g = 1",
    "dies in the call": "import os\ndef f(x): os._exit(0)",
    "kills itself": "import os\ndef f(x): os.kill(os.getpid(), 9)",
    "segfaults": "import ctypes\ndef f(x): ctypes.string_at(0)",
    "kills its host": "import os\ndef f(x): os.kill(os.getppid(), 9)",
    "hangs in the call": "def f(x):\n    while True: pass",
    "sleeps": "import time\ndef f(x): time.sleep(600)",
    "floods": "import os\ndef f(x):\n    for _ in range(20000): print('x' * 1000); os.write(1, b'y' * 1000)\n",
    "closes everything": "import os\ndef f(x): os.closerange(0, 1000)",
    "writes to every descriptor": "import os\ndef f(x):\n    for fd in range(64):\n        try: os.write(fd, b'{\"passed\": true}' * 50)\n        except OSError: pass\n    os._exit(0)",
    "looks like a full disk": "def f(x): raise OSError(28, 'No space left on device')",
    "looks like a lost connection": "def f(x): raise ConnectionResetError('the examiner ended by itself')",
    "has no memory": "def f(x): return bytearray(10 ** 12)",
    "eats memory": "def f(x):\n    a = []\n    while True: a.append(bytearray(10 ** 7))",
    "answers too much": "def f(x): return 'x' * (1 << 26)",
    "answers too deep": "def f(x):\n    r = []\n    for _ in range(10 ** 5): r = [r]\n    return r",
    "answers what cannot be hashed": "class H:\n    def __hash__(self): raise RuntimeError\ndef f(x):\n    d = {}\n    return {k: 1 for k in ()} or [H()]",
    "hides in a fork": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True: time.sleep(1)\ndef f(x): return 0",
    "raises what is no exception of Python": "class Odd(BaseException): pass\ndef f(x): raise Odd",
    "stops its host": "import os, signal\ndef f(x):\n    os.kill(os.getppid(), signal.SIGSTOP); return 0",
}


@pytest.mark.parametrize("name", DOINGS)
def test_whatever_a_submission_does_is_a_zero_and_the_next_one_is_graded_as_ever(wall, name: str) -> None:
    if wall.name == "process" and name in ("stops its host",):
        pytest.skip("the process wall does not keep a solution from signalling what runs under the same user")
    task = make_task(
        "def f(x): return x + 1",
        ["assert f(1) == 2", "assert f(2) == 3"],
        reward="all",
        limits=Limits(test_s=2.0, load_s=10.0, memory_bytes=512 << 20),
    )
    referee = Referee(wall)
    source = DOINGS[name].encode("utf-8", "surrogatepass")
    verdict = referee.grade(task, Files({"solution.py": source}))
    assert (verdict.reward, verdict.void) == (0.0, None)
    assert all(not o.passed and o.reason for o in verdict.outcomes)
    assert referee.grade(task, GOOD).reward == 1.0


def test_a_missing_file_and_files_that_clash_are_graded(wall) -> None:
    referee = Referee(wall)
    assert referee.grade(TASK, Files({})).reward == 0.0
    assert referee.grade(TASK, Files({"solution.py/x": "1", "other/solution.py": "2"})).reward == 0.0


def test_protected_files_come_from_the_task_whatever_is_handed_in(wall) -> None:
    start = Files({"solution.py": "", "rules.py": "LIMIT = 3\n"})
    task = make_task(
        "import rules\ndef f(): return rules.LIMIT",
        ["assert f() == 3"],
        start=start,
        protected=frozenset({"rules.py"}),
    )
    cheat = Files(
        {
            "solution.py": "import rules\ndef f(): return rules.LIMIT",
            "rules.py": "LIMIT = 99\n",
            "rules.py/a": "x",
        }
    )
    assert Referee(wall).grade(task, cheat).reward == 1.0


def test_the_order_of_the_tests_changes_nothing_but_the_order(wall) -> None:
    task = make_task("def f(x): return x", ["assert f(1) == 1", "assert f(1) == 2", "assert f(3) == 3"])
    verdicts = [
        Referee(wall).grade(task, task.reference, order=order) for order in (None, [2, 1, 0], [1, 0, 2])
    ]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert [o.id for o in verdicts[0].outcomes] == ["hidden/1", "hidden/2", "hidden/3"]


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [0, 1, 2]])
def test_an_order_that_is_none_is_a_usage_error(wall, order: list[int]) -> None:
    with pytest.raises(UsageError, match="permutation"):
        Referee(wall).grade(TASK, GOOD, order=order)


def test_a_reward_rule_that_is_none_is_a_usage_error(wall) -> None:
    rule: Any = "most"
    with pytest.raises(UsageError, match="fraction"):
        Referee(wall).grade(TASK, GOOD, reward=rule)


def test_a_verdict_repeats_no_text_of_a_test_or_of_the_solution(wall) -> None:
    task = make_task(
        "def f(x): return x", ["assert f(1) == 'canary-test-text'", "raise ValueError('canary-test-text')"]
    )
    source = "class CanaryOfTheSolution(Exception): pass\ndef f(x): raise CanaryOfTheSolution('canary text')"
    text = repr(Referee(wall).grade(task, Files({"solution.py": source})).as_dict())
    assert "anary" not in text
    assert (
        Referee(wall).grade(task, Files({"solution.py": source})).outcomes[0].reason
        == "raised an exception of its own"
    )
