"""What a store promises about a whole list that it takes over."""

from __future__ import annotations

from taskyard.errors import ListNotEmpty
from taskyard.tasklist.model import Task, TaskStatus
from taskyard.testing.acts import act, add, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.store import TaskStore

_TASKS = (
    Task("3", "first", "All of it\n✓", "Porting", None, TaskStatus.COMPLETED, ("7",), (), {"k": [1]}, 1000, 2000),
    Task(
        "7", "second", "\0\ud800", None, "ada", TaskStatus.IN_PROGRESS, (), ("3",), {"taskyard": {"p": 1}}, 3000, 4000
    ),
)


def _a_list_that_is_taken_over_is_as_it_was(store: TaskStore) -> None:
    store.adopt(_TASKS, act("import"), last=9)
    assert tuple(store.list()) == _TASKS
    assert store.get("7") == _TASKS[1]
    assert store.last_id() == 9
    assert add(store, blocked_by=("7",)) == "10", "an id that was spent elsewhere was given out"
    [first, _] = store.changes()
    assert first.act == act("import")
    assert [(task.id, task.created_at) for task in first.tasks.values() if task] == [("3", 1000), ("7", 3000)]


def _only_an_empty_list_takes_over_another(store: TaskStore) -> None:
    add(store)
    before = (*store.list(), *store.changes())
    refused(store, ListNotEmpty, lambda: store.adopt(_TASKS, act("import")))
    assert (*store.list(), *store.changes()) == before
    store.remove(["1"], act("delete"))
    store.adopt(_TASKS, act("import"))
    assert [task.id for task in store.list()] == ["3", "7"]


def _a_time_that_is_not_known_is_now(store: TaskStore) -> None:
    store.adopt([_TASKS[0]._replace(blocks=(), created_at=None, updated_at=None)], act("import"))
    found = store.get("3")
    assert (found.created_at or 0) > 10**12
    assert (found.updated_at or 0) > 10**12


def _the_highest_id_is_known(store: TaskStore) -> None:
    assert store.last_id() == 0
    store.remove([add(store)], act("delete"))
    assert store.last_id() == 1


ADOPTING: tuple[Callable[[TaskStore], None], ...] = (
    _a_list_that_is_taken_over_is_as_it_was,
    _only_an_empty_list_takes_over_another,
    _a_time_that_is_not_known_is_now,
    _the_highest_id_is_known,
)
