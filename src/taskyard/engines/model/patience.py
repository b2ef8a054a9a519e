"""How long to wait for a provider that has too much to do, and the model that does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

T = TypeVar("T")

#: Tries of one request, and seconds they may wait in all: then the job fails, and may be tried again later.
MOST_TRIES = 8
MOST_SECONDS = 600.0

#: Seconds before the second try if the provider names no time, twice as long before each further one, and at most.
_FIRST, _LONGEST = 1.0, 60.0

#: Of what an error says, in characters.
_LONGEST_WHY = 300

_LIMITS = (ModelRateLimitError, ModelUnavailableError)
_MAY_PASS = (*_LIMITS, ModelServerError, ModelConnectionError)


def pause(tries: int, waited: float, asked: float | None, luck: float) -> float | None:
    """Seconds until the next try, None if there is none: pure.

    Args:
        tries: How many there were.
        waited: Seconds that passed in pauses before.
        asked: Seconds the provider asks for: never less than these.
        luck: From 0 to 1, so that many who are told the same do not come back at once.
    """
    if tries >= MOST_TRIES:
        return None
    if asked is not None:
        seconds = max(asked, 0.0) * (1 + luck / 4) + luck / 4
    else:
        seconds = min(_LONGEST, _FIRST * 2 ** (tries - 1)) * (0.5 + luck / 2)
    return seconds if waited + seconds <= MOST_SECONDS else None


class Patient(WrapperModel):
    """A model whose requests are tried again while its provider has too much to do; what was begun never is."""

    def __init__(self, wrapped: Model, watcher: Watcher) -> None:
        super().__init__(wrapped)
        self._watcher = watcher

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One answer, whole."""
        return await self._patiently(lambda: self.wrapped.request(messages, model_settings, model_request_parameters))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """One answer, as it comes."""
        async with AsyncExitStack() as stack:
            yield await self._patiently(
                lambda: stack.enter_async_context(
                    self.wrapped.request_stream(messages, model_settings, model_request_parameters, run_context)
                )
            )

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        tries, waited = 0, 0.0
        while True:
            tries += 1
            try:
                return await ask()
            except _MAY_PASS as error:
                luck = random.random()  # noqa: S311 - spreads load, keeps no secret
                seconds = pause(tries, waited, error.retry_after, luck)
                if seconds is None:
                    raise
                self._tell(error, seconds)
            await asyncio.sleep(seconds)
            waited += seconds

    def _tell(self, error: ModelAPIError, seconds: float) -> None:
        why = str(error)[:_LONGEST_WHY]
        if isinstance(error, _LIMITS):
            self._watcher.limited(seconds, why)
        else:
            self._watcher.record({"type": "retry", "seconds": round(seconds, 3), "text": why})
