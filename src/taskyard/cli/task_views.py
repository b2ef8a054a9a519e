"""`taskyard task` show, list, log, events, import and export: views of a task list.

`list --watch` on a terminal redraws the screen on every change (inotify, or NOTIFY from the database) and every
few seconds for the clocks. Elsewhere the rows are printed once, then a line for each change; with `--json`, the
whole result on one line for each change. An unavailable database is reported, and changes made meanwhile are
not lost.

`events` prints one JSON object per line, all of the same shape. Its `cursor` resumes right after it: `--since
CURSOR`. For one list that is the id of the change; for all lists it holds a position in each. A list missing
from the cursor is printed from its beginning, so one created later is never missed.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from taskyard.cli.main import Command
from taskyard.cli.output import (
    SCHEMA_VERSION,
    OutageReporter,
    answer,
    columns,
    is_terminal,
    open_yard,
    print_info,
    print_line,
    style,
)
from taskyard.cli.parser import integer, task_id
from taskyard.cli.task import answer_tasks, find_task, format_rows, open_blockers
from taskyard.core.system import now_ms
from taskyard.core.text import colorize, duration, escape_control
from taskyard.core.values import as_object, folder_name
from taskyard.errors import BadText, BadValue, NotFound, StorageError, UsageError
from taskyard.tasks import model
from taskyard.tasks.model import TaskStatus, labels_of
from taskyard.tasks.text import (
    JUST_DONE_MS,
    change_json,
    done_line,
    format_task_rows,
    hidden_line,
    sort_tasks,
    task_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.job_text import JobUsage
    from taskyard.tasks.model import Change, Lease, Listing, Task
    from taskyard.tasks.text import TaskRow
    from taskyard.yard import Yard


#: Lines shown of an acceptance command's output; the rest is in `--json`.
_LAST_LINES = 5


def _show_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="Task id.")


def _run_show(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.get(args.id)
        waits_for = open_blockers(yard, task)
        from taskyard.jobs.job_text import total_usage
        from taskyard.jobs.query import task_jobs

        took = total_usage(task_jobs(yard.home, f"{yard.tasks.name}/{task.id}"), now_ms())
        return answer(
            args,
            lambda: {**task_json(task, open_blockers=waits_for), "took": took.to_json()},
            lambda: _lines(args, yard, task, waits_for, took),
            ids=[task.id],
        )


def _lines(args: Args, yard: Yard, task: Task, waits_for: list[str], took: JobUsage) -> Iterator[str]:
    yield from format_rows(args, yard, [task])
    facts = [*_facts(yard, task, waits_for), *_extras(task)]
    if took.jobs:
        facts.append(("took", took.in_words()))
    width = max(len(name) for name, _ in facts)
    look_of = style(args)
    for name, value in facts:
        yield f"  {colorize(f'{name:<{width}}', 'muted', look_of)}  {value}"
    if task.description and task.description != task.subject:
        yield ""
        yield escape_control(task.description, lines=True)


def _facts(yard: Yard, task: Task, waits_for: list[str]) -> Iterator[tuple[str, str]]:
    yield "status", task.status.value.replace("_", " ") + (", quarantined" if task.is_held else "")
    if task.owner:
        yield "owner", escape_control(task.owner) + (_lease_text(task.lease) if task.lease else "")
    if waits_for:
        yield "waits for", _task_names(yard, waits_for)
    if task.blocks:
        yield "blocks", _task_names(yard, list(task.blocks))
    if task.active_form:
        yield "meanwhile", escape_control(task.active_form)
    now = now_ms()
    if task.created_at is not None:
        yield "created", f"{duration((now - task.created_at) / 1000)} ago"
    if task.updated_at is not None:
        yield "changed", f"{duration((now - task.updated_at) / 1000)} ago"


def _extras(task: Task) -> Iterator[tuple[str, str]]:
    if "priority" in task.extra:
        yield "priority", str(model.priority_of(task))
    for name, words in (
        ("labels", model.labels_of(task)),
        ("requires", model.requires_of(task)),
        ("paths", model.paths_of(task)),
    ):
        if words:
            yield name, escape_control(", ".join(words))
    if due := model.due_of(task):
        yield "due", escape_control(due)
    if parent := model.parent_of(task):
        yield "part of", f"#{parent}"
    if twin := model.external_of(task):
        yield "also", escape_control(f"{twin.system} {twin.id}" + (f"  {twin.url}" if twin.url else ""))
    if acceptance := model.acceptance_of(task):
        yield "accepted by", escape_control(acceptance.command)
    if (waits := as_object(task.extra.get("awaiting"))) is not None and not task.is_done:
        yield "waits for you", escape_control(f"{waits.get('reason')} (`taskyard trust {task.id}`)")
    if (evidence := as_object(task.extra.get("evidence"))) is not None:
        yield "evidence", _format_evidence(evidence)


def _format_evidence(found: dict[str, object]) -> str:
    output = escape_control(str(found.get("output", "")).strip(), lines=True).splitlines()[-_LAST_LINES:]
    return "\n    ".join([f"exit code {found.get('exit_code')}", *output])


def _lease_text(lease: Lease) -> str:
    if lease.expires is None:
        return f", since {duration((now_ms() - lease.since) / 1000)}"
    return f", for another {duration((lease.expires - now_ms()) / 1000)} unless renewed"


def _task_names(yard: Yard, ids: list[str]) -> str:
    found = ((task_id, find_task(yard, task_id)) for task_id in ids)
    return ", ".join(f"#{task_id} {escape_control(task.subject)}" if task else f"#{task_id}" for task_id, task in found)


SHOW = Command(
    _run_show,
    _show_arguments,
    "Show all details of a task.",
    examples=("taskyard task show 12", "taskyard task show 12 --json | jq .data.metadata"),
    exits=("4  no such task; the error suggests similar ids or a restore",),
)


#: Id prefixes of jobs that are not agents.
_COMMAND_PREFIXES = "bmrw"


def _listing_arguments(parser: Parser) -> None:
    parser.add("--all", action="store_true", help="Include completed tasks.")
    parser.add_words(
        "--status",
        metavar="STATUS",
        dest="status",
        help="Only tasks with this status: pending, in_progress or completed.",
    )
    parser.add("--owner", metavar="AGENT", help="Only tasks of this owner.")
    parser.add_words("--label", metavar="WORD", dest="labels", help="Only tasks with at least one of these labels.")
    parser.add("--ready", action="store_true", help="Only tasks that can be claimed now.")
    parser.add("--watch", action="store_true", help="Keep running and show changes live.")
    parser.add("--until-done", action="store_true", help="With --watch: exit when all tasks are completed.")


def _run_listing(args: Args) -> int:
    for status in args.status or ():
        if status not in TaskStatus._value2member_map_:
            raise BadValue("--status", status, "pending, in_progress or completed")
    with open_yard(args) as yard:
        if args.watch or args.until_done:
            return watch_tasks(args, yard)
        return show_tasks(args, yard, yard.tasks.list())


def show_tasks(args: Args, yard: Yard, listing: Listing) -> int:
    """Print the selected tasks."""
    rows = select_rows(args, listing, me=yard.agent, waits=waits_by_task(yard, listing))

    def data() -> object:
        return [{**task_json(row.task, open_blockers=row.waits_for), "held_up": row.held_up or None} for row in rows]

    def lines() -> Iterator[str]:
        yield from format_task_rows(rows, now=now_ms(), columns=columns(), style=style(args))
        if line := done_line(hidden_done(args, listing), style(args)):
            yield line

    if not rows and not hidden_done(args, listing):
        print_info(args, empty_text(args, yard, listing))
    damaged = [f"{found.file} cannot be read: {found.why}. `taskyard doctor` explains." for found in listing.damaged]
    return answer(args, data, lines, ids=(row.task.id for row in rows), warnings=damaged)


def waits_by_task(yard: Yard, listing: Listing) -> Mapping[str, str]:
    """Return what delays tasks in progress, according to the running jobs of agents."""
    if not any(task.status is TaskStatus.IN_PROGRESS for task in listing):
        return {}
    from taskyard.jobs.query import live_ids, peek
    from taskyard.ui.tasks import task_wait_notes

    found = (peek(yard.home, job_id) for job_id in live_ids(yard.home) if job_id[0] not in _COMMAND_PREFIXES)
    return task_wait_notes((job for job in found if job is not None), yard.tasks.name)


def select_rows(
    args: Args,
    listing: Listing,
    *,
    me: str | None,
    just_done: bool = False,
    waits: Mapping[str, str] | None = None,
) -> list[TaskRow]:
    """Return the selected rows in order. `just_done`: include recently completed tasks."""
    now = now_ms()
    unreadable = {found.file.removesuffix(".json") for found in listing.damaged}
    rows = sort_tasks(listing, now=now, me=me, unreadable=unreadable, waits=waits)
    return [row for row in rows if _matches(args, row) and _is_shown(args, row, just_done, now)]


def _is_shown(args: Args, row: TaskRow, just_done: bool, now: int) -> bool:
    if row.state != "done" or args.all or TaskStatus.COMPLETED in (args.status or ()):
        return True
    return just_done and now - (row.since or 0) <= JUST_DONE_MS


def _matches(args: Args, row: TaskRow) -> bool:
    task = row.task
    if args.status and task.status not in args.status:
        return False
    if args.owner is not None and (task.owner or "") != args.owner:
        return False
    if args.labels and not set(args.labels).intersection(labels_of(task)):
        return False
    return not args.ready or (row.state == "ready" and task.owner is None and not task.is_held)


def hidden_done(args: Args, listing: Listing) -> int:
    """Return how many completed tasks a plain listing leaves out."""
    if args.all or args.status or args.ready or args.labels or args.owner is not None:
        return 0
    return sum(task.is_done for task in listing)


def empty_text(args: Args, yard: Yard, listing: Listing) -> str:
    """Return the message for an empty listing."""
    if listing:
        return f"No matching tasks on list {yard.tasks.name!r}."
    return f"No tasks on list {yard.tasks.name!r}. Create one with `taskyard task add SUBJECT`."


LIST = Command(
    _run_listing,
    _listing_arguments,
    "List tasks: in progress, ready, blocked. Completed tasks are only counted; --all shows them.",
    examples=(
        "taskyard task list --ready",
        "taskyard task list --watch",
        "taskyard task list --all --json | jq -r '.data[] | [.id, .status, .subject] | @tsv'",
    ),
)


#: Tasks named per change; beyond this they are counted.
_MOST_NAMED = 5


def _log_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="Task id; default: the whole list.")
    parser.add("--last", type=integer, metavar="N", help="Only the last N changes.")
    parser.add("--all", action="store_true", help="Include changes of trackers, the hidden tasks of team members.")


def _run_log(args: Args) -> int:
    with open_yard(args) as yard:
        changes = yard.tasks.log(args.id)
        if args.id is not None and not changes:
            yard.tasks.get(args.id)  # raises TaskNotFound with the nearest ids
    hidden = 0
    if args.id is None and not args.all:
        shown = without_trackers(changes)
        hidden, changes = len(changes) - len(shown), shown
    if args.last is not None:
        changes = changes[-args.last :] if args.last > 0 else ()
    if hidden:
        counted = "1 change" if hidden == 1 else f"{hidden} changes"
        print_info(args, f"{counted} of trackers (hidden tasks of team members) not shown; use --all.")
    return answer(
        args,
        lambda: [change_json(change) for change in changes],
        lambda: [format_change(change, only=args.id) for change in changes],
        ids=(str(change.id) for change in changes),
    )


def format_change(change: Change, *, only: str | None = None) -> str:
    """Return a line such as `2026-05-01 17:03:20  ada  complete  #3 Port the importer`."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change.at / 1000))
    subjects = subjects_of(change)
    ids = [only] if only is not None and only in change.tasks else subjects
    cause = change.act.cause
    if only is not None and only not in subjects:  # a change of another task that also affected this one
        cause = f"with {cause} of {', '.join(f'#{task_id}' for task_id in subjects[:_MOST_NAMED])}:"
    named = ", ".join(_change_name(change, task_id) for task_id in ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    note = f"  ({escape_control(change.act.note)})" if change.act.note else ""
    undone = "  never took effect" if change.aborted else ""
    return f"{when}  {escape_control(change.act.by or '-')}  {escape_control(cause)}  {named}{more}{note}{undone}"


def subjects_of(change: Change) -> list[str]:
    """Return the tasks a change is about, without those whose dependencies merely changed with it."""
    ids = list(change.tasks)
    if change.act.cause in ("create", "restore"):
        return ids[:1]  # the new task is written first
    if change.act.cause in ("delete", "archive", "reset"):
        return [task_id for task_id in ids if change.tasks[task_id] is None] or ids
    return ids


def without_trackers(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes that concern more than trackers."""
    trackers: set[str] = set()
    shown: list[Change] = []
    for change in changes:
        trackers.update(task_id for task_id, task in change.tasks.items() if task is not None and task.is_internal)
        if not change.tasks or not trackers.issuperset(subjects_of(change)):
            shown.append(change)
    return tuple(shown)


def _change_name(change: Change, task_id: str) -> str:
    task = change.tasks[task_id]
    return f"#{task_id} {escape_control(task.subject)}" if task is not None else f"#{task_id} (gone)"


LOG = Command(
    _run_log,
    _log_arguments,
    "Print the changes of a task or of the whole list, oldest first: time, agent, change and reason.\n"
    "Changes by other programs are shown as `external`. Changes of trackers are omitted unless --all is given.",
    examples=("taskyard task log 12", "taskyard task log --last 20"),
)


#: Seconds: with no unfinished task no clock advances; only change events matter.
_IDLE_WAIT = 3600.0

_CLEAR = "\x1b[H\x1b[2J"


def watch_tasks(args: Args, yard: Yard) -> int:
    """Show the list until interrupted, or with `--until-done` until all tasks are completed."""
    drawing = is_terminal(sys.stdout) and not args.as_json
    position = yard.tasks.store.position()
    listing = yard.tasks.list()
    outage = OutageReporter(args, yard.lists)
    shown: object = None
    if not drawing:
        show_tasks(args, yard, listing)
        shown = tuple(listing)
    while True:
        if drawing:
            _draw(args, yard, listing, outage.trouble)
        sys.stdout.flush()
        if args.until_done and all(task.is_done for task in listing):
            return 0
        unfinished = any(not task.is_done for task in listing)
        yard.tasks.store.wait(yard.settings.poll_interval if unfinished else _IDLE_WAIT)
        found = outage.look(yard.tasks.list)
        listing = listing if found is None else found
        if args.as_json:
            if tuple(listing) != shown:
                show_tasks(args, yard, listing)
                shown = tuple(listing)
        elif not drawing and found is not None:
            news = outage.look(partial(yard.tasks.log, since=position)) or ()
            position = _print_changes(news) or position


def _print_changes(news: Sequence[Change]) -> int | None:
    """Print a line for each change; return the next position, if there were any."""
    for change in news:
        if not change.aborted:
            print_line(format_change(change))
    return news[-1].id + 1 if news else None


def _draw(args: Args, yard: Yard, listing: Listing, trouble: str) -> None:
    rows = select_rows(args, listing, me=yard.agent, just_done=True)
    room = max(3, _height() - (4 if trouble else 3))
    lines = format_task_rows(rows[:room], now=now_ms(), columns=columns(), style=style(args))
    left = [row for row in rows[room:] if row.state != "done"]
    if rest := hidden_line(row.task for row in left):
        lines.append(rest)
    done = hidden_done(args, listing) - sum(row.state == "done" for row in rows)
    if line := done_line(done, style(args)):
        lines.append(line)
    if trouble:
        lines.append(escape_control(trouble))
    sys.stdout.write(_CLEAR + "\n".join(lines or [empty_text(args, yard, listing)]) + "\n")


def _height() -> int:
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24


def _events_arguments(parser: Parser) -> None:
    parser.add("-f", "--follow", action="store_true", help="Keep printing new events.")
    parser.add("--since", metavar="CURSOR", help="Only events after this id or cursor.")
    parser.add("--all", action="store_true", help="Events of all lists.")
    parser.add("--now", action="store_true", help="With --follow: only new events.")


def _run_events(args: Args) -> int:
    if args.all and args.list is not None:
        raise UsageError("Give either --list NAME or --all.")
    if args.now and args.since is not None:
        raise UsageError("Give either --since CURSOR or --now.")
    with open_yard(args) as yard:
        stream = AllListEvents(args, yard) if args.all else ListEvents(args, yard)
        try:
            stream.tell()
            outage = OutageReporter(args, yard.lists)
            while args.follow:
                sys.stdout.flush()
                stream.wait()
                outage.look(stream.tell)
        finally:
            stream.close()
    return 0


class ListEvents:
    """The events of one list."""

    def __init__(self, args: Args, yard: Yard) -> None:
        self._yard = yard
        self._next = 0 if args.since is None else _next_position(args.since, self._yard.tasks.name)
        if args.now:
            self._yard.tasks.list()  # logs earlier changes by other programs
            self._next = self._yard.tasks.store.position()

    def tell(self) -> None:
        """Print the changes since the last call."""
        self._yard.tasks.list()  # imports changes by other programs
        for change in self._yard.tasks.log(since=self._next):
            self._next = change.id + 1
            if not change.aborted:
                _print_event(self._yard.tasks.name, change, str(change.id))

    def wait(self) -> None:
        """Sleep until something may have changed."""
        self._yard.tasks.store.wait(self._yard.settings.poll_interval)

    def close(self) -> None:
        """Do nothing: it has no resources of its own."""


class AllListEvents:
    """The events of every list, including lists created later."""

    def __init__(self, args: Args, yard: Yard) -> None:
        self._own = yard
        self._seen = _parse_cursor(args.since) if args.since is not None else {}
        self._yards: dict[str, Yard] = {}
        self._following = yard.lists.follow(debounce=yard.settings.debounce)
        if args.now:
            for name in yard.lists.names():
                tasks = self._yard(name).tasks
                tasks.list()
                self._seen[name] = tasks.store.position() - 1

    def tell(self) -> None:
        """Print the changes since the last call of all lists, oldest first."""
        news = [(change.at, name, change) for name in self._own.lists.names() for change in self._news(name)]
        for _, name, change in sorted(news, key=lambda item: item[0]):
            self._seen[name] = change.id
            if not change.aborted:
                _print_event(name, change, _format_cursor(self._seen))

    def _news(self, name: str) -> Iterator[Change]:
        tasks = self._yard(name).tasks
        tasks.list()
        yield from tasks.log(since=self._seen.get(name, -1) + 1)

    def _yard(self, name: str) -> Yard:
        if name not in self._yards:
            self._yards[name] = self._own.beside(name)
        return self._yards[name]

    def wait(self) -> None:
        """Sleep until something may have changed in any list, or a list is created."""
        self._following.wait(self._own.settings.poll_interval)

    def close(self) -> None:
        """Close every list."""
        for yard in self._yards.values():
            yard.close()
        self._following.close()


def _print_event(name: str, change: Change, cursor: str) -> None:
    import json

    body = {"schema_version": SCHEMA_VERSION, "cursor": cursor, "list": name, **change_json(change)}
    print_line(json.dumps(body))


def _next_position(cursor: str, name: str) -> int:
    """Return the position to resume at in one list."""
    if cursor.isascii() and cursor.isdigit():
        return int(cursor) + 1
    return _parse_cursor(cursor).get(name, -1) + 1


def _format_cursor(seen: dict[str, int]) -> str:
    return ",".join(f"{name}:{place}" for name, place in sorted(seen.items()))


def _parse_cursor(cursor: str) -> dict[str, int]:
    places: dict[str, int] = {}
    for part in filter(None, cursor.split(",")):
        name, _, place = part.rpartition(":")
        if not name or folder_name("a list", name) != name or not place.removeprefix("-").isdecimal():
            raise BadValue("--since", cursor, "an id, or the cursor of an earlier line")
        places[name] = int(place)
    return places


EVENTS = Command(
    _run_events,
    _events_arguments,
    "Print events of a list as one JSON object per line, oldest first. Pass the `cursor` of a line to --since "
    "to\n"
    "continue after it.",
    examples=(
        "taskyard task events -f",
        'taskyard task events --all --since "$(cat cursor)"',
        "taskyard task events | jq -c '[.id, .by, .cause]'",
    ),
)


_EXTENSIONS = {".json": "json", ".md": "markdown", ".markdown": "markdown", ".csv": "csv"}
_IMPORT_FORMATS = ("json", "markdown", "csv")
_NOTHING = "No tasks imported: all tasks of the file are already on the list."
_EXPORT_FORMATS = (*_IMPORT_FORMATS, "dot", "mermaid")


def _import_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="File to import; - reads standard input.")
    parser.add(
        "--format", choices=_IMPORT_FORMATS, help="File format; default: by file extension, json for standard input."
    )
    parser.add(
        "--keep-ids",
        action="store_true",
        help="Restore an exported list into an empty list, keeping ids and timestamps.",
    )


def _import(args: Args) -> int:
    text = _read_text(args.file)  # first: a missing file is reported before its unknown extension
    format = args.format or _EXTENSIONS.get(os.path.splitext(args.file)[1].lower())
    if format is None:
        if args.file != "-":
            raise UsageError(f"Unknown format of {args.file!r}: add --format {'|'.join(_IMPORT_FORMATS)}.")
        format = "json"
    with open_yard(args) as yard:
        added = yard.tasks.import_(text, format, keep_ids=args.keep_ids)
        if args.keep_ids and added:
            count = "1 task" if len(added) == 1 else f"{len(added)} tasks"
            print_info(
                args, f"List {yard.tasks.name!r} now has {count}, with original ids, timestamps and dependencies."
            )
        return answer_tasks(args, yard, added, nothing=_NOTHING)


def _read_text(path: str) -> str:
    from taskyard.tasks.formats.exchange import LARGEST_TEXT

    try:
        if path == "-":
            data = sys.stdin.buffer.read(LARGEST_TEXT + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(LARGEST_TEXT + 1)
    except FileNotFoundError:
        raise NotFound(f"File {path!r} does not exist.") from None
    except OSError as error:
        raise StorageError(path, error.strerror or str(error)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadText("file", "is not valid UTF-8") from None


def _export_arguments(parser: Parser) -> None:
    parser.add("--format", choices=_EXPORT_FORMATS, default="json", help="Output format; json (default) is lossless.")


def _export(args: Args) -> int:
    with open_yard(args) as yard:
        text = yard.tasks.export(args.format)
    lines = [text.rstrip("\n")]
    return answer(args, lambda: {"format": args.format, "text": text}, lambda: lines, ids=lines)


IMPORT = Command(
    _import,
    _import_arguments,
    "Import the tasks of a file that are not on the list yet, with their dependencies. Importing twice adds "
    "nothing.\n"
    "Hooks run for each task, as for `task add`. --keep-ids moves a whole list from one store to another: an "
    "empty\n"
    "list becomes the exported list in one step.",
    examples=(
        "taskyard task import plan.md",
        "taskyard task export --list old | taskyard task import - --list new",
        "taskyard task export | TASKYARD_STORE=postgresql://db.example/yard taskyard task import - --keep-ids",
    ),
    exits=(
        "2  the file is not valid in that format; the error says where",
        "4  the file does not exist",
        "5  the dependencies form a cycle, a hook refused a task, or the list is not empty (--keep-ids)",
    ),
)
EXPORT = Command(
    _export,
    _export_arguments,
    "Export the whole list as JSON, a Markdown checklist, CSV, or a graph in DOT or Mermaid.",
    examples=("taskyard task export --format markdown > plan.md", "taskyard task export --format dot | dot -Tsvg"),
)
