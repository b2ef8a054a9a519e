"""`taskyard task restore`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.shown import answer_tasks
from taskyard.cli.values import task_id
from taskyard.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Change


def _arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="The tasks.")
    parser.add("--last-reset", action="store_true", help="Instead: everything the last reset put away.")


def _run(args: Args) -> int:
    if bool(args.ids) == args.last_reset:
        raise UsageError("Say which: `taskyard task restore ID…`, or --last-reset.")
    with open_yard(args) as yard:
        ids = list(dict.fromkeys(args.ids))
        if args.last_reset:
            there = {task.id for task in yard.tasks.list(internal=True)}
            ids = sorted(last_reset(yard.tasks.log()) - there, key=int)
            if not ids:
                raise NotFound(f"No reset of list {yard.tasks.name!r} has left anything to bring back.")
        back = [yard.tasks.restore(one) for one in ids]
        return answer_tasks(args, yard, [yard.tasks.get(task.id) for task in back], nothing="")


def last_reset(changes: Iterable[Change]) -> set[str]:
    """The tasks that the last reset took away."""
    found: set[str] = set()
    for change in changes:
        if change.act.cause == "reset" and not change.aborted:
            found = {task_id for task_id, task in change.tasks.items() if task is None}
    return found


RESTORE = Command(
    _run,
    _arguments,
    "Bring back tasks that were removed, archived, reset, or taken away by another program: under\n"
    "their ids, as they were, with the dependencies that still make sense.",
    examples=("taskyard task restore 12", "taskyard task restore --last-reset"),
    exits=("4  no such task was ever seen", "5  it is on the list"),
)
