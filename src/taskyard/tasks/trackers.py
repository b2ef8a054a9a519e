"""Trackers: the hidden task that represents a teammate on its list, in progress until it leaves.

Trackers bypass hooks and mail: no work is done under them and no agent is notified. The tracker of a
teammate that crashed is completed by the next process that lists trackers.
"""

from __future__ import annotations

from taskyard.core.values import as_object, as_text
from taskyard.errors import Busy, Conflict, Damaged, NotFound, StorageError
from taskyard.tasks.model import Act, Decision, Draft, Facts, Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.storage.process_registry import Instance
    from taskyard.tasks.store import TaskStore

#: Characters of the teammate's prompt in the tracker's description, as in Claude Code.
_LONGEST = 100


def tracker_draft(name: str, prompt: str, instance: Instance) -> Draft:
    """Return the tracker of a teammate as a draft."""
    said = " ".join(prompt.split())[:_LONGEST]
    record = instance.record
    liveness = {"instance": record.id, "host": record.host, "lock": record.lock, "place": record.place}
    metadata = {"_internal": True, "taskyard": {"teammate": liveness}}
    return Draft(name, said or name, status=TaskStatus.IN_PROGRESS, metadata=metadata)


def create_tracker(store: TaskStore, name: str, prompt: str, instance: Instance) -> str:
    """Create a teammate's tracker; return its id."""
    return store.create(tracker_draft(name, prompt, instance), Act(name, "create", note="it joined")).id


def complete_tracker(store: TaskStore, task_id: str, name: str, note: str = "it left") -> None:
    """Complete a tracker; one that is removed or completed stays so."""
    try:
        store.update(task_id, _complete, Act(name, "complete", note=note))
    except (Conflict, NotFound, Damaged):
        pass  # another process completed or removed it first


def complete_dead_trackers(store: TaskStore, tasks: Iterable[Task]) -> bool:
    """Complete the trackers of teammates that crashed; return whether there were any."""
    dead = [task for task in tasks if _is_dead(task)]
    try:
        for task in dead:
            complete_tracker(store, task.id, task.subject, "it died")
    except (Busy, StorageError):
        return False  # locked by another process, or not writable: the next call retries
    return bool(dead)


def _is_dead(task: Task) -> bool:
    """Return whether the task is the tracker of a teammate that has certainly exited."""
    if not task.is_internal or task.is_done:
        return False
    liveness = as_object(task.extra.get("teammate"))
    if liveness is None:
        return False  # another program's: never presumed dead
    from taskyard.storage.process_registry import is_holder_alive

    lock, host, place = (as_text(liveness.get(name)) for name in ("lock", "host", "place"))
    return bool(lock) and is_holder_alive(lock, host, place) is False


def _complete(facts: Facts) -> Decision:
    return Decision(facts.task._replace(status=TaskStatus.COMPLETED), None)
