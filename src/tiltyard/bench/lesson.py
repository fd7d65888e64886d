"""What is measured: one small task with 8 hidden tests, and the episode of the lesson: look, write, test, submit."""

from __future__ import annotations

from tiltyard.players import ReplayPlayer
from tiltyard.pool import Pool, load
from tiltyard.task import MAIN, Files, Task, Test

_START = """def median(xs):
    \"\"\"The middle value of a list of numbers; of an even number of them, the mean of the middle two.\"\"\"
    raise NotImplementedError
"""

_SOLUTION = """def median(xs):
    \"\"\"The middle value of a list of numbers; of an even number of them, the mean of the middle two.\"\"\"
    if not xs:
        raise ValueError("no values")
    ordered = sorted(xs)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2
"""

_VISIBLE = ("assert median([3, 1, 2]) == 2", "assert median([4, 1, 3, 2]) == 2.5", "assert median([7]) == 7")

_HIDDEN = (
    "assert median([9, 2, 11, 5, 7]) == 7",
    "assert median([10, 40, 20, 31]) == 25.5",
    "assert median([-4]) == -4",
    "assert median([8, 3]) == 5.5",
    "assert median([5, 5, 1, 5, 9, 9]) == 5",
    "assert median([-3, -8, -2, -9]) == -5.5",
    "assert median([2.5, 0.5, 1.5]) == 1.5",
    "try:\n    median([])\nexcept ValueError:\n    pass\nelse:\n    assert False",
)

TASK = Task(
    id="bench/median",
    prompt=f"Write `median(xs)` in `{MAIN}`, as its docstring says. Raise ValueError if there is no value.",
    start=Files({MAIN: _START}),
    reference=Files({MAIN: _SOLUTION}),
    visible=tuple(Test(f"visible/{n}", code=code) for n, code in enumerate(_VISIBLE, 1)),
    hidden=tuple(Test(f"hidden/{n}", code=code) for n, code in enumerate(_HIDDEN, 1)),
    entry=("median",),
)

POOL: Pool = load([TASK])

VIEW = {"tool": "view_file", "path": MAIN}
WRITE = {"tool": "write_file", "path": MAIN, "content": _SOLUTION}
RUN_TESTS = {"tool": "run_tests"}
SUBMIT = {"tool": "submit"}
ACTIONS = (VIEW, WRITE, RUN_TESTS, SUBMIT)


def player() -> ReplayPlayer:
    """Plays the lesson's episode; it scores 1."""
    return ReplayPlayer(ACTIONS)


def plain_runner() -> str:
    """Python that loads ``solution.py`` and runs the hidden tests in one process, as people do who have no arena: it
    is fast to write, and what it grades can write the answer itself. It prints how many passed."""
    return (
        "import json\n"
        f"tests = {[test.code for test in TASK.hidden]!r}\n"
        f"names = {{}}\nexec(compile(open({MAIN!r}).read(), {MAIN!r}, 'exec'), names)\n"
        "passed = 0\n"
        "for test in tests:\n"
        "    try:\n        exec(test, dict(names))\n        passed += 1\n"
        "    except Exception:\n        pass\n"
        "print(json.dumps({'passed': passed, 'total': len(tests)}))\n"
    )
