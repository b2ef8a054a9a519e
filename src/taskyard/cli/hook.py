"""`taskyard hook EVENT`: run by Claude Code to give its model the notices of background jobs.

Delivery of a notice:

    1. taken      by this process; no other process gets it
    2. printed    the whole reply is in the client's pipe
    3. read       only now it is acknowledged

If killed before 3, even by SIGKILL, its notices are requeued at once, marked `redelivered`: the kernel releases
the locks of a dead process. So a notice may be delivered twice, if the process is killed between 2 and 3. It is
lost only if the client exits with the reply in its pipe or discards the reply, which is not reported to us; it
then counts as read.

Every failure is logged in `<home>/client-hooks.log` and never affects the client: exit code 0, no output.
"""

from __future__ import annotations

import os
import sys

from taskyard import config
from taskyard.cli.main import Command
from taskyard.errors import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.notices import Outbox

LOG = "client-hooks.log"

#: Maximum bytes of input, which includes a tool's result; more is read to the end and refused.
_MAX_INPUT = 8 * 1024 * 1024

#: Seconds to read the event from the client, which knows it before it starts the hook.
_PATIENCE = 5.0

#: Seconds to retry an unavailable database: notices there wait for the next event.
_DATABASE_WAIT = 1.0


def _arguments(parser: Parser) -> None:
    parser.add(
        "event",
        metavar="EVENT",
        help="Hook event: SessionStart, UserPromptSubmit, PostToolUse, Stop, SessionEnd; others are ignored.",
    )
    parser.add("--strict", action="store_true", help="Exit with an error if the hook fails, for debugging.")


def _run(args: Args) -> int:
    from taskyard.postgres.deadline import max_wait

    try:
        with max_wait(_DATABASE_WAIT):
            _answer(args)
    except Exception as error:  # no failure here may stop a client's work
        if args.strict:
            raise
        from taskyard.jobs.helper_process import append_log

        append_log(config.home(), LOG, f"{args.event}: {type(error).__name__}: {error}")
        if isinstance(error, OSError):
            from taskyard.cli.output import discard_stdout

            discard_stdout()
    return 0


def _answer(args: Args) -> None:
    from taskyard import config, yard
    from taskyard.integrations.clients import hook_context
    from taskyard.jobs.pending_notices import has_none_pending

    payload = _payload(_input())
    if args.event == "SessionEnd":
        _dream(args, payload)
        return
    parts = [part for part in (_guidance(args, payload), _tasks(args, payload)) if part]
    is_for_us = hook_context.can_deliver(args.event, payload)
    if is_for_us and args.event == "UserPromptSubmit":
        parts = [*_reports(args), *parts]
    if not is_for_us or (has_none_pending(config.home()) and not yard.is_replicated(config.load_settings())):
        _print_reply(args.event, parts)
        return
    from contextlib import ExitStack

    settings = config.load_settings()
    with ExitStack() as stack:
        boxes = [stack.enter_context(yard.open_outbox(config.home(), settings, name)) for name in _recipients(args)]
        _deliver(args.event, parts, boxes, only_next=hook_context.is_mid_turn(args.event, payload))


def _dream(args: Args, payload: dict[str, object]) -> None:
    """Start a dream in the background if one is due; sessions of jobs and of dreams do not count."""
    if any(os.environ.get(name) for name in ("TASKYARD_JOB", "TASKYARD_DREAM_STAGE")):
        return
    from taskyard import config
    from taskyard.agents.dream.kind import Dream
    from taskyard.cli.job import open_user_jobs
    from taskyard.errors import DreamHeld
    from taskyard.integrations.clients.programs import dream_engine

    settings = config.load_settings()
    if not settings.dream_enabled:
        return
    cwd = payload.get("cwd")
    spec = Dream(
        engine=dream_engine(settings),
        cwd=cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None,
        on_parent_exit="keep",
    )
    try:
        open_user_jobs(args).start(spec)
    except DreamHeld:
        return


def _reports(args: Args) -> list[str]:
    """Return progress reports of the agents started from here, at the beginning of a turn."""
    from taskyard.core.values import PERSON
    from taskyard.jobs.agent_reports import take_reports

    return [
        text for name in _recipients(args) for text in take_reports(config.home(), None if name == PERSON else name)
    ]


def _recipients(args: Args) -> list[str]:
    """Return the recipients: the named agent, under the name its MCP server was registered with.

    If none is named: the user's agent, and the agents of the client's MCP servers.
    """
    from taskyard.core.values import PERSON
    from taskyard.integrations.clients.session_tasks import agents_by_name, sibling_agents

    if named := args.by or os.environ.get("TASKYARD_AGENT"):
        return agents_by_name(config.home(), named)
    return [*sibling_agents(config.home()), PERSON]


def _deliver(event: str, parts: list[str], boxes: list[Outbox], *, only_next: bool) -> None:
    """Print, and only then acknowledge; with `only_next`, no notices of priority `later`."""
    from taskyard.integrations.clients.hook_context import MAX_CHARACTERS
    from taskyard.jobs.notice import NoticeBatch, for_model

    taken: list[NoticeBatch] = []
    texts: list[str] = []
    room = MAX_CHARACTERS
    for box in boxes:
        batch = box.batch(characters=room, only_next=only_next) if room > 0 else NoticeBatch()
        if batch.notices:
            texts.append(for_model(batch.notices, rest=batch.rest))
            room -= len(texts[-1])
        taken.append(batch)
    _print_reply(event, [*texts, *parts])
    for box, batch in zip(boxes, taken):
        box.ack(notice.id for notice in batch.notices)


def _print_reply(event: str, parts: list[str]) -> None:
    """Print one JSON object and flush it; print nothing if there are no parts."""
    if not parts:
        return
    import json

    from taskyard.integrations.clients.hook_context import reply

    sys.stdout.write(json.dumps(reply(event, "\n\n".join(parts))) + "\n")
    sys.stdout.flush()


def _guidance(args: Args, payload: dict[str, object]) -> str:
    """Return when to use tasks, for a new session; only if enabled, as it costs context in every session."""
    if args.event != "SessionStart" or payload.get("agent_id"):
        return ""
    from taskyard.integrations.model_context import guidance

    return guidance(interactive=False)


def _tasks(args: Args, payload: dict[str, object]) -> str:
    """Return the open tasks after a compaction, by a read that creates, locks and logs nothing."""
    from taskyard.integrations.clients.hook_context import wants_tasks

    if not wants_tasks(args.event, payload):
        return ""
    from taskyard.integrations.clients.session_tasks import format_open_tasks
    from taskyard.yard import default_lists

    cwd, session = os.environ.get("CLAUDE_PROJECT_DIR") or payload.get("cwd"), payload.get("session_id")
    env = {**({"TASKYARD_SESSION": session} if isinstance(session, str) else {}), **os.environ}
    name = config.list_name(args.list, env=env, cwd=cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None)
    lists = default_lists(args.tasks_dir or None)
    with lists.hurried():  # the client waits for this hook
        listing = lists.look(name)
    return format_open_tasks(
        name, list(listing), unreadable=[found.file.removesuffix(".json") for found in listing.damaged]
    )


def _payload(data: bytes) -> dict[str, object]:
    """Parse the event from the client; empty input is an empty event.

    Raises:
        BadValue: it is not a JSON object. Then nothing is delivered; notices stay queued.
    """
    if not data.strip():
        return {}
    import json

    from taskyard.core.values import as_object

    try:
        found = as_object(json.loads(data))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise BadValue("stdin", "", "a JSON object, as Claude Code gives it to hooks", found="is something else")
    return found


def _input() -> bytes:
    """Read stdin to its end, so that the client never writes into a closed pipe.

    Raises:
        BadValue: it does not end, or is too long.
    """
    stdin = sys.stdin
    if stdin is None or stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
        return b""
    try:
        fd = stdin.fileno()
    except (OSError, ValueError):
        return stdin.buffer.read(_MAX_INPUT)  # not a real file: used by tests
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
        if size <= _MAX_INPUT:
            parts.append(data)
    if size > _MAX_INPUT:
        raise BadValue("stdin", "", f"at most {_MAX_INPUT:,} bytes", found=f"has {size:,} bytes")
    return b"".join(parts)


HOOK = Command(
    _run,
    _arguments,
    "Handle a hook event of Claude Code, which runs this command after `taskyard install claude-code`. Reads "
    "the event\n"
    "from stdin and prints pending notices of ended background jobs for the model; after a compaction also "
    "the open\n"
    "tasks. At the end of a session it starts a dream in the background, if one is due. Prints nothing if "
    "nothing is\n"
    "pending, and never fails: errors are written to client-hooks.log.",
    examples=("taskyard hook UserPromptSubmit < /dev/null", "taskyard hook Stop --by ada --strict"),
)
