"""What a store promises about an update that comes with dependencies."""

from __future__ import annotations

from taskyard.errors import Conflict, Cycle, TaskNotFound
from taskyard.tasklist.model import Decision, Facts, Links, TaskStatus
from taskyard.testing.acts import act, add, edges, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.model import Task
    from taskyard.tasklist.store import TaskStore


def _done(facts: Facts) -> Decision:
    return Decision(facts.task._replace(status=TaskStatus.COMPLETED), None)


def _update(store: TaskStore, task_id: str, *, new: str = "", gone: str = "") -> Task:
    """Complete a task and change dependencies, "1>2" for 2 waits for 1."""
    links = Links(*(tuple((edge[0], edge[2]) for edge in several.split()) for several in (new, gone)))
    return store.update(task_id, _done, act("complete"), with_blockers=True, links=links)


def _an_update_and_its_dependencies_are_one_change(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store)
    start = store.position()
    task = _update(store, a, new="1>3", gone="1>2")
    assert (task.is_done, task.blocks) == (True, (c,))
    assert edges(store) == {(a, c)}
    (change,) = store.changes(start)
    assert set(change.tasks) == {a, b, c}, "not all of it is in one entry of the log"


def _a_dependency_can_be_turned_around_in_one_step(store: TaskStore) -> None:
    a, b = add(store), add(store, blocked_by=("1",))
    _update(store, a, new="2>1", gone="1>2")
    assert edges(store) == {(b, a)}


def _a_refused_part_of_an_update_refuses_all_of_it(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store)

    def refuse(facts: Facts) -> Decision:
        raise Conflict(f"no to {facts.task.id}")

    refused(store, Conflict, lambda: store.update(c, refuse, act("put"), links=Links(new=((c, a),))))
    refused(store, Cycle, lambda: _update(store, b, new="2>3 2>1"))
    refused(store, Cycle, lambda: _update(store, b, new="2>2"))
    assert refused(store, TaskNotFound, lambda: _update(store, c, new="3>1 3>7")).task_id == "7"
    assert refused(store, TaskNotFound, lambda: _update(store, c, new="7>3")).task_id == "7"
    assert refused(store, TaskNotFound, lambda: _update(store, c, gone="7>3")).task_id == "7"


REWIRING: tuple[Callable[[TaskStore], None], ...] = (
    _an_update_and_its_dependencies_are_one_change,
    _a_dependency_can_be_turned_around_in_one_step,
    _a_refused_part_of_an_update_refuses_all_of_it,
)
