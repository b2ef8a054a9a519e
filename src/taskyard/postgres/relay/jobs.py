"""Jobs of all hosts that share a database: this home's directly, others through their relays.

A job id known in this home takes the local path at no extra cost. Any other id is looked up in the database;
requests for it (stop, pause, send input, read output) are carried out by the relay of the job's own home
(`handler.RpcClient`). Output of a job on another host is read in chunks through its relay.
"""

from __future__ import annotations

from base64 import b64decode
from contextlib import nullcontext

from taskyard.core.system import boottime
from taskyard.core.values import PERSON, NamedTuple, as_number, as_object, as_text, nearest
from taskyard.errors import HostAway, JobNotFound, NoInput, TaskyardError
from taskyard.jobs.control import StopResult
from taskyard.jobs.helper_process import append_log
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.output import OutputChunk, TaskOutput
from taskyard.postgres.relay import records
from taskyard.postgres.relay.ensure_running import ensure_relay
from taskyard.postgres.relay.handler import MAX_READ, MAX_WAIT, RpcClient
from taskyard.postgres.relay.notices import mark_job_read
from taskyard.postgres.relay.records import job_from_reply
from taskyard.postgres.relay.uploader import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from taskyard.config import Settings
    from taskyard.jobs.model import Job
    from taskyard.jobs.query import Report
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.records import Host, HostJob


#: Longest single sleep while waiting without a timeout, in seconds: a host going offline sends no notification.
_POLL_INTERVAL = 5.0

#: Seconds a stop may take beyond its grace period, as in `jobs.control`.
_STOP_MARGIN = 8.0


class OutputRead(NamedTuple):
    """A chunk of the output of a job on another host."""

    part: OutputChunk
    end: int  #: where the output ended when it was read
    is_over: bool  #: the job had ended before the read: an empty chunk then means no more output follows
    job: Job


class RemoteHostJobs:
    """All jobs of other homes."""

    def __init__(self, host: Host, database: Database, agent: str | None) -> None:
        self._host = host
        self.database = database
        self._asking = RpcClient(database, agent)
        self._sound = database.listener.subscription("jobs")

    def find(self, job_id: str) -> HostJob | None:
        """Return a job of another home; None if the database has none."""
        found = records.find_job(self.database, job_id)
        return None if found is None or found.host == self._host.id else found

    def all(self, *, ended: bool) -> list[Job]:
        """Return all running jobs; with `ended` also the ended ones."""
        return [far.job for far in records.list_jobs(self.database, exclude=self._host.id, ended=ended)]

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None) -> list[Job]:
        """Wait until all jobs have ended, at most `timeout` seconds, and return their state."""
        until = None if timeout is None else boottime() + timeout
        count = self._sound.count
        while True:
            found = records.find_jobs(self.database, job_ids)
            left = _POLL_INTERVAL if until is None else until - boottime()
            if all(far.job.is_final for far in found.values()) or left <= 0:
                return [found[job_id].job for job_id in job_ids]
            count = self._sound.wait(count, min(left, _POLL_INTERVAL))

    def control(self, far: HostJob, verb: str, arguments: Mapping[str, object] | None = None) -> tuple[Job, bool]:
        """Apply `verb` to a job; return its new state and whether anything changed."""
        answer = self._asking.ask(far, verb, arguments)
        return job_from_reply(far, answer), answer.get("changed") is True

    def begin_stop(
        self, jobs: Sequence[HostJob], *, grace: float | None, is_alone: bool
    ) -> Callable[[], list[StopResult]]:
        """Request a stop of all jobs at once; call the returned function to wait for the outcomes.

        An unreachable host is an error only if the job `is_alone`.
        """
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(max_workers=min(8, len(jobs)), thread_name_prefix="taskyard-stop")
        asked = [pool.submit(self._stopped, far, grace) for far in jobs]
        pool.shutdown(wait=False)
        return lambda: [_stop_result(far, each, is_alone=is_alone) for far, each in zip(jobs, asked, strict=True)]

    def _stopped(self, far: HostJob, grace: float | None) -> StopResult:
        if far.job.is_final:
            return StopResult(far.job, "already_ended")
        takes = (far.job.grace if grace is None else grace) + _STOP_MARGIN
        answer = self._asking.ask(far, "stop", {} if grace is None else {"grace": grace}, takes=takes)
        return StopResult(job_from_reply(far, answer), as_text(answer.get("outcome")))

    def read(self, far: HostJob, offset: int, *, most: int | None = None, wait: float | None = None) -> OutputRead:
        """Read a chunk of a job's output; with `wait`, block up to that many seconds for new output."""
        arguments: dict[str, object] = {"offset": offset, "most": most or MAX_READ}
        if wait is not None:
            arguments["wait"] = min(wait, MAX_WAIT)
        return _parse_read(far, self._asking.ask(far, "read", arguments, takes=MAX_WAIT if wait is not None else 0.0))

    def tail(self, far: HostJob, lines: int) -> OutputRead:
        """Return the last lines of a job's output."""
        return _parse_read(far, self._asking.ask(far, "tail", {"lines": lines}))

    def output(self, far: HostJob, *, limit: int | None, transcript: bool) -> TaskOutput:
        """Return a job's output as it is given to a model."""
        answer = self._asking.ask(far, "output", {"limit": limit, "transcript": transcript})
        job, text = job_from_reply(far, answer), as_text(answer.get("output"))
        return TaskOutput(job, text, answer.get("was_truncated") is True)

    def is_sealed_there(self, far: HostJob, news: Mapping[str, object]) -> bool:
        """Ask a job's home whether it signed this notice payload: only that home has the key."""
        return self._asking.ask(far, "check", {"news": dict(news)}).get("genuine") is True

    def mark_delivered(self, job: Job, here: Sequence[str]) -> tuple[str, ...]:
        """Mark all notices about a job as read, including those filed here; return their ids."""
        return mark_job_read(self._host, self.database, job, here)


def _stop_result(far: HostJob, asked: Future[StopResult], *, is_alone: bool) -> StopResult:
    try:
        return asked.result()
    except HostAway:
        if is_alone:
            raise
        return StopResult(far.job, "host_away")


def _parse_read(far: HostJob, answer: Mapping[str, object]) -> OutputRead:
    part = OutputChunk(
        b64decode(as_text(answer.get("text"))),
        as_number(answer.get("offset")),
        as_number(answer.get("next_offset")),
        as_number(answer.get("omitted")),
        answer.get("restarted") is True,
    )
    raw = as_object(answer.get("job")) or {}
    job = job_from_reply(far, {"job": raw})
    return OutputRead(part, as_number(answer.get("end")), answer.get("over") is True, job)


#: Seconds to retry an unavailable database for callers that can do without the jobs of other hosts.
_LIST_TIMEOUT = 1.0


class ReplicatedJobs(Jobs):
    """Background jobs of every host."""

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
        """Take the arguments of `Jobs`. Nothing is read and the database is not opened until needed."""
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
        self._far: RemoteHostJobs | None = None
        self._is_registered = False

    @property
    def far(self) -> RemoteHostJobs:
        """The jobs of other homes."""
        if self._far is None:
            self._far = RemoteHostJobs(self._host, self._database(), self.agent)
        return self._far

    def after_start(self, job: Job) -> Job:
        """Ensure that a relay publishes the job to other hosts; return the job as callers get it."""
        self.ensure_relay()
        if self._instance and not self._is_registered:
            import threading

            self._is_registered = True
            threading.Thread(target=self._register_starter, name="taskyard-starter", daemon=True).start()
        return super().after_start(job)

    def ensure_relay(self) -> None:
        """Ensure that this home has a relay; a failure to start one is logged and does not stop local work."""
        try:
            ensure_relay(self.home, self._settings.store)
        except (TaskyardError, OSError) as error:
            append_log(self.home, LOG, f"the relay could not be started: {error}")

    def _register_starter(self) -> None:
        """Register the starting instance, so that other hosts know it is alive and should get the exit notice.

        Runs in its own thread: no job start waits for an unavailable database.
        """
        from taskyard.postgres.heartbeat import process_heartbeat

        try:
            process_heartbeat(self._database()).keep(self._instance, silence=self._settings.holder_silence)
        except TaskyardError:
            self._is_registered = False  # the next job start tries again

    def _seen(self, job: Job) -> Job:
        return job if job.is_on_other_host else self._here(job)

    def _here(self, job: Job) -> Job:
        return job._replace(host_name=self._host.name)

    def get(self, job_id: str) -> Job:
        """Return the current state of one job, on whichever host it runs.

        Raises:
            JobNotFound: no job ever had this id.
        """
        try:
            return super().get(job_id)
        except JobNotFound as missing:
            return self._seen(self._elsewhere(job_id, missing).job)

    def find(self, job_id: str) -> HostJob | None:
        """Return a job of another home; None if it is one of this home.

        Raises:
            JobNotFound: it is neither.
        """
        try:
            super().get(job_id)
        except JobNotFound as missing:
            return self._elsewhere(job_id, missing)
        return None

    def _elsewhere(self, job_id: str, missing: JobNotFound) -> HostJob:
        found = self.far.find(job_id)
        if found is None:
            near = [*missing.nearest, *nearest(job_id, records.recent_job_ids(self.far.database, self._host.id))]
            raise JobNotFound(job_id, nearest=near[:3]) from None
        return found

    def list(self, *, ended: bool = False, report: Report | None = None) -> list[Job]:
        """Return every running job on any host, oldest first; with `ended` also the ended ones.

        With `report`, an unavailable or refusing database is reported after a short timeout and the jobs of
        this host are returned.
        """
        from taskyard.postgres.deadline import max_wait

        here = super().list(ended=ended, report=report)
        if any(not job.is_final for job in here):
            self.ensure_relay()  # restarts the relay if it was killed
        try:
            with max_wait(_LIST_TIMEOUT) if report is not None else nullcontext():
                found = [*here, *self.far.all(ended=ended)]
        except TaskyardError as error:
            if report is None:
                raise
            report(error)
            return here
        return sorted(found, key=lambda job: (job.start_time, job.id))

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """Wait until the job has ended, at most `timeout` seconds, and return its state."""
        return self.wait_all([job_id], timeout=timeout)[0]

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """Wait until all jobs have ended, at most `timeout` seconds, and return their state."""
        far = self._remote_host_jobs(job_ids)
        if not far:
            return super().wait_all(job_ids, timeout=timeout)
        began = boottime()
        here = [job_id for job_id in job_ids if job_id not in far]
        found = {job.id: job for job in super().wait_all(here, timeout=timeout)}
        left = None if timeout is None else max(0.0, timeout - (boottime() - began))
        found |= {job.id: self._seen(job) for job in self.far.wait_all(list(far), timeout=left)}
        return [found[job_id] for job_id in job_ids]

    def _remote_host_jobs(self, job_ids: Sequence[str]) -> Mapping[str, HostJob]:
        found = {job_id: self.find(job_id) for job_id in dict.fromkeys(job_ids)}
        return {job_id: far for job_id, far in found.items() if far is not None}

    def output(
        self, job_id: str, *, timeout: float = 0.0, limit: int | None = None, transcript: bool = False
    ) -> TaskOutput:
        """Return a job and its output at its exit or after `timeout` seconds; mark the exit notice as read."""
        job = self.wait(job_id, timeout=timeout)
        far = self.find(job_id)
        if far is not None:
            found = self.far.output(far, limit=limit, transcript=transcript)
        else:
            found = super().output(job_id, limit=limit, transcript=transcript)
        if found.job.is_final and (self.agent or PERSON) == (job.agent_id or PERSON):
            return found._replace(delivered=self.far.mark_delivered(found.job, found.delivered))
        return found

    def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> OutputChunk:
        """Return output from `offset` on, at most `most` bytes; continue with its `next_offset`."""
        far = self.find(job_id)
        if far is None:
            return super().read(job_id, offset, most=most)
        return self.far.read(far, offset, most=most).part

    def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[StopResult]:
        """Stop jobs with everything they started, and return proof that they are gone.

        Raises:
            HostAway: the only job named is on an unreachable host; with several jobs, the outcome states it.
        """
        far = self._remote_host_jobs(job_ids)
        here = [job_id for job_id in job_ids if job_id not in far]
        if not far:
            return [done._replace(job=self._here(done.job)) for done in super().stop(*here, grace=grace)]
        stopping = self.far.begin_stop(list(far.values()), grace=grace, is_alone=len(set(job_ids)) == 1)
        done = {each.job.id: each._replace(job=self._here(each.job)) for each in super().stop(*here, grace=grace)}
        done |= {each.job.id: each for each in stopping()}
        return [done[job_id] for job_id in dict.fromkeys(job_ids)]

    def ask_to_stop(self, job_id: str) -> Job:
        """Request a stop without waiting for the proof; return the job as it was when requested."""
        far = self.find(job_id)
        return super().ask_to_stop(job_id) if far is None else self.far.control(far, "ask_to_stop")[0]

    def pause(self, job_id: str) -> bool:
        """Pause the clock and every process of a job; False if it was already paused."""
        far = self.find(job_id)
        return super().pause(job_id) if far is None else self.far.control(far, "pause")[1]

    def resume(self, job_id: str) -> bool:
        """Resume a paused job; False if it was not paused."""
        far = self.find(job_id)
        return super().resume(job_id) if far is None else self.far.control(far, "resume")[1]

    def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Write to a job's input; False if it takes no input."""
        far = self.find(job_id)
        if far is None:
            return super().send(job_id, text, close=close)
        try:
            self.far.control(far, "answer", {"text": text, "close": close})
        except NoInput:
            return False
        return True

    def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """Write to a job's input like `send`, but raise the reason if it takes none."""
        far = self.find(job_id)
        if far is None:
            return super().answer(job_id, text, close=close)
        return self.far.control(far, "answer", {"text": text, "close": close})[0]

    def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Move a job to the background: its exit is then reported by a notice."""
        far = self.find(job_id)
        if far is None:
            return super().to_background(job_id, keep=keep)
        return self.far.control(far, "background", {"keep": keep})[1]


#: Seconds to wait for the record of an exit that was already announced.
_EXIT_RECORD_WAIT = 5.0


class RemoteHostOutput:
    """The output of one job on another host."""

    def __init__(self, jobs: RemoteHostJobs, far: HostJob) -> None:
        self._jobs = jobs
        self._far = far

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, so that no more output follows."""
        return self._far.job.is_final

    def damage(self) -> None:
        """Return None: damage is checked on the job's own host."""

    def end(self) -> int:
        """Return the offset behind the newest byte."""
        return self._jobs.tail(self._far, 0).end

    def read(self, offset: int, most: int) -> OutputChunk:
        """Return output from `offset` on, at most what fits into one reply."""
        return self._jobs.read(self._far, offset, most=most).part

    def tail(self, lines: int) -> OutputChunk:
        """Return the last `lines` lines, at most what fits into one reply."""
        return self._jobs.tail(self._far, lines).part

    def follow(self, offset: int, *, debounce: float) -> Iterator[OutputChunk]:
        """Yield each new chunk from `offset` on until the job has ended; bursts collect in transit."""
        while True:
            found = self._jobs.read(self._far, offset, wait=MAX_WAIT)
            if found.part.next_offset != offset or found.part.restarted:
                offset = found.part.next_offset
                yield found.part
            elif found.is_over:
                return

    def ended(self) -> Job:
        """Return the job with its exit, or its current state if the exit is not known yet."""
        return self._jobs.wait_all([self._far.job.id], timeout=_EXIT_RECORD_WAIT)[0]
