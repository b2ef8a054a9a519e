"""A kind of somebody else's package: counts down, listens, fails when told to. All that a kind can do, on one page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

from taskyard.jobs.context import JobContext
from taskyard.jobs.kind import LaunchSpec, Outcome

if TYPE_CHECKING:
    from taskyard.jobs.kind import Handler


class Countdown(NamedTuple):
    """Count down from a number, one step each `step` seconds; 0 at once."""

    start: int
    step: float = 0.0
    error: str = ""  #: fail with this at the end
    inside: bool = False
    listens: bool = False  #: stay until told "go"
    timeout: float | None = None
    retries: int = 0
    is_stubborn: bool = False  #: go on when asked to end

    @property
    def type(self) -> str:
        return "countdown"

    @property
    def letter(self) -> str:
        return "x"

    def wanted(self) -> LaunchSpec:
        return LaunchSpec(
            f"Count down from {self.start}",
            arguments=self._asdict(),
            is_inside=self.inside,
            stdin=self.listens,
            timeout=self.timeout,
            retries=self.retries,
            grace=0.5,
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        return cls(**arguments)  # type: ignore[arg-type]

    async def run(self, context: JobContext) -> Outcome:
        for number in range(self.start, 0, -1):
            await context.turn()
            context.write(f"{number}\n")
            context.tell(progress={"left": number})
            try:
                await asyncio.sleep(self.step)
            except asyncio.CancelledError:
                if not self.is_stubborn:
                    raise
        if self.listens:
            async for text in context.messages():
                context.write(f"heard {text}\n")
                if text == "go":
                    break
        return self._outcome(context)

    def _outcome(self, context: JobContext) -> Outcome:
        if self.error == "raise":
            raise RuntimeError("the bottom was reached")
        if self.error == "exit":
            os._exit(0)
        is_first = context.tell(tried=True)
        error = self.error if self.error != "first time" or is_first else ""
        return Outcome("lift-off", error=error, facts={"usage": {"total_tokens": self.start}})


if TYPE_CHECKING:
    _conforms: type[Handler] = Countdown
