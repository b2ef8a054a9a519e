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
    parser.add("--description", metavar="TEXT", help="What is to be done; - reads standard input.")
    parser.add("--active-form", metavar="TEXT", help="What a spinner says meanwhile: 'Porting the importer'.")
    parser.add("--owner", metavar="AGENT", help="Whose it is; a new owner gets mail.")
    parser.add("--priority", type=integer, metavar="1-9", help="1 comes first; 5 where none is set.")
    parser.add_words("--label", metavar="WORD", dest="labels", help="Labels: a,b or repeated.")
    parser.add("--due", metavar="WHEN", help="A date or time in ISO 8601.")
    parser.add("--parent", type=task_id, metavar="ID", help="The task this one is a part of.")
    parser.add("--external", type=external_ref, metavar="SYSTEM:ID[:URL]", help="The same task in another system.")
    parser.add_words("--require", metavar="CAP", dest="requires", help="What its worker must be able to do: a,b.")
    parser.add("--path", action="append", metavar="GLOB", dest="paths", help="What it works on; may be repeated.")
    parser.add("--accept", metavar="CMD", help="The command that must succeed before it counts as done.")
    parser.add("--accept-cwd", metavar="DIR", help="Where that command runs; else the project's folder.")
    parser.add("--accept-timeout", type=seconds, metavar="TIME", help="How long it may take, such as 90s or 10m.")
    parser.add(
        "--metadata",
        action="append",
        type=metadata_pair,
        default=[],
        metavar="KEY=JSON",
        help="Anything else; KEY=null takes a key away. May be repeated.",
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
        raise UsageError(f"The {field} is to come from standard input, which is closed.")
    data = sys.stdin.buffer.read(4 * LONGEST_TEXT + 1)
    try:
        return data.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadText(field, "on standard input is no UTF-8") from None


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
        warn(f"The acceptance command is not trusted yet, run `taskyard trust`: {error}")


def _acceptance(args: Args) -> dict[str, object] | None:
    if args.accept is None:
        if args.accept_cwd is not None or args.accept_timeout is not None:
            raise UsageError("--accept-cwd and --accept-timeout go with --accept, the command itself.")
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
    parser.add("subject", metavar="SUBJECT", help="What is to be done, in one line; - reads standard input.")
    parser.add_ids("--blocked-by", help="The tasks it waits for: 1 2, 1,2 or repeated.")
    parser.add_ids("--blocks", help="The tasks that wait for it.")
    add_field_options(parser)


def _run_add(args: Args) -> int:
    if args.subject == "-" and args.description == "-":
        raise UsageError("Standard input can be the subject or the description, not both.")
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
    "Put a new pending task on the list. From standard input, the first line is the subject and the\n"
    "rest the description.",
    examples=(
        "taskyard task add 'Port the importer' --blocked-by 12",
        "taskyard task add 'Fix the build' --priority 1 --label ci --accept 'make test'",
        "id=$(taskyard task add -q 'Write the notes')",
    ),
    exits=("4  a dependency or the parent names no task", "5  the dependencies would be a cycle, or a hook refused"),
)


_CLAIM_FENCING_HELP = "Of the claim you hold: refused if it is no longer the current one."


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
    parser.add("--token", metavar="TOKEN", help=_CLAIM_FENCING_HELP)


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
    parser.add("--token", metavar="TOKEN", help=_CLAIM_FENCING_HELP)


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


_CHANGES = ("subject", "description", "active_form", "owner", "status")


def _edit_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--subject", metavar="TEXT", help="A new subject.")
    parser.add("--status", metavar="STATUS", help="pending, in_progress or completed.")
    add_field_options(parser)
    parser.add_words("--clear", metavar="FIELD", dest="clear", help="Take optional fields away: priority, labels, …")
    parser.add("--token", metavar="TOKEN", help="Of the claim you hold: refused if it is no longer the current one.")
    parser.add("--force", action="store_true", help="With --status: although it is blocked or another's. It is logged.")


def _run_edit(args: Args) -> int:
    given: Extras = parse_extras(args)
    data = parse_metadata(args)
    if not (given or data or args.clear) and all(getattr(args, name) is None for name in _CHANGES):
        raise UsageError(f"What shall be different about #{args.id}? See `taskyard task edit -h`.")
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
    "Change fields and status of a task in one step: all of it or nothing. An empty --owner or\n"
    "--active-form takes it away; --clear takes optional fields away, also `held`, which sets a task\n"
    "aside after it lost three holders.",
    examples=(
        "taskyard task edit 12 --subject 'Port the CSV importer' --priority 2",
        "taskyard task edit 12 --clear due,labels --metadata 'ticket=\"A-7\"'",
    ),
)


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


_STATUS_FENCING_HELP = "Of the claim you hold: refused if it is no longer the current one."


def _status_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--force", action="store_true", help="Although it is blocked, or somebody else holds it. It is logged.")
    parser.add("--token", metavar="TOKEN", help=_STATUS_FENCING_HELP)


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
    parser.add("--token", metavar="TOKEN", help=_STATUS_FENCING_HELP)


def _reopen(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.update(args.id, status="pending", force=args.force, token=args.token)
        return answer_task(args, yard, task)


START = Command(
    _start,
    _status_arguments,
    "Say that work on a task begins. A task without an owner becomes --by AGENT's.",
    examples=("taskyard task start 12 --by ada",),
    exits=("4  no such task", "5  another has it, or it is done or blocked"),
)
DONE = Command(
    _done,
    _status_arguments,
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


_FOREVER = float("inf")

#: Maximum seconds to wait for an unavailable database.
_MAX_AWAY = 3600.0


def _next_arguments(parser: Parser) -> None:
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
        const=_FOREVER,
        metavar="TIME",
        help="If nothing is free, wait until something is; at most TIME if given.",
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
    "Find a free task and claim it for --by AGENT, in one step: by priority, then the lowest id.",
    examples=(
        "taskyard task next --by ada --start",
        "taskyard task next --by ada --require gpu docker --wait 10m --json",
    ),
    exits=("4  nothing is free", "5  you are busy"),
)


#: Tasks listed; beyond this they are counted.
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
            yard.tasks.get(one)  # all of them exist, or none is removed
        confirm(args, f"Remove {_count_text(len(ids))} from list {yard.tasks.name!r}?")
        gone = yard.tasks.delete_all(ids, note=args.note, force=args.force)
        return _answer_removed(args, "Removed", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _archive_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="The tasks; without any, all completed ones.")
    parser.add("--force", action="store_true", help="Also tasks that are not completed. It is logged.")
    _add_yes(parser)


def _archive(args: Args) -> int:
    with open_yard(args) as yard:
        count = len(set(args.ids)) or sum(task.is_done for task in yard.tasks.list())
        if count:
            confirm(args, f"Put {_count_text(count)} of list {yard.tasks.name!r} away?")
        gone = yard.tasks.archive(*args.ids, force=args.force)
        if not gone:
            return answer_tasks(args, yard, gone, nothing="No task is completed yet.")
        return _answer_removed(args, "Archived", gone, f"`taskyard task restore {' '.join(task.id for task in gone)}`")


def _reset_arguments(parser: Parser) -> None:
    _add_yes(parser)


def _reset(args: Args) -> int:
    with open_yard(args) as yard:
        if count := len(yard.tasks.list(internal=True)):
            confirm(args, f"Put all {_count_text(count)} of list {yard.tasks.name!r} away?")
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


def _restore_arguments(parser: Parser) -> None:
    parser.add("ids", type=task_id, nargs="*", metavar="ID", help="The tasks.")
    parser.add("--last-reset", action="store_true", help="Instead: everything the last reset put away.")


def _run_restore(args: Args) -> int:
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
    """Return the tasks removed by the last reset."""
    found: set[str] = set()
    for change in changes:
        if change.act.cause == "reset" and not change.aborted:
            found = {task_id for task_id, task in change.tasks.items() if task is None}
    return found


RESTORE = Command(
    _run_restore,
    _restore_arguments,
    "Bring back tasks that were removed, archived, reset, or taken away by another program: under\n"
    "their ids, as they were, with the dependencies that still make sense.",
    examples=("taskyard task restore 12", "taskyard task restore --last-reset"),
    exits=("4  no such task was ever seen", "5  it is on the list"),
)
