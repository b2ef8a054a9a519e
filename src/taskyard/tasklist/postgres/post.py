"""
Mail in a database: the same post office for agents on any machine.

A message is a row; every step of its life is one statement, which may be sent twice and takes effect once (functions
in `0002_mail.sql`). The order of a sender's messages is that in which the server stored them, as a sender waits for
each answer. Whether a reader lives, its heartbeat says, by the server's clock, and on its own machine the kernel
(`readers`). The end of a `hold` is by the server's clock too.

Claude Code's inboxes are files on one machine: they are served from there alone (`claude_carrier`).
"""

from __future__ import annotations

import threading
import uuid

from taskyard import message_ids, paths
from taskyard.clock import elapsed, now_ms
from taskyard.errors import BadValue, Damaged, NotFound
from taskyard.heart import SILENCE
from taskyard.names import check_name, folder_name
from taskyard.tasklist import recipients
from taskyard.tasklist.claude_carrier import ClaudeCarrier
from taskyard.tasklist.mail_waiting import LOOK_EVERY
from taskyard.tasklist.message import MESSAGE, Message, Receipt, checked, decoded, encoded
from taskyard.tasklist.postgres.readers import Readers
from taskyard.tasklist.postgres.teams import TeamRows
from taskyard.tasklist.reading import MANY, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Self

    from taskyard.database.pool import Database
    from taskyard.instances import Instance

#: In whose hands a message is that went to an inbox of Claude Code's.
_CLAUDE = "claude"

#: Seconds until the next look at what comes back this moment: the server's clock decides, and ours is not its.
_SOONEST = 0.02


class PostgresPost:
    """The mail of one team, in a database."""

    def __init__(
        self,
        database: Database,
        home: str,
        team: str,
        *,
        instance: Instance | None = None,
        claude_folder: str | None = None,
        silence: float = SILENCE,
    ) -> None:
        """Nothing is made or read yet.

        Args:
            database: Where the mail is.
            home: `$TASKYARD_HOME`: what Claude Code sends on this machine passes through it.
            team: Whose mail.
            instance: The living instance that takes mail; without one the process takes it unnamed.
            claude_folder: Claude Code's folder, if not the usual one.
            silence: Seconds for which a reader is believed to live without another word.
        """
        self.home = home
        self.team = team
        self.damaged: list[Damaged] = []  #: what could not be read so far; it is kept, never removed
        self.claude_folder = claude_folder if claude_folder is not None else paths.claude_folder()
        self._database = database
        self._key = folder_name("a team", team)
        self._readers = Readers(database, home, instance, silence=silence)
        self._teams = TeamRows(database, silence=silence)
        self._claude = ClaudeCarrier(home, self.claude_folder, team)
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
        """Store a message for `recipient`; see `Mail.send`."""
        message = Message("", sender, recipient, self.team, type, text, summary, data or {}, now_ms())
        return self._send(message, opens=False)

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Send what somebody must hear about a task of theirs, unless by their own act; a new owner gets a box."""
        check_name("an agent", recipient)
        if sender == recipient:
            return Receipt("", "skipped")
        return self._send(Message("", sender, recipient, self.team, type, text, None, data, now_ms()), opens=True)

    def _send(self, message: Message, *, opens: bool) -> Receipt:
        """Store a message; `opens`: its recipient gets a box if it has none."""
        body, recipient = encoded(checked(message)).decode("ascii"), message.recipient
        message = message._replace(id=message_ids.lone_id(folder_name("an agent", message.sender)))
        if self._is_claudes(recipient):
            self._claude.send(message)
            self._ask("SELECT note_mail(%s, %s, %s, %s, %s)", recipient, recipient, message.id, body)
        elif not self._stored(recipient, message.id, body):
            if not opens:
                recipients.check(recipient, self.known(), team=self.team)
            while not self._stored(recipient, message.id, body):  # it may be closed this very moment
                self.open_box(recipient)
        return Receipt(message.id, "stored")

    def _stored(self, recipient: str, message_id: str, body: str) -> bool:
        """Whether a message is in its box; no, if that takes none."""
        return bool(self._ask("SELECT send_mail(%s, %s, %s, %s)", recipient, message_id, body)[0][0])

    def open_box(self, agent: str) -> None:
        """Make `agent` someone who gets mail here."""
        self._teams.open_box(self.team, agent)

    def close_box(self, agent: str) -> None:
        """Let `agent` get no more mail here; what it has stays readable."""
        self._teams.close_box(self.team, agent)

    def take(self, agent: str, *, limit: int = MANY, hold: float | None = None) -> list[Message]:
        """The oldest waiting messages of `agent`, now in this process's hands until `ack`; see `Mail.take`."""
        if limit < 1:
            raise BadValue("limit", limit, "a number from 1")
        self._look_after(agent)
        operation = str(uuid.uuid4())
        holder = self._readers.me() if hold is None else f"until-{operation}"
        span = None if hold is None else round(hold * 1000)
        while True:
            rows = self._ask("SELECT * FROM take_mail(%s, %s, %s, %s, %s, %s)", agent, limit, holder, span, operation)
            taken = [message for message in map(self._opened, rows) if message is not None]
            if taken or not rows:
                return taken
            operation = str(uuid.uuid4())  # all that was unreadable is set aside: go on

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """File messages as read, whoever took them; answers those that are filed by this call."""
        asked = list(ids)
        for message_id in asked:
            if not message_ids.is_id(message_id):
                raise BadValue("The id of a message", message_id, "an id as `send` and `take` give it")
        if not asked:
            return ()
        rows = self._ask("SELECT ack_mail(%s, %s, %s::uuid[], %s)::text", agent, asked, str(uuid.uuid4()))
        done = {row[0] for row in rows}
        return tuple(message_id for message_id in asked if message_id in done)

    def read(self, agent: str) -> Iterator[Message]:
        """Each waiting message; it counts as read when the next is asked for, here or by another `read`."""
        return self._reading.of(agent)

    def peek(self, agent: str, *, limit: int = MANY) -> list[Message]:
        """The oldest waiting messages, left where they are."""
        self._look_after(agent)
        rows = self._ask("SELECT * FROM peek_mail(%s, %s, %s)", agent, limit)
        return [message for message in map(self._opened, rows) if message is not None]

    def unread_count(self, agent: str) -> int:
        """How many messages wait for `agent`."""
        self._look_after(agent)
        return int(self._ask("SELECT count_mail(%s, %s)", agent)[0][0])

    def receipt(self, message_id: str) -> str:
        """What became of a message; see `Mail.receipt`. One in another machine's Claude Code is "delivered"."""
        rows = (
            self._database.ask(
                "SELECT m.state, m.holder, b.name FROM message m JOIN box b ON b.id = m.box"
                " WHERE m.id = %s AND b.team = %s AND m.state <> 'bad'",
                [message_id, self._key],
            )
            if message_ids.is_id(message_id)
            else []
        )
        if not rows:
            raise NotFound(f"No message {message_id[:60]!r} in team {self.team!r}.")
        state, holder, name = rows[0]
        if holder == _CLAUDE and self._claude.is_here:
            return "stored" if self._claude.holds(name, message_id) else "read"
        return str(state)

    def wait(self, agent: str, timeout: float) -> bool:
        """Whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes at once.

        Nobody tells of hands that open by themselves, nor of a death on this machine: while either may happen, one
        looks again when the server says, and every second.
        """
        from taskyard.disk.watch import watcher

        deadline, rang = elapsed() + timeout, threading.Event()
        with watcher().follow(*self.watched_folders(agent), news=rang) as inboxes, self.heard(agent, rang.set):
            while True:
                inboxes.changed()
                may_die = self._look_after(agent)
                [(is_there, due)] = self._ask("SELECT * FROM await_mail(%s, %s)", agent)
                if is_there:
                    return True
                left = deadline - elapsed()
                if left <= 0:
                    return False
                due = min(LOOK_EVERY if may_die else left, left if due is None else due)
                inboxes.wait(min(left, max(_SOONEST, due)))

    def watched_folders(self, agent: str) -> tuple[str, ...]:
        """Where what Claude Code sends shows."""
        return (self._claude.inboxes,)

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when mail may have come that no folder shows."""
        import hashlib

        box = f"{self._key}/{folder_name('an agent', agent)}"
        key = hashlib.md5(box.encode(), usedforsecurity=False).hexdigest()[:16]  # as the function `mail_channel` has it
        return self._database.ear.sound(f"mail_{key}").rings(wake)

    def holders(self, agent: str) -> list[str]:
        """Who has mail of `agent` in hand, taken and not acknowledged yet."""
        rows = self._ask(
            "SELECT DISTINCT m.holder FROM message m JOIN box b ON b.id = m.box"
            " WHERE b.team = %s AND b.agent = %s AND m.state = 'delivered' ORDER BY m.holder",
            agent,
        )
        return [row[0] for row in rows]

    def known(self) -> list[str]:
        """Everyone who can get mail here."""
        names = set(self._teams.known(self.team))
        claude = self._claude.config_or(self.damaged)
        names.update(member.name for member in (claude.members if claude else ()))
        return sorted(names)

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Remove what `agent` read and was sent before a moment; answers how many messages."""
        rows = self._ask(
            "WITH gone AS (DELETE FROM message m USING box b WHERE b.id = m.box AND b.team = %s AND b.agent = %s"
            " AND m.state = 'read' AND m.stored_at < to_timestamp(%s / 1000.0) RETURNING 1) SELECT count(*) FROM gone",
            agent,
            before_ms,
        )
        return int(rows[0][0])

    def close(self) -> None:
        """Give back what was taken and not acknowledged, unless it is the instance's."""
        self._readers.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, sql: Any, agent: str, *more: object) -> list[Any]:
        """One statement about the box of `agent`, whose first two values are whose it is."""
        return self._database.ask(sql, [self._key, folder_name("an agent", agent), *more])

    def _is_claudes(self, recipient: str) -> bool:
        """Whether mail to `recipient` goes to an inbox of Claude Code's on this machine; see `Post`."""
        try:
            return self._claude.carries(recipient)
        except Damaged:
            if not recipients.is_among(recipient, self.known()):
                raise
            return False

    def _look_after(self, agent: str) -> bool:
        """Bring in what a Claude Code here sent to `agent`, and what the dead of this machine left.

        Answers whether readers of this machine have mail of it in hand.
        """
        for message_id, body in self._claude.brought(agent, self.damaged):
            while not self._stored(agent, message_id, body):
                self.open_box(agent)
        return self._readers.settle(self._key, folder_name("an agent", agent))

    def _opened(self, row: tuple[uuid.UUID, str, bool]) -> Message | None:
        """The message in a row; what is no message is set aside and reported."""
        message_id, body, is_again = str(row[0]), row[1], row[2]
        try:
            return decoded(message_id, body.encode(), message_id=message_id, redelivered=is_again)
        except Damaged as error:
            self.damaged.append(error)
            self._database.ask("UPDATE message SET state = 'bad' WHERE id = %s", [message_id])
            return None
