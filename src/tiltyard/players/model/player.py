"""A language model as a player: the connection to its server, and a session for each episode.

Promises: a request that fails in a way that may pass is tried again, later each time and never sooner than the server
asks; what can't pass makes the episode void with the reason. Nothing is asked once the budget is spent.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tiltyard.errors import UsageError
from tiltyard.players.model import anthropic_api, openai_api
from tiltyard.players.model.failures import Failure, Hopeless, ModelFailed, failure_of
from tiltyard.players.model.meter import Meter
from tiltyard.players.model.prices import Price
from tiltyard.players.model.session import Answer, ModelSession, system_prompt
from tiltyard.players.model.settings import APIS, ModelSettings, Reach
from tiltyard.players.model.wire import Api, Reply
from tiltyard.task import Task

_APIS: dict[str, tuple[Callable[[ModelSettings, Reach, str], Api], Callable[[], Any]]] = {
    "anthropic": (anthropic_api.AnthropicApi, anthropic_api.sdk),
    "openai": (openai_api.OpenAIApi, openai_api.sdk),
}


class ModelPlayer:
    """A model. ``session()`` makes a player for one of many episodes at once; it is a player for one at a time itself.

    ``price`` None: costs are unknown. Raises UsageError: the SDK is not installed, there is no key, or a budget
    without a price.
    """

    clock_stands = True

    def __init__(
        self,
        settings: ModelSettings,
        reach: Reach | None = None,
        *,
        price: Price | None = None,
        budget_usd: float | None = None,
    ) -> None:
        if budget_usd is not None and price is None:
            raise UsageError(
                f"a budget needs the price of {settings.model!r}, which no table has; add it to a file and name it "
                "with --prices FILE"
            )
        if budget_usd is not None and not budget_usd > 0:
            raise UsageError(f"found a budget of ${budget_usd}; expected more than 0")
        self.settings, self.reach, self.price = settings, reach or Reach(), price
        self.meter = Meter(budget_usd)
        self._sdk = _APIS[settings.api][1]()
        self._own: ModelSession | None = None
        self._random = random.Random()  # of the waiting times alone, which nothing that is kept depends on
        self._api: tuple[Any, Api] | None = (None, self._make_api())
        """The connection, and its event loop. Made here, so that a missing key is found before the first episode."""

    @property
    def name(self) -> str:
        return self.settings.name

    def session(self) -> ModelSession:
        """A player for one episode, in the running event loop."""
        return ModelSession(self.settings, self._here(), self.ask)

    def begin(self, task: Task, seed: int | None) -> None:
        self._own = None
        self._begun = (task, seed)

    async def __call__(self, observation: str, rng: random.Random, /) -> Any:
        if self._own is None:
            self._own = self.session()
            self._own.begin(*self._begun)
        return await self._own(observation, rng)

    async def ask(self, history: Sequence[dict[str, Any]], shell: bool = False) -> Answer:
        """Put a conversation to the model; ``shell``: the task gives the tool ``bash``. Raises ModelFailed."""
        begun, tries = time.monotonic(), 0
        while True:
            self.meter.check()
            await self.meter.gate()
            found = await self._try(history, shell)
            if isinstance(found, Reply):
                if self.price is not None:
                    found = _priced(found, self.price)
                self.meter.took(found.usage)
                return Answer(found, time.monotonic() - begun, tries)
            if found.full:
                return Answer(None, time.monotonic() - begun, tries)
            if found.hopeless:
                raise Hopeless(found.reason)
            if not found.again or tries >= self.reach.retries:
                raise ModelFailed(found.reason + (f" ({tries + 1} tries)" if tries else ""))
            await self._wait(found, tries)
            tries += 1

    async def _try(self, history: Sequence[dict[str, Any]], shell: bool) -> Reply | Failure:
        try:
            # all of it: a server that sends a byte now and then never runs into the SDK's own time limit
            async with asyncio.timeout(self.reach.timeout_s):
                return await self._here().ask(history, shell)
        except Exception as error:
            failure = failure_of(error, self._sdk)
            if failure is None:
                raise
            return failure

    async def _wait(self, failure: Failure, tries: int) -> None:
        """Exponential, with jitter, so that those who failed together do not come back together."""
        backoff = min(self.reach.max_backoff_s, self.reach.backoff_s * 2.0 ** min(tries, 30))
        seconds = backoff * self._random.uniform(0.5, 1.0)
        if failure.after_s is not None:
            if failure.kind == "429":
                self.meter.hold(failure.after_s)
            seconds = failure.after_s + self._random.uniform(0.0, min(backoff, 0.25 * failure.after_s))
        await self.meter.wait(failure.kind, seconds)

    def _here(self) -> Api:
        """The connection of the running event loop: an SDK's client can't be taken to another one."""
        loop = asyncio.get_running_loop()
        if self._api is None or self._api[0] not in (None, loop):
            self._api = (loop, self._make_api())
        elif self._api[0] is None:
            self._api = (loop, self._api[1])
        return self._api[1]

    def _make_api(self) -> Api:
        make, _ = _APIS[self.settings.api]
        try:
            return make(self.settings, self.reach, system_prompt(self.settings))
        except UsageError:
            raise
        except (
            Exception
        ) as error:  # each SDK has a class of its own for a missing key, or for a URL that is none
            raise UsageError(f"{self.name} can't be asked: {' '.join(str(error).split())}") from None

    async def close(self) -> None:
        """Give the connections of this event loop back."""
        if self._api is not None and self._api[0] is asyncio.get_running_loop():
            await self._api[1].close()
            self._api = None


def _priced(reply: Reply, price: Price) -> Reply:
    return replace(reply, usage=price.of(reply.usage))


def is_model(name: str) -> bool:
    """Whether a player's name is a model's: ``anthropic:MODEL`` or ``openai:MODEL``."""
    return name.partition(":")[0] in APIS and ":" in name


def model_settings(name: str, **options: Any) -> ModelSettings:
    """The settings for ``anthropic:MODEL`` or ``openai:MODEL``. Raises UsageError."""
    api, _, model = name.partition(":")
    return ModelSettings(api, model, **options)
