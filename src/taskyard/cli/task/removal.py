"""`taskyard task rm | archive | reset`: off the list. Nothing is lost: `restore` brings it back."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import confirm, open_yard
from taskyard.cli.task.shown import answer_tasks
from taskyard.cli.values import task_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


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
        return answer_tasks(args, yard, gone, nothing="")


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
        return answer_tasks(args, yard, gone, nothing="Nothing is done yet.")


def _reset_arguments(parser: Parser) -> None:
    _add_yes(parser)


def _reset(args: Args) -> int:
    with open_yard(args) as yard:
        if count := len(yard.tasks.list(internal=True)):
            confirm(args, f"Put all {_counted(count)} of list {yard.tasks.name!r} away?")
        return answer_tasks(args, yard, yard.tasks.reset(), nothing="The list is empty.")


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
