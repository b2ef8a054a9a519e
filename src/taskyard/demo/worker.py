"""
One worker of the demo, a process of its own: `python -m taskyard.demo.worker NAME SPEED PARENT`.

Claim, start, work, complete, look again; with nothing to claim, sleep until something changes.
"""

from __future__ import annotations

import os
import sys

import taskyard
from taskyard.demo.plan import FOR_EVER, PLAN, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.app import Yard

#: A sleep while nothing can be claimed; a change on the list ends it sooner, the death of the director does not.
LONGEST_SLEEP = 1.0


def main(name: str, speed: float, parent: int) -> int:
    """Work until everything is done, or whoever started us is gone."""

    def goes_on() -> bool:
        return os.getppid() == parent

    with taskyard.open(agent=name, is_main=False) as yard:
        while goes_on():
            position = yard.tasks.store.position()
            task = yard.tasks.claim_next()
            if task is not None:
                _do(yard, task.id, speed, goes_on)
            elif all(other.is_done for other in yard.tasks.list()):
                return 0
            else:
                next(yard.tasks.watch(since=position, timeout=LONGEST_SLEEP), None)
    return 1


def _do(yard: Yard, task_id: str, speed: float, goes_on: Callable[[], bool]) -> None:
    yard.tasks.start(task_id)
    step = PLAN[int(task_id) - 1]
    was_lost = any(change.act.cause == "lease_lost" for change in yard.tasks.log(task_id))
    seconds = FOR_EVER if step.hangs_once and not was_lost else step.seconds / speed
    result = work(step.work, seconds, goes_on=goes_on)
    if not goes_on():
        return
    yard.tasks.update(task_id, metadata={"result": result})
    yard.tasks.complete(task_id)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
