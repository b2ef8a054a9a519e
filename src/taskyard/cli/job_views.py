"""`taskyard ps`, `logs` and `events`: list jobs, print their output, print the event stream.

`ps` shows jobs as a tree, each with its last line of output. With `--watch` on a terminal the screen is redrawn
on changes (inotify on the folders of all running jobs) and every second for the clocks. Elsewhere the rows are
printed once, then a line for each job that started, ended or changed its state; with `--json`, the whole result
each time.

`logs` writes only readable text to a terminal: no escape sequence but colours, no control character. `--raw`
writes the bytes unchanged to a pipe or a file. Notes about the output go to stderr.

`events` prints a line per event, or JSON: existing ones as one document, with `--follow` one document per line.
"""

from __future__ import annotations

import os
import select
import sys
import time

from taskyard import config, yard
from taskyard.cli.job import open_user_jobs
from taskyard.cli.main import Command
from taskyard.cli.output import (
    SCHEMA_VERSION,
    answer,
    columns,
    is_terminal,
    print_info,
    print_json,
    print_line,
    style,
    warn,
)
from taskyard.cli.parser import integer
from taskyard.core.system import now_ms
from taskyard.core.text import colorize, escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.errors import BadValue, Damaged, JobNotFound, UsageError
from taskyard.jobs.agent_reports import agent_line
from taskyard.jobs.events import SUBTYPES, to_json
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.job_text import JobRow, format_rows, state_text, status_line, subtree_usage, walk_tree
from taskyard.jobs.model import is_job_id, job_json
from taskyard.jobs.output import CHUNK, Output, TerminalText, for_terminal, whole_utf8_size
from taskyard.jobs.query import find_folder, latest_resume, read_job, with_descendants
from taskyard.jobs.wait import wait
from taskyard.storage.inotify import Inotify
from taskyard.ui.jobs import JobScope, ScopedJobs, status_summary
from taskyard.ui.output import read_last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.events import Event, Events
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.model import Job
    from taskyard.jobs.output import OutputChunk
    from taskyard.jobs.query import Report
    from taskyard.postgres.relay.jobs import RemoteHostOutput


_NONE = "No job is running. Start one: taskyard run -d -- COMMAND; --all shows ended jobs."


def _ps_arguments(parser: Parser) -> None:
    parser.add("-a", "--all", action="store_true", help="Include ended jobs.")
    parser.add("-e", "--everywhere", action="store_true", help="Show jobs of all projects, not only of this one.")
    parser.add("--dismissed", action="store_true", help="With --all: include dismissed jobs.")
    parser.add("--host", metavar="HOST", help="Only jobs on this machine, if several machines share a database.")
    parser.add("--watch", action="store_true", help="Keep running and show changes live.")


def _run_ps(args: Args) -> int:
    jobs = open_user_jobs(args)
    if args.watch:
        return watch_jobs(args, jobs)
    wrong: list[str] = []
    return show_jobs(args, jobs, list_jobs(args, jobs, report=lambda error: wrong.append(str(error))), wrong)


def list_jobs(args: Args, jobs: Jobs, *, report: Report | None = None) -> ScopedJobs:
    """Return the selected jobs."""
    found = [job for job in jobs.list(ended=args.all, report=report) if args.host in (None, job.host_name)]
    is_everywhere = args.everywhere or args.host is not None
    return JobScope("" if is_everywhere else config.current_project(), dismissed=args.dismissed).of(found)


def show_jobs(args: Args, jobs: Jobs, scoped: ScopedJobs, wrong: Sequence[str] = ()) -> int:
    """Print jobs once. Last lines are read only if shown; `wrong` names unreadable jobs."""
    found = scoped.jobs
    if not found and not wrong:
        print_info(args, _NONE if not args.all else "No job was started in this project.")
    if scoped.elsewhere:
        print_info(args, others_text(scoped.elsewhere))
    return answer(
        args,
        lambda: [
            {**job_json(row.job), "last_line": row.last_line, "total": row.total.to_json()}
            for row in tree_rows(jobs, found)
        ],
        lambda: [*format_jobs(args, tree_rows(jobs, found)), *footer(args, found)],
        ids=(job.id for _, job in walk_tree(found)),
        warnings=wrong,
    )


def others_text(count: int) -> str:
    """Return the note about jobs of other projects that a view leaves out."""
    return f"{count} more in other projects: `taskyard ps --everywhere`."


def format_jobs(args: Args, rows: Sequence[JobRow]) -> list[str]:
    """Return jobs as rows for this terminal."""
    return format_rows(rows, now=now_ms(), columns=columns(), style=style(args))


def footer(args: Args, found: Sequence[Job]) -> list[str]:
    """Return the summary of background jobs on a terminal; programs that read rows get no extra line."""
    words = status_summary(found, now=now_ms()).in_words() if is_terminal(sys.stdout) else ""
    return [colorize(words, "muted", style(args))] if words else []


def tree_rows(jobs: Jobs, found: Sequence[Job], *, most: int | None = None) -> list[JobRow]:
    """Return the first `most` jobs as a tree, with the last line of output and the usage including child jobs."""
    rows = list(walk_tree(found))[:most]
    totals = subtree_usage(with_descendants(jobs.home, found), now_ms())
    return [JobRow(job, depth, _last_line(jobs.home, job), totals[job.id]) for depth, job in rows]


def _last_line(home: str, job: Job) -> str:
    if (line := agent_line(job)) is not None:
        return line
    # The output of a job on another host is there: `taskyard logs` reads it.
    return "" if job.is_on_other_host else read_last_line(home, job.id)


PS = Command(
    _run_ps,
    _ps_arguments,
    "List the jobs of this project: state, run time, cost including child jobs, description, and last line of "
    "output.\n"
    "Child jobs are indented below their parent. If machines share a database, jobs of all machines are "
    "listed; jobs\n"
    "of a machine that has stopped sending heartbeats are `disconnected`.",
    examples=(
        "taskyard ps",
        "taskyard ps --watch",
        "taskyard ps --host forge",
        "taskyard ps --all --json | jq -r '.data[] | [.id, .status] | @tsv'",
    ),
)


#: Seconds between two drawings: clocks advance each second, and a flood of output must not cause one of
#: redraws.
_DRAW_INTERVAL, _MIN_INTERVAL = 1.0, 0.2

#: Poll interval in seconds where nothing is drawn: a killed supervisor causes no file event.
_POLL_INTERVAL = 5.0

#: Poll interval in seconds before the first job: there is no folder to watch yet.
_FIRST_POLL = 0.5

_CLEAR = "\x1b[H\x1b[2J"


def watch_jobs(args: Args, jobs: Jobs) -> int:
    """Show the jobs until interrupted."""
    drawing = is_terminal(sys.stdout) and not args.as_json
    news = _JobWatcher(jobs.home)
    wrong: list[str] = []
    found = list_jobs(args, jobs, report=lambda error: wrong.append(str(error)))
    if not drawing:
        show_jobs(args, jobs, found, wrong)
    while True:
        if drawing:
            _draw(args, jobs, found.jobs)
        sys.stdout.flush()
        news.wait(found.jobs, _DRAW_INTERVAL if drawing else _POLL_INTERVAL)
        before, found = found, list_jobs(args, jobs)
        if args.as_json:
            if found != before:
                show_jobs(args, jobs, found)
        elif not drawing:
            _print_changes(args, jobs, {job.id: job for job in before.jobs}, found.jobs)


def _print_changes(args: Args, jobs: Jobs, before: Mapping[str, Job], found: Sequence[Job]) -> None:
    """Print a line for each changed job; those missing from the list have ended."""
    here = {job.id for job in found}
    over = [jobs.get(job_id) for job_id in before if job_id not in here]
    for job in (*over, *found):
        was = before.get(job.id)
        if was is None or state_text(was) != state_text(job):
            print_line(status_line(job, style(args)))


def _draw(args: Args, jobs: Jobs, found: Sequence[Job]) -> None:
    room = max(3, _height() - 3)
    look = style(args)
    lines = format_jobs(args, tree_rows(jobs, found, most=room))
    if len(found) > room:
        lines.append(colorize(f"… {len(found) - room} more", "muted", look))
    clock = time.strftime("%H:%M:%S", time.localtime(now_ms() / 1000))
    words = status_summary(found, now=now_ms()).in_words() or "no background jobs are running"
    head = colorize(f"{clock}  {words}; Ctrl+C closes this view, jobs keep running", "muted", look)
    sys.stdout.write(_CLEAR + "\n".join([head, *lines]) + "\n")


def _height() -> int:
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24


class _JobWatcher:
    """Sleeps until a job changes or a new one starts."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._events = Inotify()
        self._followed: dict[str, int] = {}
        self._is_on = False

    def wait(self, living: Sequence[Job], seconds: float) -> None:
        """Sleep until one of these jobs changes or another starts, at most `seconds`; bursts are collected."""
        self._follow({job.id for job in living if not job.is_final})
        if select.select([self._events.fd], [], [], seconds if self._is_on else min(seconds, _FIRST_POLL))[0]:
            time.sleep(_MIN_INTERVAL)
            self._events.read()

    def _follow(self, wanted: set[str]) -> None:
        if not self._is_on:
            self._is_on = self._add("", f"{self._home}/jobs")
        for job_id in wanted - self._followed.keys():
            self._add(job_id, JobPaths(self._home, job_id).path)
        for job_id in self._followed.keys() - wanted - {""}:
            self._events.remove(self._followed.pop(job_id))

    def _add(self, name: str, folder: str) -> bool:
        try:
            self._followed[name] = self._events.add(folder)
        except OSError:
            return False  # not there (yet), or no inotify watches left: polling suffices
        return True


#: Maximum bytes of one JSON result, which is built in memory; continue with `next_offset`.
MAX_JSON = 1024 * 1024

#: Maximum bytes of a line; a longer one is processed in pieces.
_MAX_LINE = 1024 * 1024


class _PartialBuffer:
    """Buffers bytes that must not be split: a line for a pattern, a character for JSON."""

    def __init__(self, whole: Callable[[bytes], int]) -> None:
        self._whole = whole
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """Return the complete part of the buffered and new bytes."""
        text = self.rest + data
        at = self._whole(text) or (len(text) if len(text) >= _MAX_LINE else 0)
        self.rest = text[at:]
        return text[:at]

    def flush(self) -> bytes:
        """Return the rest of the buffer."""
        rest, self.rest = self.rest, b""
        return rest


def _whole_lines(data: bytes) -> int:
    return data.rfind(b"\n") + 1


def _matching(pattern: re.Pattern[str], data: bytes) -> list[bytes]:
    """Return the lines whose visible text matches the pattern."""
    return [line for line in data.splitlines(keepends=True) if pattern.search(for_terminal(line).rstrip("\n"))]


class TextPrinter:
    """Prints chunks as safe text, or unchanged."""

    def __init__(self, args: Args, pattern: re.Pattern[str] | None) -> None:
        self._raw = args.raw
        self._quiet = args.quiet
        self._style = style(args, sys.stderr)
        self._pattern = pattern
        self._held = _PartialBuffer(_whole_lines)
        self._text = TerminalText(colours=style(args).colour)

    def show(self, part: OutputChunk) -> None:
        """Print a new chunk."""
        if part.restarted:
            print_note("the job truncated its output: from its new beginning")
        if part.omitted:
            print_note(f"{part.omitted:,} bytes were left out here: the output was larger than its cap")
        self._print(part.text if self._pattern is None else self._held.feed(part.text))

    def finish(self) -> None:
        """Print the rest of the buffer."""
        self._print(self._held.flush())
        if not self._raw:
            _write(self._text.finish())

    def print_end(self, job: Job) -> None:
        """Print how the followed job ended."""
        from taskyard.jobs.job_text import status_line

        if not self._quiet:
            sys.stdout.flush()
            sys.stderr.write(status_line(job, self._style) + "\n")

    def _print(self, data: bytes) -> None:
        if self._pattern is not None:
            data = b"".join(_matching(self._pattern, data))
        if self._raw:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:
            _write(self._text.feed(data))


class JsonPrinter:
    """Prints chunks as JSON results, each with its offset and the next one."""

    def __init__(self, args: Args, pattern: re.Pattern[str] | None, *, is_over: bool, ended: Callable[[], Job]) -> None:
        """`ended` returns the exit of an ended job."""
        self._id = args.job
        self._ended = ended
        self._is_over = is_over
        self._raw = args.raw
        self._follows = args.follow
        self._pattern = pattern
        self._held = _PartialBuffer(whole_utf8_size if pattern is None else _whole_lines)
        self._next = 0

    def show(self, part: OutputChunk) -> None:
        """Print new output up to the last complete character; with a pattern, up to the last complete line."""
        if part.restarted or part.omitted:
            self.finish()  # the buffered part has no continuation
        begin = part.offset - len(self._held.rest)
        data = self._held.feed(part.text)
        if not self._follows and (not data or (self._is_over and len(part.text) < MAX_JSON)):
            data += self._held.flush()  # nothing will complete it, or it would never be printed
        self._next = begin + len(data)
        is_last = self._is_over and not self._follows and len(part.text) < MAX_JSON
        ended = self._ended() if is_last else None
        self._answer(data, begin, omitted=part.omitted, restarted=part.restarted, ended=ended)

    def finish(self) -> None:
        """Print the rest of the buffer if following: no more output comes."""
        if self._follows and (data := self._held.flush()):
            self._answer(data, self._next)
            self._next += len(data)

    def print_end(self, job: Job) -> None:
        """Print a last result without text: how the job ended."""
        self._answer(b"", self._next, ended=job)

    def _answer(
        self, data: bytes, begin: int, *, omitted: int = 0, restarted: bool = False, ended: Job | None = None
    ) -> None:
        kept = data if self._pattern is None else b"".join(_matching(self._pattern, data))
        print_json(
            {
                "data": {
                    "id": self._id,
                    "offset": begin,
                    "next_offset": begin + len(data),
                    "omitted": omitted,
                    "restarted": restarted,
                    "text": kept.decode("utf-8", "replace") if self._raw else for_terminal(kept),
                    "ended": None if ended is None else job_json(ended),
                }
            }
        )


def _write(text: str) -> None:
    """Write text to stdout in any encoding."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def print_note(text: str) -> None:
    """Print a note about the output to stderr."""
    sys.stdout.flush()  # keeps the note in order with the output
    sys.stderr.write(f"[{text}]\n")


#: Seconds to wait for the exit record of a job whose supervisor was killed.
_EXIT_RECORD_WAIT = 5.0


def _logs_arguments(parser: Parser) -> None:
    parser.add("job", metavar="JOB", help="Job id, id prefix, name, or `last`.")
    parser.add("--tail", type=integer, metavar="N", help="Only the last N lines.")
    parser.add(
        "--from", dest="offset", type=integer, metavar="OFFSET", help="Start at this byte offset: a `next_offset`."
    )
    parser.add("-f", "--follow", action="store_true", help="Keep printing output until the job has ended.")
    parser.add("--grep", metavar="RE", help="Only lines that match this regular expression.")
    parser.add("--raw", action="store_true", help="Print the bytes unmodified; not allowed on a terminal.")


def _run_logs(args: Args) -> int:
    pattern = _check_logs_args(args)
    if not is_job_id(args.job):
        from taskyard.cli.job import open_user_jobs, resolve_job_id

        args.job = resolve_job_id(open_user_jobs(args), args.job)
    try:
        source: _LocalOutput | RemoteHostOutput = _LocalOutput(Output(find_folder(config.home(), args.job)))
    except JobNotFound as missing:
        source = _remote_output(missing)
    is_over = source.is_over  # checked before anything is read
    wrong = None if is_over else source.damage()
    if args.as_json:
        shown: JsonPrinter | TextPrinter = JsonPrinter(args, pattern, is_over=is_over, ended=source.ended)
        parts = _parts(args, source) if args.follow else iter([_one_part(args, source)])
    else:
        shown, parts = TextPrinter(args, pattern), _parts(args, source)
    for part in parts:
        shown.show(part)
        if args.follow:
            sys.stdout.flush()
    shown.finish()
    if not (args.follow or args.as_json or args.quiet) and not source.end():
        print_note("it printed nothing" if is_over else "it has printed nothing so far")
    if wrong is not None:
        warn(str(wrong))
    if args.follow:
        shown.print_end(source.ended())
        if not (args.as_json or args.quiet) and (later := latest_resume(config.home(), args.job)) is not None:
            print_note(f"{later} continues its work: `taskyard logs -f {later}`")
    return 0


def _remote_output(missing: JobNotFound) -> RemoteHostOutput:
    """Return the output of a job on another host.

    Raises:
        JobNotFound: no host knows it.
    """
    from taskyard import yard

    settings = config.load_settings()
    if not yard.is_replicated(settings):
        raise missing
    return yard.open_remote_output(config.home(), settings, missing.job_id)


class _LocalOutput(NamedTuple):
    """The output of a job on this host."""

    output: Output

    @property
    def is_over(self) -> bool:
        return os.path.lexists(self.output.folder.end)

    def damage(self) -> Damaged | None:
        return _damage(self.output)

    def end(self) -> int:
        return self.output.end()

    def read(self, offset: int, most: int) -> OutputChunk:
        return self.output.read(offset, most)

    def tail(self, lines: int) -> OutputChunk:
        return self.output.tail(lines)

    def follow(self, offset: int, *, debounce: float) -> Iterator[OutputChunk]:
        from taskyard.jobs.output import follow_output

        return follow_output(self.output, offset, debounce=debounce)

    def ended(self) -> Job:
        return wait(config.home(), self.output.folder.id, _EXIT_RECORD_WAIT)


def _damage(output: Output) -> Damaged | None:
    """Return the damage of a job that has no supervisor and no readable record.

    Raises:
        Damaged: the same, if there is no output to show.
    """
    if supervisor_pid(output.folder) is None:
        try:
            read_job(output.folder.home, output.folder.id)
        except Damaged as error:
            if not output.end():
                raise
            return error
    return None


def _check_logs_args(args: Args) -> re.Pattern[str] | None:
    for name, value in (("--tail", args.tail), ("--from", args.offset)):
        if value is not None and value < 0:
            raise BadValue(name, value, "a number from 0")
    if args.tail is not None and args.offset is not None:
        raise UsageError("Give either --tail N or --from OFFSET.")
    if args.raw and not args.as_json and is_terminal(sys.stdout):
        raise UsageError("--raw may write terminal control sequences: redirect the output to a file or a pipe.")
    if args.grep is None:
        return None
    import re

    try:
        return re.compile(args.grep)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadValue("--grep", args.grep, f"a regular expression ({error})") from None


def _parts(args: Args, source: _LocalOutput | RemoteHostOutput) -> Iterator[OutputChunk]:
    """Yield existing output, then new output if following."""
    offset = args.offset or 0
    if args.tail is not None:
        yield (part := source.tail(args.tail))
        offset = part.next_offset
    if args.follow:
        yield from source.follow(offset, debounce=config.load_settings().debounce)
    elif args.tail is None:
        yield from _until_now(source, offset)


def _until_now(source: _LocalOutput | RemoteHostOutput, offset: int) -> Iterator[OutputChunk]:
    """Yield chunks up to the current end: output that grows faster than it is read must not loop forever."""
    end = source.end()
    while True:
        part = source.read(offset, min(CHUNK, max(end - offset, 1)))
        offset = part.next_offset
        yield part
        if not part.text or offset >= end:
            return


def _one_part(args: Args, source: _LocalOutput | RemoteHostOutput) -> OutputChunk:
    if args.tail is not None:
        return source.tail(args.tail)
    return source.read(args.offset or 0, MAX_JSON)


LOGS = Command(
    _run_logs,
    _logs_arguments,
    "Print the output of a job, of any agent, also after its end; with --follow until it has ended. Terminal "
    "control\n"
    "sequences except colours are removed; --raw keeps them. With --json the result is one object of at most "
    "1 MB,\n"
    "whose `next_offset` can be passed to --from; with --follow one object per line, the last of which says "
    "how\n"
    "the job `ended`.",
    examples=(
        "taskyard logs b3k9x0q2m --tail 20 -f",
        "taskyard logs b3k9x0q2m --grep 'error|warning'",
        "taskyard logs b3k9x0q2m --from 4096 --json",
    ),
    exits=("4  no such job, or gc deleted its output",),
)


_PREFIX = "task_"

#: Maximum digits of an event id.
_MAX_ID_DIGITS = 18


def _events_arguments(parser: Parser) -> None:
    parser.add("-f", "--follow", action="store_true", help="Keep printing events; with --job, until the job has ended.")
    parser.add("--since", type=_event_id, metavar="EVENT", help="Only events after this event id.")
    parser.add("--now", action="store_true", help="With --follow: only new events.")
    parser.add("--last", type=integer, metavar="N", help="Only the last N events.")
    parser.add("--job", metavar="JOB", help="Only events of this job.")
    parser.add(
        "--socket",
        nargs="?",
        const="",
        metavar="PATH",
        help="Serve events on a Unix socket until interrupted; default: $TASKYARD_HOME/events.sock.",
    )
    parser.add_words("--type", metavar="TYPE", dest="types", help="Only these types: started, progress, notification.")


def _run_events(args: Args) -> int:
    types = _check_events_args(args)
    since = args.since
    settings = config.load_settings()
    if args.socket is not None:
        return _serve(args, settings.debounce)
    if args.now:
        since = yard.open_events(config.home(), settings).skip()
    events = yard.open_events(config.home(), settings, since, follow=args.follow, job=args.job)
    wanted = (event for event in events if not types or event.subtype in types)
    if args.follow:
        for event in wanted:
            _print_one(args, event)
            sys.stdout.flush()
    else:
        _print_all(args, wanted if args.last is None else _last(wanted, args.last), events)
    if events.unreadable and not args.as_json:
        warn(_unreadable_text(events))
    return 0


def _serve(args: Args, debounce: float) -> int:
    """Serve events on a Unix socket until a signal."""
    import os
    import signal

    from taskyard.core.files import make_private_folder
    from taskyard.jobs.event_socket import EventSocket

    home = config.home()
    path = os.path.abspath(args.socket or os.path.join(home, "events.sock"))
    make_private_folder(home)
    with EventSocket(home, path, debounce=debounce) as server:

        def stop(number: int, frame: object) -> None:
            server.close()

        signal.set_wakeup_fd(server.wake_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        answer(args, lambda: {"socket": path}, lambda: [f"Serving events at {escape_control(path)}."], ids=[path])
        sys.stdout.flush()
        server.serve()
        signal.set_wakeup_fd(-1)
    return 0


def _event_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_ID_DIGITS):
        raise BadValue("--since", text, "the id of an event, as `taskyard events` shows it, or 0")
    return int(text)


def _check_events_args(args: Args) -> Collection[str]:
    """Return the wanted event types."""
    if args.list is not None:
        raise UsageError(
            "`taskyard events` shows events of jobs, not of a list. "
            f"See `taskyard task events --list {escape_control(args.list)}`."
        )
    if args.socket is not None and (args.follow or args.now or args.job or args.types or args.since is not None):
        raise UsageError("--socket cannot be combined with other options: each client sends its own filters.")
    if args.now and (args.since is not None or not args.follow):
        raise UsageError("--now requires --follow and excludes --since.")
    if args.last is not None and (args.follow or args.last < 0):
        raise UsageError("--last N takes a number from 0 and excludes --follow.")
    types = [f"{_PREFIX}{name.removeprefix(_PREFIX)}" for name in args.types or ()]
    for name in types:
        if name not in SUBTYPES:
            raise BadValue("--type", name.removeprefix(_PREFIX), _join_types(SUBTYPES))
    return types


def _join_types(names: Iterable[str]) -> str:
    return " or ".join(name.removeprefix(_PREFIX) for name in names)


def _last(events: Iterable[Event], count: int) -> Iterable[Event]:
    from collections import deque

    return deque(events, maxlen=count)


def _print_all(args: Args, wanted: Iterable[Event], events: Events) -> None:
    """Print existing events. JSON is streamed: there may be a million."""
    if not args.as_json:
        found = False
        for event in wanted:
            _print_one(args, event)
            found = True
        if not found:
            print_info(args, "No events.")
        return
    import json

    sys.stdout.write(f'{{"schema_version": {SCHEMA_VERSION}, "data": [')
    for number, event in enumerate(wanted):
        sys.stdout.write((", " if number else "") + json.dumps(to_json(event)))
    more = f', "warnings": {json.dumps([_unreadable_text(events)])}' if events.unreadable else ""
    sys.stdout.write(f"]{more}}}\n")


def _print_one(args: Args, event: Event) -> None:
    if args.as_json:
        print_json({"data": to_json(event)})
    else:
        print_line(str(event.id) if args.quiet else _format_event(event))


def _format_event(event: Event) -> str:
    """Return a line such as `1187  2026-11-16 17:03:20  b3k9x0q2m  started    npm test`."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at / 1000))
    what = as_text(event.data.get("status")) if event.is_end else event.subtype.removeprefix(_PREFIX)
    if event.data.get("needs_input") is True:
        what = "waits"
    if event.data.get("rate_limited"):
        what = "pending"
    if isinstance(cut_off := event.data.get("disconnected"), bool):
        what = "cut off" if cut_off else "is back"
    words = "  ".join(filter(None, map(escape_control, _event_details(event))))
    return f"{event.id}  {when}  {event.task_id}  {escape_control(what):<9}  {words}".rstrip()


def _event_details(event: Event) -> Iterator[str]:
    yield as_text(event.data.get("summary")) or as_text(event.data.get("description"))
    yield as_text(event.data.get("last_tool_name"))
    yield as_text(event.data.get("why"))
    yield as_text(event.data.get("rate_limited")).removeprefix("pending: ")
    if event.data.get("needs_input") is True:
        yield as_text(event.data.get("question"))
    usage = as_object(event.data.get("usage")) or {}
    for name, unit in (("total_tokens", "tokens"), ("tool_uses", "tool uses")):
        if usage.get(name):
            yield f"{usage[name]} {unit}"


def _unreadable_text(events: Events) -> str:
    lines = "1 line" if events.unreadable == 1 else f"{events.unreadable} lines"
    return f"Skipped {lines} of the event log that could not be read."


EVENTS = Command(
    _run_events,
    _events_arguments,
    "Print events of background jobs, oldest first: start, progress, end. Each event has an id; --since EVENT "
    "continues\n"
    "after that event, also across restarts. If events after it are no longer kept, the command fails instead "
    "of\n"
    "skipping them. For events of tasks see `taskyard task events`.",
    examples=(
        "taskyard events -f",
        "taskyard events --job b3k9x0q2m",
        'taskyard events -f --json --type notification --since "$(cat last)"',
        "taskyard events --socket /run/user/1000/events.sock",
    ),
    exits=("4  no such job, or events after --since are no longer kept",),
)
