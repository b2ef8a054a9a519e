"""
Operations on several tasks of the file store at once: dependencies, removal, restoring.

All hold the list and every task they write. `blockedBy` is the truth and is written first;
`blocks` is its mirror. A crash in between is completed by the next writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from taskyard.clock import now_ms
from taskyard.errors import Cycle, Damaged, NothingToRestore, TaskNotFound
from taskyard.tasklist import graph, history
from taskyard.tasklist.model import Act, Draft, Facts, Lease, Links, Task, TaskStatus
from taskyard.tasklist.parents import NoParent, check_parent, parent_in, untangled
from taskyard.tasklist.relinking import Graph, may_be_missing, others, relinked, with_, without
from taskyard.tasklist.starting_over import Interfered
from taskyard.tasklist.writer import Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.reader import Seen


def graph_of(files: ListFiles, changed: Mapping[str, Task]) -> Graph:
    """The list, with some tasks as they shall be."""
    return Graph(files.tasks.look, files.tasks.everything, changed)


def new_task(task_id: str, draft: Draft) -> Task:
    """A draft that got its id."""
    now = now_ms()
    return Task(task_id, *draft, created_at=now, updated_at=now)


def held(lease: Lease | None) -> tuple[Lease | None, int] | None:
    """The lease record of a new task."""
    return (lease, 0) if lease is not None else None


def create_linked(files: ListFiles, draft: Draft, act: Act, task_id: str | None, lease: Lease | None) -> Task:
    """A new task and its place among the others, in one step."""
    others = sorted({*draft.blocks, *draft.blocked_by}, key=int)
    with files.hold(others, whole=True) as hold:
        seen = {other: files.seen(other, hold) for other in others}
        _refuse_cycle_through(files, draft)
        new_id = task_id or files.next_id()
        _check_parent(files, new_id, draft)
        task = new_task(new_id, draft)
        after = {other: found for other, (found, _) in seen.items()}
        for other in draft.blocks:
            after[other] = with_(after[other], blocked_by=new_id)
        for other in draft.blocked_by:
            after[other] = with_(after[other], blocks=new_id)
        _commit(files, hold, act, seen, after, first=[Write(new_id, None, task, held(lease))])
    return task._replace(lease=lease)


def _refuse_cycle_through(files: ListFiles, draft: Draft) -> None:
    """A new task between two others may close a circle over them."""
    tasks = graph_of(files, {})
    for blocked in draft.blocks:
        for blocker in draft.blocked_by:
            if trail := graph.path(tasks, blocker, blocked):
                raise Cycle(trail)


def _check_parent(files: ListFiles, task_id: str, draft: Draft) -> None:
    if (parent := parent_in(draft.metadata)) is not None:
        try:
            check_parent(task_id, parent, files.tasks.look)
        except NoParent:
            raise files.missing(parent) from None


def link(files: ListFiles, edges: Sequence[Edge], act: Act) -> None:
    """Make each (blocker, blocked) wait: all or none."""
    ids = sorted({task_id for edge in edges for task_id in edge}, key=int)
    with files.hold(ids, whole=True) as hold:
        seen = {task_id: files.seen(task_id, hold) for task_id in ids}
        after = {task_id: found for task_id, (found, _) in seen.items()}
        after = relinked(after, Links(new=tuple(edges)), partial(graph_of, files))
        _commit(files, hold, act, seen, after)


def unlink(files: ListFiles, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
    """Take dependencies away, from both sides, also where only one side has them; which were there."""
    ids = sorted({task_id for edge in edges for task_id in edge}, key=int)
    with files.hold(ids, whole=True) as hold:
        seen: dict[str, tuple[Task, Seen | None]] = {}
        missing: dict[str, TaskNotFound] = {}
        for task_id in ids:
            try:
                seen[task_id] = files.seen(task_id, hold)
            except TaskNotFound as error:
                missing[task_id] = error
        after = {task_id: found for task_id, (found, _) in seen.items()}
        there: list[Edge] = []
        for blocker, blocked in edges:
            if blocked in missing:
                raise missing[blocked]
            if blocker in missing and blocker not in after[blocked].blocked_by:
                raise missing[blocker]  # one that is gone and still waited for is taken away like any other
            if blocker in after[blocked].blocked_by or (blocker in after and blocked in after[blocker].blocks):
                there.append((blocker, blocked))
            after[blocked] = without(after[blocked], blocked_by=blocker)
            if blocker in after:
                after[blocker] = without(after[blocker], blocks=blocked)
        _commit(files, hold, act, seen, after)
    return tuple(there)


def remove(
    files: ListFiles,
    task_ids: Sequence[str],
    act: Act,
    *,
    only_done: bool = False,
    check: Callable[[Facts], None] | None = None,
) -> tuple[Task, ...]:
    """Take tasks off the list and out of everyone's dependencies; the mark stays above them."""
    doomed = dict.fromkeys(task_ids)
    neighbours = [
        task.id
        for task in files.tasks.everything()
        if task.id not in doomed and any(other in doomed for other in (*task.blocks, *task.blocked_by))
    ]
    with files.hold([*doomed, *neighbours], whole=True) as hold:
        gone = {task_id: files.seen(task_id, hold) for task_id in doomed}
        if only_done:
            graph.refuse_open(task for task, _ in gone.values())
        if check is not None:
            _check_each(files, [task for task, _ in gone.values()], check)
        _refuse_new_neighbours(files, gone, neighbours)
        seen, _ = _still_there(files, neighbours, hold)  # those that went away meanwhile need nothing
        after = {task_id: found for task_id, (found, _) in seen.items()}
        for task_id, task in after.items():
            for other in doomed:
                task = without(without(task, blocked_by=other), blocks=other)
            after[task_id] = task
        highest = max(map(int, doomed), default=0)
        files.keep_above(highest)
        for task, found in gone.values():
            if found is None:  # only the older file has it: the log must, before it can be brought back
                files.settler.note_consolidated(task)
        writes = [Write(task_id, found, None, (None, 0)) for task_id, (_, found) in gone.items()]
        _commit(files, hold, act, seen, after, first=writes)
    return tuple(task for task, _ in gone.values())


def _check_each(files: ListFiles, tasks: Sequence[Task], check: Callable[[Facts], None]) -> None:
    for task in tasks:
        lease = files.leases.current(task)
        living = lease if lease is not None and not files.leases.is_dead(lease) else None
        check(Facts(task, living, files.tasks.look, files.tasks.everything))


def _refuse_new_neighbours(
    files: ListFiles, gone: Mapping[str, tuple[Task, Seen | None]], neighbours: Sequence[str]
) -> None:
    """Start over if somebody tied a task to a doomed one after we had looked for neighbours."""
    linked = {other for task, _ in gone.values() for other in (*task.blocks, *task.blocked_by)}
    for other in linked.difference(gone, neighbours):
        task = files.tasks.look(other)
        if task is not None and any(end in gone for end in (*task.blocks, *task.blocked_by)):
            raise Interfered(other)


def restore(files: ListFiles, task_id: str, act: Act) -> Task:
    """Bring a removed task back: free, unless it was done, with the dependencies that still make sense."""
    writer = files.writer
    past = history.last_seen(writer.journal, writer.ledger, task_id)
    if past is None:
        raise _never_gone(files, task_id)
    others = [*past[0].blocked_by, *past[0].blocks]
    with files.hold([task_id, *others], whole=True) as hold:
        before = _place_for(files, task_id, hold)
        seen, damaged = _still_there(files, others, hold)
        after = {other: found for other, (found, _) in seen.items()}
        after[task_id] = untangled(_revived(past[0], keep=damaged), files.tasks.look)
        edges = [(other, task_id) for other in past[0].blocked_by] + [(task_id, other) for other in past[0].blocks]
        for edge in edges:
            if all(end in after for end in edge) and graph.closing_path(graph_of(files, after), edge) is None:
                after[edge[1]] = with_(after[edge[1]], blocked_by=edge[0])
                after[edge[0]] = with_(after[edge[0]], blocks=edge[1])
        task = after.pop(task_id)
        _commit(files, hold, act, seen, after, first=[Write(task_id, before, task, (None, 0))])
    return task


def _never_gone(files: ListFiles, task_id: str) -> NothingToRestore | Damaged | TaskNotFound:
    """Why there is nothing to bring back: the log does not know the task."""
    seen = files.tasks.reader.read(task_id)
    if seen is None or (seen.task is None and seen.damage is None):
        return files.missing(task_id)
    if seen.task:
        return NothingToRestore(task_id, list_name=files.folder.name)
    return Damaged(files.folder.task(task_id), str(seen.damage))


def _place_for(files: ListFiles, task_id: str, hold: Hold) -> Seen | None:
    """What stands where a task shall be put back: nothing, or a file that says it was deleted."""
    try:
        files.seen(task_id, hold)
    except TaskNotFound:
        return files.tasks.reader.read(task_id)
    raise NothingToRestore(task_id, list_name=files.folder.name)


def _still_there(
    files: ListFiles, ids: Sequence[str], hold: Hold
) -> tuple[dict[str, tuple[Task, Seen | None]], set[str]]:
    """Those of the tasks that nobody removed before we held them, and the ids of those that cannot be read."""
    found: dict[str, tuple[Task, Seen | None]] = {}
    damaged: set[str] = set()
    for task_id in ids:
        try:
            found[task_id] = files.seen(task_id, hold)
        except TaskNotFound:
            continue
        except Damaged:
            damaged.add(task_id)
    return found, damaged


def _revived(task: Task, *, keep: set[str]) -> Task:
    """A task fresh from the log; of its blockers only `keep`, which are there and cannot be read just now."""
    blockers = tuple(other for other in task.blocked_by if other in keep)
    task = task._replace(blocks=(), blocked_by=blockers, updated_at=now_ms())
    return task if task.is_done else task._replace(status=TaskStatus.PENDING, owner=None)


def _commit(
    files: ListFiles,
    hold: Hold,
    act: Act,
    seen: Mapping[str, tuple[Task, Seen | None]],
    after: Mapping[str, Task],
    *,
    first: Sequence[Write] = (),
) -> None:
    """Write what differs, the truth before its mirror."""
    now = now_ms()
    truth, mirror = _different(seen, after)
    writes = [
        Write(task_id, seen[task_id][1], after[task_id]._replace(updated_at=now)) for task_id in (*truth, *mirror)
    ]
    if first or writes:
        files.writer.commit(hold, act, [*first, *writes])


def _different(seen: Mapping[str, tuple[Task, Seen | None]], after: Mapping[str, Task]) -> tuple[list[str], list[str]]:
    """Whose own waiting changed, and who else changed."""
    different = [task_id for task_id, task in after.items() if task != seen[task_id][0]]
    truth = [task_id for task_id in different if after[task_id].blocked_by != seen[task_id][0].blocked_by]
    return truth, [task_id for task_id in different if task_id not in truth]


def rewired(
    files: ListFiles, before: Task, decided: Task, links: Links, hold: Hold
) -> tuple[list[Write], Task, list[Write]]:
    """A task with its new dependencies, between what is written to others before it and what after it.

    Raises:
        TaskNotFound: there is no such task to tie to.
        Cycle: they would wait for each other.
    """
    seen: dict[str, tuple[Task, Seen | None]] = {}
    for other in others(decided.id, links):
        try:
            seen[other] = files.seen(other, hold)
        except TaskNotFound:
            if not may_be_missing(before, other, links):
                raise
    held = {decided.id: decided, **{other: found for other, (found, _) in seen.items()}}
    after = relinked(held, links, partial(graph_of, files))
    now = now_ms()
    truth, mirror = _different(seen, {other: after[other] for other in seen})
    writes = {other: Write(other, seen[other][1], after[other]._replace(updated_at=now)) for other in (*truth, *mirror)}
    return [writes[other] for other in truth], after[decided.id], [writes[other] for other in mirror]
