"""
Background jobs of one user, for one caller: start, read, wait for and control them.

Everything works on files and kernel state, so any process can do it to any job, also after its starter has
exited.
"""

from __future__ import annotations

from taskyard.config import Settings
from taskyard.core import files
from taskyard.errors import Conflict, JobNotBegun, NoInput, UsageError
from taskyard.jobs import control, outbox, query, wait
from taskyard.jobs.environment import check_background
from taskyard.jobs.gc import collect_if_due
from taskyard.jobs.job_dir import JobPaths, dismissed_folder
from taskyard.jobs.model import JobStatus
from taskyard.jobs.start import RequestBuilder, SupervisorServer, is_in_process, start_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import Job
    from taskyard.jobs.output import OutputChunk, TaskOutput
    from taskyard.jobs.rate_limit import RateLimited


class Jobs:
    """Background jobs, blocking API; `AsyncJobs` is the same for event loops."""

    def __init__(
        self,
        home: str,
        *,
        agent: str | None = None,
        instance: str = "",
        settings: Settings | None = None,
        hook_files: Callable[[str], Sequence[str]] | None = None,
        alone: bool = False,
        sharing: Jobs | None = None,
    ) -> None:
        """Set up; nothing is created or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            agent: The name under which jobs are started; it receives their notices.
            instance: The running instance of that name: once it is gone and no process has its name, the
                user receives them.
            settings: Limits and caps.
            hook_files: Returns the files that may name JobEnded hooks, for a job in a folder.
            alone: Start a dedicated supervisor for each job, as for a command that exits right away.
            sharing: Other `Jobs` of this program, whose supervisor server is used and not closed.
        """
        self.home = home
        self.agent = agent
        self._settings = settings if settings is not None else Settings()
        self._starter = RequestBuilder(home, agent, instance, self._settings, hook_files, alone)
        self._sharing = sharing
        self._own_server: SupervisorServer | None = None

    @property
    def _supervisor_server(self) -> SupervisorServer:
        """The server that forks supervisors; created with the first job."""
        if self._sharing is not None:
            return self._sharing._supervisor_server
        if self._own_server is None:
            self._own_server = SupervisorServer()
        return self._own_server

    def start(
        self,
        spec: Spec,
        *,
        backgrounded: bool = True,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
        before: Callable[[str], None] | None = None,
    ) -> Job:
        """Start a job; when this returns, every process can see it.

        Args:
            spec: What to run.
            backgrounded: Send a notice when it ends; else its starter watches it.
            after: Jobs that must have completed; it does not run if one of them ends otherwise.
            after_any: Jobs that must have ended, however they ended.
            window: Rows and columns of its terminal, if it has one.
            before: Called with its id before the job is created, to record it: so a crash in between can be
                resolved.

        Raises:
            UsageError: something in it is invalid.
            BackgroundDisabled: background jobs are disabled here.
        """
        request = self.request(
            spec,
            backgrounded=backgrounded,
            after=[self.get(other).id for other in after],
            after_any=[self.get(other).id for other in after_any],
            window=window,
        )
        if is_in_process(request):
            raise UsageError(f"A {spec.type} needs a program with an event loop: use `taskyard.open_async`.")
        if before is not None:
            before(str(request["id"]))
        if self._starter.alone:
            start_supervisor(request)
        else:
            self._supervisor_server.start(request)
        collect_if_due(self.home, self._settings)
        return self.after_start(query.read_job(self.home, str(request["id"])))

    def after_start(self, job: Job) -> Job:
        """Complete a start; return the job as callers get it."""
        return self._seen(job)

    def _seen(self, job: Job) -> Job:
        """Return a job that was just read, as callers get it."""
        return job

    def run(self, spec: Spec, *, timeout: float | None = None) -> Job:
        """Start a job and wait until it ends."""
        return self.wait(self.start(spec, backgrounded=False).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """Return one job as it is now.

        Raises:
            JobNotFound: no job ever had this id.
        """
        return self._seen(query.read_job(self.home, job_id))

    def list(self, *, ended: bool = False, report: query.Report | None = None) -> list[Job]:
        """Return live jobs, oldest first; with `ended` also ended ones.

        `report` receives the error of each unreadable job, which is left out.
        """
        return [self._seen(job) for job in query.list_jobs(self.home, ended=ended, report=report)]

    def rate_limits(self) -> Mapping[str, RateLimited]:
        """Return the active rate limits by account: agents of this user on that account wait."""
        from taskyard.jobs.rate_limit import active_limits

        return active_limits(self.home)

    def lift_rate_limit(self, account: str) -> bool:
        """Let agents on an account try again at once; return whether it was limited."""
        from taskyard.jobs.rate_limit import lift_limit

        return lift_limit(self.home, account)

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """Return the job once it has ended, or as it is after `timeout` seconds."""
        return self._seen(wait.wait(self.home, job_id, timeout))

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """Return all jobs once they have ended, or as they are after `timeout` seconds."""
        return [self._seen(job) for job in wait.wait_all(self.home, job_ids, timeout)]

    def output(
        self, job_id: str, *, timeout: float = 0.0, limit: int | None = None, transcript: bool = False
    ) -> TaskOutput:
        """Return a job with its output once it ended, or after `timeout` seconds; its notice counts as delivered."""
        from taskyard.jobs.output import task_output

        job = self.wait(job_id, timeout=timeout)
        return task_output(self.home, job, reader=self.agent, limit=limit, transcript=transcript)

    def reports(self, *, exclude: Container[str] = ()) -> Sequence[str]:
        """Return progress reports of the agents this caller started: what is new since the last call, a text each."""
        from taskyard.jobs.agent_reports import take_reports

        return take_reports(self.home, self.agent, exclude=exclude)

    def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> OutputChunk:
        """Return the output from `offset` on, at most `most` bytes (default 64 KiB); continue at `next_offset`."""
        from taskyard.jobs.output import CHUNK, Output

        output = Output(JobPaths(self.home, self.get(job_id).id))
        return output.read(offset, CHUNK if most is None else most)

    def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[control.StopResult]:
        """Stop jobs with everything they started; return the results with proof."""
        return control.stop(self.home, job_ids, by=self.agent or "", grace=grace)

    def ask_to_stop(self, job_id: str) -> Job:
        """Request a stop without waiting for the proof; return the job as it was."""
        return control.request_stop(self.home, [job_id], by=self.agent or "", grace=None)[0][0]

    def dismiss(self, *job_ids: str) -> Sequence[Job]:
        """Hide ended jobs from every view, and file their notices as read.

        Records and output stay until `gc` removes them.

        Raises:
            JobNotFound: there is no such job.
            Conflict: one of them has not ended; none is dismissed.
            UsageError: one of them is on another host; none is dismissed.
        """
        found = [self.get(job_id) for job_id in job_ids]
        if running := [job.id for job in found if not job.is_final]:
            raise Conflict(f"{', '.join(running)} has not ended: stop it first, `taskyard stop {running[0]}`.")
        if far := next((job for job in found if job.is_on_other_host), None):
            raise UsageError(f"{far.id} ran on {far.host_name}: dismiss it there.")
        files.make_private_folder(dismissed_folder(self.home))
        for job in found:
            outbox.mark_delivered(self.home, job.id)
            try:
                files.create(JobPaths(self.home, job.id).dismissed, b"")
            except FileExistsError:
                pass  # it was dismissed before
        return [job._replace(is_dismissed=True) for job in found]

    def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; return False if it was paused."""
        return control.send_control(self.home, job_id, {"do": "pause"})

    def resume(self, job_id: str) -> bool:
        """Resume a paused job; return False if it was not paused."""
        return control.send_control(self.home, job_id, {"do": "resume"})

    def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Write to a job's input; return False if it takes no input."""
        done = control.write_input(self.home, job_id, text)
        return control.send_control(self.home, job_id, {"do": "close_input"}) and done if close else done

    def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """Write to a job's input as `send` does, with an error that states why it cannot be.

        Raises:
            JobNotBegun: it waits in the start queue.
            NoInput: it takes no input, or does not read.
            JobEnded: it has ended.
        """
        job = self.get(job_id)
        if job.status is JobStatus.PENDING:
            raise JobNotBegun(job.id, job.waits_for)
        if not job.is_final and not job.takes_input:
            advice = "Only one started with --stdin or --pty does, until its input is closed."
            raise NoInput(job.id, "takes no input", advice)
        if not self.send(job_id, text, close=close):
            why = "does not read what it is sent" if self.get(job_id).takes_input else "has closed its input"
            raise NoInput(job.id, why, f"See what it does: `taskyard logs {job.id}`.")
        return self.get(job_id)

    def request(
        self,
        spec: Spec,
        *,
        backgrounded: bool = True,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
    ) -> dict[str, object]:
        """Return the request for a supervisor; the arguments are those of `start`."""
        return self._starter.request(spec, backgrounded=backgrounded, after=after, after_any=after_any, window=window)

    def ask(self, request: Mapping[str, object]) -> int:
        """Request a supervisor; return the descriptor from which to read its reply."""
        return self._supervisor_server.ask(request)

    def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Move a job to the background: its end will be reported by a notice.

        With `keep` it also keeps running when its starter exits.

        Raises:
            BackgroundDisabled: background jobs are disabled here.
            JobEnded: it has ended.
        """
        check_background()
        return control.send_control(self.home, job_id, {"do": "background", "keep": keep})

    def close(self) -> None:
        """Close the server; the jobs keep running."""
        if self._own_server is not None:
            self._own_server.close()
