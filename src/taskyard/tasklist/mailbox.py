"""
Mail between agents: nothing lost, nobody unknown, in the order of each sender.

Role
    `Post` is one team's post office. It checks who may get mail, stores it (`maildir`), carries it
    to and from Claude Code's inboxes (`claude_mail`), and hands it out to readers.

Life of a message
    1. `send`    stored: a file in the recipient's box
    2. `take`    delivered: in the hands of a living reader
    3. `ack`     read: filed away; every id is acknowledged once
    A reader that dies before 3 gives it back: same id, `redelivered`.
"""

from __future__ import annotations

from taskyard import maildir, message_ids, paths
from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.errors import BadValue, Damaged, NotFound, StorageError
from taskyard.hands import Hands
from taskyard.maildir import AGAIN, Box, mail_folder
from taskyard.names import check_name, folder_name
from taskyard.tasklist import recipients
from taskyard.tasklist.claude_mail import ClaudeMail
from taskyard.tasklist.message import MESSAGE, Message, Receipt, checked, decoded, encoded
from taskyard.tasklist.reading import MANY, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Self

    from taskyard.instances import Instance


class Post:
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
        """Nothing is made or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            team: Whose mail.
            instance: The living instance that takes mail; without one the process takes it unnamed.
            claude_folder: Claude Code's folder, if not the usual one.
            sync: Whether a stored message also survives a power cut.
        """
        self.home = home
        self.team = team
        self.folder = mail_folder(home, team)
        self.damaged: list[Damaged] = []  #: what could not be read so far; it is kept, never removed
        self._hands = Hands(home, instance)
        self.claude_folder = claude_folder if claude_folder is not None else paths.claude_folder()
        self._claude = ClaudeMail(self.claude_folder, team)
        self._sync = sync
        self._boxes: dict[str, Box] = {}
        self._queues: dict[str, list[str]] = {}
        self._reading = Reading(self)

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
        """Store a message for `recipient`; an answer means that it is stored.

        Raises:
            RecipientNotFound: nobody of that name is known; names the nearest.
            BadName, BadText, BadValue: it cannot be sent.
            Damaged: the recipient's Claude Code inbox cannot be read, or whether it has one; nothing was sent.
        """
        message = checked(Message("", sender, recipient, self.team, type, text, summary, data or {}, now_ms()))
        body = encoded(message)
        if self._is_claudes(recipient):
            return self._send_to_claude(message, body)
        box = self._box(recipient)
        while True:
            if not box.is_open:
                recipients.check(recipient, self.known(), team=self.team)
                self.open_box(recipient)
            message_id = self._new_id(sender)
            if box.put(message_id, body, sync=self._sync):  # else it was closed this moment: look again
                return Receipt(message_id, "stored")

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Send what somebody must hear about a task of theirs, unless by their own act; a new owner gets a box."""
        check_name("an agent", recipient)
        if sender == recipient:
            return Receipt("", "skipped")
        if not self._is_claudes(recipient):
            self.open_box(recipient)
        return self.send(sender, recipient, text, type=type, data=data)

    def open_box(self, agent: str) -> None:
        """Make `agent` someone who gets mail here."""
        self._make_folders()
        self._box(agent).open()

    def close_box(self, agent: str) -> None:
        """Let `agent` get no more mail here; what it has stays readable."""
        self._box(agent).close()

    def take(self, agent: str, *, limit: int = MANY, hold: float | None = None) -> list[Message]:
        """The oldest waiting messages of `agent`, now in this process's hands until `ack`.

        They come back if this process dies first; with `hold`, after that many seconds instead:
        for a reader that answers through another process.
        """
        if limit < 1:
            raise BadValue("limit", limit, "a number from 1")
        box, taken = self._box(agent), list[Message]()
        holder = ""
        while not taken and (queue := self._queue(agent, box)):
            holder = holder or (self._hands.holder() if hold is None else maildir.hold_for(hold))
            for name in _popped(queue, limit):
                if box.take(name, holder) and (message := self._opened(box, name, holder)):
                    taken.append(message)
        return taken

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """File messages as read, whoever took them; answers those that are filed by this call."""
        box = self._box(agent)
        mine = self._hands.found()
        done: list[str] = []
        for message_id in ids:
            if not message_ids.is_id(message_id):
                raise BadValue("The id of a message", message_id, "an id as `send` and `take` give it")
            if (mine and box.acknowledge(message_id, mine)) or _acknowledged_by_any(box, message_id):
                done.append(message_id)
        return tuple(done)

    def read(self, agent: str) -> Iterator[Message]:
        """Each waiting message; it counts as read when the next is asked for, here or by another `read`."""
        return self._reading.of(agent)

    def peek(self, agent: str, *, limit: int = MANY) -> list[Message]:
        """The oldest waiting messages, left where they are."""
        self._look_after(agent)
        box = self._box(agent)
        opened = (self._opened(box, name, None) for name in box.waiting()[:limit])
        return [message for message in opened if message is not None]

    def unread_count(self, agent: str) -> int:
        """How many messages wait for `agent`."""
        self._look_after(agent)
        return self._box(agent).count()

    def receipt(self, message_id: str) -> str:
        """What became of a message: "stored", "delivered" or "read".

        Raises:
            NotFound: no message of this id was sent here, or it was read and removed long ago.
        """
        if message_ids.is_id(message_id):
            for name in maildir.boxes(self.folder):
                state = self._box(name).state(message_id)
                if state == "read" and self._claude.holds(name, message_id):
                    return "stored"
                if state:
                    return state
        raise NotFound(f"No message {message_id[:60]!r} in team {self.team!r}.")

    def wait(self, agent: str, timeout: float) -> bool:
        """Whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes at once."""
        from taskyard.tasklist.mail_waiting import wait  # only those who wait pay for it

        return wait(self, agent, timeout)

    def holders(self, agent: str) -> list[str]:
        """Who has mail of `agent` in hand, taken and not acknowledged yet."""
        return self._box(agent).holders()

    def watched_folders(self, agent: str) -> tuple[str, str]:
        """Where new mail shows: the box, and the folder of Claude Code's inboxes."""
        return f"{self._box(agent).path}/new", f"{self._claude.folder}/inboxes"

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Nothing is called: all mail shows in folders."""
        from contextlib import nullcontext

        return nullcontext()

    def known(self) -> list[str]:
        """Everyone who can get mail here."""
        return recipients.known(self.home, self.team, self._claude.config_or(self.damaged))

    def _is_claudes(self, recipient: str) -> bool:
        """Whether mail to `recipient` goes to an inbox of Claude Code's.

        Raises:
            Damaged: its record of the team cannot be read, and nobody of that name is ours.
        """
        try:
            return self._claude.carries(recipient)
        except Damaged:
            if not recipients.is_among(recipient, self.known()):
                raise
            return False

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Remove what `agent` read before a moment, to the nearest day; answers how many messages."""
        return self._box(agent).forget(before_ms)

    def close(self) -> None:
        """Give back what was taken and not acknowledged, unless it is the instance's."""
        self._hands.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_to_claude(self, message: Message, body: bytes) -> Receipt:
        message = message._replace(id=self._new_id(message.sender))
        self._claude.send(message)
        self._box(message.recipient).file_as_read(message.id, body)  # what `receipt` finds later
        return Receipt(message.id, "stored")

    def _queue(self, agent: str, box: Box) -> list[str]:
        """The names to take next, oldest last. A long queue is listed once, not once per bite."""
        returned = self._look_after(agent)
        queue = self._queues.get(agent)
        if returned or not queue:
            queue = self._queues[agent] = box.waiting()[::-1]
        return queue

    def _look_after(self, agent: str) -> int:
        """Bring in what Claude Code sent, and what dead readers left; answers how much of the latter."""
        box = self._box(agent)
        self.damaged += self._claude.fetch(agent, box, self._new_id)
        return box.return_from_the_dead()

    def _opened(self, box: Box, name: str, holder: str | None) -> Message | None:
        """The message in a file; what is no message is set aside and reported."""
        try:
            body = box.read(name, holder)
            if body is None:
                return None
            return decoded(name, body, message_id=maildir.id_of(name), redelivered=name.endswith(AGAIN))
        except (Damaged, StorageError) as error:
            if holder is not None:
                self.damaged.append(Damaged(box.set_aside(name, holder), error.why))
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

    def _box(self, agent: str) -> Box:
        """The box of `agent`; checked once for planted links."""
        box = self._boxes.get(agent)
        if box is None:
            box = Box(self.home, f"{self.folder}/{folder_name('an agent', agent)}")
            box.check()
            self._boxes[agent] = box
        return box


def _popped(queue: list[str], most: int) -> list[str]:
    """The next names of a queue, oldest first; they leave it, so that two threads never share one."""
    names, queue[-most:] = queue[-most:], []
    return names[::-1]


def _acknowledged_by_any(box: Box, message_id: str) -> bool:
    return any(box.acknowledge(message_id, holder) for holder in box.holders())
