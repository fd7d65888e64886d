"""One episode of a model: the conversation, as a Player of the house.

Promises: the model sees every observation once, in its API's own form; each of its calls becomes one action, in its
order, whatever it holds; it is nudged once when it stops without submitting, and at its second stop in a row (or when
its turns, its tokens or its context are used up) its work is submitted as it is. Everything that was said is kept.
A ModelFailed that leaves here means that the episode can't be finished.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiltyard.players.model import text_protocol
from tiltyard.players.model.settings import ModelSettings
from tiltyard.players.model.wire import Api, Reply, ToolCall, plain
from tiltyard.records import EpisodeRecord, MessageRecord, Usage
from tiltyard.records.store import now
from tiltyard.task import Task

SYSTEM = """\
You solve a coding task in a workspace, with tools. Only what you do with the tools counts; nobody reads what you write \
beside them. Look at the files, write the solution, run the visible tests, and when you believe that the hidden tests \
will pass too, call submit: without it the work is not handed in."""
NUDGE = "You stopped without calling a tool. Go on, or call submit if your work is done: without it, nothing is handed in."
CUT = "(Your last answer was cut at its limit of {} tokens.)"
_FORCED = {
    "stop": "The model stopped without submitting; its work was submitted as it is.",
    "turns": "The model used up its {max_turns} turns; its work was submitted as it is.",
    "tokens": "The model used up its {max_total_tokens} tokens; its work was submitted as it is.",
    "context": "The conversation no longer fits the model's context; its work was submitted as it is.",
    "refusal": "The model declined; its work was submitted as it is.",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What asking came to. ``reply`` None: the conversation no longer fits the model's context."""

    reply: Reply | None
    seconds: float
    retries: int


Ask = Callable[[Sequence[dict[str, Any]], bool], Awaitable[Answer]]


def system_prompt(settings: ModelSettings) -> str:
    """The one that was asked for, or the protocol's own."""
    if settings.system is not None:
        return settings.system
    own = {"native": SYSTEM, "text": text_protocol.SYSTEM, "code": text_protocol.SYSTEM_CODE}
    return own[settings.protocol]


class ModelSession:
    """A Player for one episode at a time. ``ask`` puts a conversation to the model."""

    clock_stands = True

    def __init__(self, settings: ModelSettings, api: Api, ask: Ask) -> None:
        self.settings, self.api, self.ask = settings, api, ask
        self.begin(None, None)

    def begin(self, task: Task | None, seed: int | None) -> None:
        """Forget the episode before."""
        self.main = task.main if task is not None else ""
        self.shell = task is not None and task.shell
        self._start = task.start.get(self.main) if task is not None else None
        self.history: list[dict[str, Any]] = []
        self.messages: list[MessageRecord] = []
        self.usage = Usage()
        self.turns = 0
        self.steps = 0
        self.nudged = False
        self.ended_by = ""
        self._pending: deque[ToolCall] = deque()
        self._noted: dict[str, dict[str, Any]] = {}
        """The newest turn's calls by id, as they are kept."""
        self._open: ToolCall | None = None
        """The call that the environment is carrying out."""
        self._answers: list[tuple[str, str]] = []
        self._cut = False

    async def __call__(self, observation: str, rng: random.Random, /) -> Any:
        self._observe(observation)
        if not self._pending:
            self._hand_over()
            while not self._pending:
                await self._turn()
        self._open = call = self._pending.popleft()
        if call.id in self._noted:
            self._noted[call.id]["step"] = self.steps
        self.steps += 1
        return call.action

    def into(self, record: EpisodeRecord) -> EpisodeRecord:
        """The record, with all that was said. Call it when the episode is over."""
        if self._open is not None and self.steps <= len(record.steps):
            self._keep_observation(record.steps[self.steps - 1].observation)
        ended_by = self.ended_by or ("submit" if record.terminated else "")
        return replace(
            record,
            model=self.settings.model,
            ended_by=ended_by,
            usage=self.usage,
            messages=tuple(self.messages),
        )

    # -- what the model is told ------------------------------------------------------------------------------------

    def _observe(self, observation: str) -> None:
        if self._open is not None:
            self._answers.append((self._open.id, observation))
            self._keep_observation(observation)
            return
        if system := system_prompt(self.settings):
            self.messages.append(MessageRecord("system", system, at=now()))
        if self.settings.protocol == "code" and self._start is not None:
            # a model that can't look at the file must be shown it
            observation += f"\n\n{self.main} as it is now:\n{text_protocol.fenced(self._start)}"
        self._tell(observation)

    def _keep_observation(self, observation: str) -> None:
        call, self._open = self._open, None
        assert call is not None
        role = "note" if not call.id else "tool" if self.settings.protocol == "native" else "user"
        self.messages.append(MessageRecord(role, observation, call_id=call.id, step=self.steps - 1, at=now()))

    def _tell(self, text: str) -> None:
        self.history.append(self.api.user(text))
        self.messages.append(MessageRecord("user", text, at=now()))

    def _hand_over(self) -> None:
        """All observations of a turn go back at once."""
        if not self._answers:
            return
        if self.settings.protocol == "native":
            self.history += self.api.results(self._answers)
        else:
            self.history.append(self.api.user("\n\n".join(text for _, text in self._answers)))
        self._answers = []
        if self._cut:
            self._tell(CUT.format(self.settings.max_tokens))

    # -- what the model says ---------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """Ask once; whatever comes of it is one or more pending calls, or one more message to the model."""
        settings = self.settings
        if self.turns >= settings.max_turns:
            return self._force("turns")
        taken = self.usage.input_tokens + self.usage.output_tokens
        if settings.max_total_tokens is not None and taken >= settings.max_total_tokens:
            return self._force("tokens")
        answer = await self.ask(self.history, self.shell)
        reply = answer.reply
        if reply is None:
            return self._force("context")
        calls = self._calls_of(reply)
        self._keep_turn(answer, reply, calls)
        self.history.append(reply.echo)
        if calls:
            self.nudged = False
            self._pending.extend(calls)
        elif reply.refused or reply.full:
            self._force("refusal" if reply.refused else "context")
        elif not reply.paused:
            self._stopped(reply)

    def _calls_of(self, reply: Reply) -> list[ToolCall]:
        if self.settings.protocol == "native":
            return list(reply.calls)
        if self.settings.protocol == "code":
            actions = text_protocol.code_actions(reply.text, self.main)
        else:
            actions = text_protocol.actions(reply.text, self.shell)
        return [_as_call(action, f"block_{self.turns}_{n}") for n, action in enumerate(actions)]

    def _keep_turn(self, answer: Answer, reply: Reply, calls: Sequence[ToolCall]) -> None:
        self.turns += 1
        self._cut = reply.cut
        self.usage = Usage.total([self.usage, reply.usage] if self.turns > 1 else [reply.usage])
        noted = [{"id": c.id, "name": c.name, "arguments": c.arguments, "step": None} for c in calls]
        self._noted = {call["id"]: call for call in noted}
        self.messages.append(
            MessageRecord(
                "assistant",
                reply.text,
                reply.reasoning,
                tuple(noted),
                stop_reason=reply.stop_reason,
                seconds=answer.seconds,
                retries=answer.retries,
                usage=reply.usage,
                at=now(),
            )
        )

    def _stopped(self, reply: Reply) -> None:
        if self.nudged:
            return self._force("stop")
        self.nudged = True
        cut = CUT.format(self.settings.max_tokens) if reply.cut else ""
        if self.settings.protocol == "native":
            self._tell("\n".join(part for part in (cut, NUDGE) if part))
        else:
            hint = text_protocol.NO_CODE if self.settings.protocol == "code" else text_protocol.NO_ACTION
            action = text_protocol.refusal("\n".join(part for part in (cut, hint) if part), reply.text)
            self._pending.append(ToolCall(f"prose_{self.turns}", "", {}, action))

    def _force(self, why: str) -> None:
        """Submit what is there."""
        self.ended_by = why
        said = _FORCED[why].format(
            max_turns=self.settings.max_turns, max_total_tokens=self.settings.max_total_tokens
        )
        self.messages.append(MessageRecord("note", said, at=now()))
        self._pending.append(ToolCall("", "submit", {}, {"tool": "submit"}))


def _as_call(action: Any, id: str) -> ToolCall:
    """A call of the text protocol, for the record: ``action`` is an action, or the text of one."""
    if isinstance(action, dict) and isinstance(action.get("tool"), str):
        return ToolCall(
            id, action["tool"], {key: plain(value) for key, value in action.items() if key != "tool"}, action
        )
    return ToolCall(id, "", plain(action), action)
