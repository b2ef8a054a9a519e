"""
Jobs for a caller whose machine shares a database with others: this home's as ever, and every other home's.

An id that is known here goes the local way, which costs nothing more. Any other is looked for in the database; what is
asked of it there, its own home's relay carries out.
"""

from __future__ import annotations

from contextlib import nullcontext

from taskyard.clock import elapsed
from taskyard.errors import JobNotFound, NoInput, TaskyardError
from taskyard.names import nearest
from taskyard.relay import records
from taskyard.relay.far_jobs import FarJobs
from taskyard.relay.forwarding import LOG
from taskyard.relay.summon import summon
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.log import note
from taskyard.runtime.notice import PERSON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.relay.records import Far
    from taskyard.runtime.looking import Report
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part
    from taskyard.runtime.steering import Stopped
    from taskyard.runtime.task_output import TaskOutput


#: Seconds for which a database that is away is tried by those who can do without other machines' jobs.
_MOMENT = 1.0


class SharedJobs(Jobs):
    """Background jobs of every machine."""

    def __init__(
        self,
        host: Host,
        database: Callable[[], Database],
        *,
        settings: Settings,
        agent: str | None = None,
        instance: str = "",
        hook_files: Callable[[str], Sequence[str]] | None = None,
        alone: bool = False,
        sharing: Jobs | None = None,
    ) -> None:
        """The arguments are those of `Jobs`. Nothing is read, and the database not asked for, before it is needed."""
        super().__init__(
            host.home,
            agent=agent,
            instance=instance,
            settings=settings,
            hook_files=hook_files,
            alone=alone,
            sharing=sharing,
        )
        self._host = host
        self._instance = instance
        self._database = database
        self._far: FarJobs | None = None
        self._is_believed = False

    @property
    def far(self) -> FarJobs:
        """The jobs of other homes."""
        if self._far is None:
            self._far = FarJobs(self._host, self._database(), self.agent)
        return self._far

    def after_start(self, job: Job) -> Job:
        """Ensure that a relay publishes the job to other machines; the job as callers get it."""
        self.summon()
        if self._instance and not self._is_believed:
            import threading

            self._is_believed = True
            threading.Thread(target=self._have_starter_believed, name="taskyard-starter", daemon=True).start()
        return super().after_start(job)

    def summon(self) -> None:
        """See that this home has a relay; that it cannot be started is no reason not to work here."""
        try:
            summon(self.home, self._settings.store)
        except (TaskyardError, OSError) as error:
            note(self.home, LOG, f"the relay could not be started: {error}")

    def _have_starter_believed(self) -> None:
        """Whoever started a job hears of its end for as long as it lives, also where another machine must know that.

        A thread of its own says so: no start waits for a database that is away.
        """
        from taskyard.heart import heart

        try:
            heart(self._database()).keep(self._instance, silence=self._settings.holder_silence)
        except TaskyardError:
            self._is_believed = False  # the next start tries again

    def _seen(self, job: Job) -> Job:
        return job if job.is_far else self._here(job)

    def _here(self, job: Job) -> Job:
        return job._replace(host_name=self._host.name)

    def get(self, job_id: str) -> Job:
        """One job as it is now, wherever it runs.

        Raises:
            JobNotFound: there never was one of this id.
        """
        try:
            return super().get(job_id)
        except JobNotFound as missing:
            return self._seen(self._elsewhere(job_id, missing).job)

    def find(self, job_id: str) -> Far | None:
        """A job of another home; None if it is one of this.

        Raises:
            JobNotFound: it is neither.
        """
        try:
            super().get(job_id)
        except JobNotFound as missing:
            return self._elsewhere(job_id, missing)
        return None

    def _elsewhere(self, job_id: str, missing: JobNotFound) -> Far:
        found = self.far.find(job_id)
        if found is None:
            near = [*missing.nearest, *nearest(job_id, records.near(self.far.database, self._host.id))]
            raise JobNotFound(job_id, nearest=near[:3]) from None
        return found

    def list(self, *, ended: bool = False, report: Report | None = None) -> list[Job]:
        """Every job that lives on any machine, oldest first; with `ended` also those that are over.

        Whoever gives `report` is told soon that the database is away, or refuses, and has this machine's at least.
        """
        from taskyard.database.waiting import at_most

        here = super().list(ended=ended, report=report)
        if any(not job.is_final for job in here):
            self.summon()  # if it was killed, whoever looks brings it back
        try:
            with at_most(_MOMENT) if report is not None else nullcontext():
                found = [*here, *self.far.all(ended=ended)]
        except TaskyardError as error:
            if report is None:
                raise
            report(error)
            return here
        return sorted(found, key=lambda job: (job.start_time, job.id))

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """The job at its end, or as it is after `timeout` seconds."""
        return self.wait_all([job_id], timeout=timeout)[0]

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """All jobs at their ends, or as they are after `timeout` seconds."""
        far = self._far_ones(job_ids)
        if not far:
            return super().wait_all(job_ids, timeout=timeout)
        began = elapsed()
        here = [job_id for job_id in job_ids if job_id not in far]
        found = {job.id: job for job in super().wait_all(here, timeout=timeout)}
        left = None if timeout is None else max(0.0, timeout - (elapsed() - began))
        found |= {job.id: self._seen(job) for job in self.far.wait_all(list(far), timeout=left)}
        return [found[job_id] for job_id in job_ids]

    def _far_ones(self, job_ids: Sequence[str]) -> Mapping[str, Far]:
        found = {job_id: self.find(job_id) for job_id in dict.fromkeys(job_ids)}
        return {job_id: far for job_id, far in found.items() if far is not None}

    def output(
        self, job_id: str, *, timeout: float = 0.0, limit: int | None = None, transcript: bool = False
    ) -> TaskOutput:
        """A job with what it printed, at its end or after `timeout` seconds. An end that is seen so needs no notice."""
        job = self.wait(job_id, timeout=timeout)
        far = self.find(job_id)
        if far is not None:
            found = self.far.output(far, limit=limit, transcript=transcript)
        else:
            found = super().output(job_id, limit=limit, transcript=transcript)
        if found.job.is_final and (self.agent or PERSON) == (job.agent_id or PERSON):
            return found._replace(delivered=self.far.mark_delivered(found.job, found.delivered))
        return found

    def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> Part:
        """What a job printed from `offset` on, at most `most` bytes; ask for more with its `next_offset`."""
        far = self.find(job_id)
        if far is None:
            return super().read(job_id, offset, most=most)
        return self.far.read(far, offset, most=most).part

    def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[Stopped]:
        """End jobs with everything they started, and answer with proof.

        Raises:
            HostAway: the one job that was named is on a machine that says nothing; of several, its outcome says so.
        """
        far = self._far_ones(job_ids)
        here = [job_id for job_id in job_ids if job_id not in far]
        if not far:
            return [done._replace(job=self._here(done.job)) for done in super().stop(*here, grace=grace)]
        stopping = self.far.begin_stop(list(far.values()), grace=grace, is_alone=len(set(job_ids)) == 1)
        done = {each.job.id: each._replace(job=self._here(each.job)) for each in super().stop(*here, grace=grace)}
        done |= {each.job.id: each for each in stopping()}
        return [done[job_id] for job_id in dict.fromkeys(job_ids)]

    def ask_to_stop(self, job_id: str) -> Job:
        """As `stop`, for those who do not wait for the proof; the job as it was when it was asked."""
        far = self.find(job_id)
        return super().ask_to_stop(job_id) if far is None else self.far.steer(far, "ask_to_stop")[0]

    def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; False if it was paused."""
        far = self.find(job_id)
        return super().pause(job_id) if far is None else self.far.steer(far, "pause")[1]

    def resume(self, job_id: str) -> bool:
        """Let a paused job go on; False if it was not paused."""
        far = self.find(job_id)
        return super().resume(job_id) if far is None else self.far.steer(far, "resume")[1]

    def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Type into a job; False if it takes no input."""
        far = self.find(job_id)
        if far is None:
            return super().send(job_id, text, close=close)
        try:
            self.far.steer(far, "answer", {"text": text, "close": close})
        except NoInput:
            return False
        return True

    def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """As `send`, for those who want to know why a job cannot be typed into."""
        far = self.find(job_id)
        if far is None:
            return super().answer(job_id, text, close=close)
        return self.far.steer(far, "answer", {"text": text, "close": close})[0]

    def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Say that nobody watches a job in the foreground any more: its end will be told by a notice."""
        far = self.find(job_id)
        if far is None:
            return super().to_background(job_id, keep=keep)
        return self.far.steer(far, "background", {"keep": keep})[1]
