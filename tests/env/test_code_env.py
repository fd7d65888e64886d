"""Episodes, from reset to their end: what is returned, what ends them, what can't be fooled, what is left behind."""

from __future__ import annotations

import gc
import json
import math
import random
import secrets
import threading
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from env_tasks import ADD, DOUBLE, SOLVE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiltyard.cells import Cell, CellLimits, CellLost, Wall
from tiltyard.env import CodeEnv
from tiltyard.env.code_env import OVER, SUBMITTED
from tiltyard.errors import ArenaError, PlayerError, UsageError
from tiltyard.task import Files, Limits, Task, Test

SUBMIT = {"tool": "submit"}
LESSON = [
    {
        "id": "twice",
        "prompt": "Implement twice(x), which returns 2 * x.",
        "stub": "def twice(x):\n    raise NotImplementedError\n",
        "ref": "def twice(x):\n    return 2 * x\n",
        "visible": ["assert twice(1) == 2"],
        "hidden": ["assert twice(1) == 2", "assert twice(0) == 0"],
        "meta": {"source": "test", "created": "2026-11", "difficulty": None},
    }
]


def write(content: str, path: str = "solution.py") -> dict[str, str]:
    return {"tool": "write_file", "path": path, "content": content}


# -- reset -------------------------------------------------------------------------------------------------------


def test_reset_returns_text_and_info(env: CodeEnv) -> None:
    observation, info = env.reset(task_id="add")
    assert observation.startswith("Write add(a, b).")
    assert info == {
        "task_id": "add",
        "task_digest": ADD.digest,
        "steps": 0,
        "tokens": -(-len(observation) // 4),
    }
    assert env.task["id"] == "add"
    assert env.task is env.pool["add"]


def test_lesson_usage(wall: Wall) -> None:
    with CodeEnv(LESSON, 12, wall=wall) as env:
        _, info = env.reset(7)
        assert info["task_id"] == env.task["id"] == "twice"
        assert env.step({"tool": "write_file", "path": "solution.py", "content": LESSON[0]["ref"]})[1:4] == (
            0.0,
            False,
            False,
        )
        assert env.step(SUBMIT)[1:4] == (1.0, True, False)


def test_seed_draws_the_task_and_no_seed_goes_on(wall: Wall) -> None:
    tasks = [replace(ADD, id=f"add{n}") for n in range(20)]

    def drawn(seed: int) -> list[str]:
        with CodeEnv(tasks, wall=wall) as env:
            return [env.reset(seed=seed)[1]["task_id"]] + [env.reset()[1]["task_id"] for _ in range(5)]

    assert drawn(3) == drawn(3)
    assert len({tuple(drawn(s)) for s in range(5)}) == 5
    assert len(set(drawn(3))) > 1


def test_task_by_id_or_option(env: CodeEnv) -> None:
    assert env.reset(options={"task_id": "double"})[1]["task_id"] == "double"
    assert env.reset(seed=1, options={})[1]["task_id"] in ("add", "double")
    for wrong, message in [
        ({"task_id": "ad"}, "did you mean 'add'"),
        ({"options": {"task_id": "ad"}}, "did you mean 'add'"),
        ({"options": {"task": "add"}}, "'task'; the only one is 'task_id'"),
        ({"task_id": 3}, "type int"),
        ({"task_id": "add", "options": {"task_id": "double"}}, "one of them"),
    ]:
        with pytest.raises(UsageError, match=message):
            env.reset(**wrong)  # type: ignore[arg-type]


def test_reset_throws_the_old_episode_away(env: CodeEnv) -> None:
    env.reset(task_id="add")
    env.step(write("left = 1\n", "left.py"))
    env.reset(task_id="add")
    assert "left.py" not in env.step({"tool": "list_files"})[0]


@pytest.mark.parametrize("call", ["step", "task", "episode", "limits"])
def test_before_reset(env: CodeEnv, call: str) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.step(SUBMIT) if call == "step" else getattr(env, call)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_steps": 0}, "'steps'"),
        ({"max_steps": 2.5}, "whole number"),
        ({"limits": {"stepps": 3}}, "'stepps'"),
        ({"limits": {"run_s": float("inf")}}, "finite"),
        ({"limits": {"run_s": True}}, "finite"),
        ({"limits": 3}, "type int"),
        ({"reward": "most"}, "fraction"),
        ({"render_mode": "human"}, "ansi"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CodeEnv([ADD], **arguments)


def test_unknown_wall_is_said_at_reset() -> None:
    with CodeEnv([ADD], wall="paper") as env, pytest.raises(UsageError, match="paper"):
        env.reset()


# -- a whole episode ---------------------------------------------------------------------------------------------


def test_submit_pays_and_ends(env: CodeEnv) -> None:
    env.reset(task_id="add")
    observation, reward, terminated, truncated, info = env.step(SOLVE)
    assert (observation, reward, terminated, truncated) == (
        "Wrote solution.py: 32 bytes, 2 lines.",
        0.0,
        False,
        False,
    )
    assert env.step({"tool": "run_tests"})[0] == "PASSED small\n1 of 1 visible test passed"
    observation, reward, terminated, truncated, info = env.step(SUBMIT)
    assert (observation, reward, terminated, truncated) == (SUBMITTED, 1.0, True, False)
    assert (info["passed"], info["total"], info["steps"]) == (4, 4, 3)
    assert info["verdict"]["reward"] == 1.0
    assert "void" not in info
    assert "truncated_by" not in info


def test_partial_credit_and_the_other_rule(wall: Wall) -> None:
    for rule, reward in ((None, 0.25), ("fraction", 0.25), ("all", 0.0)):
        with CodeEnv([ADD], wall=wall, reward=rule) as env:  # type: ignore[arg-type]
            env.reset()
            assert env.step(SUBMIT)[1] == reward


def test_program(env: CodeEnv) -> None:
    env.reset(task_id="double")
    assert "  expected output:\n    4\n  actual output:\n    0" in env.step({"tool": "run_tests"})[0]
    env.step(write("print(2 * int(input()))\n", "main.py"))
    assert env.step({"tool": "run_tests"})[0] == "PASSED two\n1 of 1 visible test passed"
    assert env.step(SUBMIT)[1] == 1.0


def test_after_the_end_nothing_happens(env: CodeEnv) -> None:
    env.reset(task_id="add")
    env.step(SUBMIT)
    before = list(env.episode.steps)
    for action in (SOLVE, SUBMIT, None):
        observation, reward, terminated, truncated, info = env.step(action)
        assert (observation, reward, terminated, truncated) == (OVER, 0.0, True, False)
        assert info["after_end"] is True
    assert env.episode.steps == before


def test_submission_never_has_what_is_protected(wall: Wall) -> None:
    task = replace(
        ADD,
        id="lib",
        hidden=(Test("h", "assert add(1, 1) == 1"),),
        start=Files({**ADD.start, "solution.py": "from lib import x\ndef add(a, b):\n    return x\n"}),
    )
    with CodeEnv([task], wall=wall) as other:
        other.reset()
        refused = other.step(write("x = 2\n", "lib.py"))
        assert "lib.py is protected" in refused[0]
        assert refused[4]["invalid_action"] is True
        # and by code, in a run of the tests
        other.step(
            write(
                "import os\nos.path.exists('lib.py') and os.remove('lib.py')\nopen('lib.py', 'w').write('x = 2')\ndef add(a, b):\n    return 2\n"
            )
        )
        other.step({"tool": "run_tests"})
        other.step(write("from lib import x\ndef add(a, b):\n    return x\n"))
        assert other.step(SUBMIT)[1] == 1.0, "the task's own lib.py is graded with"


def test_what_can_not_be_handed_in_is_named(env: CodeEnv) -> None:
    env.reset(task_id="add")
    env.step(
        write(
            "import os\nos.mkfifo('pipe')\nos.symlink('/etc/passwd', 'link')\ndef add(a, b):\n    return a + b\n"
        )
    )
    env.step({"tool": "run_tests"})
    _, reward, _, _, info = env.step(SUBMIT)
    assert any(s.startswith("link: ") for s in info["left_out"])
    assert any(s.startswith("pipe: ") for s in info["left_out"])
    assert (
        reward == 0.0 or reward == 1.0
    )  # mkfifo works in the fresh cell, so it is the solution's own matter
    assert reward == 1.0


SPY = """\
import os
def look(word):
    places = [os.getcwd(), os.environ.get("HOME", "/tmp"), os.environ.get("TMPDIR", "/tmp"), "/tmp"]
    files = [os.path.join(base, name) for place in places for base, _, names in os.walk(place) for name in names]
    files += [f"/proc/{pid}/{name}" for pid in os.listdir("/proc") if pid.isdigit() for name in ("cmdline", "environ")]
    for path in files:
        try:
            with open(path, "rb") as file:
                if word.encode() in file.read(1 << 20) and not path.endswith("solution.py"):
                    print("FOUND", path)
        except OSError:
            pass
    print("LOOKED")
"""


def test_nothing_hidden_is_ever_shown(wall: Wall) -> None:
    mark = f"MARK{secrets.token_hex(8)}"
    task = replace(
        ADD,
        hidden=(Test("h", f"assert add(1, 1) == 2, {mark!r}"),),
        prelude=f"oracle = {mark!r}\n",
        reference=Files({"solution.py": f"def add(a, b):\n    return a + b  # {mark}\n"}),
    )
    code = f"{SPY}look({mark[:10]!r} + {mark[10:]!r})\ndef add(a, b): return 0\n"
    actions = [write(code), {"tool": "run_tests"}, {"tool": "list_files"}]
    actions += [
        {"tool": "view_file", "path": p} for p in ("test_hidden.py", "test_visible.py", "solution.py")
    ]
    with CodeEnv([task], wall=wall) as env:
        shown = [env.reset()[0]]
        for action in [*actions, SUBMIT, {"tool": "run_tests"}]:
            observation, *_, info = env.step(action)
            shown += [observation, json.dumps(info)]
        text = "\n".join(shown)
        assert "LOOKED" in text, "the spy did not run"
        assert "FOUND" not in text.replace('print("FOUND"', "")
        assert mark not in text


# -- caps --------------------------------------------------------------------------------------------------------


def test_steps_truncate(wall: Wall) -> None:
    with CodeEnv([ADD], max_steps=2, wall=wall) as env:
        env.reset()
        assert env.step(SOLVE)[2:4] == (False, False)
        observation, reward, terminated, truncated, info = env.step({"tool": "run_tests"})
        assert (reward, terminated, truncated, info["truncated_by"]) == (0.0, False, True, "steps")
        assert observation.startswith("PASSED small")
        assert "without a submission" in observation
        assert env.step(SUBMIT)[0:4] == (OVER, 0.0, False, True)


def test_submit_as_the_last_step_is_a_submission(wall: Wall) -> None:
    with CodeEnv([ADD], max_steps=1, wall=wall) as env:
        env.reset()
        _, reward, terminated, truncated, info = env.step(SUBMIT)
        assert (reward, terminated, truncated) == (0.25, True, False)
        assert "truncated_by" not in info


def test_tokens_truncate(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall, limits={"tokens": 700}) as env:
        env.reset()
        assert env.step(write("x" * 100))[3] is False
        *_, truncated, info = env.step("x" * 2400)
        assert truncated is True
        assert info["truncated_by"] == "tokens"
        assert info["invalid_action"] is True


def test_time_truncates(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall, limits={"episode_s": 0.001}) as env:
        env.reset()
        threading.Event().wait(0.01)
        observation, reward, terminated, truncated, info = env.step(SUBMIT)
        assert (reward, terminated, truncated, info["truncated_by"]) == (0.0, False, True, "time")
        assert "not carried out" in observation


def test_limits_replace_the_tasks(wall: Wall) -> None:
    with CodeEnv([ADD], max_steps=5, wall=wall, limits=Limits(steps=3, observation_chars=300)) as env:
        env.reset()
        assert env.limits.steps == 5
        assert env.limits.observation_chars == 300
        assert len(env.step(write("y" * 5000))[0]) <= 300
        assert len(env.step({"tool": "view_file", "path": "solution.py"})[0]) <= 300


def test_observation_cap_holds_with_the_closing_note(wall: Wall) -> None:
    with CodeEnv([ADD], max_steps=1, wall=wall, limits={"observation_chars": 200}) as env:
        env.reset()
        observation = env.step({"tool": "view_file", "path": "x" * 5000})[0]
        assert len(observation) <= 200
        assert observation.endswith("without a submission.")


# -- garbage -----------------------------------------------------------------------------------------------------


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "action",
    [
        None,
        3,
        math.nan,
        b"x",
        "",
        "{",
        "x" * 10**5,
        [],
        {},
        {"tool": 1},
        {"tool": "nope"},
        {1: 1},
        Hostile(),
        np.zeros(2),
        "\ud800",
    ],
    ids=lambda a: type(a).__name__,
)
def test_garbage_is_an_observation(env: CodeEnv, action: Any) -> None:
    env.reset(task_id="add")
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation.startswith("Invalid action: found ")
    assert observation in env.observation_space
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info["invalid_action"] is True
    assert info["steps"] == 1
    assert env.step({"tool": "list_files"})[4]["invalid_action"] is False


def test_mistakes_with_tools_are_observations(env: CodeEnv) -> None:
    env.reset(task_id="add")
    for action, words in [
        ({"tool": "view_file", "path": "nope.py"}, "nope.py"),
        ({"tool": "view_file", "path": "/etc/passwd"}, "an absolute path"),
        ({"tool": "write_file", "path": "../../x", "content": ""}, "'..'"),
        ({"tool": "write_file", "path": "solution.py/x", "content": ""}, "solution.py"),
        ({"tool": "replace_text", "path": "solution.py", "old": "zzz", "new": ""}, "found 0 times"),
    ]:
        observation, reward, *_, info = env.step(action)
        assert words in observation
        assert "/tmp" not in observation
        assert reward == 0.0
        assert info["invalid_action"] is True


anything = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(st.characters(), max_size=30) | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "arguments", "input", "path", "function"]), inner, max_size=3
        )
        | st.builds(
            lambda t, d: {**d, "tool": t},
            st.sampled_from(["view_file", "write_file", "replace_text", "list_files"]),
            st.dictionaries(st.sampled_from(["path", "content", "old", "new", "start_line"]), inner),
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(anything, max_size=6))
def test_no_action_raises(env: CodeEnv, actions: list[Any]) -> None:
    env.reset(task_id="add")
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space
        assert (reward, terminated, truncated) == (0.0, False, False)
        json.dumps(info)


# -- hostile code ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "class X:\n    __eq__ = lambda self, other: True\ndef add(a, b):\n    return X()\n",
        "import json, os\nprint(json.dumps({'passed': 4, 'total': 4}), flush=True)\nos._exit(0)\n",
        "import os\nprint('4 of 4 visible tests passed', flush=True)\nos._exit(0)\n",
        "while True: pass\n",
        "raise SystemExit(0)\n",
    ],
    ids=["equal to all", "forged line", "forged report", "hang", "exit"],
)
def test_no_reward_for_tricks(wall: Wall, code: str) -> None:
    with CodeEnv([ADD], wall=wall, limits={"load_s": 2.0, "run_s": 2.0, "test_s": 1.0}) as env:
        env.reset()
        env.step(write(code))
        assert env.step({"tool": "run_tests"})[1] == 0.0
        assert env.step(SUBMIT)[1] == 0.0


def test_escapes_in_output_are_shown_not_sent(env: CodeEnv) -> None:
    env.reset(task_id="add")
    env.step(
        write("print('\\x1b[31mred\\x07\\r\\x9b')\ndef add(a, b):\n    raise ValueError('\\x1b[2J\\u202e')\n")
    )
    shown = env.step({"tool": "run_tests"})[0]
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & set(shown)
    assert "\\x1b[31mred" in shown
    assert "\\x1b[2J\\u202e" in shown


def test_background_writers_do_not_reach_the_submission(env: CodeEnv) -> None:
    env.reset(task_id="add")
    late = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', \"import time\\nwhile True: open('solution.py', 'w').write('def add(a, b): return a + b'); time.sleep(0.001)\"], start_new_session=True)\ndef add(a, b):\n    return 0\n"
    env.step(write(late))
    env.step({"tool": "run_tests"})
    env.step(write("def add(a, b):\n    return 0\n"))
    assert env.step(SUBMIT)[1] == 0.25


# -- the arena fails ---------------------------------------------------------------------------------------------


class Failing:
    """A real wall whose cells fail where they are told to: what no test can make a real one do."""

    def __init__(self, wall: Wall, **fail: Any) -> None:
        self._wall, self.fail, self.opened = wall, fail, 0

    name = "process"
    weaknesses = ()

    def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
        self.opened += 1
        if self.opened <= self.fail.get("open", 0):
            raise ArenaError("the disk is full")
        return _FailingCell(self._wall.open(files, limits), self.fail)  # type: ignore[return-value]

    def close(self) -> None:
        pass


class _FailingCell:
    def __init__(self, cell: Cell, fail: dict[str, Any]) -> None:
        self._cell, self._fail = cell, fail

    def __getattr__(self, name: str) -> Any:
        if name in self._fail:

            def failing(*args: Any, **kwargs: Any) -> Any:
                errors = self._fail[name]
                if isinstance(errors, Exception):
                    raise errors
                if errors:
                    raise errors.pop()
                return getattr(self._cell, name)(*args, **kwargs)

            return failing
        return getattr(self._cell, name)


def test_a_cell_that_will_not_open_is_tried_again(wall: Wall) -> None:
    with CodeEnv([ADD], wall=Failing(wall, open=1)) as env:
        env.reset()
        assert env.step({"tool": "list_files"})[0].startswith("lib.py")


@pytest.mark.parametrize("action", [{"tool": "list_files"}, {"tool": "run_tests"}, SOLVE])
def test_no_cell_is_void_never_zero(wall: Wall, action: Any) -> None:
    with CodeEnv([ADD], wall=Failing(wall, open=99)) as env:
        env.reset()
        observation, reward, terminated, truncated, info = env.step(action)
        assert math.isnan(reward)
        assert math.isnan(env.episode.reward)
        assert (terminated, truncated, info["truncated_by"]) == (False, True, "arena")
        assert info["void"] == "the disk is full"
        assert "does not count" in observation
        assert "disk" not in observation


def test_grading_that_fails_is_void(wall: Wall) -> None:
    with CodeEnv([ADD], wall=Failing(wall, open=99)) as env:
        env.reset()
        _, reward, terminated, truncated, info = env.step(SUBMIT)
        assert math.isnan(reward)
        assert (terminated, truncated) == (True, False)
        assert "disk is full" in info["void"]
        assert info["verdict"]["reward"] is None


def test_a_cell_the_arena_lost_is_void(wall: Wall) -> None:
    failing = Failing(wall, list=CellLost("the keeper is gone", during_run=False))
    with CodeEnv([ADD], wall=failing) as env:
        env.reset()
        _, reward, _, truncated, info = env.step({"tool": "list_files"})
        assert math.isnan(reward)
        assert truncated
        assert "keeper" in info["void"]


@pytest.mark.parametrize("broken", ["list", "run", "capture", "read"])
def test_a_cell_the_arena_lost_is_made_again(wall: Wall, broken: str) -> None:
    """What the player wrote, and what its code wrote, is there again; the observations are the same."""
    code = "open('made.txt', 'w').write('by code')\ndef add(a, b):\n    return a + b\n"
    actions = [write(code), {"tool": "run_tests"}, {"tool": "view_file", "path": "no.py"}, "garbage"]
    actions += [
        {"tool": "list_files"},
        {"tool": "view_file", "path": "made.txt"},
        {"tool": "run_tests"},
        SUBMIT,
    ]

    def played(**fail: Any) -> list[Any]:
        failing = Failing(wall, **fail)
        with CodeEnv([ADD], wall=failing) as env:
            env.reset()
            out: list[Any] = []
            for n, action in enumerate(actions):
                if n == 4 and fail:
                    failing.fail[broken].append(CellLost("the keeper is gone", during_run=False))
                out.append(env.step(action))
            assert not fail or failing.fail[broken] == [], "the failure was never met"
            return out

    whole = played()
    assert whole[-1][1] == 1.0
    assert played(**{broken: []}) == whole


def test_a_cell_that_comes_out_different_is_void(wall: Wall) -> None:
    failing = Failing(wall, list=[], read=[])
    with CodeEnv([ADD], wall=failing) as env:
        env.reset()
        env.step({"tool": "view_file", "path": "solution.py"})
        failing.fail["list"].append(CellLost("the keeper is gone", during_run=False))
        failing.fail["read"] = PlayerError("another text")
        _, reward, _, truncated, info = env.step({"tool": "list_files"})
        assert math.isnan(reward)
        assert truncated
        assert "came out different" in info["void"]


def test_a_cell_the_player_destroyed_is_zero(wall: Wall) -> None:
    failing = Failing(wall, run=CellLost("the keeper is gone", during_run=True))
    with CodeEnv([ADD], wall=failing) as env:
        env.reset()
        observation, reward, terminated, truncated, info = env.step({"tool": "run_tests"})
        assert (reward, terminated, truncated, info["truncated_by"]) == (0.0, False, True, "cell")
        assert "void" not in info
        assert "destroyed" in observation


# -- law: the same, nothing shared, nothing left -----------------------------------------------------------------


def play(env: CodeEnv, seed: int) -> list[Any]:
    rng = random.Random(seed)
    out: list[Any] = [env.reset(seed=seed)]
    actions = [
        SOLVE,
        {"tool": "run_tests"},
        {"tool": "list_files"},
        write("def add(a, b):\n    print({'b', 'a', 'c', object().__class__}, id)\n    return {a, b, 'x'}\n"),
        {"tool": "view_file", "path": "solution.py"},
        "garbage",
    ]
    for _ in range(6):
        out.append(env.step(rng.choice(actions)))
    out.append(env.step(SUBMIT))
    return [*out, [s.action for s in env.episode.steps]]


def test_same_seed_same_bytes_one_or_eight(wall: Wall) -> None:
    tasks = [ADD, DOUBLE]
    with CodeEnv(tasks, wall=wall) as env:
        serial = [play(env, seed) for seed in range(8)]

    def one(seed: int) -> list[Any]:
        with CodeEnv(tasks, wall=wall) as own:
            return play(own, seed)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(one, range(8))) == serial


def test_recorded_actions_play_again(env: CodeEnv) -> None:
    first = play(env, 5)
    task, actions = env.task.id, first[-1]
    again: list[Any] = [env.reset(seed=5, task_id=task)]
    again += [env.step(json.loads(a)) for a in actions]
    assert again == first[:-1]
    again = [env.reset(seed=5, task_id=task)]
    again += [env.step(a) for a in actions]
    assert again == first[:-1]


def test_info_is_the_callers(env: CodeEnv) -> None:
    env.reset(task_id="add")
    info = env.step(SUBMIT)[4]
    kept = json.dumps(env.episode.steps[-1].info)
    info["verdict"].clear()
    assert json.dumps(env.episode.steps[-1].info) == kept


def test_episode_for_the_recorder(env: CodeEnv) -> None:
    observation, _ = env.reset(seed=9, task_id="add")
    env.step('{"name": "list_files"}')
    env.step(SUBMIT)
    episode = env.episode
    assert (episode.task.id, episode.seed, episode.observation, episode.over) == ("add", 9, observation, True)
    assert [s.action for s in episode.steps] == ['{"tool":"list_files"}', '{"tool":"submit"}']
    assert [s.terminated for s in episode.steps] == [False, True]
    assert episode.reward == 0.25


def test_submitting_at_once_needs_no_cell_of_its_own(wall: Wall) -> None:
    counting = Failing(wall)
    with CodeEnv([ADD], wall=counting) as env:
        env.reset()
        env.reset()
        assert counting.opened == 0
        env.step({"tool": "list_files"})
        env.step({"tool": "list_files"})
        assert counting.opened == 1


def test_close_twice_and_use_again(wall: Wall) -> None:
    env = CodeEnv([ADD], wall=wall)
    env.close()
    env.reset()
    env.step(SOLVE)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(SUBMIT)
    env.reset()
    assert env.step(SUBMIT)[1] == 0.25
    env.close()


def test_a_wall_that_was_passed_in_stays_open(wall: Wall) -> None:
    env = CodeEnv([ADD], wall=wall)
    env.reset()
    env.step(SOLVE)
    env.close()
    wall.open({}, CellLimits()).close()


def test_a_named_wall_is_shared_and_closed_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiltyard.env import walls

    made, closed = [], []
    real = walls.make_wall

    def counting(name: str) -> Wall:
        wall = real(name)
        made.append(wall)
        close = wall.close
        monkeypatch.setattr(wall, "close", lambda: (closed.append(wall), close()))
        return wall

    monkeypatch.setattr(walls, "make_wall", counting)
    monkeypatch.setattr(walls, "_walls", {})
    first, second = CodeEnv([ADD], wall="process"), CodeEnv([ADD], wall="process")
    first.reset(), second.reset()
    assert first.wall_name == "process"
    assert len(made) == 1
    first.close()
    assert not closed
    assert second.step(SUBMIT)[1] == 0.25
    second.close()
    assert closed == made


def test_garbage_collection_closes_the_cell(wall: Wall) -> None:
    closed = threading.Event()

    class Watched(Failing):
        def open(self, files: Mapping[str, bytes], limits: CellLimits) -> Cell:
            cell: Any = super().open(files, limits)
            cell.close = lambda: (closed.set(), cell._cell.close())
            return cell

    env = CodeEnv([ADD], wall=Watched(wall))
    env.reset()
    env.step({"tool": "list_files"})
    gone = weakref.ref(env)
    del env
    gc.collect()
    assert gone() is None, "something keeps the environment alive"
    assert closed.is_set()


def test_the_end_of_an_episode_closes_its_cell(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall, max_steps=1) as env:
        env.reset()
        env.step({"tool": "list_files"})
        assert env._held.cell is None


def test_threads(wall: Wall) -> None:
    def one(seed: int) -> float:
        with CodeEnv([ADD], wall=wall) as env:
            env.reset(seed=seed)
            if seed % 2:
                env.step(SOLVE)
            return env.step(SUBMIT)[1]

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(one, range(12))) == [0.25, 1.0] * 6


# -- render ------------------------------------------------------------------------------------------------------


def test_render(wall: Wall) -> None:
    with CodeEnv([ADD], wall=wall, render_mode="ansi") as env:
        observation, _ = env.reset()
        assert env.render() == observation
        env.step({"tool": "list_files"})
        shown = env.render()
        assert shown is not None
        assert shown.startswith('> {"tool":"list_files"}\nlib.py')


def test_runs_of_the_wall_are_not_in_the_observation(env: CodeEnv) -> None:
    """The views are the task's, whatever a player's code did to the files."""
    env.reset(task_id="add")
    env.step(write("open('test_visible.py', 'w').write('assert True')\ndef add(a, b):\n    return 0\n"))
    env.step({"tool": "run_tests"})
    assert "FAILED small" in env.step({"tool": "run_tests"})[0]


def test_tests_that_need_the_prelude_run_in_the_examiner(wall: Wall) -> None:
    task = Task(
        id="pre",
        prompt="p",
        start=Files({"solution.py": "def one():\n    return 1\n"}),
        hidden=(Test("h", "assert one() == answer()"),),
        reference=Files({"solution.py": "def one():\n    return 1\n"}),
        visible=(Test("direct", "assert one() == 1"), Test("helped", "assert one() == answer()")),
        entry=("one",),
        prelude="def answer():\n    return 1\n",
    )
    with CodeEnv([task], wall=wall) as env:
        env.reset()
        assert (
            env.step({"tool": "run_tests"})[0] == "PASSED direct\nPASSED helped\n2 of 2 visible tests passed"
        )
        env.step(write("def one():\n    return 2\n"))
        shown = env.step({"tool": "run_tests"})[0]
        assert "FAILED helped: assertion failed" in shown
        assert shown.endswith("0 of 2 visible tests passed")
        assert env.step(SUBMIT)[1] == 0.0
