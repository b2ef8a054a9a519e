"""The jobs of other homes: looked at in the database, steered through their relays."""

from __future__ import annotations

from base64 import b64decode

from taskyard.clock import elapsed
from taskyard.errors import HostAway
from taskyard.relay import records
from taskyard.relay.asking import Asking
from taskyard.relay.carrying import LONGEST_WAIT, MOST_READ
from taskyard.relay.far_notices import read_about
from taskyard.relay.records import from_answer
from taskyard.runtime.output import Part
from taskyard.runtime.steering import Stopped
from taskyard.runtime.task_output import TaskOutput
from taskyard.shapes import as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.relay.records import Far
    from taskyard.runtime.model import Job

#: One sleep of those who wait without end, in seconds: nobody tells that a host fell silent.
_LOOK_EVERY = 5.0

#: Seconds a stop may take beyond its grace, as `steering` has it.
_BEYOND = 8.0


class Read(NamedTuple):
    """A part of the output of a job elsewhere."""

    part: Part
    end: int  #: where the output ended when it was read
    is_over: bool  #: the job was over before it was read: with nothing new, nothing comes any more
    job: Job


class FarJobs:
    """Every job of another home."""

    def __init__(self, host: Host, database: Database, agent: str | None) -> None:
        self._host = host
        self.database = database
        self._asking = Asking(database, agent)
        self._sound = database.ear.sound("jobs")

    def find(self, job_id: str) -> Far | None:
        """A job that is not of this home; None if the database knows none."""
        found = records.find(self.database, job_id)
        return None if found is None or found.host == self._host.id else found

    def all(self, *, ended: bool) -> list[Job]:
        """All of them that live; with `ended` also those that are over."""
        return [far.job for far in records.everything(self.database, but=self._host.id, ended=ended)]

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None) -> list[Job]:
        """Jobs at their ends, or as they are after `timeout` seconds."""
        until = None if timeout is None else elapsed() + timeout
        count = self._sound.count
        while True:
            found = records.find_all(self.database, job_ids)
            left = _LOOK_EVERY if until is None else until - elapsed()
            if all(far.job.is_final for far in found.values()) or left <= 0:
                return [found[job_id].job for job_id in job_ids]
            count = self._sound.wait(count, min(left, _LOOK_EVERY))

    def steer(self, far: Far, verb: str, arguments: Mapping[str, object] | None = None) -> tuple[Job, bool]:
        """Have something done to a job; how it is then, and whether that changed anything."""
        answer = self._asking.ask(far, verb, arguments)
        return from_answer(far, answer), answer.get("changed") is True

    def begin_stop(self, jobs: Sequence[Far], *, grace: float | None, is_alone: bool) -> Callable[[], list[Stopped]]:
        """Ask for all of them to be stopped, at once; call what this returns to wait for the outcome.

        That one of them cannot be asked is an error only if it `is_alone`.
        """
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(max_workers=min(8, len(jobs)), thread_name_prefix="taskyard-stop")
        asked = [pool.submit(self._stopped, far, grace) for far in jobs]
        pool.shutdown(wait=False)
        return lambda: [_outcome(far, each, is_alone=is_alone) for far, each in zip(jobs, asked, strict=True)]

    def _stopped(self, far: Far, grace: float | None) -> Stopped:
        if far.job.is_final:
            return Stopped(far.job, "already_ended")
        takes = (far.job.grace if grace is None else grace) + _BEYOND
        answer = self._asking.ask(far, "stop", {} if grace is None else {"grace": grace}, takes=takes)
        return Stopped(from_answer(far, answer), as_text(answer.get("outcome")))

    def read(self, far: Far, offset: int, *, most: int | None = None, wait: float | None = None) -> Read:
        """A part of a job's output; with `wait`, for so many seconds until there is something new."""
        arguments: dict[str, object] = {"offset": offset, "most": most or MOST_READ}
        if wait is not None:
            arguments["wait"] = min(wait, LONGEST_WAIT)
        return _read(far, self._asking.ask(far, "read", arguments, takes=LONGEST_WAIT if wait is not None else 0.0))

    def tail(self, far: Far, lines: int) -> Read:
        """The last lines of a job's output."""
        return _read(far, self._asking.ask(far, "tail", {"lines": lines}))

    def output(self, far: Far, *, limit: int | None, transcript: bool) -> TaskOutput:
        """What a job printed, as a model is given it."""
        answer = self._asking.ask(far, "output", {"limit": limit, "transcript": transcript})
        job, text = from_answer(far, answer), as_text(answer.get("output"))
        return TaskOutput(job, text, answer.get("was_truncated") is True)

    def is_sealed_there(self, far: Far, news: Mapping[str, object]) -> bool:
        """Whether a job's own home sealed this news: it alone has the key."""
        return self._asking.ask(far, "check", {"news": dict(news)}).get("genuine") is True

    def mark_delivered(self, job: Job, here: Sequence[str]) -> tuple[str, ...]:
        """Have what is told about a job count as read, with those notices that were filed here; the ids."""
        return read_about(self._host, self.database, job, here)


def _outcome(far: Far, asked: Future[Stopped], *, is_alone: bool) -> Stopped:
    try:
        return asked.result()
    except HostAway:
        if is_alone:
            raise
        return Stopped(far.job, "host_away")


def _read(far: Far, answer: Mapping[str, object]) -> Read:
    part = Part(
        b64decode(as_text(answer.get("text"))),
        as_number(answer.get("offset")),
        as_number(answer.get("next_offset")),
        as_number(answer.get("omitted")),
        answer.get("restarted") is True,
    )
    raw = as_object(answer.get("job")) or {}
    job = from_answer(far, {"job": raw})
    return Read(part, as_number(answer.get("end")), answer.get("over") is True, job)
