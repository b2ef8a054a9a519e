"""
What was made of tasks before, so that a change of one does not cost as much as all.

Whoever makes snapshots of one list again and again brings one. What comes out is the same with and without it.
"""

from __future__ import annotations

from taskyard.view.graph import NOWHERE, places
from taskyard.view.task_views import task_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.tasklist.model import Task
    from taskyard.view.graph import Place
    from taskyard.view.ordering import Row
    from taskyard.view.task_views import TaskView


class Memory:
    """Places and views of one list's tasks, for whoever looks at it under one name."""

    def __init__(self) -> None:
        self._edges: list[tuple[object, ...]] | None = None  # all that places follow from
        self._places: Mapping[str, Place] = {}
        self._views: dict[str, tuple[Row, Place, TaskView]] = {}
        self._me: str | None = None

    def places(self, tasks: Sequence[Task]) -> Mapping[str, Place]:
        """Where each task stands in the graph."""
        edges: list[tuple[object, ...]] = [(task.id, task.blocked_by, task.is_done, task.is_internal) for task in tasks]
        if edges != self._edges:
            self._edges, self._places = edges, places({task.id: task for task in tasks})
        return self._places

    def views(self, rows: Sequence[Row], at: Mapping[str, Place], *, me: str | None) -> tuple[TaskView, ...]:
        """Rows in their order, ready to be shown."""
        known = self._views if me == self._me else {}
        made: dict[str, tuple[Row, Place, TaskView]] = {}
        for row in rows:
            task_id = row.task.id
            place = at.get(task_id, NOWHERE)
            was = known.get(task_id)
            is_same = was is not None and was[0] == row and was[1] == place
            made[task_id] = was if was is not None and is_same else (row, place, task_view(row, place, me))
        self._views, self._me = made, me
        return tuple(view for _, _, view in made.values())
