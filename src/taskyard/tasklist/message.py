"""
What agents say to each other: one message, and the bytes it is kept as.

Free text is of type "message". The other types are the protocol of a team: their fields are in
`data`, under the names Claude Code uses, so that either side can read the other's.
"""

from __future__ import annotations

import json

from taskyard.disk.files import LARGEST_RECORD
from taskyard.errors import BadText, BadValue, Damaged
from taskyard.names import check_name, check_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGE = "message"
TASK_ASSIGNMENT = "task_assignment"

TYPES = (
    MESSAGE,
    TASK_ASSIGNMENT,
    "idle_notification",
    "shutdown_request",
    "shutdown_approved",
    "plan_approval_request",
    "plan_approval_response",
)

#: A summary is one line in a list of messages.
LONGEST_SUMMARY = 1_000


_ENCODER = json.JSONEncoder(allow_nan=False)


class Message(NamedTuple):
    """One message, as its reader gets it."""

    id: str  #: the same at every delivery
    sender: str
    recipient: str
    team: str
    type: str = MESSAGE
    text: str = ""
    summary: str | None = None
    data: Mapping[str, object] = {}  # never mutated; a NamedTuple default
    sent_at: int = 0  #: epoch ms
    redelivered: bool = False  #: an earlier reader got it and died, or left, before saying so


class Receipt(NamedTuple):
    """What became of a message at its sending: "stored", or "skipped" as news of one's own act."""

    id: str
    state: str


def checked(message: Message) -> Message:
    """`message`, if it can be sent.

    Raises:
        BadName: a name cannot be one.
        BadText: the text cannot be stored.
        BadValue: the type is unknown, or `data` is no JSON object.
    """
    check_name("an agent", message.sender)
    check_name("an agent", message.recipient)
    if message.type not in TYPES:
        raise BadValue("The type of a message", message.type, f"one of {', '.join(TYPES)}")
    check_text("message", message.text, allow_empty=message.type != MESSAGE)
    if message.summary is not None:
        check_text("summary", message.summary, longest=LONGEST_SUMMARY)
    return message


def encoded(message: Message) -> bytes:
    """The bytes of `message` on disk; its id is the file's name, and how often it was delivered is not kept.

    Raises:
        BadValue: `data` cannot be written as JSON.
        BadText: it is too large.
    """
    record: dict[str, object] = {
        "from": message.sender,
        "to": message.recipient,
        "team": message.team,
        "type": message.type,
        "text": message.text,
        "sentAt": message.sent_at,
    }
    if message.summary is not None:
        record["summary"] = message.summary
    if message.data:
        record["data"] = message.data
    try:
        found = _ENCODER.encode(record).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue("The data of a message", message.data, "what JSON can hold") from error
    if len(found) > LARGEST_RECORD:
        raise BadText("message", f"takes {len(found):,} bytes; at most {LARGEST_RECORD:,} fit")
    return found


def decoded(file: str, found: bytes, *, message_id: str, redelivered: bool = False) -> Message:
    """The message in `file`.

    Raises:
        Damaged: there is none.
    """
    try:
        record = json.loads(found)
        summary, data = record.get("summary"), record.get("data", {})
        if not isinstance(data, dict):
            raise TypeError("its data is no object")
        return Message(
            id=message_id,
            sender=_text(record["from"]),
            recipient=_text(record["to"]),
            team=_text(record["team"]),
            type=_text(record["type"]),
            text=_text(record["text"]),
            summary=None if summary is None else _text(summary),
            data=data,
            sent_at=int(record["sentAt"]),
            redelivered=redelivered,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise Damaged(file, f"it is no message ({type(error).__name__}: {error})") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should be")
    return value
