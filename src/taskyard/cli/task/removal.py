"""`taskyard task rm | archive | reset`: off the list. Nothing is lost: `restore` brings it back."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, confirm, open_yard
from taskyard.cli.task.shown import answer_tasks
from taskyard.cli.values import task_id
from taskyard.view.records import task_json
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Task

#: More tasks than this are counted, not listed.
_MOST_SHOWN = 20


def _add_yes(parser: Parser) -> None:
    parser.add("-y", "--yes", action="store_true", help="Do not ask; needed where nobody can be asked.")


def _rm_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="+", metavar="ID", help="The tasks.")
    parser.add("--note", metavar="TEXT", default="", help="Why, for the log.")
    parser.add("--force", action="store_true", help="Although somebody else holds it. It is logged.")
    _add_yes(parser)


def _rm(args: Args) -> int:
    ids = list(dict.fromkeys(args.ids))
    with open_yard(args) as yard:
        for one in ids:
            yard.tasks.get(one)  # all of them are there, or none is removed
        confirm(args, f"Remove {_counted(len(ids))} from list {yard.tasks.name!r}?")
        gone = yard.tasks.delete_all(ids, note=args.note, force=args.force)
        return _answer(args, "Removed", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _archive_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="The tasks; without any, all completed ones.")
    parser.add("--force", action="store_true", help="Also tasks that are not completed. It is logged.")
    _add_yes(parser)


def _archive(args: Args) -> int:
    with open_yard(args) as yard:
        count = len(set(args.ids)) or sum(task.is_done for task in yard.tasks.list())
        if count:
            confirm(args, f"Put {_counted(count)} of list {yard.tasks.name!r} away?")
        gone = yard.tasks.archive(*args.ids, force=args.force)
        if not gone:
            return answer_tasks(args, yard, gone, nothing="No task is completed yet.")
        return _answer(args, "Archived", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _reset_arguments(parser: Parser) -> None:
    _add_yes(parser)


def _reset(args: Args) -> int:
    with open_yard(args) as yard:
        if count := len(yard.tasks.list(internal=True)):
            confirm(args, f"Put all {_counted(count)} of list {yard.tasks.name!r} away?")
        gone = yard.tasks.reset()
        if not gone:
            return answer_tasks(args, yard, gone, nothing="The list is empty.")
        return _answer(args, "Removed", gone, "`taskyard task restore --last-reset`")


def _answer(args: Args, did: str, tasks: Sequence[Task], undo: str) -> int:
    """Say what was taken off the list, and how to bring it back."""

    def lines() -> Iterator[str]:
        if len(tasks) == 1:
            yield f"{did} #{tasks[0].id} {safe(tasks[0].subject)}."
        else:
            yield f"{did} {_counted(len(tasks))}:"
            yield from (f"  #{task.id} {safe(task.subject)}" for task in tasks[:_MOST_SHOWN])
            if len(tasks) > _MOST_SHOWN:
                yield f"  … and {len(tasks) - _MOST_SHOWN} more"
        yield f"Undo: {undo}"

    return answer(args, lambda: [task_json(task) for task in tasks], lines, ids=(task.id for task in tasks))


def _counted(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


RM = Command(
    _rm,
    _rm_arguments,
    "Take tasks off the list and out of everyone's dependencies. `taskyard task restore` brings them back.",
    examples=("taskyard task rm 12", "taskyard task rm 12 13 --yes --note 'no longer needed'"),
)
ARCHIVE = Command(
    _archive,
    _archive_arguments,
    "Put completed tasks away; without ids, all of them. `taskyard task restore` brings them back.",
    examples=("taskyard task archive --yes", "taskyard task archive 3 4"),
    exits=("4  no such task", "5  one is not completed"),
)
RESET = Command(
    _reset,
    _reset_arguments,
    "Put the whole list away. Ids go on from where they were.\n"
    "`taskyard task restore --last-reset` brings everything back.",
    examples=("taskyard task reset --yes",),
)
