"""How one task appears in an answer: a line, what it made ready, and what to know besides."""

from __future__ import annotations

from taskyard.cli.output import answer, columns, is_typed_by_person, style
from taskyard.clock import now_ms
from taskyard.errors import Damaged, TaskNotFound
from taskyard.view.ordering import arranged
from taskyard.view.records import task_json
from taskyard.view.text import safe, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.tasklist.model import Task


def answer_task(args: Args, yard: Yard, task: Task, *, with_token: bool = False) -> int:
    """Answer with one task. `with_token`: to whoever has just claimed it."""

    def data() -> object:
        return task_json(task, open_blockers=open_blockers(yard, task), with_token=with_token)

    def lines() -> Iterator[str]:
        yield from rows(args, yard, [task])
        if task.ready:
            ready = [found for task_id in task.ready if (found := look(yard, task_id)) is not None]
            yield "Ready now: " + ", ".join(f"#{other.id} {safe(other.subject)}" for other in ready)
        yield from (safe(note, lines=True) for note in notes(args, task))

    return answer(args, data, lines, ids=[task.id])


def notes(args: Args, task: Task) -> list[str]:
    """What came with the task, in the words for a person where one typed the command."""
    if not task.notes or not is_typed_by_person(args):
        return list(task.notes)
    from taskyard.tasklist.nudge import note_for_person

    return [note_for_person(note) for note in task.notes]


def answer_tasks(args: Args, yard: Yard, tasks: Sequence[Task], *, nothing: str) -> int:
    """Answer with several tasks in the order given; `nothing` is said where there are none."""

    def data() -> object:
        return [task_json(task) for task in tasks]

    def lines() -> Iterator[str]:
        if tasks:
            yield from rows(args, yard, tasks)
            yield from (safe(f"#{task.id}: {note}") for task in tasks for note in notes(args, task))
        else:
            yield nothing

    return answer(args, data, lines, ids=(task.id for task in tasks))


def rows(args: Args, yard: Yard, tasks: Iterable[Task]) -> list[str]:
    """Tasks as lines, in the order given; their blockers are looked up."""
    wanted = list(tasks)
    known = {task.id: task for task in wanted}
    for blocker in {blocker for task in wanted for blocker in task.blocked_by}:
        if blocker not in known and (found := look(yard, blocker)) is not None:
            known[blocker] = found
    placed = {row.task.id: row for row in arranged(known.values(), now=now_ms())}
    shown = [placed[task.id] for task in wanted if task.id in placed]
    return task_rows(shown, now=now_ms(), columns=columns(), style=style(args))


def open_blockers(yard: Yard, task: Task) -> list[str]:
    """The ids a task still waits for."""
    found = ((blocker, look(yard, blocker)) for blocker in task.blocked_by)
    return [blocker for blocker, other in found if other is not None and not other.is_done]


def look(yard: Yard, task_id: str) -> Task | None:
    """A task by id; one that cannot be read counts as open and has no name."""
    from taskyard.tasklist.model import Task

    try:
        return yard.tasks.get(task_id)
    except TaskNotFound:
        return None
    except Damaged:
        return Task(task_id, "(cannot be read)")
