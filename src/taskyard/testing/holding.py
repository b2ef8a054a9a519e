"""What a store promises about tasks that somebody holds."""

from __future__ import annotations

from taskyard.errors import Conflict
from taskyard.tasklist.model import Decision, Draft, Facts, TaskStatus
from taskyard.testing.acts import act, add, lease, put, refused, take, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.store import TaskStore


def _a_lease_stands_beside_the_task(store: TaskStore) -> None:
    task_id, held = add(store), lease()
    taken = store.update(task_id, take(held), act("claim"))
    assert (taken.owner, taken.lease) == ("ada", held)
    assert store.get(task_id) == taken
    assert tuple(store.list()) == (taken,)
    start, longer = store.position(), held._replace(kind="time", expires=held.since + 600_000)
    store.update(task_id, lambda facts: Decision(facts.task, longer), act("renew"))
    assert store.get(task_id).lease == longer
    assert told(store, start) == [], "renewing a lease is no change of the task"
    put(store, task_id, status=TaskStatus.COMPLETED)
    assert store.get(task_id).lease is None, "a completed task is held by nobody"


def _a_task_can_be_held_from_its_creation(store: TaskStore) -> None:
    first, held = add(store), lease()
    for more in ({"task_id": store.reserve()}, {}):
        for draft in (Draft("a", "a", owner="ada"), Draft("a", "a", owner="ada", blocked_by=(first,))):
            task = store.create(draft, act("create"), lease=held, **more)
            assert (task.lease, store.get(task.id).lease) == (held, held), "its owner does not hold it"
            more = {}
    assert store.get(first).lease is None


def _a_removal_is_checked_against_what_is_there(store: TaskStore) -> None:
    ids, held, seen = [add(store), add(store)], lease(), list[Facts]()
    store.update(ids[1], take(held), act("claim"))

    def check(facts: Facts) -> None:
        seen.append(facts)
        if facts.lease is not None:
            raise Conflict(f"no to {facts.task.id}")

    refused(store, Conflict, lambda: store.remove(ids, act("delete"), check=check))
    last = [(facts.task.id, facts.lease) for facts in seen][-2:]  # a store may ask again
    assert last == [(ids[0], None), (ids[1], held)]
    assert [task.id for task in store.remove(ids[:1], act("delete"), check=check)] == ids[:1]


HOLDING: tuple[Callable[[TaskStore], None], ...] = (
    _a_lease_stands_beside_the_task,
    _a_task_can_be_held_from_its_creation,
    _a_removal_is_checked_against_what_is_there,
)
