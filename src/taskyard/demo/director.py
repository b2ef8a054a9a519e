"""
Runs the demo: lays out the plan, starts the workers, kills one, waits for the end, and checks it.

Nothing here takes part in the work: the list alone coordinates the workers, and the event log is
what the outcome is checked against.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

import taskyard
from taskyard.clock import elapsed
from taskyard.demo.plan import PLAN
from taskyard.errors import TaskyardError
from taskyard.runtime import outboxes
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.follow_output import follow_output
from taskyard.runtime.model import JobStatus
from taskyard.runtime.notices import Outbox
from taskyard.runtime.output import Output
from taskyard.typed import NamedTuple
from taskyard.view.job_text import how_it_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from subprocess import Popen

    from taskyard.app import Yard
    from taskyard.demo.stage import Stage
    from taskyard.runtime.model import Job
    from taskyard.runtime.notice import Notice
    from taskyard.tasklist.model import Change, Task

WORKERS = ("ada", "ben", "cleo", "dan")

#: A demo that is not over by then never will be; it takes five seconds or so.
LONGEST = 20.0

#: Seconds between two looks at jobs and workers while nothing happens on the list.
_LOOK = 0.25

#: How long the job that hangs may take to say so, and to end.
_JOB_ENDS = 5.0


class Outcome(NamedTuple):
    """How the demo went, by the event log."""

    tasks: tuple[Task, ...]
    done_by: Mapping[str, str]  #: who completed each task
    killed: str | None  #: the worker that was killed
    rescued: str | None  #: the task it had in hand
    jobs: tuple[Job, ...]  #: every background job, as it ended
    unread: tuple[Notice, ...]  #: what was told to nobody living: the end of the killed worker's job
    seconds: float
    faults: tuple[str, ...]  #: what went otherwise than promised; empty if nothing did


class Failed(TaskyardError):
    """The demo did not come to its end."""

    code = "demo_failed"


def perform(folder: str, stage: Stage, *, speed: float) -> Outcome:
    """Drain the plan on a list in `folder`, which is the demo's own.

    Raises:
        Failed: it did not come to its end in time.
    """
    began = elapsed()
    with taskyard.open(agent="lead", is_person=True, is_main=False) as yard:
        for step in PLAN:
            after = [str(number) for number in step.after]
            yard.tasks.create(step.subject, active_form=step.active_form, blocked_by=after)
        workers: dict[str, Popen[bytes]] = {}
        try:
            with _undisturbed():  # a process that was started is one that we know of
                workers |= {name: _start(folder, name, speed) for name in WORKERS}
            killed, rescued = _watch(yard, stage, workers, folder)
        finally:
            with _undisturbed():
                _end(yard, workers.values())
        return _outcome(yard, killed, rescued, elapsed() - began)


def _end(yard: Yard, workers: Iterable[Popen[bytes]]) -> None:
    """Leave no process behind: no worker, and no job of one."""
    for process in workers:
        process.kill()
        process.wait()
    yard.jobs.stop(*(job.id for job in yard.jobs.list()), grace=0)


@contextmanager
def _undisturbed() -> Generator[None]:
    """Let Ctrl+C and its like wait for a moment."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])


def _start(folder: str, name: str, speed: float) -> Popen[bytes]:
    """A worker: in a session of its own, so that Ctrl+C is ours to handle, for all of them."""
    import subprocess

    with open(f"{folder}/{name}.err", "wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "taskyard.demo.worker", name, str(speed), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def _watch(yard: Yard, stage: Stage, workers: Mapping[str, Popen[bytes]], folder: str) -> tuple[str | None, str | None]:
    """Follow the list to its end; kill whoever takes the task that hangs. Who was killed, with what in hand."""
    killed = rescued = None
    done: set[str] = set()
    deadline = elapsed() + LONGEST
    position = 0
    while elapsed() < deadline:
        stage.look(yard.tasks.list(), yard.jobs)
        for change in yard.tasks.watch(since=position, timeout=_LOOK):
            position = change.id + 1
            stage.look(yard.tasks.list(), yard.jobs)
            stage.show(change)
            if killed is None and (found := _hung(change)) is not None:
                killed, rescued, job_id = found
                next(follow_output(Output(JobFolder(yard.home, job_id)), timeout=_JOB_ENDS), None)  # its last words
                stage.look(yard.tasks.list(), yard.jobs)
                _kill(workers[killed])
                stage.mark(f"kill -9 {workers[killed].pid}: {killed} dies with #{rescued} in hand")
                job = yard.jobs.wait(job_id, timeout=_JOB_ENDS)
                stage.mark(
                    f"its job {job.id} ends with it, by itself: {how_it_ended(job.end) if job.end else 'not yet'}"
                )
                yard.tasks.list()  # whoever looks next finds its holder dead, and gives it back
            if change.act.cause == "complete":
                done.update(change.tasks)
            if len(done) == len(PLAN):
                return killed, rescued
            if elapsed() > deadline:
                break
        if all(process.poll() is not None for process in workers.values()):
            break
    raise Failed(f"The demo did not come to its end within {LONGEST:.0f} s. {_last_words(folder)}".rstrip())


def _hung(change: Change) -> tuple[str, str, str] | None:
    """Who has the task that hangs, its id, and the job that does so."""
    for task_id, task in change.tasks.items():
        if PLAN[int(task_id) - 1].first_try == "hangs" and task is not None and change.act.by is not None:
            job_id = task.metadata.get("job")
            if isinstance(job_id, str):
                return change.act.by, task_id, job_id
    return None


def _kill(process: Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(folder: str) -> str:
    """What the workers said on stderr, if anything."""
    said: list[str] = []
    for name in WORKERS:
        with open(f"{folder}/{name}.err", encoding="utf-8", errors="replace") as file:
            said += [f"{name}: {line}" for line in file.read().splitlines()[-3:]]
    return "\n".join(said)


def _outcome(yard: Yard, killed: str | None, rescued: str | None, seconds: float) -> Outcome:
    log = yard.tasks.log()
    tasks = tuple(yard.tasks.list())
    completions: dict[str, list[Change]] = {task.id: [] for task in tasks}
    starts: dict[str, list[Change]] = {task.id: [] for task in tasks}
    for change in log:
        for task_id in change.tasks:
            if change.act.cause == "complete" and not change.aborted:
                completions[task_id].append(change)
            elif change.act.cause == "start" and not change.aborted:
                starts[task_id].append(change)
    done_by = {task_id: str(found[-1].act.by) for task_id, found in completions.items() if found}
    jobs = tuple(yard.jobs.list(ended=True))
    unread = tuple(Outbox(yard.home, None).waiting())
    faults = (*_faults(tasks, completions, starts), *_job_faults(yard, jobs))
    return Outcome(tasks, done_by, killed, rescued, jobs, unread, seconds, faults)


def _job_faults(yard: Yard, jobs: Sequence[Job]) -> Iterator[str]:
    """What the jobs' own records say against us."""
    for job in jobs:
        count = len(list(outboxes.of_job(yard.home, job.id)))
        if count != 1:
            yield f"the end of job {job.id} was told {count} times"
        if job.end is None or job.end.proof != "proved":
            yield f"something of job {job.id} may be left"
    done = sum(job.status is JobStatus.COMPLETED for job in jobs)
    if done != len(PLAN):
        yield f"{done} jobs completed, for {len(PLAN)} tasks"


def _faults(
    tasks: Sequence[Task], completions: Mapping[str, Sequence[Change]], starts: Mapping[str, Sequence[Change]]
) -> list[str]:
    """What the log says against us."""
    faults = [
        f"#{task.id} was completed {len(completions[task.id])} times"
        for task in tasks
        if len(completions[task.id]) != 1
    ]
    for task in tasks:
        for blocker in task.blocked_by:
            ends = [change.id for change in completions[blocker]]
            if any(not ends or start.id < ends[0] for start in starts[task.id]):
                faults.append(f"#{task.id} was started before #{blocker} was done")
    return faults
