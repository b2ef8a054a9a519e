"""
Taking optional fields away within a change: under the same lock, all of it or nothing.

An update of fields lays new values over old ones; a field that shall go is taken out of what the
rule decided, so a hook or a rule that refuses keeps it.
"""

from __future__ import annotations

from taskyard.tasklist.rules import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.model import Act, Decision, Links, Task
    from taskyard.tasklist.store import Rule, TaskStore


class Clearing:
    """A store whose updates also take optional fields away; everything else is the store's own."""

    def __init__(self, store: TaskStore, fields: Sequence[str]) -> None:
        self._store = store
        self._fields = frozenset(fields)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: Links | None = None,
    ) -> Task:
        """Let `rule` decide about one task, and save what it says without the fields."""
        return self._store.update(
            task_id,
            lambda facts: cleared(rule(facts), self._fields),
            act,
            with_blockers=with_blockers,
            whole_list=whole_list,
            links=links,
        )


def cleared(decision: Decision, fields: frozenset[str]) -> Decision:
    """The decision with a task that has none of `fields`."""
    task = decision.task
    left = {name: value for name, value in task.extra.items() if name not in fields}
    if len(left) == len(task.extra):
        return decision
    return decision._replace(task=task._replace(metadata=merged(task.metadata, {"taskyard": left or None})))
