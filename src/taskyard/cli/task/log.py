"""`taskyard task log`."""

from __future__ import annotations

import time

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard, say
from taskyard.cli.values import task_id, whole
from taskyard.view.records import change_json
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Change

#: More tasks than this in one change are counted, not named.
_MOST_NAMED = 5


def _arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="One task; without it, the whole list.")
    parser.add("--last", type=whole, metavar="N", help="Only the last N changes.")
    parser.add("--all", action="store_true", help="Also changes of trackers, the hidden tasks of teammates.")


def _run(args: Args) -> int:
    with open_yard(args) as yard:
        changes = yard.tasks.log(args.id)
        if args.id is not None and not changes:
            yard.tasks.get(args.id)  # says that there never was such a task, and what is near
    hidden = 0
    if args.id is None and not args.all:
        shown = without_trackers(changes)
        hidden, changes = len(changes) - len(shown), shown
    if args.last is not None:
        changes = changes[-args.last :] if args.last > 0 else ()
    if hidden:
        counted = "1 change" if hidden == 1 else f"{hidden} changes"
        say(args, f"{counted} of trackers, the hidden tasks of teammates, not shown: --all shows them.")
    return answer(
        args,
        lambda: [change_json(change) for change in changes],
        lambda: [line_of(change, only=args.id) for change in changes],
        ids=(str(change.id) for change in changes),
    )


def line_of(change: Change, *, only: str | None = None) -> str:
    """`2026-05-01 17:03:20  ada  complete  #3 Port the importer`."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change.at / 1000))
    subjects = subjects_of(change)
    ids = [only] if only is not None and only in change.tasks else subjects
    cause = change.act.cause
    if only is not None and only not in subjects:  # another task's change, which this one went along with
        cause = f"with {cause} of {', '.join(f'#{task_id}' for task_id in subjects[:_MOST_NAMED])}:"
    named = ", ".join(_named(change, task_id) for task_id in ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    note = f"  ({safe(change.act.note)})" if change.act.note else ""
    undone = "  never took effect" if change.aborted else ""
    return f"{when}  {safe(change.act.by or '-')}  {safe(cause)}  {named}{more}{note}{undone}"


def subjects_of(change: Change) -> list[str]:
    """The tasks that a change is about; those whose dependencies went along with it are left out."""
    ids = list(change.tasks)
    if change.act.cause in ("create", "restore"):
        return ids[:1]  # the first that is written is the new one
    if change.act.cause in ("delete", "archive", "reset"):
        return [task_id for task_id in ids if change.tasks[task_id] is None] or ids
    return ids


def without_trackers(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that concern more than trackers."""
    trackers: set[str] = set()
    shown: list[Change] = []
    for change in changes:
        trackers.update(task_id for task_id, task in change.tasks.items() if task is not None and task.is_internal)
        if not change.tasks or not trackers.issuperset(subjects_of(change)):
            shown.append(change)
    return tuple(shown)


def _named(change: Change, task_id: str) -> str:
    task = change.tasks[task_id]
    return f"#{task_id} {safe(task.subject)}" if task is not None else f"#{task_id} (gone)"


LOG = Command(
    _run,
    _arguments,
    "What happened to a task, or to the whole list, oldest first: when, by whom, what, and why.\n"
    "Changes by other programs are told as `external`. Trackers share the ids of tasks; their changes are left out.",
    examples=("taskyard task log 12", "taskyard task log --last 20"),
)
