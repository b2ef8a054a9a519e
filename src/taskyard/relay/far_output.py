"""What a job of another machine prints, in parts, asked of its relay: as it is, and as it grows."""

from __future__ import annotations

from taskyard.relay.carrying import LONGEST_WAIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.relay.far_jobs import FarJobs
    from taskyard.relay.records import Far
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part

#: Seconds for the record of an end that was told already.
_BOOKS = 5.0


class FarOutput:
    """The output of one job elsewhere."""

    def __init__(self, jobs: FarJobs, far: Far) -> None:
        self._jobs = jobs
        self._far = far

    @property
    def is_over(self) -> bool:
        """Whether the job is over, so that nothing comes any more."""
        return self._far.job.is_final

    def damage(self) -> None:
        """What is wrong with it is for its own machine to say."""

    def end(self) -> int:
        """The offset behind the newest byte there is now."""
        return self._jobs.tail(self._far, 0).end

    def read(self, offset: int, most: int) -> Part:
        """What was printed from `offset` on; not more than fits into one answer."""
        return self._jobs.read(self._far, offset, most=most).part

    def tail(self, lines: int) -> Part:
        """The last `lines` lines, though not more than fit into one answer."""
        return self._jobs.tail(self._far, lines).part

    def follow(self, offset: int, *, debounce: float) -> Iterator[Part]:
        """Each new part from `offset` on, until the job is over; bursts gather while a part is on its way."""
        while True:
            found = self._jobs.read(self._far, offset, wait=LONGEST_WAIT)
            if found.part.next_offset != offset or found.part.restarted:
                offset = found.part.next_offset
                yield found.part
            elif found.is_over:
                return

    def ended(self) -> Job:
        """The job at its end, or as it is if that is not known yet."""
        return self._jobs.wait_all([self._far.job.id], timeout=_BOOKS)[0]
