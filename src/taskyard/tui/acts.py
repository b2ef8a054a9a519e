"""What keys do to tasks and jobs, each with a sentence about what came of it. They write files: for other threads."""

from __future__ import annotations

from taskyard.errors import Conflict, JobEnded, JobNotBegun, UsageError
from taskyard.harmless import safe
from taskyard.kinds.shell import Shell
from taskyard.runtime.model import JobStatus
from taskyard.tasklist.nudge import note_for_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job
    from taskyard.tasklist.model import Task

#: Who speaks where nobody is named, as on the command line.
PERSON = "me"


def _named(task: Task) -> str:
    return f"#{task.id} {task.subject}"


def _noted(said: str, task: Task) -> str:
    return "\n".join([said, *map(note_for_person, task.notes)])


def add(yard: Yard, subject: str) -> str:
    """Put a task on the list."""
    return f"{_named(yard.tasks.create(subject))}: added."


def claim(yard: Yard, task_id: str, me: str) -> str:
    """Take a task."""
    task = yard.tasks.claim(task_id, agent=me)
    return _noted(f"{_named(task)}: claimed for {me}.", task)


def start(yard: Yard, task_id: str, me: str | None) -> str:
    """Work on it begins."""
    task = yard.tasks.start(task_id, agent=me)
    return _noted(f"{_named(task)}: in progress.", task)


def done(yard: Yard, task_id: str, me: str | None) -> str:
    """It is done."""
    task = yard.tasks.complete(task_id, agent=me)
    ready = f" Ready now: {', '.join(f'#{one}' for one in task.ready)}." if task.ready else ""
    return _noted(f"{_named(task)}: done.{ready}", task)


def release(yard: Yard, task_id: str, me: str | None) -> str:
    """Back into the pool."""
    return f"{_named(yard.tasks.release(task_id, agent=me))}: released."


def block(yard: Yard, task_id: str, by: str) -> str:
    """Let it wait for others."""
    ids = by.replace(",", " ").replace("#", " ").split()
    if not ids:
        raise UsageError(f"On what shall #{task_id} wait? Give the ids of tasks, such as 3, 4.")
    task = yard.tasks.block(task_id, by=ids)
    return f"{_named(task)}: waits for {', '.join(ids)}."


def mail(yard: Yard, to: str, text: str, me: str | None) -> str:
    """Write to an agent."""
    receipt = yard.mail.send(me or PERSON, to, text)
    return f"Stored for {to}: {receipt.id}"


def run(jobs: Jobs, command: str, window: tuple[int, int]) -> Job:
    """Start a command in the foreground of the view, with a terminal of its own; it outlives the view."""
    return jobs.start(Shell(command, pty=True, on_parent_exit="keep"), backgrounded=False, window=window)


def to_background(jobs: Jobs, job_id: str) -> str:
    """Nobody watches it any more: its end will be told by a notice."""
    jobs.to_background(job_id, keep=True)
    return f"It goes on in the background: {job_id}."


def to_background_if_alive(jobs: Jobs, job_id: str) -> str:
    """The same for one that may be over."""
    try:
        return to_background(jobs, job_id)
    except JobEnded:
        return ""


def stop(jobs: Jobs, job_id: str) -> str:
    """Ask for its end; the view shows when it came."""
    job = jobs.ask_to_stop(job_id)
    return f"{job.id} {safe(job.description)} had ended already." if job.is_final else f"{job.id} is asked to end."


def answer(jobs: Jobs, job_id: str, text: str) -> str:
    """Type a line into a job."""
    jobs.answer(job_id, f"{text}\n")
    count = len(text.encode()) + 1
    return f"{job_id} got {count:,} {'byte' if count == 1 else 'bytes'}."


def dismiss(jobs: Jobs, job_id: str) -> str:
    """Leave an ended job out of every view."""
    (job,) = jobs.dismiss(job_id)
    return f"{job.id} {safe(job.description)} is dismissed. Its output stays: taskyard logs {job.id}"


def pause_or_resume(jobs: Jobs, job_id: str, *, is_paused: bool) -> str:
    """Stop every process of a job where it is, or let it go on."""
    changed = jobs.resume(job_id) if is_paused else jobs.pause(job_id)
    job = jobs.get(job_id)
    if not changed and job.status is JobStatus.PENDING:
        raise JobNotBegun(job.id, job.waits_for)
    if not changed and not is_paused and not job.is_paused:
        raise Conflict(f"Job {job.id} is about to end and cannot be paused. See `taskyard wait {job.id}`.")
    return f"{job.id} {'goes on' if is_paused else 'is paused, and its clock with it'}."
