"""What the commands about jobs share: the jobs of this user, and how a job ends a command."""

from __future__ import annotations

import os
import signal

from taskyard import config, paths
from taskyard.cli.output import wait_aloud
from taskyard.errors import TaskyardError
from taskyard.names import check_name
from taskyard.relay import door
from taskyard.runtime.model import JobStatus
from taskyard.surroundings import hook_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.kind import Spec
    from taskyard.runtime.model import Job

#: As shells and `timeout` say it.
NOT_FINISHED, OUR_FAULT = 124, 125

EXITS = (
    "N  the job's own exit code; of several, the first that is not 0",
    "124  `wait --timeout` was over before it ended",
    "125  it was lost, was refused its turn, or Taskyard itself failed",
    "126, 127  it cannot be executed, or is not found",
    "128+N  ended by signal N; 143 also where it was stopped, or reached its own time limit, and said 0",
)


def jobs_of(args: Args) -> Jobs:
    """The jobs of this user, for whoever is behind this command line."""
    wait_aloud(args)
    name = args.by or os.environ.get("TASKYARD_AGENT")
    agent = check_name("an agent", name) if name else None
    return door.jobs(paths.home(), config.load(), agent=agent, hook_files=hook_files, alone=True)


def job_id(jobs: Jobs, text: str) -> str:
    """The id of the job that a person named: by id, the beginning of one, name, or `last`."""
    from taskyard.runtime.reference import resolve

    return resolve(text, lambda: jobs.list(ended=True), project=paths.current_project())


def task_of(args: Args) -> str | None:
    """The task that `--task` names, as jobs know it: its list and id."""
    if args.task is None:
        return None
    from taskyard.cli.values import task_id

    return f"{paths.list_name(args.list)}/{task_id(args.task)}"


def one_job(parser: Parser) -> None:
    """An argument that names a job."""
    parser.add("id", metavar="JOB", help="The job's id, the beginning of it, its name, or `last`.")


def exit_code(jobs: Iterable[Job]) -> int:
    """What a command that waited for jobs ends with: the first code that is not 0."""
    return next((code for job in jobs if (code := _code(job))), 0)


def _code(job: Job) -> int:
    if job.end is None:
        return NOT_FINISHED
    if job.end.signal is not None:
        return 128 + job.end.signal
    if job.status is JobStatus.KILLED and not job.end.exit_code:
        return 128 + signal.SIGTERM  # it was ended before it was done, however politely it went
    if job.end.exit_code is not None:
        return job.end.exit_code
    return OUR_FAULT


def as_our_fault(run: Callable[[Args], int]) -> Callable[[Args], int]:
    """A command that ends as a job did: a failure of our own must not look like the job's."""

    def told_apart(args: Args) -> int:
        try:
            return run(args)
        except TaskyardError as error:
            if error.exit_code != TaskyardError.exit_code:
                raise
            from taskyard.cli.output import report

            report(error, as_json=args.as_json)
            return OUR_FAULT

    return told_apart


def start_or_watch(args: Args, spec: Spec) -> int:
    """Leave a job in the background and answer with its id, or watch it from here and end as it did."""
    jobs = jobs_of(args)
    if not args.detach:
        from taskyard.cli.job.foreground import run

        return as_our_fault(lambda args: run(args, jobs, spec))(args)
    from taskyard.cli.output import answer
    from taskyard.view.job_records import job_json

    job = jobs.start(spec)
    return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])


def one_or_all(shown: Sequence[object], *, asked_for_one: bool) -> object:
    """One id, one answer; several, a list."""
    return shown[0] if asked_for_one else list(shown)
