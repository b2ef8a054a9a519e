"""
Runs the demo: lays out the plan, has a team work through it, and checks what came of it.

Nothing here takes part in the work, or in leading it: that is the same lead as of `taskyard team up`. What the
outcome is checked against is the list's log and the jobs' own records.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import threading
from contextlib import contextmanager

from taskyard.clock import elapsed
from taskyard.crew.founding import founded
from taskyard.crew.leading import Course, Lead
from taskyard.crew.plan_file import Plan
from taskyard.crew.wish import Wish
from taskyard.demo.plan import PLAN
from taskyard.errors import UsageError
from taskyard.runtime import outboxes
from taskyard.runtime.events import Events
from taskyard.runtime.model import JobStatus
from taskyard.shapes import as_object
from taskyard.tasklist.formats.imported import imported
from taskyard.trust import trust_command
from taskyard.typed import NamedTuple
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from taskyard.app import Yard
    from taskyard.runtime.events import Event
    from taskyard.runtime.model import Job
    from taskyard.tasklist.formats.imported import Imported
    from taskyard.tasklist.model import Change, Task

TEAM = "release"

AGENTS = 3


class Outcome(NamedTuple):
    """How the demo went, by the log."""

    tasks: tuple[Task, ...]
    done_by: Mapping[str, str]  #: who completed each task
    members: tuple[Job, ...]  #: the teammates, as they ended
    jobs: tuple[Job, ...]  #: what they had done in the background
    refused: tuple[str, ...]  #: tasks whose check did not let them through at first
    answered: int  #: jobs that asked something, and were answered
    seconds: float
    faults: tuple[str, ...]  #: what went otherwise than promised; empty if nothing did


def perform(folder: str, tell: Callable[[str], None]) -> Outcome:
    """Have the plan worked through in `folder`, which is the demo's own.

    Raises:
        UsageError: something it needs is not on this machine.
        MemberNotStarted: a teammate did not come.
    """
    if shutil.which("git") is None:
        raise UsageError("The demo works in a git repository, and there is no `git` here: install it first.")
    began = elapsed()
    repository = f"{folder}/repository"
    os.mkdir(repository)
    os.chdir(repository)
    command = (sys.executable, "-m", "taskyard.demo.agent")
    wish = Wish(TEAM, "Write small files.", "command", command, on_parent_exit="kill")
    with founded(TEAM, _plan(repository), agent="lead", report=tell) as yard:
        try:
            with _told_of_jobs(yard.home, tell):
                Lead(yard, Course(wish, AGENTS), tell=tell).lead()
            return _outcome(yard, elapsed() - began)
        finally:
            yard.jobs.stop(*(job.id for job in yard.jobs.list()), grace=0)


def _plan(repository: str) -> Plan:
    """The plan, as `taskyard team up --plan FILE` would read it; its checks are allowed, as a person would."""
    tasks: list[Imported] = []
    for number, step in enumerate(PLAN, 1):
        fields: dict[str, object] = {
            "subject": step.subject,
            "active_form": step.active_form,
            "blocked_by": [str(after) for after in step.after],
        }
        check = shlex.join(step.check)
        if check:
            trust_command(check, repository)
        extras: dict[str, object] = {"acceptance": {"command": check, "cwd": repository}} if check else {}
        tasks.append(imported(str(number), fields, where=step.subject, extras=extras))
    return Plan(tuple(tasks), TEAM)


# -- jobs and notices, as they come ----------------------------------------------------------


@contextmanager
def _told_of_jobs(home: str, tell: Callable[[str], None]) -> Generator[None]:
    """Have it told which background jobs begin and how they end, until all of it was told."""
    events = Events(home, 0, follow=True)
    teller = threading.Thread(target=_tell, args=(events, tell), daemon=True)
    teller.start()
    try:
        yield
    finally:
        events.close()
        teller.join()
        _tell(Events(home, events.position), tell)


def _tell(events: Events, tell: Callable[[str], None]) -> None:
    for event in events:
        if line := _told(event):
            tell(line)


def _told(event: Event) -> str:
    about = {name: safe(str(value)) for name, value in event.data.items()}
    if event.subtype == "task_started" and about.get("task_type") == "local_bash":
        return f"    job {event.task_id} begins: {about['description']}"
    if event.subtype == "task_notification" and event.task_id.startswith("b"):
        return f"    job {event.task_id}, {about['status']}: {about['summary']}"
    return ""


# -- what came of it -------------------------------------------------------------------------


def _outcome(yard: Yard, seconds: float) -> Outcome:
    log = [change for change in yard.tasks.log() if not change.aborted]
    tasks = tuple(yard.tasks.list())
    completions = {task.id: _of(log, task.id, "complete") for task in tasks}
    done_by = {task_id: str(found[-1].act.by) for task_id, found in completions.items() if found}
    everything = yard.jobs.list(ended=True)
    members = tuple(job for job in everything if job.type == "in_process_teammate")
    jobs = tuple(job for job in everything if job.type == "local_bash")
    said = [line for member in members for line in _transcript(member)]
    return Outcome(
        tasks,
        done_by,
        members,
        jobs,
        tuple(str(line.get("task")) for line in said if line.get("type") == "refused"),
        sum("waiting for interactive input" in str(line.get("text")) for line in said),
        seconds,
        (*_faults(tasks, completions, log), *_job_faults(yard, members, jobs)),
    )


def _of(log: Sequence[Change], task_id: str, *causes: str) -> list[Change]:
    return [change for change in log if change.act.cause in causes and task_id in change.tasks]


def _transcript(member: Job) -> list[dict[str, object]]:
    with open(member.output_file, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return [found for line in lines if (found := as_object(line)) is not None]


def _faults(tasks: Sequence[Task], completions: Mapping[str, Sequence[Change]], log: Sequence[Change]) -> Iterator[str]:
    """What the log says against us."""
    for task in tasks:
        count = len(completions[task.id])
        if count != 1:
            yield f"#{task.id} was completed {count} times"
        begun = [change.id for change in _of(log, task.id, "claim", "start")]
        for blocker in task.blocked_by:
            ends = [change.id for change in completions.get(blocker, ())]
            if begun and (not ends or begun[0] < ends[0]):
                yield f"#{task.id} was begun before #{blocker} was done"


def _job_faults(yard: Yard, members: Sequence[Job], jobs: Sequence[Job]) -> Iterator[str]:
    """What the jobs' own records say against us."""
    for job in (*members, *jobs):
        if job.end is None or job.end.proof != "proved":
            yield f"something of job {job.id} may be left"
    for job in jobs:
        count = sum(notice.is_end for notice in outboxes.of_job(yard.home, job.id))
        if count != 1:
            yield f"the end of job {job.id} was told {count} times"
    died = sum(member.status is not JobStatus.COMPLETED for member in members)
    if died != 1:
        yield f"{died} teammates died, and one should"
