"""
Teammates whose work is a function of the program around them, instead of an engine.

    async def work(turn: teamwork.Turn) -> str:
        return f"did {turn.task.subject}"

    jobs = await teamwork.run(yard.jobs, [Teammate("ada", "crew"), Teammate("bob", "crew")], work=work)
"""

from __future__ import annotations

from taskyard.engines.engine import Said
from taskyard.errors import UsageError
from taskyard.kinds.teammate import Teammate
from taskyard.teamwork.loop import Turn
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Self

    from taskyard.runtime.async_jobs import AsyncJobs
    from taskyard.runtime.context import JobContext
    from taskyard.runtime.kind import Outcome, Wanted
    from taskyard.runtime.model import Job
    from taskyard.teamwork.loop import OnIdle

    Doing = Callable[[Turn], Awaitable["str | Said | None"]]


class Working(NamedTuple):
    """A teammate inside this program, and the function that does its work."""

    teammate: Teammate
    work: Doing
    on_idle: Sequence[OnIdle] = ()  #: each is told of every change: `on_idle(who, is_idle)`

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return self.teammate.type

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return self.teammate.letter

    def wanted(self) -> Wanted:
        """What the runtime is asked for.

        Raises:
            UsageError: something in it cannot be, or it is to live in a process of its own.
        """
        if not self.teammate.is_inside:
            raise UsageError("A function of this program cannot work in another process: leave out `is_inside=False`.")
        return self.teammate.wanted_with("a function")

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """A function cannot be made from data."""
        raise UsageError("A teammate whose work is a function lives only in the program that has the function.")

    async def run(self, context: JobContext) -> Outcome:
        """Be a teammate, and say how it went."""
        from taskyard.teamwork.running import run as be

        return await be(self.teammate, context, self._done, on_idle=self.on_idle)

    async def _done(self, turn: Turn) -> Said:
        try:
            said = await self.work(turn)
        except Exception as error:  # the top of an edge: whatever a function raises is how the turn went
            return Said(error=f"{type(error).__name__}: {error}")
        return said if isinstance(said, Said) else Said(said or "")


async def run(
    jobs: AsyncJobs, teammates: Iterable[Teammate], *, work: Doing, on_idle: Sequence[OnIdle] = ()
) -> Sequence[Job]:
    """Have teammates work inside this program, each as a job of its own; the jobs at their ends."""
    started = [(await jobs.start(Working(teammate, work, on_idle))).id for teammate in teammates]
    return await jobs.wait_all(started)
