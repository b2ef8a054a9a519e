"""
`taskyard events`: what happens to jobs, in order, from any id on.

A line for people, or JSON: all that is there as one document, with `--follow` one document a line.
"""

from __future__ import annotations

import sys
import time

from taskyard import config, paths
from taskyard.cli.command import Command
from taskyard.cli.output import SCHEMA_VERSION, answer, print_json, print_line, say, warn
from taskyard.cli.values import whole
from taskyard.errors import BadValue, UsageError
from taskyard.relay import door
from taskyard.runtime.events import SUBTYPES, to_json
from taskyard.shapes import as_object, as_text
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.events import Event, Events

_PREFIX = "task_"

#: More digits than any position has.
_LONGEST_ID = 18


def _arguments(parser: Parser) -> None:
    parser.add("-f", "--follow", action="store_true", help="Stay, and tell what happens; of one job, until its end.")
    parser.add("--since", type=_event_id, metavar="EVENT", help="Only what came after this event.")
    parser.add("--now", action="store_true", help="With --follow: only what happens from now on.")
    parser.add("--last", type=whole, metavar="N", help="Only the last N that are there.")
    parser.add("--job", metavar="JOB", help="Only of this job.")
    parser.add(
        "--socket",
        nargs="?",
        const="",
        metavar="PATH",
        help="Tell every program that connects to a Unix socket, until interrupted; $TASKYARD_HOME/events.sock.",
    )
    parser.add_words("--type", metavar="TYPE", dest="types", help="Only started, progress or notification; or several.")


def _run(args: Args) -> int:
    types = _checked(args)
    since = args.since
    settings = config.load()
    if args.socket is not None:
        return _serve(args, settings.debounce)
    if args.now:
        since = door.events(paths.home(), settings).skip()
    events = door.events(paths.home(), settings, since, follow=args.follow, job=args.job)
    wanted = (event for event in events if not types or event.subtype in types)
    if args.follow:
        for event in wanted:
            _print_one(args, event)
            sys.stdout.flush()
    else:
        _print_all(args, wanted if args.last is None else _last(wanted, args.last), events)
    if events.unreadable and not args.as_json:
        warn(_passed_over(events))
    return 0


def _serve(args: Args, debounce: float) -> int:
    """Answer whoever connects, until a signal says that it is enough."""
    import os
    import signal

    from taskyard.disk.files import make_private_folder
    from taskyard.runtime.event_socket import EventSocket

    home = paths.home()
    path = os.path.abspath(args.socket or os.path.join(home, "events.sock"))
    make_private_folder(home)
    with EventSocket(home, path, debounce=debounce) as server:

        def stop(number: int, frame: object) -> None:
            server.close()

        signal.set_wakeup_fd(server.wake_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        answer(args, lambda: {"socket": path}, lambda: [f"Events are told at {safe(path)}."], ids=[path])
        sys.stdout.flush()
        server.serve()
        signal.set_wakeup_fd(-1)
    return 0


def _event_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID):
        raise BadValue("--since", text, "the id of an event, as `taskyard events` shows it, or 0")
    return int(text)


def _checked(args: Args) -> Collection[str]:
    """The kinds of events that are wanted."""
    if args.list is not None:
        raise UsageError(f"Events are of jobs, not of a list. See `taskyard task events --list {safe(args.list)}`.")
    if args.socket is not None and (args.follow or args.now or args.job or args.types or args.since is not None):
        raise UsageError("--socket goes alone: each program that connects says what it wants to hear.")
    if args.now and (args.since is not None or not args.follow):
        raise UsageError("--now goes with --follow, and without --since.")
    if args.last is not None and (args.follow or args.last < 0):
        raise UsageError("--last N takes a number from 0, and no --follow.")
    types = [f"{_PREFIX}{name.removeprefix(_PREFIX)}" for name in args.types or ()]
    for name in types:
        if name not in SUBTYPES:
            raise BadValue("--type", name.removeprefix(_PREFIX), _either(SUBTYPES))
    return types


def _either(names: Iterable[str]) -> str:
    return " or ".join(name.removeprefix(_PREFIX) for name in names)


def _last(events: Iterable[Event], count: int) -> Iterable[Event]:
    from collections import deque

    return deque(events, maxlen=count)


def _print_all(args: Args, wanted: Iterable[Event], events: Events) -> None:
    """What is there. As JSON it is printed while it is read: there may be a million."""
    if not args.as_json:
        found = False
        for event in wanted:
            _print_one(args, event)
            found = True
        if not found:
            say(args, "No events.")
        return
    import json

    sys.stdout.write(f'{{"schema_version": {SCHEMA_VERSION}, "data": [')
    for number, event in enumerate(wanted):
        sys.stdout.write((", " if number else "") + json.dumps(to_json(event)))
    more = f', "warnings": {json.dumps([_passed_over(events)])}' if events.unreadable else ""
    sys.stdout.write(f"]{more}}}\n")


def _print_one(args: Args, event: Event) -> None:
    if args.as_json:
        print_json({"data": to_json(event)})
    else:
        print_line(str(event.id) if args.quiet else _line(event))


def _line(event: Event) -> str:
    """`1187  2026-11-16 17:03:20  b3k9x0q2m  started    npm test`."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at / 1000))
    what = as_text(event.data.get("status")) if event.is_end else event.subtype.removeprefix(_PREFIX)
    if event.data.get("needs_input") is True:
        what = "waits"
    if event.data.get("rate_limited"):
        what = "pending"
    if isinstance(cut_off := event.data.get("disconnected"), bool):
        what = "cut off" if cut_off else "is back"
    words = "  ".join(filter(None, map(safe, _words(event))))
    return f"{event.id}  {when}  {event.task_id}  {safe(what):<9}  {words}".rstrip()


def _words(event: Event) -> Iterator[str]:
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


def _passed_over(events: Events) -> str:
    lines = "1 line" if events.unreadable == 1 else f"{events.unreadable} lines"
    return f"Passed over {lines} of the stream that could not be read."


EVENTS = Command(
    _run,
    _arguments,
    "Print what happened to background jobs, oldest first: that they started, got on, ended. Each event has an id;\n"
    "--since EVENT goes on right behind it, over any number of restarts. What is no longer kept is never left out in\n"
    "silence. What happens to tasks on a list is told by `taskyard task events`.",
    examples=(
        "taskyard events -f",
        "taskyard events --job b3k9x0q2m",
        'taskyard events -f --json --type notification --since "$(cat last)"',
        "taskyard events --socket /run/user/1000/events.sock",
    ),
    exits=("4  no such job, or events after --since are no longer kept",),
)
