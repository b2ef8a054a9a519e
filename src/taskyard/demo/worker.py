"""
One worker of the demo, a process of its own: `python -m taskyard.demo.worker NAME SPEED PARENT`.

Claim, start, have the work done by a background job, hear of its end by a notice, complete, look again. With nothing to
claim, sleep until something changes.
"""

from __future__ import annotations

import os
import sys

import taskyard
from taskyard.demo.plan import PLAN
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.app import Yard
    from taskyard.demo.plan import Step
    from taskyard.runtime.model import Job
    from taskyard.runtime.notice import Notice
    from taskyard.runtime.notices import Outbox

#: A sleep while nothing can be claimed, or a job runs; news ends it sooner, the death of the director does not.
LONGEST_SLEEP = 1.0


def main(name: str, speed: float, parent: int) -> int:
    """Work until everything is done, or whoever started us is gone."""

    def goes_on() -> bool:
        return os.getppid() == parent

    with taskyard.open(agent=name, is_main=False) as yard, yard.notices() as outbox:
        while goes_on():
            position = yard.tasks.store.position()
            task = yard.tasks.claim_next()
            if task is not None:
                _do(yard, outbox, task.id, speed, goes_on)
            elif all(other.is_done for other in yard.tasks.list()):
                return 0
            else:
                next(yard.tasks.watch(since=position, timeout=LONGEST_SLEEP), None)
    return 1


def _do(yard: Yard, outbox: Outbox, task_id: str, speed: float, goes_on: Callable[[], bool]) -> None:
    """Have a task's work done, again if it fails, and complete the task."""
    yard.tasks.start(task_id)
    step = PLAN[int(task_id) - 1]
    while goes_on():
        job = _started(yard, step, task_id, speed)
        yard.tasks.update(task_id, metadata={"job": job.id, "news": None})
        notice = _news_of(outbox, job.id, goes_on)
        if notice is None:
            return
        last = Output(JobFolder(yard.home, job.id)).last_line().decode("utf-8", "replace")
        if notice.status == "completed":
            yard.tasks.update(task_id, metadata={"result": last})
            yard.tasks.complete(task_id)
            return
        yard.tasks.update(task_id, metadata={"news": f"{notice.summary}: {last}"})


def _started(yard: Yard, step: Step, task_id: str, speed: float) -> Job:
    """The job that does the work; the first one of some steps goes wrong."""
    was_tried = yard.tasks.get(task_id).metadata.get("job")
    words = [sys.executable, "-m", "taskyard.demo.job", step.work, str(step.seconds / speed)]
    if step.first_try and not was_tried:
        words.append(step.first_try)
    return yard.jobs.start(taskyard.Shell(words, name=step.subject))


def _news_of(outbox: Outbox, job_id: str, goes_on: Callable[[], bool]) -> Notice | None:
    """The notice of a job's end, acknowledged."""
    while goes_on():
        for notice in outbox.take():
            outbox.ack([notice.id])
            if notice.task_id == job_id:
                return notice
        outbox.wait(LONGEST_SLEEP)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
