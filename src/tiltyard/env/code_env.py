"""``CodeEnv``: one episode of a coding task, with Gymnasium's shapes. Owns the episode, knows nothing of who plays.

Promises: the same actions on the same task give the same observations, rewards and infos, byte for byte. No action,
whatever it is, raises: a mistake is an observation. A failure of the arena is never a 0: the reward is NaN and
``info["void"]`` says why. Everything that the environment holds is given back by ``close``, by garbage collection and
at exit. Nothing that the player's code touched is used after the submission's bytes were captured.

How an episode ends: ``terminated`` by submit and by nothing else; ``truncated`` with ``info["truncated_by"]`` by the
caps ("steps", "tokens", "time"), because the player's code destroyed its cell ("cell"), or because the arena lost it
and could not make it again by playing the same actions in another one ("arena", void). After the end, step gives the
same flags, reward 0.0 and says that the episode is over. Before the first reset it raises
``gymnasium.error.ResetNeeded``.

A cell opens at the first action that needs one: an episode that only submits never pays for it, nor does a fork that
is not used. One environment is used by one thread at a time; different ones in different threads are independent.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import gymnasium
from gymnasium.envs.registration import EnvSpec

from tiltyard import patches
from tiltyard.cells.protocol import Cell, CellLost, PackedCell, Wall
from tiltyard.env.clock import Clock
from tiltyard.env.episode import Episode, Step, own_copy
from tiltyard.env.observation import MAX_FIRST, with_end
from tiltyard.env.overrides import limit_changes
from tiltyard.env.scenes import Scenes
from tiltyard.env.snapshot import Snapshot, checked, checked_count, play_again
from tiltyard.env.spaces import ToolCallSpace, UnicodeText
from tiltyard.env.walls import Held, capture, open_cell, pack_cell
from tiltyard.environments import environment_wall
from tiltyard.errors import ArenaError, PlayerError, UsageError
from tiltyard.pool import Pool, load
from tiltyard.referee import Referee
from tiltyard.task import REWARD_RULES, Files, Limits, RewardRule, Task, Test
from tiltyard.tools import Call, Refusal, hands, parse_action, text, tools_of
from tiltyard.tools.code_search import search
from tiltyard.tools.patching import apply_patch
from tiltyard.tools.shell import bash
from tiltyard.tools.visible import run_tests

_T = TypeVar("_T")
SUBMITTED = "Submitted. The episode is over."
HANDS: Mapping[str, Callable[..., str]] = {
    "view_file": hands.view_file,
    "list_files": hands.list_files,
    "write_file": hands.write_file,
    "replace_text": hands.replace_text,
    "apply_patch": apply_patch,
    "search": search,
    "bash": bash,
}
"""What carries out a tool, with a bench and the action's arguments."""
MAX_PATCH = 4 << 20
"""Characters of what was handed in, as a diff in ``info["patch"]``; a longer one is left out."""
OVER = "The episode is over; this action was not carried out. reset() starts a new one."


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
        self._wall = wall
        self._overrides: dict[str, Any] = {"max_steps": max_steps, "reward": reward, "limits": limits}
        self._scenes = Scenes(self.pool, limit_changes(limits, max_steps), reward)
        self._episode: Episode | None = None
        self._packed: tuple[PackedCell, int] | None = None
        """What the cell was opened from, or is to be, with the number of steps that are behind it."""
        longest = max(self._scenes.limits(task).observation_chars for task in self.pool)
        self.observation_space = UnicodeText(max(MAX_FIRST, longest))
        mains = tuple(dict.fromkeys(task.main for task in self.pool))
        tools = tools_of(all(task.shell for task in self.pool))
        self.action_space = ToolCallSpace(tools, paths=mains[:20])
        self._wall_asked = wall if isinstance(wall, str) else wall.name
        # as gymnasium.make sets it: wrappers, vectors and check_env make copies of an environment from its spec
        made_with = {"tasks": self.pool, "wall": self._wall_asked, "render_mode": render_mode}
        made_with |= self._overrides
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
        """The wall in use ("namespace", "container:exec"), or what was asked for before the first reset."""
        if self._held.wall is None or self._wall_asked.startswith(f"{self._held.wall.name}:"):
            return self._wall_asked
        return self._held.wall.name

    @property
    def limits(self) -> Limits:
        """The limits of the current episode, with what this environment overrides."""
        return self._scenes.limits(self.task)

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
        self._drop()
        task = self._scenes.named(options, task_id)
        if task is None:
            task = self.pool[int(self.np_random.integers(len(self.pool)))]
        self._take()
        (self._place, observation), self._behind, self._packed = self._scenes.of(task), False, None
        self._episode = Episode(task, seed, observation, tokens=text.tokens(len(observation)))
        self._clock = Clock(self.limits.episode_s)
        return self._episode.last

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action (see ``tiltyard.tools.parse_action`` for the forms). Never raises for what it is."""
        episode = self._episode
        if episode is None:
            raise gymnasium.error.ResetNeeded("found a step without an episode; call reset() first")
        if episode.over:
            last = episode.steps[-1]
            return OVER, 0.0, last.terminated, last.truncated, {**episode.info, "after_end": True}
        parsed = parse_action(action, tools_of(self.task.shell))
        episode.tokens += text.tokens(parsed.chars)
        facts: dict[str, Any] = {"invalid_action": isinstance(parsed, Refusal)}
        facts["tool"] = parsed.tool if isinstance(parsed, Call) else ""
        reward, terminated, ended_by = 0.0, False, ""
        self._clock.go()
        if self._clock.up:
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
        observation = with_end(observation, ended_by, self.limits.observation_chars)
        return self._finish(parsed, observation, reward, terminated, ended_by, facts)

    def stop_clock(self) -> None:
        """The episode's clock stands until the next step. For a player that waits for a server which is not its own: how
        busy that is must not decide a reward. ResetNeeded before the first reset."""
        if not self.episode.over:
            self._clock.stop()

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

    # -- copies of an episode --------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The episode as it is now, as plain data, with all that lies in its cell, if one is open. ResetNeeded before
        the first reset; one of an episode that is over is good too, and has no cell.

        It leaves the cell as it is: what comes after it in this environment is what would have come without. It costs a
        look at every file in the cell that the player or the task put there, some 20 microseconds each, and a copy of
        their bytes, which the snapshot holds; the episode's clock stands meanwhile."""
        episode, generator = self.episode, self.np_random
        played = self._scenes.as_played(episode.task)
        with self._clock.standing():
            packed = self._pack()
            elapsed_s = self._clock.elapsed_s
        return Snapshot.of(episode, played, elapsed_s, generator, self.np_random_seed, packed)

    def _pack(self) -> PackedCell | None:
        """What lies in the episode's cell, or will as soon as one is needed; None: only playing its steps can tell."""
        cell = self._held.cell
        if self.episode.over:
            return None
        if cell is None:
            return self._packed[0] if self._packed and self._behind else None
        return pack_cell(self._wall_of_cell(), cell) if self._held.pid == os.getpid() else None

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Go on from there, as often as you like; the episode that was played here is thrown away. Returns the last
        observation and info of the snapshot's episode. The clock stands where it stood until the next step. The cell is
        opened by the first action that needs one, which costs what opening one does and some 50 microseconds a file.

        UsageError, with the present episode untouched, if the snapshot's task is not in this environment's pool or
        was played with other limits or another reward rule; ArenaError if the wall can't be had.
        """
        task = checked(snapshot).task_in(self.pool, self._scenes.as_played)
        self._drop()
        self._take()
        self._np_random, self._np_random_seed = snapshot.new_generator(), snapshot.generator_seed
        episode = self._episode = snapshot.episode(task)
        self._place, self._behind = self._scenes.of(task)[0], bool(episode.steps)
        self._packed = None if snapshot.packed is None else (snapshot.packed, len(episode.steps))
        self._clock = Clock(self.limits.episode_s, snapshot.elapsed_s, waiting=True)
        return episode.last

    def fork(self, k: int) -> list[CodeEnv]:
        """``k`` environments at this point of the episode. They share the wall with this one and one snapshot, which is
        taken once; have a cell each as soon as they need it, know nothing of each other, and are closed by the caller. UsageError, ResetNeeded and
        ArenaError as for ``snapshot`` and ``restore``."""
        count, snapshot, forks = checked_count(k), self.snapshot(), list[CodeEnv]()
        try:
            for _ in range(count):
                env = CodeEnv(self.pool, wall=self._wall, render_mode=self.render_mode, **self._overrides)
                forks.append(env)
                env._scenes = self._scenes
                env.restore(snapshot)
        except BaseException:
            for env in forks:
                env.close()
            raise
        return forks

    def _drop(self) -> None:
        """Throw the present episode away."""
        self._episode = None
        if self._held.pid != os.getpid():
            self._held = Held()
        self._held.close_cell()

    def _take(self) -> None:
        """Have a wall, until close."""
        self._held.take(self._wall)
        self._finalizer.detach()  # the finalizer of an environment that was closed is spent
        self._finalizer = weakref.finalize(self, self._held.close)

    # -- what an action does ---------------------------------------------------------------------------------------

    def _act(self, parsed: Call | Refusal) -> str:
        if isinstance(parsed, Refusal):
            return parsed.message
        bench = hands.Bench(self._cell(), self.limits, self._place.protected)
        arguments: dict[str, Any] = dict(parsed.arguments)
        if parsed.tool == "run_tests":
            return run_tests(bench.cell, self.task, bench.limits, self._examine, **arguments)
        return HANDS[parsed.tool](bench, **arguments)

    def _cell(self) -> Cell:
        """The episode's cell; opened now if it was not needed before, and brought to where a snapshot was taken."""
        if self._held.cell is None and self._behind:
            self._play_again("the episode goes on from a snapshot")
        if self._held.cell is None:
            self._held.cell = self._open()
        return self._held.cell

    def _wall_of_cell(self) -> Wall:
        assert self._held.wall is not None
        return environment_wall(self._held.wall, self.task)

    def _open(self, packed: PackedCell | None = None) -> Cell:
        pytest = self.task.grading == "pytest"
        return open_cell(self._wall_of_cell(), self._place.files, self.limits, pytest=pytest, packed=packed)

    def _again(self, what: Callable[[], _T]) -> _T:
        """Do it; where the arena fails or the cell is lost, once more in another cell: what the player's code did to its
        cell it does again, what happened to it by chance does not come back."""
        try:
            return what()
        except (ArenaError, OSError) as failure:
            try:
                self._play_again(f"a cell was lost ({failure})")
            except (ArenaError, OSError) as second:
                if isinstance(failure, CellLost) and failure.during_run:
                    raise failure from second  # or code that shows the clock, then ends its cell, would be void
                raise
            return what()

    def _play_again(self, why: str) -> None:
        """A cell in which everything was done that the player did so far: what a snapshot packed, and then what the steps
        since then did; without such, all steps in a fresh one. ArenaError if one comes out different."""
        self._held.close_cell()
        self._behind = False
        with self._clock.standing():
            try:
                done = 0
                if self._packed is not None:
                    packed, steps = self._packed
                    try:
                        self._held.cell, done = self._open(packed), steps
                    except (ArenaError, OSError) as failure:
                        why = f"{why}, whose cell can't be opened ({failure})"
                play_again(self.episode.steps, done, self._carried_out, why)
            except BaseException:
                self._held.close_cell()  # one that is on half of the way is of no use
                self._behind = True
                raise

    def _carried_out(self, action: Any) -> str:
        """What an action shows, a player's mistake too."""
        try:
            return self._shown(self._act(parse_action(action, tools_of(self.task.shell))))
        except PlayerError as mistake:
            return self._shown(str(mistake))

    def _shown(self, observation: str) -> str:
        return text.cut_middle(text.safe(observation), self.limits.observation_chars)

    def _examine(self, tests: tuple[Test, ...]) -> dict[str, tuple[bool, str]]:
        """Visible tests that need trusted code, graded as hidden ones are, on the files as they are now."""
        taken = capture(self._cell(), self.limits)
        files = self._place.submission(taken.files, taken.skipped)
        verdict = self._grade(replace(self._scenes.as_played(self.task), visible=(), hidden=tests), files)
        if verdict.void is not None:
            raise ArenaError(verdict.void)
        return {o.id: (o.passed, o.reason) for o in verdict.outcomes}

    def _grade(self, task: Task, files: Files) -> Any:
        assert self._held.wall is not None
        return Referee(self._held.wall).grade(task, files)

    def _submit(self, facts: dict[str, Any]) -> float:
        """Capture, close the player's cell, grade. The reward, NaN for void; the rest goes to the facts."""
        if self._held.cell is None and not self._behind:
            submission = self._place.submission(self._place.files)
        else:
            taken = self._again(lambda: capture(self._cell(), self.limits))
            submission = self._place.submission(taken.files, taken.skipped)
            if taken.skipped:
                facts["left_out"] = [f"{path}: {why}" for path, why in taken.skipped]
        self._held.close_cell()
        if self.task.shell:
            start, touched = self.task.start, {*submission, *submission.removed}
            before = {path: start[path] for path in sorted(touched) if path in start}
            patch = patches.diff(before, submission)
            facts["patch"] = patch if len(patch) <= MAX_PATCH else ""
        verdict = self._grade(self._scenes.as_played(self.task), submission)
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
        return "time" if self._clock.up else ""

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
        info = {**episode.info, "steps": len(episode.steps) + 1, **facts}
        episode.steps.append(
            Step(parsed.canonical, observation, reward, terminated, truncated, own_copy(info))
        )
        return observation, reward, terminated, truncated, info
