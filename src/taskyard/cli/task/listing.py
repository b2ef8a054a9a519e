"""`taskyard task list`: the tasks, once or live."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, columns, open_yard, say, style
from taskyard.clock import now_ms
from taskyard.errors import BadValue
from taskyard.tasklist.extras import labels_of
from taskyard.tasklist.model import TaskStatus
from taskyard.view.ordering import JUST_DONE_MS, arranged
from taskyard.view.records import task_json
from taskyard.view.text import done_line, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Listing
    from taskyard.view.ordering import Row


#: Letters of jobs that are no agents.
_COMMANDS = "bmrw"


def _arguments(parser: Parser) -> None:
    parser.add("--all", action="store_true", help="Completed tasks too.")
    parser.add_words("--status", metavar="STATUS", dest="status", help="Only pending, in_progress or completed ones.")
    parser.add("--owner", metavar="AGENT", help="Only those of an agent.")
    parser.add_words("--label", metavar="WORD", dest="labels", help="Only those with one of these labels.")
    parser.add("--ready", action="store_true", help="Only those that can be claimed now.")
    parser.add("--watch", action="store_true", help="Stay, and show every change as it happens.")
    parser.add("--until-done", action="store_true", help="With --watch: end when nothing is left to do.")


def _run(args: Args) -> int:
    for status in args.status or ():
        if status not in TaskStatus._value2member_map_:
            raise BadValue("--status", status, "pending, in_progress or completed")
    with open_yard(args) as yard:
        if args.watch or args.until_done:
            from taskyard.cli.task.watching import watch

            return watch(args, yard)
        return show(args, yard, yard.tasks.list())


def show(args: Args, yard: Yard, listing: Listing) -> int:
    """Print the tasks that were asked for."""
    rows = chosen(args, listing, me=yard.agent, waits=waits_of(yard, listing))

    def data() -> object:
        return [{**task_json(row.task, open_blockers=row.waits_for), "held_up": row.held_up or None} for row in rows]

    def lines() -> Iterator[str]:
        yield from task_rows(rows, now=now_ms(), columns=columns(), style=style(args))
        if line := done_line(hidden_done(args, listing), style(args)):
            yield line

    if not rows and not hidden_done(args, listing):
        say(args, nothing_here(args, yard, listing))
    damaged = [f"{found.file} cannot be read: {found.why}. `taskyard doctor` explains." for found in listing.damaged]
    return answer(args, data, lines, ids=(row.task.id for row in rows), warnings=damaged)


def waits_of(yard: Yard, listing: Listing) -> Mapping[str, str]:
    """What keeps tasks in progress from getting on, by the jobs of agents that live."""
    if not any(task.status is TaskStatus.IN_PROGRESS for task in listing):
        return {}
    from taskyard.runtime.looking import glance, living_names
    from taskyard.view.task_waits import task_waits

    found = (glance(yard.home, job_id) for job_id in living_names(yard.home) if job_id[0] not in _COMMANDS)
    return task_waits((job for job in found if job is not None), yard.tasks.name)


def chosen(
    args: Args,
    listing: Listing,
    *,
    me: str | None,
    just_done: bool = False,
    waits: Mapping[str, str] | None = None,
) -> list[Row]:
    """The rows that were asked for, in order. `just_done`: also what was completed a moment ago."""
    now = now_ms()
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    rows = arranged(listing, now=now, me=me, unreadable=unreadable, waits=waits)
    return [row for row in rows if _is_wanted(args, row) and _is_open_or_asked(args, row, just_done, now)]


def _is_open_or_asked(args: Args, row: Row, just_done: bool, now: int) -> bool:
    if row.state != "done" or args.all or TaskStatus.COMPLETED in (args.status or ()):
        return True
    return just_done and now - (row.since or 0) <= JUST_DONE_MS


def _is_wanted(args: Args, row: Row) -> bool:
    task = row.task
    if args.status and task.status not in args.status:
        return False
    if args.owner is not None and (task.owner or "") != args.owner:
        return False
    if args.labels and not set(args.labels).intersection(labels_of(task)):
        return False
    return not args.ready or (row.state == "ready" and task.owner is None and not task.is_held)


def hidden_done(args: Args, listing: Listing) -> int:
    """How many completed tasks a plain listing leaves out."""
    if args.all or args.status or args.ready or args.labels or args.owner is not None:
        return 0
    return sum(task.is_done for task in listing)


def nothing_here(args: Args, yard: Yard, listing: Listing) -> str:
    """What to say where there is no row to show."""
    if listing:
        return f"No such tasks on list {yard.tasks.name!r}."
    return f"No tasks on list {yard.tasks.name!r}. `taskyard task add SUBJECT` makes one."


LIST = Command(
    _run,
    _arguments,
    "Show the tasks: in progress, ready, blocked. Completed ones are counted; --all shows them.",
    examples=(
        "taskyard task list --ready",
        "taskyard task list --watch",
        "taskyard task list --all --json | jq -r '.data[] | [.id, .status, .subject] | @tsv'",
    ),
)
