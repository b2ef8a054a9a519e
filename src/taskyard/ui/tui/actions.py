"""Actions of keys on tasks and jobs; each returns a sentence to show.

They read and write files: call them outside the drawing thread.
"""

from __future__ import annotations

from taskyard.core.text import escape_control
from taskyard.core.values import PERSON
from taskyard.errors import Conflict, JobEnded, JobNotBegun, UsageError
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.tasks.text import note_for_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.model import Job
    from taskyard.tasks.model import Task
    from taskyard.yard import Yard


def _task_label(task: Task) -> str:
    return f"#{task.id} {task.subject}"


def _with_notes(said: str, task: Task) -> str:
    return "\n".join([said, *map(note_for_person, task.notes)])


def add(yard: Yard, subject: str) -> str:
    """Add a task to the list."""
    return f"{_task_label(yard.tasks.create(subject))}: added."


def claim(yard: Yard, task_id: str, me: str) -> str:
    """Claim a task."""
    task = yard.tasks.claim(task_id, agent=me)
    return _with_notes(f"{_task_label(task)}: claimed for {me}.", task)


def start(yard: Yard, task_id: str, me: str | None) -> str:
    """Mark a task in progress."""
    task = yard.tasks.start(task_id, agent=me)
    return _with_notes(f"{_task_label(task)}: in progress.", task)


def done(yard: Yard, task_id: str, me: str | None) -> str:
    """Mark a task completed."""
    task = yard.tasks.complete(task_id, agent=me)
    ready = f" Ready now: {', '.join(f'#{one}' for one in task.ready)}." if task.ready else ""
    return _with_notes(f"{_task_label(task)}: done.{ready}", task)


def release(yard: Yard, task_id: str, me: str | None) -> str:
    """Release a task."""
    return f"{_task_label(yard.tasks.release(task_id, agent=me))}: released."


def block(yard: Yard, task_id: str, by: str) -> str:
    """Make a task wait for others."""
    ids = by.replace(",", " ").replace("#", " ").split()
    if not ids:
        raise UsageError(f"Name the tasks that #{task_id} waits for, such as 3, 4.")
    task = yard.tasks.block(task_id, by=ids)
    return f"{_task_label(task)}: waits for {', '.join(ids)}."


def mail(yard: Yard, to: str, text: str, me: str | None) -> str:
    """Send a message to an agent."""
    receipt = yard.mail.send(me or PERSON, to, text)
    return f"Stored for {to}: {receipt.id}"


def run(jobs: Jobs, command: str, window: tuple[int, int]) -> Job:
    """Start a command in the foreground of the view, with a terminal of its own; it outlives the view."""
    return jobs.start(Shell(command, pty=True, on_parent_exit="keep"), backgrounded=False, window=window)


def to_background(jobs: Jobs, job_id: str) -> str:
    """Move a job to the background: its end will be reported by a notice."""
    jobs.to_background(job_id, keep=True)
    return f"It goes on in the background: {job_id}."


def to_background_if_alive(jobs: Jobs, job_id: str) -> str:
    """Move a job to the background, unless it has ended."""
    try:
        return to_background(jobs, job_id)
    except JobEnded:
        return ""


def stop(jobs: Jobs, job_id: str) -> str:
    """Request termination of a job; the view shows when it ended."""
    job = jobs.ask_to_stop(job_id)
    return (
        f"{job.id} {escape_control(job.description)} had ended already."
        if job.is_final
        else f"{job.id} is asked to end."
    )


def answer(jobs: Jobs, job_id: str, text: str) -> str:
    """Send a line to a job's input."""
    jobs.answer(job_id, f"{text}\n")
    count = len(text.encode()) + 1
    return f"{job_id} got {count:,} {'byte' if count == 1 else 'bytes'}."


def dismiss(jobs: Jobs, job_id: str) -> str:
    """Dismiss an ended job from every view."""
    (job,) = jobs.dismiss(job_id)
    return f"{job.id} {escape_control(job.description)} is dismissed. Its output stays: taskyard logs {job.id}"


def pause_or_resume(jobs: Jobs, job_id: str, *, is_paused: bool) -> str:
    """Pause every process of a job, or resume them."""
    changed = jobs.resume(job_id) if is_paused else jobs.pause(job_id)
    job = jobs.get(job_id)
    if not changed and job.status is JobStatus.PENDING:
        raise JobNotBegun(job.id, job.waits_for)
    if not changed and not is_paused and not job.is_paused:
        raise Conflict(f"Job {job.id} is about to end and cannot be paused. See `taskyard wait {job.id}`.")
    return f"{job.id} {'is resumed' if is_paused else 'is paused, with its time limit'}."
