"""Short words for the checks of a store: what is done to it, and what it says."""

from __future__ import annotations

from taskyard.clock import now_ms
from taskyard.tasklist.model import Act, Decision, Draft, Facts, Lease, Task, TaskStatus
from taskyard.tasklist.tokens import new_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from taskyard.tasklist.store import TaskStore

    E = TypeVar("E", bound=Exception)


def act(cause: str = "check", by: str | None = "ada", note: str = "") -> Act:
    """Who did it, for the log."""
    return Act(by, cause, "api", note)


def add(store: TaskStore, subject: str = "a", *, blocks: tuple[str, ...] = (), blocked_by: tuple[str, ...] = ()) -> str:
    """A new task; its id."""
    return store.create(Draft(subject, subject, blocks=blocks, blocked_by=blocked_by), act("create")).id


def put(store: TaskStore, task_id: str, **fields: object) -> Task:
    """Change fields of a task; its lease stays."""
    return store.update(task_id, lambda facts: Decision(facts.task._replace(**fields), facts.lease), act("put"))  # type: ignore[arg-type]


def lease(owner: str = "ada", *, ends_in: int | None = None) -> Lease:
    """A claim without an end, or with one in so many milliseconds."""
    since = now_ms()
    if ends_in is None:
        return Lease(owner, owner, new_token(), "manual", since)
    return Lease(owner, owner, new_token(), "time", since, since + ends_in)


def take(held: Lease) -> Callable[[Facts], Decision]:
    """A rule that gives the task to whoever holds `held`."""
    return lambda facts: Decision(facts.task._replace(owner=held.owner, status=TaskStatus.IN_PROGRESS), held)


def told(store: TaskStore, since: int = 0) -> list[tuple[str, dict[str, str | None]]]:
    """The log in short: each change's cause, and the subjects it left (None = gone)."""
    return [
        (change.act.cause, {task_id: task and task.subject for task_id, task in change.tasks.items()})
        for change in store.changes(since)
    ]


def refused(store: TaskStore, error: type[E], call: Callable[[], object]) -> E:
    """The error `call` is refused with; that nothing changed is part of the promise."""
    before = tuple(store.list()), tuple(store.changes())
    try:
        call()
    except error as found:
        assert (tuple(store.list()), tuple(store.changes())) == before, (
            f"{error.__name__} was raised, yet things changed"
        )
        return found
    raise AssertionError(f"{error.__name__} was to be raised")


def edges(store: TaskStore) -> set[tuple[str, str]]:
    """Every dependency as (blocker, blocked); both sides must agree."""
    tasks = {task.id: task for task in store.list()}
    forward = {(task.id, other) for task in tasks.values() for other in task.blocks}
    backward = {(other, task.id) for task in tasks.values() for other in task.blocked_by}
    assert forward == backward, f"the two sides of dependencies differ: {forward ^ backward}"
    assert all(store.get(task_id).blocks == task.blocks for task_id, task in tasks.items()), "get and list differ"
    return forward
