"""`taskyard task start | done | reopen`: where a task stands."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.shown import answer_task
from taskyard.cli.values import task_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


_CLAIM_HELD = "Of the claim you hold: refused if it is no longer the current one."


def _arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--force", action="store_true", help="Although it is blocked, or somebody else holds it. It is logged.")
    parser.add("--token", metavar="TOKEN", help=_CLAIM_HELD)


def _start(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.start(args.id, force=args.force, token=args.token)
        return answer_task(args, yard, task, with_token=True)


def _done(args: Args) -> int:
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.complete(args.id, force=args.force, token=args.token))


def _reopen_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--force", action="store_true", help="Although somebody else holds it. It is logged.")
    parser.add("--token", metavar="TOKEN", help=_CLAIM_HELD)


def _reopen(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.update(args.id, status="pending", force=args.force, token=args.token)
        return answer_task(args, yard, task)


START = Command(
    _start,
    _arguments,
    "Say that work on a task begins. A task without an owner becomes --by AGENT's.",
    examples=("taskyard task start 12 --by ada",),
    exits=("4  no such task", "5  another has it, or it is done or blocked"),
)
DONE = Command(
    _done,
    _arguments,
    "Say that a task is done. Hooks and its acceptance command are asked first. The answer names the\n"
    "tasks that waited for this one alone.",
    examples=("taskyard task done 12 --by ada",),
    exits=("4  no such task", "5  another has it, it is blocked, or a hook or its acceptance command refused"),
)
REOPEN = Command(
    _reopen,
    _reopen_arguments,
    "Put a task back to pending, without an owner.",
    examples=("taskyard task reopen 12",),
    exits=("4  no such task", "5  another has it"),
)
