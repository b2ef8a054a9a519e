"""`taskyard task block | unblock`: who waits for whom."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.shown import answer_task
from taskyard.cli.values import task_id
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _block_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task that waits.")
    parser.add_ids("--on", "--blocked-by", dest="on", help="What it waits for: 3 4, 3,4 or repeated.")


def _block(args: Args) -> int:
    if not args.on:
        raise UsageError(f"On what shall #{args.id} wait? Say `taskyard task block {args.id} --on ID…`.")
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.block(args.id, by=args.on))


def _unblock_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task that waits.")
    parser.add_ids("--on", "--blocked-by", dest="on", help="What it shall no longer wait for: 3 4, 3,4 or repeated.")
    parser.add("--all", action="store_true", help="Everything it waits for.")


def _unblock(args: Args) -> int:
    if bool(args.on) == args.all:
        raise UsageError(f"Say `taskyard task unblock {args.id} --on ID…`, or --all.")
    with open_yard(args) as yard:
        on = yard.tasks.get(args.id).blocked_by if args.all else args.on
        return answer_task(args, yard, yard.tasks.unblock(args.id, by=on))


BLOCK = Command(
    _block,
    _block_arguments,
    "Let a task wait for others: for all of them, or nothing changes.",
    examples=("taskyard task block 5 --on 3 4",),
    exits=("4  no such task", "5  they would wait for each other; the refusal shows the path"),
)
UNBLOCK = Command(
    _unblock,
    _unblock_arguments,
    "Let a task no longer wait for others.",
    examples=("taskyard task unblock 5 --on 3", "taskyard task unblock 5 --all"),
)
