"""
The jobs of one user, for one caller: started, looked at, waited for, steered.

Everything here works on files and the kernel's word, so any process can do it to any job, also after whoever started
it is gone.
"""

from __future__ import annotations

from taskyard.config import Settings
from taskyard.disk import files
from taskyard.errors import Conflict, JobNotBegun, NoInput, UsageError
from taskyard.runtime import looking, outboxes, steering, waiting
from taskyard.runtime.background import check_background
from taskyard.runtime.folder import JobFolder, dismissed_folder
from taskyard.runtime.gc import maybe_collect
from taskyard.runtime.model import JobStatus
from taskyard.runtime.requests import Starter, is_inside
from taskyard.runtime.starting import Forker, start_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from taskyard.runtime.kind import Spec
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part
    from taskyard.runtime.rate_limit import RateLimited
    from taskyard.runtime.task_output import TaskOutput


class Jobs:
    """Background jobs, for programs that wait in line; `AsyncJobs` is the same for those that do not."""

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
        """Nothing is made or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            agent: In whose name jobs are started; it hears of their ends.
            instance: The living instance of that name: once it is dead and nobody has its name, the person hears.
            settings: Limits and caps.
            hook_files: The files that may name JobEnded hooks, for a job in a folder.
            alone: Each job gets a keeper started for it, as for a command that ends right away.
            sharing: Others of this program, whose server of keepers it uses and does not end.
        """
        self.home = home
        self.agent = agent
        self._settings = settings if settings is not None else Settings()
        self._starter = Starter(home, agent, instance, self._settings, hook_files, alone)
        self._owns_forker = sharing is None
        self._forker: Forker = Forker() if sharing is None else sharing._forker

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
        """Start a job; when this returns it is there for everybody.

        Args:
            spec: What shall run.
            backgrounded: Its end is told by a notice; else whoever starts it watches it.
            after: Jobs that must have completed; it does not run if one of them ends otherwise.
            after_any: Jobs that must be over, however they ended.
            window: Rows and columns of its terminal, if it has one.
            before: Gets its id before there is such a job, to write it down: whoever dies then can still be understood.

        Raises:
            UsageError: something in it cannot be.
            BackgroundDisabled: nothing may run in the background here.
        """
        request = self.request(
            spec,
            backgrounded=backgrounded,
            after=[self.get(other).id for other in after],
            after_any=[self.get(other).id for other in after_any],
            window=window,
        )
        if is_inside(request):
            raise UsageError(f"A {spec.type} lives inside a program with an event loop: use `taskyard.open_async`.")
        if before is not None:
            before(str(request["id"]))
        if self._starter.alone:
            start_alone(request)
        else:
            self._forker.start(request)
        maybe_collect(self.home, self._settings)
        return self.after_start(looking.look(self.home, str(request["id"])))

    def after_start(self, job: Job) -> Job:
        """Complete a start; the job as callers get it."""
        return self._seen(job)

    def _seen(self, job: Job) -> Job:
        """A job that was just read, as callers get it."""
        return job

    def run(self, spec: Spec, *, timeout: float | None = None) -> Job:
        """Start a job and wait for its end."""
        return self.wait(self.start(spec, backgrounded=False).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """One job as it is now.

        Raises:
            JobNotFound: there never was one of this id.
        """
        return self._seen(looking.look(self.home, job_id))

    def list(self, *, ended: bool = False, report: looking.Report | None = None) -> list[Job]:
        """Every job that lives, oldest first; with `ended` also those that are over.

        `report` gets what is wrong with each that cannot be read, and is left out.
        """
        return [self._seen(job) for job in looking.everything(self.home, ended=ended, report=report)]

    def rate_limits(self) -> Mapping[str, RateLimited]:
        """The rate limits that hold now, by account: agents of this user on that account wait."""
        from taskyard.runtime.pace import limits

        return limits(self.home)

    def lift_rate_limit(self, account: str) -> bool:
        """Let agents on an account try again at once; whether it was limited."""
        from taskyard.runtime.pace import lift

        return lift(self.home, account)

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """The job at its end, or as it is after `timeout` seconds."""
        return self._seen(waiting.wait(self.home, job_id, timeout))

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """All jobs at their ends, or as they are after `timeout` seconds."""
        return [self._seen(job) for job in waiting.wait_all(self.home, job_ids, timeout)]

    def output(
        self, job_id: str, *, timeout: float = 0.0, limit: int | None = None, transcript: bool = False
    ) -> TaskOutput:
        """A job with what it printed, at its end or after `timeout` seconds. An end that is seen so needs no notice."""
        from taskyard.runtime.task_output import task_output

        job = self.wait(job_id, timeout=timeout)
        return task_output(self.home, job, reader=self.agent, limit=limit, transcript=transcript)

    def reports(self, *, but: Container[str] = ()) -> Sequence[str]:
        """How far the agents are that this caller started: what is new since the last report, a text each, once."""
        from taskyard.runtime.agent_reports import reports

        return reports(self.home, self.agent, but=but)

    def read(self, job_id: str, offset: int = 0, *, most: int | None = None) -> Part:
        """What a job printed from `offset` on, at most `most` bytes (1 MB); ask for more with its `next_offset`."""
        from taskyard.runtime.output import CHUNK, Output

        output = Output(JobFolder(self.home, self.get(job_id).id))
        return output.read(offset, CHUNK if most is None else most)

    def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[steering.Stopped]:
        """End jobs with everything they started, and answer with proof."""
        return steering.stop(self.home, job_ids, by=self.agent or "", grace=grace)

    def ask_to_stop(self, job_id: str) -> Job:
        """As `stop`, for those who do not wait for the proof; the job as it was when it was asked."""
        return steering.asked_to_stop(self.home, [job_id], by=self.agent or "", grace=None)[0][0]

    def dismiss(self, *job_ids: str) -> Sequence[Job]:
        """Leave ended jobs out of every view from now on, and file their notices as read.

        Records and output stay until `gc` takes them.

        Raises:
            JobNotFound: there is no such job.
            Conflict: one of them has not ended; none is dismissed.
            UsageError: one of them is of another machine; none is dismissed.
        """
        found = [self.get(job_id) for job_id in job_ids]
        if running := [job.id for job in found if not job.is_final]:
            raise Conflict(f"{', '.join(running)} has not ended: stop it first, `taskyard stop {running[0]}`.")
        if far := next((job for job in found if job.is_far), None):
            raise UsageError(f"{far.id} ran on {far.host_name}: dismiss it there.")
        files.make_private_folder(dismissed_folder(self.home))
        for job in found:
            outboxes.mark_delivered(self.home, job.id)
            try:
                files.create(JobFolder(self.home, job.id).dismissed, b"")
            except FileExistsError:
                pass  # it was dismissed before
        return [job._replace(is_dismissed=True) for job in found]

    def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; False if it was paused."""
        return steering.tell(self.home, job_id, {"do": "pause"})

    def resume(self, job_id: str) -> bool:
        """Let a paused job go on; False if it was not paused."""
        return steering.tell(self.home, job_id, {"do": "resume"})

    def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Type into a job; False if it takes no input."""
        done = steering.type_in(self.home, job_id, text)
        return steering.tell(self.home, job_id, {"do": "close_input"}) and done if close else done

    def answer(self, job_id: str, text: str, *, close: bool = False) -> Job:
        """As `send`, for those who want to know why a job cannot be typed into.

        Raises:
            JobNotBegun: it waits for its turn.
            NoInput: it takes no input, or does not read.
            JobEnded: it is over.
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
        """What a keeper is asked for; the arguments are those of `start`."""
        return self._starter.request(spec, backgrounded=backgrounded, after=after, after_any=after_any, window=window)

    def ask(self, request: Mapping[str, object]) -> int:
        """Have a keeper made for a request; the descriptor its answer will come from."""
        return self._forker.ask(request)

    def to_background(self, job_id: str, *, keep: bool = False) -> bool:
        """Say that nobody watches a job in the foreground any more: its end will be told by a notice.

        With `keep` it also goes on when whoever started it ends.

        Raises:
            BackgroundDisabled: nothing may run in the background here.
            JobEnded: it is over.
        """
        check_background()
        return steering.tell(self.home, job_id, {"do": "background", "keep": keep})

    def close(self) -> None:
        """Let go of the server; the jobs go on."""
        if self._owns_forker:
            self._forker.close()
