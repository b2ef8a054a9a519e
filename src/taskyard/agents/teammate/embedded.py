"""Teammates whose work is a function of the program around them, instead of an engine.

With `from taskyard.agents import teammate`:

    async def work(turn: teammate.Turn) -> str:
        return f"did {turn.task.subject}"

    jobs = await teammate.run(yard.jobs, [Teammate("ada", "shop"), Teammate("bob", "shop")], work=work)
"""

from __future__ import annotations

from taskyard.agents.engines.engine import TurnResult
from taskyard.agents.teammate.kind import Teammate
from taskyard.agents.teammate.loop import Turn
from taskyard.core.values import NamedTuple
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Self

    from taskyard.agents.teammate.loop import OnIdle
    from taskyard.jobs.async_jobs import AsyncJobs
    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import LaunchSpec, Outcome
    from taskyard.jobs.model import Job

    WorkFunction = Callable[[Turn], Awaitable["str | TurnResult | None"]]


class Working(NamedTuple):
    """A teammate inside this program, and the function that does its work."""

    teammate: Teammate
    work: WorkFunction
    on_idle: Sequence[OnIdle] = ()  #: each is called at every change: `on_idle(who, is_idle)`

    @property
    def type(self) -> str:
        """The job type in records."""
        return self.teammate.type

    @property
    def letter(self) -> str:
        """First character of its job ids."""
        return self.teammate.letter

    def wanted(self) -> LaunchSpec:
        """Return the launch spec.

        Raises:
            UsageError: a field is invalid, or it is to run in a process of its own.
        """
        if not self.teammate.is_inside:
            raise UsageError("A function of this program cannot work in another process: leave out `is_inside=False`.")
        return self.teammate.wanted_for_engine("a function")

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """Refuse: a function cannot be restored from data."""
        raise UsageError("A teammate whose work is a function runs only in the program that defines the function.")

    async def run(self, context: JobContext) -> Outcome:
        """Run the teammate and return the outcome."""
        from taskyard.agents.teammate.membership import run as be

        return await be(self.teammate, context, self._done, on_idle=self.on_idle)

    async def _done(self, turn: Turn) -> TurnResult:
        try:
            said = await self.work(turn)
        except Exception as error:  # boundary to user code: any exception fails the turn
            return TurnResult(error=f"{type(error).__name__}: {error}")
        return said if isinstance(said, TurnResult) else TurnResult(said or "")


async def run(
    jobs: AsyncJobs, teammates: Iterable[Teammate], *, work: WorkFunction, on_idle: Sequence[OnIdle] = ()
) -> Sequence[Job]:
    """Run teammates inside this program, each as a job of its own; return the ended jobs."""
    started = [(await jobs.start(Working(teammate, work, on_idle))).id for teammate in teammates]
    return await jobs.wait_all(started)
