"""The interface of a remote backend: four idempotent methods, poll intervals, and parsing of output.

    submit   start the work; the same `Work.id` again returns the existing session
    poll     state, and output since a cursor; the same cursor again returns the same output
    send     send a message to the session
    stop     stop it; no effect if it is over

A backend keeps no state between calls: a new instance in another process continues a session by its id alone.
`taskyard.testing.check_remote_backend` states the whole contract as executable checks.

Output consists of lines: JSON messages as agents print them, or plain text.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Protocol

from taskyard.core.values import NamedTuple, as_list, as_object, as_text, check_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskyard.jobs.remote.remotes import Remote


class RemoteState(StrEnum):
    """State of a session."""

    RUNNING = "running"  #: working, or waiting for its turn
    NEEDS_INPUT = "needs_input"  #: it asked a question, and continues when that is answered
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"  #: stopped by a user or a client
    LOST = "lost"  #: the remote is reachable and does not know the session (any more)

    @property
    def is_final(self) -> bool:
        """Whether the session is over."""
        return self not in (RemoteState.RUNNING, RemoteState.NEEDS_INPUT)


class Work(NamedTuple):
    """What a session has to do."""

    id: str  #: our job id: a second `submit` of it starts nothing
    prompt: str
    command: str = ""  #: program to run, where the remote runs programs; the remote's own if empty
    metadata: Mapping[str, str] = {}  #: stored with the session, for users who inspect it there
    env: Mapping[str, str] = {}  #: environment variables for the program, beside the prompt


class PollResult(NamedTuple):
    """Result of one poll."""

    state: RemoteState
    cursor: str  #: where the next poll continues
    text: str = ""  #: output since the given cursor: whole lines, each a JSON message or plain text
    result: str = ""  #: the final answer, where the remote reports one
    error: str = ""  #: why it failed or was lost, for users
    question: str = ""  #: its question, while it needs input
    metadata: Mapping[str, object] = {}  #: further facts of the remote; passed to completion checkers


class RemoteBackend(Protocol):
    """Client of one remote that runs agents."""

    async def submit(self, work: Work) -> str:
        """Start the work; return the id of its session.

        Raises:
            RemoteRefused: The remote is reachable and refuses: bad credentials, a bad request, nothing found.
            RemoteAway: It cannot be reached now; a retry may help.
        """
        ...

    async def poll(self, session: str, cursor: str = "") -> PollResult:
        """Return the state of a session and its output since `cursor`; "" is its beginning.

        Raises:
            RemoteRefused, RemoteAway: As for `submit`.
        """
        ...

    async def send(self, session: str, text: str) -> None:
        """Send a message to a session, such as the answer to its question.

        Raises:
            RemoteRefused: It accepts no messages, or not now.
            RemoteAway: It cannot be reached now.
        """
        ...

    async def stop(self, session: str) -> None:
        """Stop a session and what runs for it; no effect if it is over or unknown.

        Raises:
            RemoteRefused, RemoteAway: As for `submit`.
        """
        ...

    async def close(self) -> None:
        """Close connections; sessions continue."""
        ...


class Probeable(Protocol):
    """A backend that can test its connection, for `taskyard remote check`; every built-in one can."""

    async def probe(self) -> str:
        """Return one line about the remote, such as its version; starts nothing.

        Raises:
            RemoteRefused, RemoteAway: What is wrong, with advice.
        """
        ...


#: Seconds between polls while a session has new output: fast enough for a user who watches.
POLL_INTERVAL = 0.5

#: Minimum and maximum of the setting `poll_seconds` of a remote, in seconds.
_MIN_POLL_INTERVAL, _MAX_POLL_INTERVAL = 0.01, 3600.0

#: Each poll without new output makes the next wait longer by this factor, up to so many seconds.
_IDLE_FACTOR, _MAX_IDLE_INTERVAL = 1.5, 5.0

#: Seconds after the first failure, doubled after each further one, and their maximum (backoff).
_RETRY_DELAY, _MAX_RETRY_DELAY = 1.0, 30.0

#: Minimum seconds of a random backoff: never retry without a pause.
_MIN_RETRY_DELAY = 0.05

#: Doublings beyond which the delay no longer changes.
_MAX_DOUBLINGS = 10


def poll_interval(remote: Remote) -> float:
    """Return the seconds between polls of a remote while a session there has new output.

    Raises:
        BadValue: The configured value is invalid.
    """
    given = remote.options.get("poll_seconds", POLL_INTERVAL)
    check_number(
        f"remotes.{remote.name}.poll_seconds", given, least=_MIN_POLL_INTERVAL, most=_MAX_POLL_INTERVAL, unit="seconds"
    )
    return float(given) if isinstance(given, (int, float)) else POLL_INTERVAL


def next_delay(*, quick: float = POLL_INTERVAL, quiet: int = 0, trouble: int = 0, chance: float = 1.0) -> float:
    """Return the seconds until the next poll.

    Args:
        quick: Seconds while each poll has new output.
        quiet: Polls in a row without new output.
        trouble: Failed polls in a row. The backoff is uniformly random up to its bound, so that clients that
            lost one remote together do not return together.
        chance: Random number from 0 to 1, drawn by the caller.
    """
    if trouble > 0:
        bound = min(_RETRY_DELAY * float(2 ** min(trouble - 1, _MAX_DOUBLINGS)), _MAX_RETRY_DELAY)
        return max(bound * chance, _MIN_RETRY_DELAY)
    return min(quick * float(_IDLE_FACTOR ** min(quiet, _MAX_DOUBLINGS)), max(_MAX_IDLE_INTERVAL, quick))


if TYPE_CHECKING:
    SessionMessage = Mapping[str, object]


def parse_messages(lines: Iterable[str]) -> Iterator[SessionMessage]:
    """Yield the lines that are JSON messages, parsed."""
    for line in lines:
        if (message := parse_message(line)) is not None:
            yield message


def parse_message(line: str) -> SessionMessage | None:
    """Return the message in a line; None if it is plain text."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


def assistant_text(message: SessionMessage) -> str:
    """Return the assistant text of a message; "" if it has none."""
    if message.get("type") != "assistant":
        return ""
    if text := as_text(message.get("text")):
        return text
    content = (as_object(message.get("message")) or message).get("content")
    if isinstance(content, str):
        return content
    return "".join(as_text(block.get("text")) for block in _content_blocks(message) if block.get("type") == "text")


def tool_calls(message: SessionMessage) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield name and input of each tool call in a message."""
    for block in _content_blocks(message):
        if message.get("type") == "assistant" and block.get("type") == "tool_use":
            yield as_text(block.get("name")), as_object(block.get("input")) or {}


def final_answer(lines: Iterable[str]) -> str:
    """Return the final answer in the output: the last result, else the last assistant text, else ""."""
    result = last = ""
    for message in parse_messages(lines):
        if message.get("type") == "result":
            result = as_text(message.get("result")) or as_text(message.get("text")) or result
        last = assistant_text(message) or last
    return (result or last).strip()


def _content_blocks(message: SessionMessage) -> Iterator[Mapping[str, object]]:
    content = as_list((as_object(message.get("message")) or message).get("content")) or []
    for raw in content:
        if (block := as_object(raw)) is not None:
            yield block
