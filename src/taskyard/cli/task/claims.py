"""`taskyard task claim | assign | release | renew`: whose a task is."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.shown import answer_task, answer_tasks
from taskyard.cli.values import seconds, task_id
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

_CLAIM_HELD = "Of the claim you hold: refused if it is no longer the current one."


def _claim_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--check-busy", action="store_true", help="Not if you still have other open work.")
    parser.add("--force", action="store_true", help="Although it is blocked. It is logged.")
    parser.add("--lease", type=seconds, metavar="TIME", help="Until then, unless renewed: 90s, 30m, 2h.")
    parser.add("--token", metavar="TOKEN", help="Of an earlier claim of yours.")


def _claim(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.claim(
            args.id, check_busy=args.check_busy, force=args.force, lease=args.lease, token=args.token
        )
        return answer_task(args, yard, task, with_token=True)


def _assign_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("agent", metavar="AGENT", help="The new owner; '' for nobody.")
    parser.add("--force", action="store_true", help="Although somebody else holds it. It is logged.")


def _assign(args: Args) -> int:
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.assign(args.id, args.agent or None, force=args.force))


def _release_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="The task.")
    parser.add("--all-of", metavar="AGENT", help="Instead: everything unfinished of an agent that left.")
    parser.add("--force", action="store_true", help="Although somebody else holds it. It is logged.")
    parser.add("--token", metavar="TOKEN", help=_CLAIM_HELD)


def _release(args: Args) -> int:
    if (args.id is None) == (args.all_of is None):
        raise UsageError("Release one task by its ID, or everything of an agent by --all-of AGENT.")
    with open_yard(args) as yard:
        if args.all_of is not None:
            released = yard.tasks.release_all(args.all_of)
            return answer_tasks(args, yard, released, nothing="Nothing to release.")
        return answer_task(args, yard, yard.tasks.release(args.id, token=args.token, force=args.force))


def _renew_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--token", metavar="TOKEN", help=_CLAIM_HELD)


def _renew(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.renew(args.id, token=args.token)
        return answer_task(args, yard, task, with_token=True)


CLAIM = Command(
    _claim,
    _claim_arguments,
    "Take a task for --by AGENT. Claiming your own again succeeds. The claim has no end unless --lease\n"
    "gives it one; with --json the answer holds its token.",
    examples=("taskyard task claim 12 --by ada", "taskyard task claim 12 --by ci --lease 30m --json"),
    exits=("4  no such task", "5  another has it, it is done or blocked, or you are busy"),
)
ASSIGN = Command(
    _assign,
    _assign_arguments,
    "Name a new owner, who gets mail about it. The owner's own claim comes with `claim` or `start`.",
    examples=("taskyard task assign 12 ada --by lead", "taskyard task assign 12 ''"),
)
RELEASE = Command(
    _release,
    _release_arguments,
    "Put a task back into the pool: no owner, pending.",
    examples=("taskyard task release 12 --by ada", "taskyard task release --all-of ada"),
    exits=("5  it is somebody else's, or done",),
)
RENEW = Command(
    _renew,
    _renew_arguments,
    "Hold on to a claim that was made with --lease: from now, for as long as it was made for. A claim\n"
    "without an end stays as it is.",
    examples=("taskyard task renew 12 --by ci",),
    exits=("5  it is no longer yours",),
)
