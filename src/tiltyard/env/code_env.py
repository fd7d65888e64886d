"""``CodeEnv``: one episode of a coding task, with Gymnasium's shapes. Owns the episode, knows nothing of who plays.

Promises: the same actions on the same task give the same observations, rewards and infos, byte for byte. No action,
whatever it is, raises: a mistake is an observation. A failure of the arena is never a 0: the reward is NaN and
``info["void"]`` says why. Everything that the environment holds is given back by ``close``, by garbage collection and
at exit. Nothing that the player's code touched is used after the submission's bytes were captured.

How an episode ends: ``terminated`` by submit and by nothing else; ``truncated`` with ``info["truncated_by"]`` by the
caps ("steps", "tokens", "time"), because the player's code destroyed its cell ("cell"), or because the arena lost it
and could not make it again by playing the same actions in a fresh one ("arena", void). After the end, step gives the same flags, reward 0.0 and says that the episode is over. Before the
first reset it raises ``gymnasium.error.ResetNeeded``.

A cell opens at the first action that needs one: an episode that only submits never pays for it. One environment is
used by one thread at a time; different ones in different threads are independent.
"""

from __future__ import annotations

import math
import os
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, TypeVar

import gymnasium
from gymnasium.envs.registration import EnvSpec

from tiltyard.cells.protocol import Capture, Cell, CellLimits, CellLost, Wall
from tiltyard.env.episode import Episode, Step
from tiltyard.env.observation import MAX_FIRST, first_observation
from tiltyard.env.overrides import limit_changes
from tiltyard.env.spaces import ToolCallSpace, UnicodeText
from tiltyard.env.walls import Held, take
from tiltyard.env.workspace import Workspace, workspace
from tiltyard.errors import ArenaError, PlayerError, UsageError
from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.task import REWARD_RULES, Files, Limits, RewardRule, Task, Test
from tiltyard.tools import TOOLS, Call, Refusal, hands, parse_action, text
from tiltyard.tools.visible import run_tests

_T = TypeVar("_T")
SUBMITTED = "Submitted. The episode is over."
OVER = "The episode is over; this action was not carried out. reset() starts a new one."
MAX_DEPTH = 32
MAX_SCENES = 256

_ENDED = {
    "steps": "That was the last action of this episode: it is over, without a submission.",
    "tokens": "The token limit of this episode is reached: it is over, without a submission.",
    "time": "The time of this episode is up: it is over, without a submission.",
}


class CodeEnv(gymnasium.Env[str, Any]):
    """A coding task as a Gymnasium environment.

    ``tasks`` is anything that ``tiltyard.pool.load`` takes (a name, a file, a folder, a list of lesson dicts or Tasks)
    or a Pool. ``max_steps`` overrides each task's step limit, ``limits`` any of its limits (a Limits, or a mapping of
    the fields to change), ``reward`` its reward rule ("fraction" or "all"). ``wall`` is a wall's name or a Wall, which
    stays the caller's to close. Raises TaskError and UsageError; a wall that can't be had raises ArenaError at reset.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]

    def __init__(
        self,
        tasks: Any = "builtin",
        max_steps: int | None = None,
        *,
        wall: str | Wall = "auto",
        reward: RewardRule | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._held = Held()
        self._finalizer = weakref.finalize(self, self._held.close)
        if reward is not None and reward not in REWARD_RULES:
            raise UsageError(f"found reward={reward!r}; expected one of {', '.join(REWARD_RULES)}, or None")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"found render_mode={render_mode!r}; expected 'ansi' or None")
        self.pool: Pool = load(tasks)
        if not len(self.pool):
            raise UsageError("found a pool without tasks; expected at least one")
        self.render_mode = render_mode
        self._wall, self._reward = wall, reward
        self._changes = limit_changes(limits, max_steps)
        self._changed: dict[Limits, Limits] = {}
        self._scenes: dict[str, tuple[Task, Workspace, str]] = {}
        self._effective: dict[str, Task] = {}
        self._episode: Episode | None = None
        longest = max(self._limits(task).observation_chars for task in self.pool)
        self.observation_space = UnicodeText(max(MAX_FIRST, longest))
        mains = tuple(dict.fromkeys(task.main for task in self.pool))
        self.action_space = ToolCallSpace(TOOLS, paths=mains[:20])
        self._wall_asked = wall if isinstance(wall, str) else wall.name
        # as gymnasium.make sets it: wrappers, vectors and check_env make copies of an environment from its spec
        made_with: dict[str, Any] = {"tasks": self.pool, "max_steps": max_steps, "wall": self._wall_asked}
        made_with |= {"reward": reward, "limits": limits, "render_mode": render_mode}
        self.spec = EnvSpec("tiltyard/Code-v0", entry_point="tiltyard.env.code_env:CodeEnv", kwargs=made_with)

    # -- what a caller may look at ---------------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task of the current episode; ``env.task["id"]`` works. ResetNeeded before the first reset."""
        return self.episode.task

    @property
    def episode(self) -> Episode:
        """The current episode, for a recorder. ResetNeeded before the first reset."""
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("found no episode; call reset() first")
        return self._episode

    @property
    def wall_name(self) -> str:
        """The kind of the wall in use ("namespace"), or the name that was asked for before the first reset."""
        return self._held.wall.name if self._held.wall is not None else self._wall_asked

    @property
    def limits(self) -> Limits:
        """The limits of the current episode, with what this environment overrides."""
        return self._limits(self.task)

    @property
    def spec(self) -> EnvSpec | None:
        """What Gymnasium makes a copy of this environment from. A Wall is named in it: walls can't be copied."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None and not isinstance(spec.kwargs.get("wall", ""), str):
            spec.kwargs = {**spec.kwargs, "wall": spec.kwargs["wall"].name}
        self._spec = spec

    # -- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None, task_id: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a new episode; the one before is thrown away. Returns the first observation and an info dict.

        The task is ``task_id`` (or ``options["task_id"]``), or else drawn with the environment's generator, which
        ``seed`` sets; without a seed the generator goes on. UsageError for an unknown task or option; ArenaError if
        the wall can't be had.
        """
        super().reset(seed=seed)
        self._episode = None
        if self._held.pid != os.getpid():
            self._held = Held()
        self._held.close_cell()
        task = self._pick(options, task_id)
        if self._held.wall is None:
            self._held.wall, self._held.give_back = take(self._wall)
        self._finalizer.detach()  # the finalizer of an environment that was closed is spent
        self._finalizer = weakref.finalize(self, self._held.close)
        self._place, observation = self._scene(task)
        self._episode = Episode(task, seed, observation, tokens=text.tokens(len(observation)))
        self._deadline = time.monotonic() + self._limits(task).episode_s
        return observation, self._info()

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action (see ``tiltyard.tools.parse_action`` for the forms). Never raises for what it is."""
        episode = self._episode
        if episode is None:
            raise gymnasium.error.ResetNeeded("found a step without an episode; call reset() first")
        if episode.over:
            last = episode.steps[-1]
            return OVER, 0.0, last.terminated, last.truncated, self._info(after_end=True)
        parsed = parse_action(action)
        episode.tokens += text.tokens(parsed.chars)
        facts: dict[str, Any] = {"invalid_action": isinstance(parsed, Refusal)}
        facts["tool"] = parsed.tool if isinstance(parsed, Call) else ""
        reward, terminated, ended_by = 0.0, False, ""
        if time.monotonic() > self._deadline:
            observation, ended_by = "The action was not carried out.", "time"
        else:
            try:
                if isinstance(parsed, Call) and parsed.tool == "submit":
                    observation, reward, terminated = SUBMITTED, self._submit(facts), True
                else:
                    observation = self._again(lambda: self._act(parsed))
            except PlayerError as mistake:
                observation, facts["invalid_action"] = str(mistake), True
            except CellLost as lost:
                observation, reward, ended_by = self._lost(lost, facts)
            except (ArenaError, OSError) as failure:
                observation, reward, ended_by = self._void(failure, facts)
        observation = self._shown(observation)
        if not terminated and not ended_by:
            ended_by = self._cap(observation)
        if ended_by in _ENDED:
            note = "\n" + _ENDED[ended_by]
            observation = (
                text.cut_middle(observation, max(0, self.limits.observation_chars - len(note))) + note
            )
        return self._finish(parsed, observation, reward, terminated, ended_by, facts)

    def render(self) -> str | None:
        """With render_mode "ansi", the last action and observation as text; otherwise None."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() was called without a render mode; make the environment with render_mode='ansi'"
            )
            return None
        episode = self.episode
        if not episode.steps:
            return episode.observation
        step = episode.steps[-1]
        return f"> {text.cut_middle(step.action, 2000)}\n{step.observation}"

    def close(self) -> None:
        """Give back the cell and the wall. May be called twice; reset makes a closed environment usable again."""
        self._episode = None
        self._finalizer.detach()
        self._held.close()

    # -- tasks and limits ------------------------------------------------------------------------------------------

    def _pick(self, options: Mapping[str, Any] | None, task_id: str | None) -> Task:
        options = options or {}
        if unknown := sorted(map(str, set(options) - {"task_id"})):
            raise UsageError(f"found the reset option {unknown[0]!r}; the only one is 'task_id'")
        wanted = options.get("task_id")
        if task_id is not None and wanted is not None and task_id != wanted:
            raise UsageError(
                f"found task_id={task_id!r} and options['task_id']={wanted!r}; expected one of them"
            )
        task_id = task_id if task_id is not None else wanted
        if task_id is None:
            return self.pool[int(self.np_random.integers(len(self.pool)))]
        if not isinstance(task_id, str):
            raise UsageError(
                f"found a task id of type {type(task_id).__name__}; expected a text such as {self.pool[0].id!r}"
            )
        return self.pool[task_id]

    def _scene(self, task: Task) -> tuple[Workspace, str]:
        """A task's workspace and first observation, made once: groups play the same task again and again."""
        found = self._scenes.get(task.id)
        if found is None or found[0] is not task:
            if len(self._scenes) >= MAX_SCENES:
                self._scenes.clear()
            place = workspace(task)
            observation = first_observation(self._as_played(task), self._limits(task), place)
            found = self._scenes[task.id] = task, place, observation
        return found[1:]

    def _limits(self, task: Task) -> Limits:
        if not self._changes:
            return task.limits
        if task.limits not in self._changed:  # asked several times a step
            self._changed[task.limits] = replace(task.limits, **self._changes)
        return self._changed[task.limits]

    def _as_played(self, task: Task) -> Task:
        """The task with what this environment overrides; the task itself if that changes nothing."""
        reward, limits = self._reward or task.reward, self._limits(task)
        if (reward, limits) == (task.reward, task.limits):
            return task
        if task.id not in self._effective:
            self._effective[task.id] = replace(task, reward=reward, limits=limits)
        return self._effective[task.id]

    # -- what an action does ---------------------------------------------------------------------------------------

    def _act(self, parsed: Call | Refusal) -> str:
        if isinstance(parsed, Refusal):
            return parsed.message
        bench = hands.Bench(self._cell(), self.limits, self._place.protected)
        arguments: dict[str, Any] = dict(parsed.arguments)
        if parsed.tool == "run_tests":
            return run_tests(bench.cell, self.task, bench.limits, self._examine)
        tool: Callable[..., str] = getattr(hands, parsed.tool)
        return tool(bench, **arguments)

    def _cell(self) -> Cell:
        """The episode's cell; opened now if it was not needed before."""
        if self._held.cell is None:
            caps = CellLimits(**{f.name: getattr(self.limits, f.name) for f in fields(CellLimits)})
            assert self._held.wall is not None
            self._held.cell = self._held.wall.open(self._place.files, caps)
        return self._held.cell

    def _again(self, what: Callable[[], _T]) -> _T:
        """Do it; where the arena fails or the cell is lost, once more in a fresh cell: what the player's code did to its
        cell it does again, what happened to it by chance does not come back."""
        try:
            return what()
        except (ArenaError, OSError) as failure:
            begun = time.monotonic()
            self._make_again(failure)
            self._deadline += time.monotonic() - begun  # the player does not pay for it
            return what()

    def _make_again(self, failure: Exception) -> None:
        """A fresh cell in which everything was done that the player did so far. ArenaError if it comes out different."""
        self._held.close_cell()
        for step in self.episode.steps:
            parsed = parse_action(step.action)
            try:
                observation = self._act(parsed)
            except PlayerError as mistake:
                observation = str(mistake)
            if self._shown(observation) != step.observation:
                raise ArenaError(
                    f"a cell was lost ({failure}) and the episode came out different when played again"
                )

    def _shown(self, observation: str) -> str:
        return text.cut_middle(text.safe(observation), self.limits.observation_chars)

    def _capture(self, cell: Cell) -> Capture:
        caps = self.limits
        return cell.capture(
            max_file_bytes=caps.file_bytes,
            max_bytes=caps.disk_bytes,
            max_files=caps.disk_files,
            max_depth=MAX_DEPTH,
        )

    def _examine(self, tests: tuple[Test, ...]) -> dict[str, tuple[bool, str]]:
        """Visible tests that need trusted code, graded as hidden ones are, on the files as they are now."""
        files = self._place.submission(self._capture(self._cell()).files)
        verdict = self._grade(replace(self._as_played(self.task), visible=(), hidden=tests), files)
        if verdict.void is not None:
            raise ArenaError(verdict.void)
        return {o.id: (o.passed, o.reason) for o in verdict.outcomes}

    def _grade(self, task: Task, files: Files) -> Any:
        assert self._held.wall is not None
        return Referee(self._held.wall).grade(task, files)

    def _submit(self, facts: dict[str, Any]) -> float:
        """Capture, close the player's cell, grade. The reward, NaN for void; the rest goes to the facts."""
        if self._held.cell is None:
            captured: Mapping[str, bytes] = self._place.files
        else:
            capture = self._again(lambda: self._capture(self._cell()))
            captured = capture.files
            if capture.skipped:
                facts["left_out"] = [f"{path}: {why}" for path, why in capture.skipped]
        self._held.close_cell()
        verdict = self._grade(self._as_played(self.task), self._place.submission(captured))
        facts |= {"verdict": verdict.as_dict(), "passed": verdict.passed, "total": verdict.total}
        if verdict.void is not None:
            facts["void"] = verdict.void
        return math.nan if verdict.reward is None else float(verdict.reward)

    # -- how it ends -----------------------------------------------------------------------------------------------

    def _lost(self, lost: CellLost, facts: dict[str, Any]) -> tuple[str, float, str]:
        if not lost.during_run:
            return self._void(lost, facts)
        return (
            "Your code destroyed the cell that it ran in. The episode is over, without a submission.",
            0.0,
            "cell",
        )

    def _void(self, failure: Exception, facts: dict[str, Any]) -> tuple[str, float, str]:
        facts["void"] = str(failure) or type(failure).__name__
        return (
            "The arena failed, through no fault of yours. The episode is over and does not count.",
            math.nan,
            "arena",
        )

    def _cap(self, observation: str) -> str:
        """Which cap this step reaches, "" if none. Those that the clock does not decide come first."""
        assert self._episode is not None
        if len(self._episode.steps) + 1 >= self.limits.steps:
            return "steps"
        if self._episode.tokens + text.tokens(len(observation)) > self.limits.tokens:
            return "tokens"
        return "time" if time.monotonic() > self._deadline else ""

    def _finish(
        self,
        parsed: Call | Refusal,
        observation: str,
        reward: float,
        terminated: bool,
        ended_by: str,
        facts: dict[str, Any],
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        episode = self.episode
        truncated = bool(ended_by) and not terminated
        if truncated:
            facts["truncated_by"] = ended_by
        if terminated or truncated:
            self._held.close_cell()
        episode.tokens += text.tokens(len(observation))
        info = {**self._info(), "steps": len(episode.steps) + 1, **facts}
        episode.steps.append(
            Step(parsed.canonical, observation, reward, terminated, truncated, _own_copy(info))
        )
        return observation, reward, terminated, truncated, info

    def _info(self, *, after_end: bool = False) -> dict[str, Any]:
        episode = self.episode
        info: dict[str, Any] = {"task_id": episode.task.id, "task_digest": episode.task.digest}
        info |= {"steps": len(episode.steps), "tokens": episode.tokens}
        if after_end:
            info["after_end"] = True
        return info


def _own_copy(value: Any) -> Any:
    """A copy of plain data that shares no dict or list with it; an eighth of what ``copy.deepcopy`` costs."""
    if type(value) is dict:
        return {key: _own_copy(item) for key, item in value.items()}
    if type(value) is list:
        return [_own_copy(item) for item in value]
    return value
