"""`taskyard task next`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.shown import answer_task
from taskyard.cli.values import seconds, word_list
from taskyard.clock import elapsed
from taskyard.tasklist.extras import labels_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Task

_FOR_EVER = float("inf")

#: Seconds for which a database that is away is waited for, at most.
_LONGEST_AWAY = 3600.0


def _arguments(parser: Parser) -> None:
    parser.add("--start", action="store_true", help="Start it as well.")
    parser.add("--check-busy", action="store_true", help="Not if you still have other open work.")
    parser.add(
        "--require",
        action="extend",
        nargs="+",
        type=str,
        default=[],
        metavar="CAP",
        dest="capabilities",
        help="What you can do: tasks that require something else are left out.",
    )
    parser.add_words("--label", metavar="WORD", dest="labels", help="Only tasks with one of these labels.")
    parser.add("--lease", type=seconds, metavar="TIME", help="Claim until then, unless renewed: 90s, 30m, 2h.")
    parser.add(
        "--wait",
        type=seconds,
        nargs="?",
        const=_FOR_EVER,
        metavar="TIME",
        help="If nothing is free, wait until something is; at most TIME if given.",
    )


def _run(args: Args) -> int:
    from taskyard.database.waiting import at_least

    with at_least(min(args.wait or 0.0, _LONGEST_AWAY)), open_yard(args) as yard:
        deadline = elapsed() + (args.wait or 0.0)
        while (task := _claimed(args, yard)) is None:
            left = deadline - elapsed()
            if left <= 0:
                from taskyard.tasklist.picking import nothing_free

                raise nothing_free(yard.tasks)
            yard.tasks.store.wait(min(left, yard.settings.poll_interval))
        return answer_task(args, yard, task, with_token=True)


def _claimed(args: Args, yard: Yard) -> Task | None:
    labels = frozenset(args.labels or ())
    able = [word for given in args.capabilities for word in word_list(given)]

    def suits(task: Task) -> bool:
        return not labels or not labels.isdisjoint(labels_of(task))

    return yard.tasks.claim_next(
        where=suits, capabilities=able, lease=args.lease, start=args.start, check_busy=args.check_busy
    )


NEXT = Command(
    _run,
    _arguments,
    "Find a free task and claim it for --by AGENT, in one step: by priority, then the lowest id.",
    examples=(
        "taskyard task next --by ada --start",
        "taskyard task next --by ada --require gpu docker --wait 10m --json",
    ),
    exits=("4  nothing is free", "5  you are busy"),
)
