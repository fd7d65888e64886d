"""The record of an episode, of its steps, and of the run that it belongs to. Data only, immutable, picklable.

A record holds enough to play its episode again byte for byte: the task's digest, the seeds, every action in canonical
JSON. ``EpisodeRecord.digest`` covers exactly what must be equal then, and so never a time, a wall's name, a worker, an
id, a path, a model's words beside its actions, or what they cost.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tiltyard import __version__

MAX_SEED = (1 << 63) - 1


def versions() -> dict[str, str]:
    """What this episode was played with: tiltyard, Python, platform."""
    return {
        "tiltyard": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
    }


def finite(reward: float | None) -> float | None:
    """NaN (void) and None as None; any other reward unchanged."""
    return None if reward is None or math.isnan(reward) else float(reward)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step: what was asked (canonical JSON), what came back, and whether that ended the episode.

    ``reward`` is None where the environment gave NaN (void). ``truncated_by`` names the cap ("steps", "tokens",
    "time"; "" if none). ``invalid`` says that the action could not be done, a player's mistake. ``seconds`` is the
    wall-clock that the environment took for it, 0.0 where it was not measured; steps are equal whatever it is.
    """

    action: str
    observation: str
    reward: float | None = 0.0
    terminated: bool = False
    truncated: bool = False
    truncated_by: str = ""
    invalid: bool = False
    seconds: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", finite(self.reward))


REPLAYED = ("action", "observation", "reward", "terminated", "truncated", "truncated_by", "invalid")
"""The fields of a step that must be equal on replay."""
ROLES = ("system", "user", "assistant", "tool", "note")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model was sent and wrote, in tokens as its server counts them, and what that cost.

    ``input_tokens`` counts all of the input; ``cache_read_tokens`` and ``cache_write_tokens`` are parts of it.
    ``cost_usd`` is None where no price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None

    @classmethod
    def total(cls, parts: Iterable[Usage]) -> Usage:
        """The sum; its cost is None if that of any part is unknown, or if there is none."""
        found = list(parts)
        costs = [part.cost_usd for part in found if part.cost_usd is not None]
        return cls(
            sum(part.input_tokens for part in found),
            sum(part.output_tokens for part in found),
            sum(part.cache_read_tokens for part in found),
            sum(part.cache_write_tokens for part in found),
            math.fsum(costs) if costs and len(costs) == len(found) else None,
        )


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """One message of an episode that a model played. A ``note`` is the arena's own, which the model never saw.

    An ``assistant`` message is one turn: ``text``, ``reasoning``, and ``calls``, a mapping each with ``id``, ``name``,
    ``arguments`` (as the model gave them) and ``step`` (the index of the step that it became; None if it was not
    carried out). ``stop_reason`` is the server's word; ``seconds`` how long the answer took, with ``retries`` tries
    that failed and the waiting between them; ``usage`` what it took. A ``tool`` message answers ``call_id`` with the
    observation of ``step``; a ``user`` message that is an observation names its step too. ``at`` is UTC, ISO format.
    """

    role: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    call_id: str = ""
    step: int | None = None
    stop_reason: str = ""
    seconds: float = 0.0
    retries: int = 0
    usage: Usage = Usage()
    at: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode from reset to its end.

    ``pool_spec`` is what the pool was loaded from (``builtin``, ``humaneval:/path/file``), "" where it was given as
    Python objects. ``run_seed`` is None for an episode that belongs to no run. ``number`` is its place in the run's
    plan, ``attempt`` counts the attempts at one draw of a task from 0. ``observation`` is the first one, from reset.
    ``reward`` is in [0, 1], or None and ``void`` says why. ``verdict`` is ``Verdict.as_dict()``, or None where the
    episode ended without one. ``started`` is UTC in ISO format; ``seconds`` wall-clock. ``id`` and ``run`` are given
    by the store. Where a model played: ``model`` is its name, ``messages`` the transcript, ``usage`` what all turns
    took, and ``ended_by`` why the player came to its end ("submit", or what it was submitted for: "stop", "turns",
    "tokens", "context", "refusal"); the replay needs none of them. ``patch`` is what was handed in, as a unified diff
    against the start, where the task gives a shell.
    """

    task: str
    task_digest: str
    player: str
    seed: int
    observation: str = ""
    steps: tuple[StepRecord, ...] = ()
    reward: float | None = None
    verdict: Mapping[str, Any] | None = None
    void: str | None = None
    flags: tuple[str, ...] = ()
    wall: str = ""
    pool: str = ""
    pool_version: str = ""
    pool_digest: str = ""
    pool_spec: str = ""
    run_seed: int | None = None
    attempt: int = 0
    number: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the environment was made with, beyond the task, and can change a reward: ``reward``, ``max_steps``."""
    versions: Mapping[str, str] = field(default_factory=versions)
    started: str = ""
    seconds: float = 0.0
    id: str = ""
    run: str = ""
    model: str = ""
    ended_by: str = ""
    usage: Usage = Usage()
    messages: tuple[MessageRecord, ...] = ()
    patch: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", finite(self.reward))
        if (self.reward is None) != (self.void is not None):
            raise ValueError("an episode has a reward or is void with a reason, and never both")

    @property
    def terminated(self) -> bool:
        return bool(self.steps) and self.steps[-1].terminated

    @property
    def truncated(self) -> bool:
        return bool(self.steps) and self.steps[-1].truncated

    @property
    def truncated_by(self) -> str:
        return self.steps[-1].truncated_by if self.steps else ""

    @property
    def turns(self) -> int:
        """How often a model was asked."""
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def actions(self) -> list[Any]:
        """The actions that were played, as Python objects."""
        return [json.loads(step.action) for step in self.steps]

    @property
    def digest(self) -> str:
        """SHA-256, 64 hex digits, over what must be equal on replay: the task's digest, seeds, the actions,
        observations, rewards and ends of all steps, the patch, and the verdict. Of a void only that it is one, because the
        reason is the machine's."""
        verdict = (
            None if self.verdict is None else {**self.verdict, "void": self.verdict.get("void") is not None}
        )
        whole = {
            "task": self.task_digest,
            "seeds": [self.run_seed, self.seed],
            "settings": dict(self.settings),
            "observation": self.observation,
            "steps": [{name: getattr(step, name) for name in REPLAYED} for step in self.steps],
            "reward": self.reward,
            "void": self.void is not None,
            "verdict": verdict,
        } | ({"patch": self.patch} if self.patch else {})
        return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, the digest included."""
        out = asdict(self)
        out["verdict"] = None if self.verdict is None else dict(self.verdict)
        out["digest"] = self.digest
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The record that :meth:`as_dict` wrote, also after JSON. The digest in it is not trusted, but made anew."""
        fields = {key: value for key, value in data.items() if key != "digest"}
        fields["steps"] = tuple(StepRecord(**step) for step in fields.get("steps", ()))
        fields["flags"] = tuple(fields.get("flags", ()))
        fields["usage"] = Usage(**fields.get("usage", {}))
        fields["messages"] = tuple(
            MessageRecord(**{**message, "calls": tuple(message["calls"]), "usage": Usage(**message["usage"])})
            for message in fields.get("messages", ())
        )
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run: many episodes of one player on one pool. ``finished`` is "" while it goes on or was cut short."""

    pool: str
    pool_version: str
    pool_digest: str
    player: str
    wall: str
    seed: int
    pool_spec: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    started: str = ""
    finished: str = ""
    id: str = ""


def run_digest(episode_digests: Iterable[str]) -> str:
    """SHA-256 over the sorted digests of episodes: the same for any number of workers and any order."""
    return hashlib.sha256("\n".join(sorted(episode_digests)).encode()).hexdigest()
