"""Export and import of lists. Pure functions: texts and records in, texts and records out.

Export writes JSON (everything), a Markdown checklist, CSV, DOT or Mermaid; import reads the first three.
`plan_import` computes what an import would add. It is idempotent: a task that exists already is skipped. It
exists if, in this order, a task of the list
1. has the same `external` system and id;
2. was imported from the same list and id, or is the exported task itself;
3. has the same subject and description, and is not known to be another one.
Each task of the list matches at most one of the import: two that look alike stay two.

`parse_list_export` reads a whole list to be adopted unchanged: ids, owners, states, dependencies, times.
Unusual values that another program wrote into a task are kept: what can be read as a task file can be
moved.
"""

from __future__ import annotations

from taskyard.core.values import (
    LARGEST_ID,
    NamedTuple,
    as_object,
    check_id,
    check_name,
    escape_unstorable,
    folder_name,
)
from taskyard.errors import BadName, BadValue
from taskyard.tasks.formats.exchange import (
    ORIGIN,
    ImportedTask,
    check_references,
    check_size,
    exportable_tasks,
    plain_subject,
    sanitize,
)
from taskyard.tasks.formats.json import parse_json, unwrap_tasks
from taskyard.tasks.graph import break_cycles, refuse_cycles
from taskyard.tasks.model import Draft, Task, external_of, metadata_parent
from taskyard.tasks.reader import DeletedMarker, UnreadableTask, decode_task, is_too_deep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


if TYPE_CHECKING:
    _Identity = tuple[str, str]  # two texts that together identify a task


class SkippedTask(NamedTuple):
    """A task of the import that the list already has."""

    key: str
    task_id: str
    why: str  #: "external", "origin" or "same text"


class ImportPlan(NamedTuple):
    """What to create, in this order, and what exists already."""

    create: tuple[ImportedTask, ...]
    skip: tuple[SkippedTask, ...]
    blocks: Mapping[str, tuple[str, ...]]  #: by key: the keys of tasks that wait for it
    late_parents: tuple[tuple[str, str], ...]  #: (key, parent's key) where the parent is created after its part
    cut_parents: Mapping[str, str] = {}  #: by key: the parent's key that was dropped to break a cycle

    def known_ids(self) -> dict[str, str]:
        """Return the ids of existing tasks by key: the initial `ids` for creating."""
        return {skipped.key: skipped.task_id for skipped in self.skip}

    def late_parts(self) -> dict[str, list[str]]:
        """Return, by key, the keys of its parts that are created before it."""
        parts: dict[str, list[str]] = {}
        for key, parent in self.late_parents:
            parts.setdefault(parent, []).append(key)
        return parts

    def notes(self, item: ImportedTask) -> tuple[str, ...]:
        """Return notes for the user about importing `item`."""
        if item.key not in self.cut_parents:
            return ()
        return (
            f"Its parent in the file, {self.cut_parents[item.key]}, was left out: each would be a part of the other.",
        )

    def draft(self, item: ImportedTask, ids: Mapping[str, str]) -> Draft:
        """Return `item` ready to be created, given the `ids` of the tasks created so far.

        An edge is set by the later of its two tasks, so the order of the file is kept.

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


def plan_import(imported: Sequence[ImportedTask], existing: Iterable[Task], *, list_name: str = "") -> ImportPlan:
    """Plan an import into the list `list_name` with the tasks `existing`.

    Tasks that are parts of each other, as another program may leave them, lose one parent, so that the import
    succeeds.

    Raises:
        Cycle: tasks of the import wait for each other, directly or through the list.
    """
    refuse_cycles({item.key: item.blocked_by for item in imported})
    cut = break_cycles({item.key: item.parent for item in imported if item.parent is not None})
    imported = [item._replace(parent=None) if item.key in cut else item for item in imported]
    there = [task for task in existing if not task.is_internal]
    skip = _match_existing(imported, there, list_name)
    known = {skipped.key for skipped in skip}
    create = tuple(item for item in imported if item.key not in known)
    plan = ImportPlan(create, tuple(skip), _dependents(imported), _late_parents(create), cut)
    _refuse_list_cycles(plan, there)
    return plan


def _match_existing(imported: Sequence[ImportedTask], there: Sequence[Task], list_name: str) -> list[SkippedTask]:
    """Return one match per task of the list; the more reliable evidence is used first."""
    found: dict[str, SkippedTask] = {}
    taken: set[str] = set()
    by_id = {task.id: task for task in there}

    def match(why: str, candidates: Callable[[ImportedTask], Iterable[Task]]) -> None:
        for item in imported:
            if item.key in found:
                continue
            for task in candidates(item):
                if task.id not in taken:
                    taken.add(task.id)
                    found[item.key] = SkippedTask(item.key, task.id, why)
                    break

    external = _index(there, _external_identity)
    origin = _index(there, _origin_identity)
    text = _index(there, _text_identity)
    match("external", lambda item: external.get(_external_identity(_as_task(item)), ()))
    match("origin", lambda item: _same_origin(item, origin.get((item.source, item.key), ())))
    match("origin", lambda item: _match_same_task(item, by_id.get(item.key), list_name))
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
    """Return the task's texts as an export shows them: another program's texts may not be importable."""
    subject = plain_subject(task.subject)
    return subject, escape_unstorable(task.description) or subject


def _origin_identity(task: Task) -> _Identity | None:
    origin = as_object(task.extra.get(ORIGIN)) or {}
    source, key = origin.get("from"), origin.get("id")
    return (source, key) if isinstance(source, str) and isinstance(key, str) and source else None


def _origin(item: ImportedTask) -> dict[str, object]:
    origin: dict[str, object] = {"from": item.source, "id": item.key}
    return origin | {"at": item.created_at} if item.created_at else origin


def _same_origin(item: ImportedTask, candidates: Iterable[Task]) -> Iterable[Task]:
    """Yield candidates with the same origin. Lists on two machines may share a name: known creation times decide."""
    for task in candidates:
        at = (as_object(task.extra.get(ORIGIN)) or {}).get("at")
        if item.source and (at is None or item.created_at is None or at == item.created_at):
            yield task


def _match_same_task(item: ImportedTask, task: Task | None, list_name: str) -> Iterable[Task]:
    """Yield the task from which the export was made, though it may have changed since."""
    if task is None:
        return
    if item.created_at and task.created_at:
        if item.created_at == task.created_at:
            yield task
    elif item.source and item.source == list_name and _alike(item, task):
        yield task


def _alike(item: ImportedTask, task: Task) -> bool:
    subject, description = _text_identity(task)
    return item.draft.subject == subject or bool(item.draft.description and item.draft.description == description)


def _lookalikes(item: ImportedTask, by_text: Mapping[_Identity | None, Sequence[Task]]) -> Iterable[Task]:
    draft = item.draft
    external = _external_identity(_as_task(item))
    for task in by_text.get((draft.subject, draft.description or draft.subject), ()):
        its_external, its_origin = _external_identity(task), _origin_identity(task)
        elsewhere = (
            external and its_external and external[0] == its_external[0]
        )  # and another id, or it would have matched before
        from_there = item.source and its_origin and its_origin[0] == item.source
        if not elsewhere and not from_there:
            yield task


def _as_task(item: ImportedTask) -> Task:
    return Task(item.key, item.draft.subject, metadata=item.draft.metadata)


def _dependents(imported: Iterable[ImportedTask]) -> dict[str, tuple[str, ...]]:
    waiting: dict[str, list[str]] = {}
    for item in imported:
        for key in item.blocked_by:
            waiting.setdefault(key, []).append(item.key)
    return {key: tuple(keys) for key, keys in waiting.items()}


def _late_parents(create: Sequence[ImportedTask]) -> tuple[tuple[str, str], ...]:
    place = {item.key: at for at, item in enumerate(create)}
    return tuple(
        (item.key, item.parent)
        for item in create
        if item.parent is not None and place.get(item.parent, -1) > place[item.key]
    )


def _refuse_list_cycles(plan: ImportPlan, there: Sequence[Task]) -> None:
    """Refuse new tasks that close a cycle through existing edges; existing cycles are not refused."""
    ids = plan.known_ids()
    name = {item.key: f"{item.key} (new)" for item in plan.create}
    waits: dict[str, Sequence[str]] = {task.id: list(task.blocked_by) for task in there}
    for item in plan.create:
        waits[name[item.key]] = [name.get(key) or ids[key] for key in item.blocked_by if key in name or key in ids]
        for key in plan.blocks.get(item.key, ()):
            if key in ids:
                waits[ids[key]] = [*waits[ids[key]], name[item.key]]
    refuse_cycles(waits, through=set(name.values()))


IMPORT_FORMATS = ("json", "markdown", "csv")
EXPORT_FORMATS = (*IMPORT_FORMATS, "dot", "mermaid")


def export(tasks: Iterable[Task], format: str, *, list_name: str = "", last_id: int = 0) -> str:
    """Return `tasks` as text in `format`, without trackers. `list_name` lets a later import recognize them.

    `last_id` is the highest id ever given out on that list.

    Raises:
        BadValue: there is no such format.
    """
    leaving = exportable_tasks(tasks)
    name = folder_name("a list", list_name) if list_name else ""
    # Each format is imported on demand: the command line starts without them.
    if format == "json":
        from taskyard.tasks.formats.json import to_json

        return to_json(leaving, list_name=name, last_id=last_id)
    if format == "markdown":
        from taskyard.tasks.formats.markdown import to_markdown

        return to_markdown([sanitize(item) for item in leaving], list_name=name)
    if format == "csv":
        from taskyard.tasks.formats.csv import to_csv

        return to_csv([sanitize(item) for item in leaving])
    if format in ("dot", "mermaid"):
        from taskyard.tasks.formats.graph import to_dot, to_mermaid

        return to_dot(leaving, list_name=name) if format == "dot" else to_mermaid(leaving)
    raise BadValue("The export format", format, f"one of {', '.join(EXPORT_FORMATS)}")


def parse_tasks(text: str, format: str, *, source: str = "") -> list[ImportedTask]:
    """Parse the tasks in `text`. `source` names the list they come from, if the text does not.

    Raises:
        BadValue, BadText: the text is malformed; names the line or element, and the field.
    """
    text = check_size(text)
    if format == "json":
        from taskyard.tasks.formats.json import from_json

        found = from_json(text, source=source)
    elif format == "markdown":
        from taskyard.tasks.formats.markdown import from_markdown

        found = from_markdown(text, source=source)
    elif format == "csv":
        from taskyard.tasks.formats.csv import from_csv

        found = from_csv(text, source=source)
    else:
        raise BadValue("The import format", format, f"one of {', '.join(IMPORT_FORMATS)}")
    check_references(found)
    return found


class ListExport(NamedTuple):
    """A list as parsed from its export."""

    tasks: tuple[Task, ...]
    last: int  #: the highest id ever given out there


def parse_list_export(text: str) -> ListExport:
    """Parse the list in a JSON export.

    Raises:
        BadValue: there is none, or a task is invalid; names the position.
        Cycle: its tasks wait for each other.
    """
    found = parse_json(text)
    raw, _ = unwrap_tasks(found)
    tasks = [_parse_raw_task(as_object(one), f"tasks[{place}]") for place, one in enumerate(raw)]
    by_id = {task.id: task for task in tasks}
    if len(by_id) != len(tasks):
        raise BadValue("The file", "an id twice", "one task for each id")
    _check_references(by_id)
    refuse_cycles({task.id: task.blocked_by for task in tasks})
    last = (as_object(found) or {}).get("last_id", 0)
    if type(last) is not int or not 0 <= last <= LARGEST_ID:
        raise BadValue("last_id", last, "the highest id that was given out")
    return ListExport(tuple(_mirror_blocks(tasks)), max([last, *map(int, by_id)]))


def contains_all(tasks: Iterable[Task], existing: Iterable[Task]) -> bool:
    """Return whether a list has all these tasks already: the same id and creation time."""
    known = {task.id: task.created_at for task in existing}
    return all(task.id in known and task.created_at in (None, known[task.id]) for task in tasks)


def _parse_raw_task(raw: Mapping[str, object] | None, where: str) -> Task:
    if raw is None:
        raise BadValue(where, "something else", "an object")
    if "id" not in raw:
        raise BadValue(f"id in {where}", "none", "the id to keep")
    task_id = check_id(raw["id"])
    if is_too_deep(raw):
        raise BadValue(where, "what is nested so deeply", "what a task file can hold")
    try:
        task = decode_task(task_id, raw)
    except (UnreadableTask, DeletedMarker) as error:
        raise BadValue(where, "this object", f"a task ({str(error) or 'it is deleted'})") from None
    if task.owner is not None:
        try:
            check_name("an owner", task.owner)
        except BadName as error:
            raise BadValue(f"owner in {where}", task.owner, f"a name ({error.why})") from None
    return _with_parent(task, raw.get("parent"))


def _with_parent(task: Task, parent: object) -> Task:
    """Return the task with its parent in the metadata: only an export has it as a separate field."""
    if not parent:
        return task
    return task._replace(metadata={**task.metadata, "taskyard": {**task.extra, "parent": check_id(parent)}})


def _check_references(tasks: Mapping[str, Task]) -> None:
    for task in tasks.values():
        for other in task.blocked_by:
            if other not in tasks:
                raise BadValue(f"blockedBy of #{task.id}", other, "the id of a task in the same file")
        parent = metadata_parent(task.metadata)
        if parent is not None and parent not in tasks:
            raise BadValue(f"parent of #{task.id}", parent, "the id of a task in the same file")


def _mirror_blocks(tasks: Sequence[Task]) -> Iterable[Task]:
    """Yield the tasks with `blocks` derived from every `blocked_by`."""
    blocks: dict[str, list[str]] = {}
    for task in tasks:
        for blocker in task.blocked_by:
            blocks.setdefault(blocker, []).append(task.id)
    return (task._replace(blocks=tuple(blocks.get(task.id, ()))) for task in tasks)
