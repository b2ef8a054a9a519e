"""
Trackers: the hidden task that stands for a teammate on its list, in progress until it leaves.

They go past hooks and mail: nothing is done by them, and nobody is to hear of them.
"""

from __future__ import annotations

from taskyard.errors import Conflict, Damaged, NotFound
from taskyard.instances import instance_alive
from taskyard.shapes import as_object, as_text
from taskyard.tasklist.model import Act, Decision, Draft, Facts, Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.store import TaskStore

#: Of its prompt, what the tracker says, in characters; as Claude Code has it.
_LONGEST = 100


def draft(name: str, prompt: str, instance: str) -> Draft:
    """The tracker of a teammate."""
    said = " ".join(prompt.split())[:_LONGEST]
    metadata = {"_internal": True, "taskyard": {"teammate": {"instance": instance}}}
    return Draft(name, said or name, status=TaskStatus.IN_PROGRESS, metadata=metadata)


def begin(store: TaskStore, name: str, prompt: str, instance: str) -> str:
    """Put it on the list; its id."""
    return store.create(draft(name, prompt, instance), Act(name, "create", note="it joined")).id


def end(store: TaskStore, task_id: str, name: str, note: str = "it left") -> None:
    """Complete it; one that is gone or done is left so."""
    try:
        store.update(task_id, _completed, Act(name, "complete", note=note))
    except (Conflict, NotFound, Damaged):
        pass  # somebody was quicker, or took it away


def settle(store: TaskStore, home: str) -> tuple[str, ...]:
    """Complete the trackers of teammates that died; their names."""
    dead = [
        (task.id, task.subject)
        for task in store.list()
        if (instance := instance_of(task)) and instance_alive(home, instance) is False
    ]
    for task_id, name in dead:
        end(store, task_id, name, "it died")
    return tuple(name for _, name in dead)


def instance_of(task: Task) -> str:
    """The living instance that a tracker in progress stands for; "" if it is none of ours, or over."""
    if not task.is_internal or task.is_done:
        return ""
    return as_text((as_object(task.extra.get("teammate")) or {}).get("instance"))


def _completed(facts: Facts) -> Decision:
    return Decision(facts.task._replace(status=TaskStatus.COMPLETED), None)
