"""`taskyard task` commands that change tasks: add, claim, edit, block, start, done, next, rm, restore.

`add` and `edit` share the options for the fields of a task. Removed tasks are not lost: `restore` brings them
back. The reading commands are in `task_views`.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext

from taskyard.cli.main import Command
from taskyard.cli.output import answer, columns, confirm, is_typed_by_person, open_yard, style, warn
from taskyard.cli.parser import external_ref, integer, metadata_pair, seconds, task_id, word_list
from taskyard.core.system import boottime, now_ms
from taskyard.core.text import escape_control
from taskyard.core.values import LONGEST_TEXT
from taskyard.errors import BadText, Damaged, NotFound, TaskNotFound, TaskyardError, UsageError
from taskyard.tasks.model import labels_of
from taskyard.tasks.text import format_task_rows, sort_tasks, task_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasks.model import Change, Task
    from taskyard.tasks.task_list import Extras
    from taskyard.yard import Yard


def add_field_options(parser: Parser) -> None:
    """Add the options that `parse_extras` and `parse_metadata` read."""
    parser.add("--description", metavar="TEXT", help="Description of the task; - reads standard input.")
    parser.add(
        "--active-form", metavar="TEXT", help="Text shown while the task is in progress: 'Porting the importer'."
    )
    parser.add("--owner", metavar="AGENT", help="Owner of the task; a new owner is notified by mail.")
    parser.add("--priority", type=integer, metavar="1-9", help="Priority; 1 is the highest, 5 the default.")
    parser.add_words("--label", metavar="WORD", dest="labels", help="Labels: a,b or repeated.")
    parser.add("--due", metavar="WHEN", help="Due date or time in ISO 8601.")
    parser.add("--parent", type=task_id, metavar="ID", help="Parent task.")
    parser.add(
        "--external", type=external_ref, metavar="SYSTEM:ID[:URL]", help="Reference to the same task in another system."
    )
    parser.add_words("--require", metavar="CAP", dest="requires", help="Capabilities an agent needs to claim it: a,b.")
    parser.add("--path", action="append", metavar="GLOB", dest="paths", help="Files the task works on; repeatable.")
    parser.add("--accept", metavar="CMD", help="Acceptance command: must exit with 0 before the task can be completed.")
    parser.add("--accept-cwd", metavar="DIR", help="Directory the acceptance command runs in; default: the project's.")
    parser.add(
        "--accept-timeout",
        type=seconds,
        metavar="TIME",
        help="Time limit of the acceptance command, such as 90s or 10m.",
    )
    parser.add(
        "--metadata",
        action="append",
        type=metadata_pair,
        default=[],
        metavar="KEY=JSON",
        help="Further data; KEY=null removes a key. Repeatable.",
    )


def parse_extras(args: Args) -> Extras:
    """Return the optional fields that were given."""
    found: Extras = {}
    if args.priority is not None:
        found["priority"] = args.priority
    if args.labels is not None:
        found["labels"] = args.labels
    if args.due is not None:
        found["due"] = args.due
    if args.parent is not None:
        found["parent"] = args.parent
    if args.external is not None:
        found["external"] = args.external
    if args.requires is not None:
        found["requires"] = args.requires
    if args.paths is not None:
        found["paths"] = args.paths
    if (acceptance := _acceptance(args)) is not None:
        found["acceptance"] = acceptance
    return found


def parse_metadata(args: Args) -> dict[str, object] | None:
    """Return the `--metadata` pairs; None if there are none."""
    return dict(args.metadata) or None


def read_text(value: str | None, field: str) -> str | None:
    """Return an argument, or standard input if it is `-`.

    Raises:
        BadText: the input is too long, or not UTF-8.
    """
    if value != "-":
        return value
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
        raise UsageError(f"Cannot read the {field}: standard input is closed.")
    data = sys.stdin.buffer.read(4 * LONGEST_TEXT + 1)
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadText(field, "on standard input is not valid UTF-8") from None


def trust_typed(args: Args) -> None:
    """Trust the acceptance command of these arguments if the user typed it: it need not be shown again."""
    spec = _acceptance(args)
    if spec is None or not is_typed_by_person(args):
        return
    from taskyard.integrations.acceptance import check_acceptance
    from taskyard.storage import trust

    try:
        found = check_acceptance(spec, folder=os.getcwd())
        trust.trust_command(found.command, found.trusted_at, how="typed")
    except (OSError, TaskyardError) as error:
        warn(f"The acceptance command is not trusted yet; run `taskyard trust`: {error}")


def _acceptance(args: Args) -> dict[str, object] | None:
    if args.accept is None:
        if args.accept_cwd is not None or args.accept_timeout is not None:
            raise UsageError("--accept-cwd and --accept-timeout require --accept.")
        return None
    given = {"command": args.accept, "cwd": args.accept_cwd, "timeout": args.accept_timeout}
    return {name: value for name, value in given.items() if value is not None}


def answer_task(args: Args, yard: Yard, task: Task, *, with_token: bool = False) -> int:
    """Print one task. `with_token`: include the fencing token, for the process that just claimed it."""

    def data() -> object:
        return task_json(task, open_blockers=open_blockers(yard, task), with_token=with_token)

    def lines() -> Iterator[str]:
        yield from format_rows(args, yard, [task])
        if task.ready:
            ready = [found for task_id in task.ready if (found := find_task(yard, task_id)) is not None]
            yield "Ready now: " + ", ".join(f"#{other.id} {escape_control(other.subject)}" for other in ready)
        yield from (escape_control(note, lines=True) for note in task_notes(args, task))

    return answer(args, data, lines, ids=[task.id])


def task_notes(args: Args, task: Task) -> list[str]:
    """Return the notes of the task, worded for people if the user typed the command."""
    if not task.notes or not is_typed_by_person(args):
        return list(task.notes)
    from taskyard.tasks.text import note_for_person

    return [note_for_person(note) for note in task.notes]


def answer_tasks(args: Args, yard: Yard, tasks: Sequence[Task], *, nothing: str) -> int:
    """Print several tasks in the given order; `nothing` is printed if there are none."""

    def data() -> object:
        return [task_json(task) for task in tasks]

    def lines() -> Iterator[str]:
        if tasks:
            yield from format_rows(args, yard, tasks)
            yield from (escape_control(f"#{task.id}: {note}") for task in tasks for note in task_notes(args, task))
        else:
            yield nothing

    return answer(args, data, lines, ids=(task.id for task in tasks))


def format_rows(args: Args, yard: Yard, tasks: Iterable[Task]) -> list[str]:
    """Return tasks as lines, in the given order; their blockers are looked up."""
    wanted = list(tasks)
    known = {task.id: task for task in wanted}
    for blocker in {blocker for task in wanted for blocker in task.blocked_by}:
        if blocker not in known and (found := find_task(yard, blocker)) is not None:
            known[blocker] = found
    placed = {row.task.id: row for row in sort_tasks(known.values(), now=now_ms())}
    shown = [placed[task.id] for task in wanted if task.id in placed]
    return format_task_rows(shown, now=now_ms(), columns=columns(), style=style(args))


def open_blockers(yard: Yard, task: Task) -> list[str]:
    """Return the ids of the open tasks a task waits for."""
    found = ((blocker, find_task(yard, blocker)) for blocker in task.blocked_by)
    return [blocker for blocker, other in found if other is not None and not other.is_done]


def find_task(yard: Yard, task_id: str) -> Task | None:
    """Return a task by id; an unreadable one counts as open and has no name."""
    from taskyard.tasks.model import Task

    try:
        return yard.tasks.get(task_id)
    except TaskNotFound:
        return None
    except Damaged:
        return Task(task_id, "(cannot be read)")


def _add_arguments(parser: Parser) -> None:
    parser.add("subject", metavar="SUBJECT", help="Subject of the task, in one line; - reads standard input.")
    parser.add_ids("--blocked-by", help="Tasks that must be completed first: 1 2, 1,2 or repeated.")
    parser.add_ids("--blocks", help="Tasks that must wait for this one.")
    add_field_options(parser)


def _run_add(args: Args) -> int:
    if args.subject == "-" and args.description == "-":
        raise UsageError("Only one of subject and description can be read from standard input.")
    subject, description = read_text(args.subject, "subject") or "", read_text(args.description, "description")
    if args.subject == "-" and description is None:
        subject, _, rest = subject.partition("\n")
        description = rest.strip() or None
    with open_yard(args) as yard:
        task = yard.tasks.create(
            subject,
            description=description,
            active_form=args.active_form,
            owner=args.owner,
            blocks=args.blocks,
            blocked_by=args.blocked_by,
            metadata=parse_metadata(args),
            **parse_extras(args),
        )
        trust_typed(args)
        return answer_task(args, yard, task)


ADD = Command(
    _run_add,
    _add_arguments,
    "Create a pending task. When read from standard input, the first line is the subject and the\n"
    "remaining lines are the description.",
    examples=(
        "taskyard task add 'Port the importer' --blocked-by 12",
        "taskyard task add 'Fix the build' --priority 1 --label ci --accept 'make test'",
        "id=$(taskyard task add -q 'Write the notes')",
    ),
    exits=("4  a dependency or the parent does not exist", "5  the dependencies would form a cycle, or a hook refused"),
)


_CLAIM_FENCING_HELP = "Fencing token of your claim; fails if that claim is no longer current."


def _claim_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add("--check-busy", action="store_true", help="Fail if you already own unfinished tasks.")
    parser.add("--force", action="store_true", help="Claim even if the task is blocked (recorded in the log).")
    parser.add(
        "--lease",
        type=seconds,
        metavar="TIME",
        help="Expire the claim after this time unless it is renewed: 90s, 30m, 2h.",
    )
    parser.add("--token", metavar="TOKEN", help="Fencing token returned by an earlier claim.")


def _claim(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.claim(
            args.id, check_busy=args.check_busy, force=args.force, lease=args.lease, token=args.token
        )
        return answer_task(args, yard, task, with_token=True)


def _assign_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add("agent", metavar="AGENT", help="The new owner; '' removes the owner.")
    parser.add("--force", action="store_true", help="Assign even if another agent owns the task (recorded in the log).")


def _assign(args: Args) -> int:
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.assign(args.id, args.agent or None, force=args.force))


def _release_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="Task id.")
    parser.add("--all-of", metavar="AGENT", help="Release all unfinished tasks of this agent instead.")
    parser.add(
        "--force", action="store_true", help="Release even if another agent owns the task (recorded in the log)."
    )
    parser.add("--token", metavar="TOKEN", help=_CLAIM_FENCING_HELP)


def _release(args: Args) -> int:
    if (args.id is None) == (args.all_of is None):
        raise UsageError("Give a task ID, or --all-of AGENT to release all tasks of an agent.")
    with open_yard(args) as yard:
        if args.all_of is not None:
            released = yard.tasks.release_all(args.all_of)
            return answer_tasks(args, yard, released, nothing="No task to release.")
        return answer_task(args, yard, yard.tasks.release(args.id, token=args.token, force=args.force))


def _renew_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add("--token", metavar="TOKEN", help=_CLAIM_FENCING_HELP)


def _renew(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.renew(args.id, token=args.token)
        return answer_task(args, yard, task, with_token=True)


CLAIM = Command(
    _claim,
    _claim_arguments,
    "Claim a task for --by AGENT. Claiming a task you already own succeeds. The claim does not expire\n"
    "unless --lease is given; with --json the response includes the fencing token.",
    examples=("taskyard task claim 12 --by ada", "taskyard task claim 12 --by ci --lease 30m --json"),
    exits=("4  no such task", "5  owned by another agent, completed or blocked, or you are busy"),
)
ASSIGN = Command(
    _assign,
    _assign_arguments,
    ("Assign a task to another owner and notify that agent by mail. The agent still has to `claim` or `start` it."),
    examples=("taskyard task assign 12 ada --by lead", "taskyard task assign 12 ''"),
)
RELEASE = Command(
    _release,
    _release_arguments,
    "Release a task: remove its owner and set its status to pending.",
    examples=("taskyard task release 12 --by ada", "taskyard task release --all-of ada"),
    exits=("5  owned by another agent, or completed",),
)
RENEW = Command(
    _renew,
    _renew_arguments,
    "Renew a claim that was made with --lease, for the same duration, counted from now. A claim without\n"
    "an expiry is not changed.",
    examples=("taskyard task renew 12 --by ci",),
    exits=("5  you no longer own the task",),
)


_CHANGES = ("subject", "description", "active_form", "owner", "status")


def _edit_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add("--subject", metavar="TEXT", help="New subject.")
    parser.add("--status", metavar="STATUS", help="New status: pending, in_progress or completed.")
    add_field_options(parser)
    parser.add_words("--clear", metavar="FIELD", dest="clear", help="Remove optional fields: priority, labels, …")
    parser.add(
        "--token", metavar="TOKEN", help="Fencing token of your claim; fails if that claim is no longer current."
    )
    parser.add(
        "--force",
        action="store_true",
        help="With --status: change it even if the task is blocked or owned by another agent (recorded in the log).",
    )


def _run_edit(args: Args) -> int:
    given: Extras = parse_extras(args)
    data = parse_metadata(args)
    if not (given or data or args.clear) and all(getattr(args, name) is None for name in _CHANGES):
        raise UsageError(f"No change given for #{args.id}. See `taskyard task edit -h`.")
    with open_yard(args) as yard:
        task = yard.tasks.update(
            args.id,
            subject=args.subject,
            description=read_text(args.description, "description"),
            active_form=args.active_form,
            owner=args.owner,
            status=args.status,
            metadata=data,
            token=args.token,
            force=args.force,
            clear=args.clear or (),
            **given,
        )
        trust_typed(args)
        return answer_task(args, yard, task)


EDIT = Command(
    _run_edit,
    _edit_arguments,
    "Change fields and status of a task atomically. An empty --owner or --active-form removes the value;\n"
    "--clear removes optional fields. `--clear held` releases a task from quarantine, where it is put\n"
    "after three of its owners were lost.",
    examples=(
        "taskyard task edit 12 --subject 'Port the CSV importer' --priority 2",
        "taskyard task edit 12 --clear due,labels --metadata 'ticket=\"A-7\"'",
    ),
)


def _block_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The dependent task.")
    parser.add_ids("--on", "--blocked-by", dest="on", help="Tasks it depends on: 3 4, 3,4 or repeated.")


def _block(args: Args) -> int:
    if not args.on:
        raise UsageError(f"No dependency given for #{args.id}. Use `taskyard task block {args.id} --on ID…`.")
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.block(args.id, by=args.on))


def _unblock_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The dependent task.")
    parser.add_ids("--on", "--blocked-by", dest="on", help="Dependencies to remove: 3 4, 3,4 or repeated.")
    parser.add("--all", action="store_true", help="Remove all dependencies.")


def _unblock(args: Args) -> int:
    if bool(args.on) == args.all:
        raise UsageError(f"No dependency given. Use `taskyard task unblock {args.id} --on ID…`, or --all.")
    with open_yard(args) as yard:
        on = yard.tasks.get(args.id).blocked_by if args.all else args.on
        return answer_task(args, yard, yard.tasks.unblock(args.id, by=on))


BLOCK = Command(
    _block,
    _block_arguments,
    "Add dependencies to a task. Either all of them are added, or none.",
    examples=("taskyard task block 5 --on 3 4",),
    exits=("4  no such task", "5  the dependencies would form a cycle; the error shows its path"),
)
UNBLOCK = Command(
    _unblock,
    _unblock_arguments,
    "Remove dependencies from a task.",
    examples=("taskyard task unblock 5 --on 3", "taskyard task unblock 5 --all"),
)


_STATUS_FENCING_HELP = "Fencing token of your claim; fails if that claim is no longer current."


def _status_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add(
        "--force",
        action="store_true",
        help="Change the status even if the task is blocked or owned by another agent (recorded in the log).",
    )
    parser.add("--token", metavar="TOKEN", help=_STATUS_FENCING_HELP)


def _start(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.start(args.id, force=args.force, token=args.token)
        return answer_task(args, yard, task, with_token=True)


def _done(args: Args) -> int:
    with open_yard(args) as yard:
        return answer_task(args, yard, yard.tasks.complete(args.id, force=args.force, token=args.token))


def _reopen_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")
    parser.add("--force", action="store_true", help="Reopen even if another agent owns the task (recorded in the log).")
    parser.add("--token", metavar="TOKEN", help=_STATUS_FENCING_HELP)


def _reopen(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.update(args.id, status="pending", force=args.force, token=args.token)
        return answer_task(args, yard, task)


START = Command(
    _start,
    _status_arguments,
    "Set a task to in_progress. A task without an owner is assigned to --by AGENT.",
    examples=("taskyard task start 12 --by ada",),
    exits=("4  no such task", "5  owned by another agent, completed or blocked"),
)
DONE = Command(
    _done,
    _status_arguments,
    "Mark a task completed. Hooks and the acceptance command run first and can refuse. The output lists the\n"
    "tasks that became ready.",
    examples=("taskyard task done 12 --by ada",),
    exits=("4  no such task", "5  owned by another agent, blocked, or refused by a hook or the acceptance command"),
)
REOPEN = Command(
    _reopen,
    _reopen_arguments,
    "Set a task back to pending and remove its owner.",
    examples=("taskyard task reopen 12",),
    exits=("4  no such task", "5  owned by another agent"),
)


_FOREVER = float("inf")

#: Maximum seconds to wait for an unavailable database.
_MAX_AWAY = 3600.0


def _next_arguments(parser: Parser) -> None:
    parser.add("--start", action="store_true", help="Also set the task to in_progress.")
    parser.add("--check-busy", action="store_true", help="Fail if you already own unfinished tasks.")
    parser.add(
        "--require",
        action="extend",
        nargs="+",
        type=str,
        default=[],
        metavar="CAP",
        dest="capabilities",
        help="Your capabilities; tasks that require others are skipped.",
    )
    parser.add_words("--label", metavar="WORD", dest="labels", help="Only tasks with at least one of these labels.")
    parser.add(
        "--lease",
        type=seconds,
        metavar="TIME",
        help="Expire the claim after this time unless it is renewed: 90s, 30m, 2h.",
    )
    parser.add(
        "--wait",
        type=seconds,
        nargs="?",
        const=_FOREVER,
        metavar="TIME",
        help="If no task is ready, wait for one; at most TIME if given.",
    )


def _away_timeout(wait: float | None) -> AbstractContextManager[object]:
    """Wait for an unavailable database as long as the caller would wait for a task."""
    if not wait:
        return nullcontext()
    from taskyard.postgres.deadline import min_wait

    return min_wait(min(wait, _MAX_AWAY))


def _run_next(args: Args) -> int:
    with _away_timeout(args.wait), open_yard(args) as yard:
        deadline = boottime() + (args.wait or 0.0)
        while (task := _claim_next(args, yard)) is None:
            left = deadline - boottime()
            if left <= 0:
                from taskyard.tasks.rules import nothing_free

                raise nothing_free(yard.tasks)
            yard.tasks.store.wait(min(left, yard.settings.poll_interval))
        return answer_task(args, yard, task, with_token=True)


def _claim_next(args: Args, yard: Yard) -> Task | None:
    labels = frozenset(args.labels or ())
    able = [word for given in args.capabilities for word in word_list(given)]

    def suits(task: Task) -> bool:
        return not labels or not labels.isdisjoint(labels_of(task))

    return yard.tasks.claim_next(
        where=suits, capabilities=able, lease=args.lease, start=args.start, check_busy=args.check_busy
    )


NEXT = Command(
    _run_next,
    _next_arguments,
    "Claim the next ready task for --by AGENT in one step: highest priority first, then lowest id.",
    examples=(
        "taskyard task next --by ada --start",
        "taskyard task next --by ada --require gpu docker --wait 10m --json",
    ),
    exits=("4  no task is ready", "5  you are busy"),
)


#: Tasks listed; beyond this they are counted.
_MOST_SHOWN = 20


def _add_yes(parser: Parser) -> None:
    parser.add("-y", "--yes", action="store_true", help="Skip the confirmation; required without a terminal.")


def _rm_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="+", metavar="ID", help="Task ids.")
    parser.add("--note", metavar="TEXT", default="", help="Reason, recorded in the log.")
    parser.add("--force", action="store_true", help="Remove even if another agent owns a task (recorded in the log).")
    _add_yes(parser)


def _rm(args: Args) -> int:
    ids = list(dict.fromkeys(args.ids))
    with open_yard(args) as yard:
        for one in ids:
            yard.tasks.get(one)  # all of them exist, or none is removed
        confirm(args, f"Remove {_count_text(len(ids))} from list {yard.tasks.name!r}?")
        gone = yard.tasks.delete_all(ids, note=args.note, force=args.force)
        return _answer_removed(args, "Removed", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _archive_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="Task ids; default: all completed tasks.")
    parser.add("--force", action="store_true", help="Also archive tasks that are not completed (recorded in the log).")
    _add_yes(parser)


def _archive(args: Args) -> int:
    with open_yard(args) as yard:
        count = len(set(args.ids)) or sum(task.is_done for task in yard.tasks.list())
        if count:
            confirm(args, f"Archive {_count_text(count)} of list {yard.tasks.name!r}?")
        gone = yard.tasks.archive(*args.ids, force=args.force)
        if not gone:
            return answer_tasks(args, yard, gone, nothing="No completed tasks.")
        return _answer_removed(args, "Archived", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _reset_arguments(parser: Parser) -> None:
    _add_yes(parser)


def _reset(args: Args) -> int:
    with open_yard(args) as yard:
        if count := len(yard.tasks.list(internal=True)):
            confirm(args, f"Archive all {_count_text(count)} of list {yard.tasks.name!r}?")
        gone = yard.tasks.reset()
        if not gone:
            return answer_tasks(args, yard, gone, nothing="The list is empty.")
        return _answer_removed(args, "Removed", gone, "`taskyard task restore --last-reset`")


def _answer_removed(args: Args, did: str, tasks: Sequence[Task], undo: str) -> int:
    """Print what was removed, and how to restore it."""

    def lines() -> Iterator[str]:
        if len(tasks) == 1:
            yield f"{did} #{tasks[0].id} {escape_control(tasks[0].subject)}."
        else:
            yield f"{did} {_count_text(len(tasks))}:"
            yield from (f"  #{task.id} {escape_control(task.subject)}" for task in tasks[:_MOST_SHOWN])
            if len(tasks) > _MOST_SHOWN:
                yield f"  … and {len(tasks) - _MOST_SHOWN} more"
        yield f"Undo: {undo}"

    return answer(args, lambda: [task_json(task) for task in tasks], lines, ids=(task.id for task in tasks))


def _count_text(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


RM = Command(
    _rm,
    _rm_arguments,
    "Remove tasks from the list and from the dependencies of other tasks. `taskyard task restore` undoes this.",
    examples=("taskyard task rm 12", "taskyard task rm 12 13 --yes --note 'no longer needed'"),
)
ARCHIVE = Command(
    _archive,
    _archive_arguments,
    "Archive completed tasks; without ids, all of them. `taskyard task restore` undoes this.",
    examples=("taskyard task archive --yes", "taskyard task archive 3 4"),
    exits=("4  no such task", "5  a task is not completed"),
)
RESET = Command(
    _reset,
    _reset_arguments,
    "Archive all tasks of the list. Ids are not reused.\n`taskyard task restore --last-reset` undoes this.",
    examples=("taskyard task reset --yes",),
)


def _restore_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="Task ids.")
    parser.add("--last-reset", action="store_true", help="Restore all tasks archived by the last reset instead.")


def _run_restore(args: Args) -> int:
    if bool(args.ids) == args.last_reset:
        raise UsageError("No task given. Use `taskyard task restore ID…`, or --last-reset.")
    with open_yard(args) as yard:
        ids = list(dict.fromkeys(args.ids))
        if args.last_reset:
            there = {task.id for task in yard.tasks.list(internal=True)}
            ids = sorted(last_reset(yard.tasks.log()) - there, key=int)
            if not ids:
                raise NotFound(f"The last reset of list {yard.tasks.name!r} left no tasks to restore.")
        back = [yard.tasks.restore(one) for one in ids]
        return answer_tasks(args, yard, [yard.tasks.get(task.id) for task in back], nothing="")


def last_reset(changes: Iterable[Change]) -> set[str]:
    """Return the tasks removed by the last reset."""
    found: set[str] = set()
    for change in changes:
        if change.act.cause == "reset" and not change.aborted:
            found = {task_id for task_id, task in change.tasks.items() if task is None}
    return found


RESTORE = Command(
    _run_restore,
    _restore_arguments,
    "Restore tasks that were removed, archived, reset, or deleted by another program: with the same\n"
    "ids and fields, and the dependencies that are still valid.",
    examples=("taskyard task restore 12", "taskyard task restore --last-reset"),
    exits=("4  no record of such a task", "5  the task is on the list"),
)
