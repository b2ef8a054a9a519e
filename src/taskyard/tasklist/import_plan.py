"""
What an import would add to a list, decided before anything is written.

A task that is already there is left alone, so importing twice adds nothing. It is there if, in this order,
a task of the list
1. has the same `external` system and id;
2. was imported from the same list and id, or is that very task, come home;
3. has the same subject and description, and is not known to be another one.
Each task of the list stands for at most one of the import: two that look alike stay two.
"""

from __future__ import annotations

from taskyard.names import storable
from taskyard.shapes import as_object
from taskyard.tasklist.circles import cut_circles, refuse_circles
from taskyard.tasklist.extras import external_of
from taskyard.tasklist.formats.imported import ORIGIN, Imported
from taskyard.tasklist.formats.outgoing import plain_subject
from taskyard.tasklist.model import Draft, Task
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    _Identity = tuple[str, str]  # two texts that together mean one task


class Skipped(NamedTuple):
    """A task of the import that the list already has."""

    key: str
    task_id: str
    why: str  #: "external", "origin" or "same text"


class ImportPlan(NamedTuple):
    """What to create, in this order, and what is there already."""

    create: tuple[Imported, ...]
    skip: tuple[Skipped, ...]
    blocks: Mapping[str, tuple[str, ...]]  #: by key: the keys of those that wait for it
    late_parents: tuple[tuple[str, str], ...]  #: (key, parent's key) where the parent is created after its part
    cut_parents: Mapping[str, str] = {}  #: by key: the parent's key that was left out, to open a circle of parents

    def known_ids(self) -> dict[str, str]:
        """The ids of what is there already, by key: the `ids` to start creating with."""
        return {skipped.key: skipped.task_id for skipped in self.skip}

    def late_parts(self) -> dict[str, list[str]]:
        """By key: the keys of those created before it whose parent it is."""
        parts: dict[str, list[str]] = {}
        for key, parent in self.late_parents:
            parts.setdefault(parent, []).append(key)
        return parts

    def notes(self, item: Imported) -> tuple[str, ...]:
        """What whoever imports `item` should know."""
        if item.key not in self.cut_parents:
            return ()
        return (
            f"Its parent in the file, {self.cut_parents[item.key]}, was left out: each would be a part of the other.",
        )

    def draft(self, item: Imported, ids: Mapping[str, str]) -> Draft:
        """`item` ready to be created, given the ids its companions have so far.

        An edge is carried by whichever of its two tasks comes later, so the order of the file is kept.

            ids = plan.known_ids()
            for item in plan.create:
                ids[item.key] = create(plan.draft(item, ids)).id
        """
        metadata = dict(item.draft.metadata)
        ours = dict(as_object(metadata.get("taskyard", {})) or {})
        if item.parent is not None and item.parent in ids:
            ours["parent"] = ids[item.parent]
        if item.source:
            ours[ORIGIN] = _origin(item)
        if ours:
            metadata["taskyard"] = ours
        return item.draft._replace(
            description=item.draft.description or item.draft.subject,
            metadata=metadata,
            blocked_by=tuple(ids[key] for key in item.blocked_by if key in ids),
            blocks=tuple(ids[key] for key in self.blocks.get(item.key, ()) if key in ids),
        )


def plan_import(imported: Sequence[Imported], existing: Iterable[Task], *, list_name: str = "") -> ImportPlan:
    """What importing into the list `list_name` with the tasks `existing` would do.

    Tasks that are parts of each other, as another program may leave them, lose one parent: the list must come in.

    Raises:
        Cycle: tasks of the import wait for each other, among themselves or through the list.
    """
    refuse_circles({item.key: item.blocked_by for item in imported})
    cut = cut_circles({item.key: item.parent for item in imported if item.parent is not None})
    imported = [item._replace(parent=None) if item.key in cut else item for item in imported]
    there = [task for task in existing if not task.is_internal]
    skip = _already_there(imported, there, list_name)
    known = {skipped.key for skipped in skip}
    create = tuple(item for item in imported if item.key not in known)
    plan = ImportPlan(create, tuple(skip), _waiting(imported), _late_parents(create), cut)
    _refuse_circles_through_list(plan, there)
    return plan


def _already_there(imported: Sequence[Imported], there: Sequence[Task], list_name: str) -> list[Skipped]:
    """One match per task of the list; the surer kinds of evidence choose first."""
    found: dict[str, Skipped] = {}
    taken: set[str] = set()
    by_id = {task.id: task for task in there}

    def match(why: str, candidates: Callable[[Imported], Iterable[Task]]) -> None:
        for item in imported:
            if item.key in found:
                continue
            for task in candidates(item):
                if task.id not in taken:
                    taken.add(task.id)
                    found[item.key] = Skipped(item.key, task.id, why)
                    break

    external = _index(there, _external_identity)
    origin = _index(there, _origin_identity)
    text = _index(there, _text_identity)
    match("external", lambda item: external.get(_external_identity(_as_task(item)), ()))
    match("origin", lambda item: _same_origin(item, origin.get((item.source, item.key), ())))
    match("origin", lambda item: _come_home(item, by_id.get(item.key), list_name))
    match("same text", lambda item: _lookalikes(item, text))
    return [found[item.key] for item in imported if item.key in found]


def _index(tasks: Iterable[Task], key: Callable[[Task], _Identity | None]) -> dict[_Identity | None, list[Task]]:
    index: dict[_Identity | None, list[Task]] = {}
    for task in tasks:
        if (identity := key(task)) is not None:
            index.setdefault(identity, []).append(task)
    return index


def _external_identity(task: Task) -> _Identity | None:
    external = external_of(task)
    return (external.system, external.id) if external else None


def _text_identity(task: Task) -> _Identity:
    """The task's texts as an export shows them: what another program wrote into them may not be importable."""
    subject = plain_subject(task.subject)
    return subject, storable(task.description) or subject


def _origin_identity(task: Task) -> _Identity | None:
    origin = as_object(task.extra.get(ORIGIN)) or {}
    source, key = origin.get("from"), origin.get("id")
    return (source, key) if isinstance(source, str) and isinstance(key, str) and source else None


def _origin(item: Imported) -> dict[str, object]:
    origin: dict[str, object] = {"from": item.source, "id": item.key}
    return origin | {"at": item.created_at} if item.created_at else origin


def _same_origin(item: Imported, candidates: Iterable[Task]) -> Iterable[Task]:
    """Lists on two machines may share a name; where both creation times are known, they decide."""
    for task in candidates:
        at = (as_object(task.extra.get(ORIGIN)) or {}).get("at")
        if item.source and (at is None or item.created_at is None or at == item.created_at):
            yield task


def _come_home(item: Imported, task: Task | None, list_name: str) -> Iterable[Task]:
    """The very task the export was made of, though it may have changed since."""
    if task is None:
        return
    if item.created_at and task.created_at:
        if item.created_at == task.created_at:
            yield task
    elif item.source and item.source == list_name and _alike(item, task):
        yield task


def _alike(item: Imported, task: Task) -> bool:
    subject, description = _text_identity(task)
    return item.draft.subject == subject or bool(item.draft.description and item.draft.description == description)


def _lookalikes(item: Imported, by_text: Mapping[_Identity | None, Sequence[Task]]) -> Iterable[Task]:
    draft = item.draft
    external = _external_identity(_as_task(item))
    for task in by_text.get((draft.subject, draft.description or draft.subject), ()):
        its_external, its_origin = _external_identity(task), _origin_identity(task)
        elsewhere = (
            external and its_external and external[0] == its_external[0]
        )  # and not the same id, or it had matched
        from_there = item.source and its_origin and its_origin[0] == item.source
        if not elsewhere and not from_there:
            yield task


def _as_task(item: Imported) -> Task:
    return Task(item.key, item.draft.subject, metadata=item.draft.metadata)


def _waiting(imported: Iterable[Imported]) -> dict[str, tuple[str, ...]]:
    waiting: dict[str, list[str]] = {}
    for item in imported:
        for key in item.blocked_by:
            waiting.setdefault(key, []).append(item.key)
    return {key: tuple(keys) for key, keys in waiting.items()}


def _late_parents(create: Sequence[Imported]) -> tuple[tuple[str, str], ...]:
    place = {item.key: at for at, item in enumerate(create)}
    return tuple(
        (item.key, item.parent)
        for item in create
        if item.parent is not None and place.get(item.parent, -1) > place[item.key]
    )


def _refuse_circles_through_list(plan: ImportPlan, there: Sequence[Task]) -> None:
    """No new task may close a circle through edges the list already has; old circles are not ours to refuse."""
    ids = plan.known_ids()
    name = {item.key: f"{item.key} (new)" for item in plan.create}
    waits: dict[str, Sequence[str]] = {task.id: list(task.blocked_by) for task in there}
    for item in plan.create:
        waits[name[item.key]] = [name.get(key) or ids[key] for key in item.blocked_by if key in name or key in ids]
        for key in plan.blocks.get(item.key, ()):
            if key in ids:
                waits[ids[key]] = [*waits[ids[key]], name[item.key]]
    refuse_circles(waits, through=set(name.values()))
