"""
`taskyard hook EVENT`: what Claude Code runs at certain moments, so that its model hears of background jobs.

How often a notice arrives
    1. taken      it is in the hands of this process; nobody else gets it
    2. printed    the whole answer is in the client's pipe
    3. read       only now it is acknowledged
    Killed before 3, even by kill -9, its notices are back at once, marked `redelivered`: the kernel lets go of what a
    dead process held. So a notice may come twice, if we die between 2 and 3. It can be missed only if the client
    itself dies with our answer in its pipe, or throws the answer away: nobody tells us. It is then among the read.

Whatever goes wrong is noted in `<home>/client-hooks.log` and is never the client's problem: exit code 0, no output.
"""

from __future__ import annotations

import os
import sys

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.notices import Outbox

LOG = "client-hooks.log"

#: A client passes on what a tool answered; of more than this nothing is understood, and all of it is read.
_LARGEST_INPUT = 8 * 1024 * 1024

#: Seconds a client may take to say what happened. It knows before it starts us.
_PATIENCE = 5.0

#: Seconds for which a database that is away is tried: what waits there waits for the next moment.
_AWAY = 1.0


def _arguments(parser: Parser) -> None:
    parser.add(
        "event",
        metavar="EVENT",
        help="SessionStart, UserPromptSubmit, PostToolUse, Stop, SessionEnd; others do nothing.",
    )
    parser.add("--strict", action="store_true", help="Fail if something goes wrong, to find out what.")


def _run(args: Args) -> int:
    from taskyard.database.waiting import at_most

    try:
        with at_most(_AWAY):
            _answer(args)
    except Exception as error:  # nothing of ours may stop a client's work
        if args.strict:
            raise
        from taskyard.runtime.log import note

        note(paths.home(), LOG, f"{args.event}: {type(error).__name__}: {error}")
        if isinstance(error, OSError):
            from taskyard.cli.output import say_no_more

            say_no_more()
    return 0


def _answer(args: Args) -> None:
    from taskyard import config
    from taskyard.clients import context
    from taskyard.relay import door
    from taskyard.runtime.quiet import is_quiet

    payload = _payload(_input())
    if args.event == "SessionEnd":
        _dream(args, payload)
        return
    parts = [part for part in (_guidance(args, payload), _tasks(args, payload)) if part]
    is_for_us = context.is_for_us(args.event, payload)
    if is_for_us and args.event == "UserPromptSubmit":
        parts = [*_reports(args), *parts]
    if not is_for_us or (is_quiet(paths.home()) and not door.is_shared(config.load())):
        _say(args.event, parts)
        return
    from contextlib import ExitStack

    settings = config.load()
    with ExitStack() as stack:
        boxes = [stack.enter_context(door.outbox(paths.home(), settings, name)) for name in _recipients(args)]
        _deliver(args.event, parts, boxes, only_next=context.is_mid_turn(args.event, payload))


def _dream(args: Args, payload: dict[str, object]) -> None:
    """Start a dream in the background if it is time; sessions of jobs and of dreams themselves do not count."""
    if any(os.environ.get(name) for name in ("TASKYARD_JOB", "TASKYARD_DREAM_STAGE")):
        return
    from taskyard import config
    from taskyard.cli.job.shared import jobs_of
    from taskyard.clients.claude_code import dream_engine
    from taskyard.errors import DreamHeld
    from taskyard.kinds.dream import Dream

    settings = config.load()
    if not settings.dream_enabled:
        return
    cwd = payload.get("cwd")
    spec = Dream(
        engine=dream_engine(settings),
        cwd=cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None,
        on_parent_exit="keep",
    )
    try:
        jobs_of(args).start(spec)
    except DreamHeld:
        return


def _reports(args: Args) -> list[str]:
    """How far the agents are that somebody here started, at the beginning of a turn."""
    from taskyard.runtime.agent_reports import reports
    from taskyard.runtime.notice import PERSON

    return [text for name in _recipients(args) for text in reports(paths.home(), None if name == PERSON else name)]


def _recipients(args: Args) -> list[str]:
    """Who is to hear: the one that is named, under whatever name the client's MCP server got when it asked for that.

    If nobody is named: the person's agent, and whoever that server acts for.
    """
    from taskyard.clients.beside import agents_beside_us, agents_known_as
    from taskyard.runtime.notice import PERSON

    if named := args.by or os.environ.get("TASKYARD_AGENT"):
        return agents_known_as(paths.home(), named)
    return [*agents_beside_us(paths.home()), PERSON]


def _deliver(event: str, parts: list[str], boxes: list[Outbox], *, only_next: bool) -> None:
    """Print, and only then acknowledge; with `only_next`, no notices of priority `later`."""
    from taskyard.clients.context import CHARACTERS
    from taskyard.runtime.batch import Batch
    from taskyard.runtime.notice_text import for_model

    taken: list[Batch] = []
    texts: list[str] = []
    room = CHARACTERS
    for box in boxes:
        batch = box.batch(characters=room, only_next=only_next) if room > 0 else Batch()
        if batch.notices:
            texts.append(for_model(batch.notices, rest=batch.rest))
            room -= len(texts[-1])
        taken.append(batch)
    _say(event, [*texts, *parts])
    for box, batch in zip(boxes, taken):
        box.ack(notice.id for notice in batch.notices)


def _say(event: str, parts: list[str]) -> None:
    """One JSON object, all of it out of our hands when this returns; nothing at all if there is nothing to say."""
    if not parts:
        return
    import json

    from taskyard.clients.context import reply

    sys.stdout.write(json.dumps(reply(event, "\n\n".join(parts))) + "\n")
    sys.stdout.flush()


def _guidance(args: Args, payload: dict[str, object]) -> str:
    """When to use tasks, for a model that begins; only if that was asked for, as it costs context in every session."""
    if args.event != "SessionStart" or payload.get("agent_id"):
        return ""
    from taskyard.context import guidance

    return guidance(interactive=False)


def _tasks(args: Args, payload: dict[str, object]) -> str:
    """The open tasks, for a model that has forgotten them; by a plain look that makes, locks and logs nothing."""
    from taskyard.clients.context import wants_tasks

    if not wants_tasks(args.event, payload):
        return ""
    from taskyard.clients.open_tasks import open_tasks
    from taskyard.places import lists_here

    cwd, session = os.environ.get("CLAUDE_PROJECT_DIR") or payload.get("cwd"), payload.get("session_id")
    env = {**({"TASKYARD_SESSION": session} if isinstance(session, str) else {}), **os.environ}
    name = paths.list_name(args.list, env=env, cwd=cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None)
    lists = lists_here(args.tasks_dir or None)
    with lists.hurried():  # a client waits for us
        listing = lists.look(name)
    return open_tasks(name, list(listing), unreadable=[found.file.removesuffix(".json") for found in listing.damaged])


def _payload(data: bytes) -> dict[str, object]:
    """What the client says of this moment; nothing said is nothing known.

    Raises:
        BadValue: it is not what a client says. Then nothing is delivered: it keeps.
    """
    if not data.strip():
        return {}
    import json

    from taskyard.shapes import as_object

    try:
        found = as_object(json.loads(data))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise BadValue("stdin", "", "a JSON object, as Claude Code gives it to hooks", found="is something else")
    return found


def _input() -> bytes:
    """Everything on stdin, read to its end so that the client never writes into a closed pipe.

    Raises:
        BadValue: it does not end, or is far too long.
    """
    stdin = sys.stdin
    if stdin is None or stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
        return b""
    try:
        fd = stdin.fileno()
    except (OSError, ValueError):
        return stdin.buffer.read(_LARGEST_INPUT)  # no real one: a test's
    return _read(fd)


def _read(fd: int) -> bytes:
    import select
    import time

    parts: list[bytes] = []
    size, deadline = 0, time.monotonic() + _PATIENCE
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise BadValue("stdin", "", "what a client says of the event, and then its end", found="does not end")
        data = os.read(fd, 1 << 20)
        if not data:
            break
        size += len(data)
        if size <= _LARGEST_INPUT:
            parts.append(data)
    if size > _LARGEST_INPUT:
        raise BadValue("stdin", "", f"at most {_LARGEST_INPUT:,} bytes", found=f"has {size:,} bytes")
    return b"".join(parts)


HOOK = Command(
    _run,
    _arguments,
    "For Claude Code, which runs it by itself after `taskyard install claude-code`: reads the event from stdin and\n"
    "answers with what waits for the model, the notices of background jobs that ended; after a compaction also with\n"
    "the open tasks. At the end of a session it starts a dream in the background, if it is time for one. Says nothing\n"
    "if nothing waits, and never fails: what goes wrong is in client-hooks.log.",
    examples=("taskyard hook UserPromptSubmit < /dev/null", "taskyard hook Stop --by ada --strict"),
)
