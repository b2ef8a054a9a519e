"""Mail of one team in files: durable, only to known recipients, in order per sender.

`FileMail` implements `mail.Mail`. It checks recipients, stores messages (`storage.maildir`), exchanges them
with Claude Code's inboxes (`claude_mail`), and hands them to readers.

States of a message:

    1. `send`    stored: a file in the recipient's mailbox
    2. `take`    delivered: taken by a live reader
    3. `ack`     read: moved to the archive; every id is acknowledged once

A message whose reader dies before 3 is redelivered: same id, `redelivered` set. `wait` sleeps on inotify, on
our mailbox and Claude Code's inbox.
"""

from __future__ import annotations

from taskyard import config
from taskyard.agents import mail
from taskyard.agents.claude_mail import ClaudeMail
from taskyard.agents.mail import (
    DEFAULT_LIMIT,
    MESSAGE,
    Message,
    MessageReader,
    Receipt,
    check_message,
    decode_message,
    encode_message,
)
from taskyard.core import files
from taskyard.core.system import boottime, now_ms
from taskyard.core.values import check_name, folder_name
from taskyard.errors import BadValue, Damaged, NotFound, StorageError
from taskyard.storage import maildir, message_ids
from taskyard.storage.inotify import watcher
from taskyard.storage.maildir import REDELIVERED, Maildir, mail_folder
from taskyard.storage.process_registry import ConsumerId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Self

    from taskyard.storage.process_registry import Instance


class FileMail:
    """The mail of one team."""

    def __init__(
        self,
        home: str,
        team: str,
        *,
        instance: Instance | None = None,
        claude_folder: str | None = None,
        sync: bool = False,
    ) -> None:
        """Prepare; nothing is created or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            team: The team's name.
            instance: The live instance that takes mail; without one the process takes it unnamed.
            claude_folder: Claude Code's folder, if not the usual one.
            sync: Whether to fsync, so that a stored message survives a power failure.
        """
        self.home = home
        self.team = team
        self.folder = mail_folder(home, team)
        self.damaged: list[Damaged] = []  #: what could not be read so far; it is kept, never removed
        self._hands = ConsumerId(home, instance)
        self.claude_folder = claude_folder if claude_folder is not None else config.claude_folder()
        self._claude = ClaudeMail(self.claude_folder, team)
        self._sync = sync
        self._boxes: dict[str, Maildir] = {}
        self._queues: dict[str, list[str]] = {}
        self._reading = MessageReader(self)

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
        message = check_message(Message("", sender, recipient, self.team, type, text, summary, data or {}, now_ms()))
        body = encode_message(message)
        if self._belongs_to_claude(recipient):
            return self._send_to_claude(message, body)
        box = self._box(recipient)
        while True:
            if not box.is_open:
                mail.check_recipient(recipient, self.known(), team=self.team)
                self.open_box(recipient)
            message_id = self._new_id(sender)
            if box.put(message_id, body, sync=self._sync):  # otherwise closed this moment: check again
                return Receipt(message_id, "stored")

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Notify an agent about a task of its own, unless it is the sender; a new owner gets a mailbox."""
        check_name("an agent", recipient)
        if sender == recipient:
            return Receipt("", "skipped")
        if not self._belongs_to_claude(recipient):
            self.open_box(recipient)
        return self.send(sender, recipient, text, type=type, data=data)

    def open_box(self, agent: str) -> None:
        """Open the mailbox of `agent`."""
        self._make_folders()
        self._box(agent).open()

    def close_box(self, agent: str) -> None:
        """Close the mailbox of `agent`; its messages stay readable."""
        self._box(agent).close()

    def take(self, agent: str, *, limit: int = DEFAULT_LIMIT, hold: float | None = None) -> list[Message]:
        """Take the oldest waiting messages of `agent`; this process owns them until `ack`.

        They are redelivered if this process dies first; with `hold`, after that many seconds instead: for a
        reader that answers through another process.
        """
        if limit < 1:
            raise BadValue("limit", limit, "a number from 1")
        box, taken = self._box(agent), list[Message]()
        holder = ""
        while not taken and (queue := self._queue(agent, box)):
            holder = holder or (self._hands.holder() if hold is None else maildir.timed_holder(hold))
            for name in _pop_names(queue, limit):
                if box.take(name, holder) and (message := self._opened(box, name, holder)):
                    taken.append(message)
        return taken

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """Mark messages as read, whichever process took them; return those marked by this call."""
        box = self._box(agent)
        mine = self._hands.found()
        done: list[str] = []
        for message_id in ids:
            if not message_ids.is_message_id(message_id):
                raise BadValue("The id of a message", message_id, "an id as `send` and `take` give it")
            if (mine and box.acknowledge(message_id, mine)) or _acknowledge_any(box, message_id):
                done.append(message_id)
        return tuple(done)

    def read(self, agent: str) -> Iterator[Message]:
        """Yield each waiting message; it counts as read when the next is requested, here or by another `read`."""
        return self._reading.of(agent)

    def peek(self, agent: str, *, limit: int = DEFAULT_LIMIT) -> list[Message]:
        """Return the oldest waiting messages without taking them."""
        self._import_pending(agent)
        box = self._box(agent)
        opened = (self._opened(box, name, None) for name in box.waiting()[:limit])
        return [message for message in opened if message is not None]

    def unread_count(self, agent: str) -> int:
        """Return the number of messages waiting for `agent`."""
        self._import_pending(agent)
        return self._box(agent).count()

    def receipt(self, message_id: str) -> str:
        """Return the state of a message: "stored", "delivered" or "read".

        Raises:
            NotFound: no message of this id was sent here, or it was read and removed long ago.
        """
        if message_ids.is_message_id(message_id):
            for name in maildir.maildir_names(self.folder):
                state = self._box(name).state(message_id)
                if state == "read" and self._claude.holds(name, message_id):
                    return "stored"
                if state:
                    return state
        raise NotFound(f"No message {message_id[:60]!r} in team {self.team!r}.")

    def wait(self, agent: str, timeout: float) -> bool:
        """Return whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes at once."""
        return wait_for_mail(self, agent, timeout)

    def holders(self, agent: str) -> list[str]:
        """Return the holders of mail of `agent` that was taken and not acknowledged yet."""
        return self._box(agent).holders()

    def watched_folders(self, agent: str) -> tuple[str, str]:
        """Return the folders that change when mail arrives: our mailbox and Claude Code's inboxes."""
        return f"{self._box(agent).path}/new", f"{self._claude.folder}/inboxes"

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe to nothing: all mail is in folders."""
        from contextlib import nullcontext

        return nullcontext()

    def known(self) -> list[str]:
        """Return all names that can get mail here."""
        return mail.known_recipients(self.home, self.team, self._claude.config_or(self.damaged))

    def _belongs_to_claude(self, recipient: str) -> bool:
        """Return whether mail to `recipient` goes to an inbox of Claude Code's.

        Raises:
            Damaged: its record of the team cannot be read, and no recipient of that name is ours.
        """
        try:
            return self._claude.delivers_to(recipient)
        except Damaged:
            if not mail.is_among(recipient, self.known()):
                raise
            return False

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Remove what `agent` read before a moment, to the nearest day; return the number of messages."""
        return self._box(agent).forget(before_ms)

    def close(self) -> None:
        """Return taken, unacknowledged messages to the mailbox, unless they are the instance's."""
        self._hands.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_to_claude(self, message: Message, body: bytes) -> Receipt:
        message = message._replace(id=self._new_id(message.sender))
        self._claude.send(message)
        self._box(message.recipient).store_read(message.id, body)  # found later by `receipt`
        return Receipt(message.id, "stored")

    def _queue(self, agent: str, box: Maildir) -> list[str]:
        """Return the names to take next, oldest last. A long queue is listed once, not once per batch."""
        returned = self._import_pending(agent)
        queue = self._queues.get(agent)
        if returned or not queue:
            queue = self._queues[agent] = box.waiting()[::-1]
        return queue

    def _import_pending(self, agent: str) -> int:
        """Import what Claude Code sent, and requeue what dead readers left; return the number requeued."""
        box = self._box(agent)
        self.damaged += self._claude.fetch(agent, box, self._new_id)
        return box.requeue_abandoned()

    def _opened(self, box: Maildir, name: str, holder: str | None) -> Message | None:
        """Return the message in a file; a file that is not a message is quarantined and reported."""
        try:
            body = box.read(name, holder)
            if body is None:
                return None
            return decode_message(
                name, body, message_id=maildir.message_id_of(name), redelivered=name.endswith(REDELIVERED)
            )
        except (Damaged, StorageError) as error:
            if holder is not None:
                self.damaged.append(Damaged(box.quarantine(name, holder), error.why))
            return None

    def _new_id(self, sender: str) -> str:
        marks = f"{self.folder}/.sent"
        try:
            return message_ids.next_id(marks, sender)
        except StorageError:
            self._make_folders()
            files.make_private_folder(marks)
            return message_ids.next_id(marks, sender)

    def _make_folders(self) -> None:
        for folder in (self.home, f"{self.home}/mail", self.folder):
            files.make_private_folder(folder)

    def _box(self, agent: str) -> Maildir:
        """Return the mailbox of `agent`; checked once for planted links."""
        box = self._boxes.get(agent)
        if box is None:
            box = Maildir(self.home, f"{self.folder}/{folder_name('an agent', agent)}")
            box.check()
            self._boxes[agent] = box
        return box


def _pop_names(queue: list[str], most: int) -> list[str]:
    """Remove and return the next names of a queue, oldest first, so that two threads never share one."""
    names, queue[-most:] = queue[-most:], []
    return names[::-1]


def _acknowledge_any(box: Maildir, message_id: str) -> bool:
    return any(box.acknowledge(message_id, holder) for holder in box.holders())


#: Poll interval in seconds while a reader has taken mail: no file changes when that reader dies.
HOLDER_POLL_INTERVAL = 1.0


def wait_for_mail(post: FileMail, agent: str, timeout: float) -> bool:
    """Return whether mail waits for `agent`, now or within `timeout` seconds."""
    deadline = boottime() + timeout
    ours, theirs = post.watched_folders(agent)
    with watcher().follow(ours) as box, watcher().follow(theirs, wake=box) as inboxes:
        while True:
            box.changed()
            inboxes.changed()
            if post.unread_count(agent):  # after draining both subscriptions, so that no change is missed
                return True
            left = deadline - boottime()
            if left <= 0:
                return False
            box.wait(min(left, HOLDER_POLL_INTERVAL) if post.holders(agent) else left)
