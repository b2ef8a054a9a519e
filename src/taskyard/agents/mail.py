"""Messages between agents: format, recipients, and the interface of every mail store.

Free text is of type "message". The other types are the protocol of a team: their fields are in `data`, under
the names Claude Code uses, so that either side can read the other's.

`Mail` is implemented in files (`mailbox`) and in PostgreSQL; `taskyard.testing.check_mail` is the contract of
each:

    1. `send`    stored, once the call returns
    2. `take`    delivered: taken by a live reader
    3. `ack`     read: every id is acknowledged once

A message whose reader is gone before 3 is redelivered: same id, `redelivered` set. Only known recipients get
mail, so that no message waits for a misspelt name.
"""

from __future__ import annotations

import json
from typing import Protocol

from taskyard.agents import teams
from taskyard.core.files import LARGEST_RECORD
from taskyard.core.values import NamedTuple, check_name, check_text, folder_name, nearest
from taskyard.errors import BadText, BadValue, Damaged, RecipientNotFound
from taskyard.storage import maildir, process_registry
from taskyard.storage.maildir import Maildir, mail_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from taskyard.agents.teams import ClaudeTeam


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

#: Maximum characters of a summary: one line in a list of messages.
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
    redelivered: bool = False  #: an earlier reader took it and died, or left, before `ack`


class Receipt(NamedTuple):
    """Result of sending: "stored", or "skipped" where the sender would notify itself."""

    id: str
    state: str


def check_message(message: Message) -> Message:
    """Return `message` if it can be sent.

    Raises:
        BadName: a name is invalid.
        BadText: the text cannot be stored.
        BadValue: the type is unknown, or `data` is not a JSON object.
    """
    check_name("an agent", message.sender)
    check_name("an agent", message.recipient)
    if message.type not in TYPES:
        raise BadValue("The type of a message", message.type, f"one of {', '.join(TYPES)}")
    check_text("message", message.text, allow_empty=message.type != MESSAGE)
    if message.summary is not None:
        check_text("summary", message.summary, longest=LONGEST_SUMMARY)
    return message


def encode_message(message: Message) -> bytes:
    """Return the bytes of `message` on disk; the id is the file's name, and redelivery is not stored.

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


def decode_message(file: str, found: bytes, *, message_id: str, redelivered: bool = False) -> Message:
    """Return the message in `file`.

    Raises:
        Damaged: it is not a message.
    """
    try:
        record = json.loads(found)
        summary, data = record.get("summary"), record.get("data", {})
        if not isinstance(data, dict):
            raise TypeError("its data is not an object")
        return Message(
            id=message_id,
            sender=_require_text(record["from"]),
            recipient=_require_text(record["to"]),
            team=_require_text(record["team"]),
            type=_require_text(record["type"]),
            text=_require_text(record["text"]),
            summary=None if summary is None else _require_text(summary),
            data=data,
            sent_at=int(record["sentAt"]),
            redelivered=redelivered,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise Damaged(file, f"it is not a message ({type(error).__name__}: {error})") from error


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text should be")
    return value


class Mail(Protocol):
    """The mail of one team."""

    team: str
    damaged: list[Damaged]  #: what could not be read so far; it is kept, never removed

    def send(
        self,
        sender: str,
        recipient: str,
        text: str = "",
        *,
        type: str = MESSAGE,
        data: Mapping[str, object] | None = None,
        summary: str | None = None,
    ) -> Receipt:
        """Store a message for `recipient`; on return it is stored.

        Raises:
            RecipientNotFound: no recipient of that name is known; names the nearest.
            BadName, BadText, BadValue: it cannot be sent.
            Damaged: the recipient's Claude Code inbox, or the record of whether it has one, cannot be read;
                nothing was sent.
        """
        ...

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Notify an agent about a task of its own, unless it is the sender; a new owner gets a mailbox."""
        ...

    def open_box(self, agent: str) -> None:
        """Open the mailbox of `agent`."""
        ...

    def close_box(self, agent: str) -> None:
        """Close the mailbox of `agent`; its messages stay readable."""
        ...

    def take(self, agent: str, *, limit: int = ..., hold: float | None = None) -> list[Message]:
        """Take the oldest waiting messages of `agent`; this process owns them until `ack`.

        They are redelivered if this process dies first; with `hold`, after that many seconds instead: for a
        reader that answers through another process.
        """
        ...

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """Mark messages as read, whichever process took them; return those marked by this call."""
        ...

    def read(self, agent: str) -> Iterator[Message]:
        """Yield each waiting message; it counts as read when the next is requested, here or by another `read`."""
        ...

    def peek(self, agent: str, *, limit: int = ...) -> list[Message]:
        """Return the oldest waiting messages without taking them."""
        ...

    def unread_count(self, agent: str) -> int:
        """Return the number of messages waiting for `agent`."""
        ...

    def receipt(self, message_id: str) -> str:
        """Return the state of a message: "stored", "delivered" or "read".

        Raises:
            NotFound: no message of this id was sent here, or it was read and removed long ago.
        """
        ...

    def wait(self, agent: str, timeout: float) -> bool:
        """Return whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes at once."""
        ...

    def watched_folders(self, agent: str) -> tuple[str, ...]:
        """Return the local folders that change when mail arrives."""
        ...

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe `wake`, called from any thread, to mail that does not show in a folder."""
        ...

    def holders(self, agent: str) -> list[str]:
        """Return the holders of mail of `agent` that was taken and not acknowledged yet."""
        ...

    def known(self) -> list[str]:
        """Return all names that can get mail here."""
        ...

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Remove what `agent` read before a moment, to the nearest day; return the number of messages."""
        ...

    def close(self) -> None:
        """Return taken, unacknowledged messages to the mailbox, unless they are the instance's."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def known_recipients(home: str, team: str, claude: ClaudeTeam | None) -> list[str]:
    """Return members, ours and Claude Code's, all live instances, and names with an open mailbox."""
    folder = mail_folder(home, team)
    ours = teams.read(home, team)
    names = {member.name for member in ours.members} if ours else set[str]()
    names.update(member.name for member in (claude.members if claude else ()))
    names.update(record.name for record in process_registry.live_instances(home))
    names.update(name for name in maildir.maildir_names(folder) if Maildir(home, f"{folder}/{name}").is_open)
    return sorted(names)


def check_recipient(recipient: str, names: Sequence[str], *, team: str) -> None:
    """Refuse a recipient that is none of `names`.

    Raises:
        RecipientNotFound: names the nearest.
    """
    if not is_among(recipient, names):
        raise RecipientNotFound(recipient, team=team, nearest=nearest(recipient, names))


def is_among(recipient: str, names: Sequence[str]) -> bool:
    """Return whether `recipient` is one of `names`, compared by folder name."""
    folder = folder_name("an agent", recipient)
    return any(folder_name("an agent", name) == folder for name in names)


#: Default number of messages taken at once.
DEFAULT_LIMIT = 100


class MessageReader:
    """Reads one message at a time; each counts as read when the next is requested."""

    def __init__(self, mail: Mail) -> None:
        self._mail = mail
        self._asked: dict[str, str] = {}

    def of(self, agent: str) -> Iterator[Message]:
        """Yield each waiting message of `agent`."""
        while True:
            if before := self._asked.pop(agent, None):
                self._mail.ack(agent, [before])
            found = self._mail.take(agent, limit=1)
            if not found:
                return
            self._asked[agent] = found[0].id
            yield found[0]
