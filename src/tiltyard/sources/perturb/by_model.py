"""Prompts reworded by a language model, in place of the templates. What a model answers is checked, never trusted.

An answer is taken if it keeps every piece of code and of data, every quote and every number of the prose, adds none, and is
neither much shorter nor much longer; the model is told what it lost and asked again. A task for which it does not succeed
keeps its words, with the reason.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiltyard.players.model import Hopeless, ModelFailed, ModelPlayer
from tiltyard.sources.perturb.wording import lost
from tiltyard.task import Task
from tiltyard.workers import Progress

SYSTEM = """\
You rewrite the statement of a programming task in other words. Say exactly the same: nothing more, nothing less, nothing \
vaguer. Use other words and other sentences, and another order where that helps. Copy every code block, everything in \
backticks, everything in quotes and every number as it is. Answer with the new statement between <statement> and \
</statement>, and nothing else."""
TRIES = 3
_ANSWER = re.compile(r"<statement>\s*(.*?)\s*</statement>", re.DOTALL)
_LONGEST, _SHORTEST = 2.5, 0.4


@dataclass(frozen=True, slots=True)
class Words:
    """One answer, for a progress bar."""

    prompt: str
    reason: str

    @property
    def outcome(self) -> str:
        return "reworded" if self.prompt else "as it was"


@dataclass
class ModelWords:
    """Asks ``player`` for other words, ``concurrency`` at a time."""

    player: ModelPlayer
    concurrency: int = 8
    progress: Progress | None = None
    say: Callable[[str], None] = lambda text: None

    def __call__(self, tasks: Sequence[Task], seed: int) -> list[tuple[str, str]]:
        """For each task the new prompt and "", or "" and why there is none. ``seed`` has no say in what a model says."""
        if self.progress is not None:
            self.progress.begin(len(tasks))
        try:
            found = asyncio.run(self._all(tasks))
        finally:
            if self.progress is not None:
                self.progress.end()
        return [(one.prompt, one.reason) for one in found]

    async def _all(self, tasks: Sequence[Task]) -> list[Words]:
        gate = asyncio.Semaphore(self.concurrency)
        hopeless: list[str] = []

        async def one(number: int, task: Task) -> Words:
            async with gate:
                found = Words("", hopeless[0]) if hopeless else await self._one(task, number, hopeless)
            if self.progress is not None:
                self.progress.advance(found)
            return found

        try:
            return list(await asyncio.gather(*(one(n, task) for n, task in enumerate(tasks))))
        finally:
            await self.player.close()

    async def _one(self, task: Task, number: int, hopeless: list[str]) -> Words:
        history: list[dict[str, Any]] = [{"role": "user", "content": task.prompt}]
        reason = ""
        for _ in range(TRIES):
            try:
                answer = await self.player.ask(history, False)
            except ModelFailed as error:
                if isinstance(error, Hopeless):
                    hopeless.append(f"the model can't be asked: {error}")
                self.say(f"{task.id}: {error}")
                return Words("", f"the model can't be asked: {error}")
            text = answer.reply.text if answer.reply is not None else ""
            found = _ANSWER.search(text)
            prompt = found[1] + ("\n" if task.prompt.endswith("\n") else "") if found else ""
            reason = wrong_with(task.prompt, prompt)
            if not reason:
                return Words(prompt, "")
            history = [
                *history,
                {"role": "assistant", "content": text or "."},
                {"role": "user", "content": _again(reason)},
            ]
        return Words("", f"the model did not keep to the statement: {reason}")


def wrong_with(before: str, after: str) -> str:
    """Why the new words can't stand for the old ones, or ""."""
    if not after.strip():
        return "no statement between <statement> and </statement>"
    if after.split() == before.split():
        return "the same words"
    if not _SHORTEST * len(before) <= len(after) <= _LONGEST * len(before) + 200:
        return "much shorter or longer"
    if what := lost(before, after, more_allowed=True):
        return f"{what} was lost, or added"
    return ""


def _again(reason: str) -> str:
    return f"That can't be taken: {reason}. Write the whole statement again, between <statement> and </statement>."
