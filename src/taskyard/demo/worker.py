"""
One worker of the demo, a process of its own: `python -m taskyard.demo.worker NAME SPEED`.

Claim, start, work, complete, look again; with nothing to claim, sleep until something changes.
"""

from __future__ import annotations

import os
import sys

import taskyard
from taskyard.demo.plan import FOR_EVER, PLAN, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard

#: Longer than any step takes; whoever hears nothing for so long has been forgotten, and goes.
PATIENCE = 20.0


def main(name: str, speed: float) -> int:
    """Work until everything is done."""
    parent = os.getppid()
    with taskyard.open(agent=name, is_main=False) as yard:
        while os.getppid() == parent:
            position = yard.tasks.store.position()
            task = yard.tasks.claim_next()
            if task is not None:
                _do(yard, task.id, speed)
            elif all(other.is_done for other in yard.tasks.list()):
                return 0
            elif next(yard.tasks.watch(since=position, timeout=PATIENCE), None) is None:
                return 1
    return 1


def _do(yard: Yard, task_id: str, speed: float) -> None:
    yard.tasks.start(task_id)
    step = PLAN[int(task_id) - 1]
    was_lost = any(change.act.cause == "lease_lost" for change in yard.tasks.log(task_id))
    result = work(step.work, FOR_EVER if step.hangs_once and not was_lost else step.seconds / speed)
    yard.tasks.update(task_id, metadata={"result": result})
    yard.tasks.complete(task_id)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
