"""Lists of every kind, and an import carried out as a store would."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from taskyard.tasks.formats.exchange import ImportedTask
from taskyard.tasks.model import Draft, Task, TaskStatus
from taskyard.tasks.transfer import plan_import

if TYPE_CHECKING:
    from collections.abc import Sequence


def apply(imported: Sequence[ImportedTask], existing: Sequence[Task] = (), *, list_name: str = "") -> list[Task]:
    """Carry out a plan as a store would: ids counted on, edges kept on both sides."""
    tasks = {task.id: task for task in existing}
    plan = plan_import(imported, existing, list_name=list_name)
    ids, numbers = plan.known_ids(), count(max(map(int, tasks), default=0) + 1)
    for item in plan.create:
        draft: Draft = plan.draft(item, ids)
        made = Task(str(next(numbers)), *draft)
        ids[item.key] = made.id
        tasks[made.id] = made._replace(description=made.description or made.subject, created_at=1000 + int(made.id))
        for other in made.blocks:
            tasks[other] = tasks[other]._replace(blocked_by=(*tasks[other].blocked_by, made.id))
        for other in made.blocked_by:
            tasks[other] = tasks[other]._replace(blocks=(*tasks[other].blocks, made.id))
    for key, parent in plan.late_parents:
        task = tasks[ids[key]]
        ours = dict(task.extra) | {"parent": ids[parent]}
        tasks[task.id] = task._replace(metadata={**task.metadata, "taskyard": ours})
    return list(tasks.values())


line = st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\t"), max_size=30)
subjects = line.filter(lambda text: bool(text.strip())).map(str.strip)
prose = st.lists(line, max_size=4).map("\n".join)
names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=10).map(str.strip).filter(bool)
words = st.lists(
    st.text(st.sampled_from("ab ·\\<=+-@'é"), min_size=1, max_size=5).map(str.strip).filter(bool),
    max_size=3,
    unique=True,
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | line,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(line, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def lists_of_tasks(draw: st.DrawFn) -> list[Task]:
    """A list as the store would hold it: any fields, no circles, both sides of every edge."""
    size = draw(st.integers(0, 5))
    ids = draw(st.lists(st.integers(1, 30).map(str), min_size=size, max_size=size, unique=True).map(sorted))
    tasks: dict[str, Task] = {}
    order = draw(st.permutations(ids))
    for place, task_id in enumerate(order):
        ours: dict[str, Any] = {}
        if draw(st.booleans()):
            ours = {"priority": draw(st.integers(1, 9)), "due": "2026-05-01T17:00:00+02:00"}
        if labels := draw(words):
            ours["labels"] = labels
        if place and draw(st.booleans()):
            ours["parent"] = order[draw(st.integers(0, place - 1))]
        blockers = tuple(draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=2))) if place else ()
        subject = draw(subjects)
        tasks[task_id] = Task(
            task_id,
            subject,
            draw(prose) or subject,
            owner=draw(st.none() | names),
            status=draw(st.sampled_from(TaskStatus)),
            blocked_by=blockers,
            metadata={"taskyard": ours} if ours else {},
            created_at=draw(st.integers(1, 10**14)),
        )
    return [tasks[task_id] for task_id in ids]


def described(tasks: Sequence[Task]) -> list[object]:
    """What must survive: everything but the numbers themselves, with references by place."""
    place = {task.id: at for at, task in enumerate(tasks)}
    found: list[object] = []
    for task in tasks:
        metadata: dict[str, Any] = json.loads(json.dumps(task.metadata))
        ours = metadata.get("taskyard", {})
        ours.pop("imported", None)
        if "parent" in ours:
            ours["parent"] = place[ours["parent"]]
        if not ours:
            metadata.pop("taskyard", None)
        blockers = sorted(place[blocker] for blocker in task.blocked_by)
        description = task.description or task.subject
        found.append((task.subject, description, task.active_form, task.owner, task.status, blockers, metadata))
    return found
