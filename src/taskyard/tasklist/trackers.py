"""
Trackers: the hidden task that stands for a teammate on its list, in progress until it leaves.

They go past hooks and mail: nothing is done by them, and nobody is to hear of them. One whose teammate died is
completed by whoever looks at trackers next.
"""

from __future__ import annotations

from taskyard.errors import Busy, Conflict, Damaged, NotFound, StorageError
from taskyard.shapes import as_object, as_text
from taskyard.tasklist.model import Act, Decision, Draft, Facts, Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.instances import Instance
    from taskyard.tasklist.store import TaskStore

#: Of its prompt, what the tracker says, in characters; as Claude Code has it.
_LONGEST = 100


def draft(name: str, prompt: str, instance: Instance) -> Draft:
    """The tracker of a teammate."""
    said = " ".join(prompt.split())[:_LONGEST]
    record = instance.record
    alive_by = {"instance": record.id, "host": record.host, "lock": record.lock, "place": record.place}
    metadata = {"_internal": True, "taskyard": {"teammate": alive_by}}
    return Draft(name, said or name, status=TaskStatus.IN_PROGRESS, metadata=metadata)


def begin(store: TaskStore, name: str, prompt: str, instance: Instance) -> str:
    """Put it on the list; its id."""
    return store.create(draft(name, prompt, instance), Act(name, "create", note="it joined")).id


def end(store: TaskStore, task_id: str, name: str, note: str = "it left") -> None:
    """Complete it; one that is gone or done is left so."""
    try:
        store.update(task_id, _completed, Act(name, "complete", note=note))
    except (Conflict, NotFound, Damaged):
        pass  # somebody was quicker, or took it away


def settle(store: TaskStore, tasks: Iterable[Task]) -> bool:
    """Complete the trackers of teammates that died; whether there were any."""
    dead = [task for task in tasks if _is_dead(task)]
    try:
        for task in dead:
            end(store, task.id, task.subject, "it died")
    except (Busy, StorageError):
        return False  # somebody is at it, or we may not: the next look will do
    return bool(dead)


def _is_dead(task: Task) -> bool:
    """Whether it stands for a teammate that is gone for certain."""
    if not task.is_internal or task.is_done:
        return False
    alive_by = as_object(task.extra.get("teammate"))
    if alive_by is None:
        return False  # another program's: never presumed dead
    from taskyard.instances import alive

    lock, host, place = (as_text(alive_by.get(name)) for name in ("lock", "host", "place"))
    return bool(lock) and alive(lock, host, place) is False


def _completed(facts: Facts) -> Decision:
    return Decision(facts.task._replace(status=TaskStatus.COMPLETED), None)
