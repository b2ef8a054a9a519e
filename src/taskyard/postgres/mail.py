"""Mail and teams in PostgreSQL, for agents on any host.

A message is a row; each of its state changes (stored, delivered, read) is one idempotent statement (functions
in `0002_mail.sql`). The messages of one sender keep the order in which the server stored them, since a sender
waits for each answer. The end of a `hold` goes by the server's clock.

A reader on another host counts as alive by its heartbeat and the server's clock. On this host the kernel knows
at once: the id of an unnamed reader contains its process, and a named instance has a lock in its home. A reader
found dead here is removed for all hosts (`MailConsumers`).

Teams are one row each. A change is computed from what was read, refused by the server if another process was
faster, and then computed again.

Claude Code's inboxes are files on one host and are served only there (`ClaudeMailBridge`).
"""

from __future__ import annotations

import os
import threading
import uuid

from taskyard import config
from taskyard.agents import mail
from taskyard.agents import teams as agents_teams
from taskyard.agents.claude_mail import ClaudeMailBridge
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
from taskyard.agents.mailbox import HOLDER_POLL_INTERVAL
from taskyard.core.system import boottime, now_ms, process_alive, process_start, this_host
from taskyard.core.values import check_name, folder_name
from taskyard.errors import BadValue, Busy, Damaged, NotFound
from taskyard.postgres.heartbeat import DEFAULT_TTL, process_heartbeat
from taskyard.storage import message_ids
from taskyard.storage.process_registry import is_instance_alive, lock_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Self

    from taskyard.agents.teams import Member, Team
    from taskyard.postgres.connection import Database
    from taskyard.storage.process_registry import Instance


_UNNAMED_PREFIX = "reader"

_SELECT_LOCAL = """
    SELECT DISTINCT m.holder FROM message m JOIN box b ON b.id = m.box JOIN instance i ON i.id = m.holder
    WHERE b.team = %s AND b.agent = %s AND m.state = 'delivered' AND m.until IS NULL AND i.host = %s
"""


class MailConsumers:
    """The mail readers of one database, as seen from one `PostgresMail`."""

    def __init__(self, database: Database, home: str, instance: Instance | None, *, silence: float) -> None:
        """`instance` takes the mail; without one, an unnamed reader of this process does."""
        self._database = database
        self._home = home
        self._instance = instance
        self._silence = silence
        self._id = uuid.uuid4().hex
        self._unnamed = (0, "")

    def me(self) -> str:
        """Return the holder under which this process takes mail, kept alive by heartbeat from now on."""
        mine = self._instance
        holder = mine.id if mine is not None and mine.is_ours else self._reader
        process_heartbeat(self._database).keep(holder, silence=self._silence)
        return holder

    def leave(self) -> None:
        """Give back everything that was taken unnamed."""
        process_heartbeat(self._database).let_go(self._reader)

    @property
    def _reader(self) -> str:
        """The unnamed reader: one per object and process, so that a forked child has its own."""
        if self._unnamed[0] != os.getpid():
            self._unnamed = (
                os.getpid(),
                f"{_UNNAMED_PREFIX}-{self._id}-{_pid_namespace()}-{os.getpid()}-{process_start()}",
            )
        return self._unnamed[1]

    def settle(self, team: str, agent: str) -> bool:
        """Remove dead readers of this host from a box; return whether live ones here still hold mail of it."""
        mine = {self._unnamed[1], self._instance.id if self._instance is not None else ""}
        rows = self._database.ask(_SELECT_LOCAL, [team, agent, this_host()])
        others = [row[0] for row in rows if row[0] not in mine]
        dead = [holder for holder in others if _is_dead(self._home, holder)]
        if dead:
            self._database.ask("DELETE FROM instance WHERE id = ANY(%s)", [dead])
        return len(dead) < len(others)


def _is_dead(home: str, holder: str) -> bool:
    """Return whether a holder on this host is certainly dead."""
    if holder.startswith(f"{_UNNAMED_PREFIX}-"):
        _, _, space, pid, start = holder.split("-")
        return space == _pid_namespace() and not process_alive(int(pid), int(start))
    return os.path.lexists(lock_path(home, holder)) and is_instance_alive(home, holder) is False


def _pid_namespace() -> str:
    """Return the PID namespace in which a pid is valid."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


#: Seconds to retry a change while other processes change the same team; each change takes milliseconds.
_CHANGE_TIMEOUT = 10.0


class PostgresTeamStore:
    """All teams of a database."""

    def __init__(self, database: Database, *, silence: float = DEFAULT_TTL) -> None:
        self._database = database
        self._silence = silence

    def read(self, team: str) -> Team | None:
        """Return the team with this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        return self._seen(team)[1]

    def _seen(self, team: str) -> tuple[int, Team | None]:
        """Return a team's version and record; version 0 if there is none."""
        rows = self._database.ask("SELECT version, body FROM team WHERE key = %s", [folder_name("a team", team)])
        if not rows:
            return 0, None
        return rows[0][0], agents_teams.decode_team(self._where(team), rows[0][1].encode())

    def has(self, team: str) -> bool:
        """Return whether a team with this name exists, readable or not."""
        return folder_name("a team", team) in self.names()

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Return every team by name, and the unreadable ones."""
        teams: list[Team] = []
        damaged: list[Damaged] = []
        for key, body in self._database.ask("SELECT key, body FROM team WHERE key !~ '/' ORDER BY key"):
            try:
                teams.append(agents_teams.decode_team(self._where(key), body.encode()))
            except Damaged as error:
                damaged.append(error)
        return teams, damaged

    def names(self) -> list[str]:
        """Return the folder names of all teams."""
        return [row[0] for row in self._database.ask("SELECT key FROM team WHERE key !~ '/' ORDER BY key")]

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by the result of `rule`; None, for either, means that there is no team."""
        began = boottime()
        while (waited := boottime() - began) < _CHANGE_TIMEOUT:
            version, was = self._seen(team)
            now = rule(was)
            if now == was or self._replaced(team, version, now):
                return now
        raise Busy(self._where(team), "other processes that keep changing it", waited)

    def _replaced(self, team: str, version: int, now: Team | None) -> bool:
        body = None if now is None else agents_teams.encode_team(now).decode("ascii")
        values = [folder_name("a team", team), version, body, str(uuid.uuid4())]
        return bool(self._database.ask("SELECT change_team(%s, %s, %s, %s)", values)[0][0])

    def quarantine(self, team: str) -> None:
        """Move an unreadable record out of the way and keep it."""
        key = folder_name("a team", team)
        aside = f".damaged/{key}/{uuid.uuid4().hex}"
        self._database.ask("UPDATE team SET key = %s WHERE key = %s", [aside, key])

    def open_box(self, team: str, agent: str) -> None:
        """Open a mailbox for `agent` in a team."""
        values = [folder_name("a team", team), folder_name("an agent", agent), agent]
        self._database.ask("SELECT open_box(%s, %s, %s)", values)

    def close_box(self, team: str, agent: str) -> None:
        """Close the mailbox of `agent` in a team; existing mail stays readable."""
        values = [folder_name("a team", team), folder_name("an agent", agent)]
        self._database.ask("UPDATE box SET is_open = false WHERE team = %s AND agent = %s", values)

    def archive_mail(self, team: str) -> None:
        """Move a dissolved team's mail where a new team of that name does not find it."""
        key = folder_name("a team", team)
        away = f".dissolved/{key}/{uuid.uuid4().hex}"
        self._database.ask("UPDATE box SET team = %s, is_open = false WHERE team = %s", [away, key])

    def known(self, team: str) -> list[str]:
        """Return the members, every live instance, and every agent with an open mailbox."""
        found = self.read(team)
        rows = self._database.ask(
            "SELECT name FROM box WHERE team = %s AND is_open UNION"
            " SELECT l.name FROM living l JOIN instance i ON i.id = l.instance WHERE i.until >= clock_timestamp()",
            [folder_name("a team", team)],
        )
        return [*(row[0] for row in rows), *(member.name for member in (found.members if found else ()))]

    def keep_alive(self, instance: Instance) -> None:
        """Keep an instance of this process alive by heartbeat, for all hosts, until the process exits."""
        if instance.is_ours:
            process_heartbeat(self._database).keep(instance.id, silence=self._silence)

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Return whether each member is alive; None where unknown."""
        wanted = [member.instance for member in members if member.instance]
        sql = "SELECT id, until >= clock_timestamp() FROM instance WHERE id = ANY(%s)"
        believed: dict[str, bool] = dict(self._database.ask(sql, [wanted])) if wanted else {}
        return [_is_alive(member, believed) for member in members]

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Call `wake`, from any thread, when a team may have changed."""
        return self._database.listener.subscription("teams").callback(wake)

    def _where(self, team: str) -> str:
        return f"team {team!r} in {self._database.where}"


def _is_alive(member: Member, believed: dict[str, bool]) -> bool | None:
    """Return whether a member is alive: on this host by the kernel, elsewhere by its heartbeat.

    `believed`: every registered instance, and whether its heartbeat is recent.
    """
    here = this_host()
    if member.instance and member.instance not in believed:
        return False  # it left, or its heartbeat expired long ago
    if member.host == here and member.pid and member.start:
        return process_alive(member.pid, member.start)
    if member.host and member.host.partition("/")[0] == here.partition("/")[0] and member.host != here:
        return False  # registered before the last reboot of this machine
    return believed[member.instance] if member.instance else None


#: Holder of messages that went to an inbox of Claude Code.
_CLAUDE_HOLDER = "claude"

#: Minimum poll interval in seconds for a message about to be requeued: the server's clock, not ours, decides.
_MIN_WAIT = 0.02


class PostgresMail:
    """The mail of one team in a database."""

    def __init__(
        self,
        database: Database,
        home: str,
        team: str,
        *,
        instance: Instance | None = None,
        claude_folder: str | None = None,
        silence: float = DEFAULT_TTL,
    ) -> None:
        """Create the object; nothing is created or read yet.

        Args:
            database: Where the mail is.
            home: `$TASKYARD_HOME`; messages sent by Claude Code on this host pass through it.
            team: The team whose mail it is.
            instance: The live instance that takes mail; without one the process takes it unnamed.
            claude_folder: Claude Code's folder, if not the default.
            silence: Seconds for which a reader counts as alive without another heartbeat.
        """
        self.home = home
        self.team = team
        self.damaged: list[Damaged] = []  #: what could not be read so far; kept, never removed
        self.claude_folder = claude_folder if claude_folder is not None else config.claude_folder()
        self._database = database
        self._key = folder_name("a team", team)
        self._readers = MailConsumers(database, home, instance, silence=silence)
        self._teams = PostgresTeamStore(database, silence=silence)
        self._claude = ClaudeMailBridge(home, self.claude_folder, team)
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
        """Store a message for `recipient`; see `Mail.send`."""
        message = Message("", sender, recipient, self.team, type, text, summary, data or {}, now_ms())
        return self._send(message, opens=False)

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Notify the agent concerned about its task, except of its own action; a new owner gets a mailbox."""
        check_name("an agent", recipient)
        if sender == recipient:
            return Receipt("", "skipped")
        return self._send(Message("", sender, recipient, self.team, type, text, None, data, now_ms()), opens=True)

    def _send(self, message: Message, *, opens: bool) -> Receipt:
        """Store a message; `opens`: create a mailbox for the recipient if it has none."""
        body, recipient = encode_message(check_message(message)).decode("ascii"), message.recipient
        message = message._replace(id=message_ids.clock_id(folder_name("an agent", message.sender)))
        if self._belongs_to_claude(recipient):
            self._claude.send(message)
            self._ask("SELECT note_mail(%s, %s, %s, %s, %s)", recipient, recipient, message.id, body)
        elif not self._stored(recipient, message.id, body):
            if not opens:
                mail.check_recipient(recipient, self.known(), team=self.team)
            while not self._stored(recipient, message.id, body):  # it may be closed at this moment
                self.open_box(recipient)
        return Receipt(message.id, "stored")

    def _stored(self, recipient: str, message_id: str, body: str) -> bool:
        """Store a message; False if the recipient's mailbox is closed or missing."""
        return bool(self._ask("SELECT send_mail(%s, %s, %s, %s)", recipient, message_id, body)[0][0])

    def open_box(self, agent: str) -> None:
        """Open a mailbox for `agent`."""
        self._teams.open_box(self.team, agent)

    def close_box(self, agent: str) -> None:
        """Close the mailbox of `agent`; existing mail stays readable."""
        self._teams.close_box(self.team, agent)

    def take(self, agent: str, *, limit: int = DEFAULT_LIMIT, hold: float | None = None) -> list[Message]:
        """Take the oldest waiting messages of `agent` for this process until `ack`; see `Mail.take`."""
        if limit < 1:
            raise BadValue("limit", limit, "a number from 1")
        self._import_pending(agent)
        operation = str(uuid.uuid4())
        holder = self._readers.me() if hold is None else f"until-{operation}"
        span = None if hold is None else round(hold * 1000)
        while True:
            rows = self._ask("SELECT * FROM take_mail(%s, %s, %s, %s, %s, %s)", agent, limit, holder, span, operation)
            taken = [message for message in map(self._opened, rows) if message is not None]
            if taken or not rows:
                return taken
            operation = str(uuid.uuid4())  # everything unreadable was quarantined: continue

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """Mark messages as read, by whichever process they were taken; return the ids marked by this call."""
        asked = list(ids)
        for message_id in asked:
            if not message_ids.is_message_id(message_id):
                raise BadValue("The id of a message", message_id, "an id as `send` and `take` give it")
        if not asked:
            return ()
        rows = self._ask("SELECT ack_mail(%s, %s, %s::uuid[], %s)::text", agent, asked, str(uuid.uuid4()))
        done = {row[0] for row in rows}
        return tuple(message_id for message_id in asked if message_id in done)

    def read(self, agent: str) -> Iterator[Message]:
        """Yield each waiting message; it counts as read when the next is requested, here or by another `read`."""
        return self._reading.of(agent)

    def peek(self, agent: str, *, limit: int = DEFAULT_LIMIT) -> list[Message]:
        """Return the oldest waiting messages without taking them."""
        self._import_pending(agent)
        rows = self._ask("SELECT * FROM peek_mail(%s, %s, %s)", agent, limit)
        return [message for message in map(self._opened, rows) if message is not None]

    def unread_count(self, agent: str) -> int:
        """Return how many messages wait for `agent`."""
        self._import_pending(agent)
        return int(self._ask("SELECT count_mail(%s, %s)", agent)[0][0])

    def receipt(self, message_id: str) -> str:
        """Return the state of a message; see `Mail.receipt`. One in Claude Code on another host is "delivered"."""
        rows = (
            self._database.ask(
                "SELECT m.state, m.holder, b.name FROM message m JOIN box b ON b.id = m.box"
                " WHERE m.id = %s AND b.team = %s AND m.state <> 'bad'",
                [message_id, self._key],
            )
            if message_ids.is_message_id(message_id)
            else []
        )
        if not rows:
            raise NotFound(f"No message {message_id[:60]!r} in team {self.team!r}.")
        state, holder, name = rows[0]
        if holder == _CLAUDE_HOLDER and self._claude.is_here:
            return "stored" if self._claude.holds(name, message_id) else "read"
        return str(state)

    def wait(self, agent: str, timeout: float) -> bool:
        """Return whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes it at once.

        The end of a `hold` and the exit of a reader on this host send no notification: while either may happen,
        it polls when the server expects it, and every second.
        """
        from taskyard.storage.inotify import watcher

        deadline, rang = boottime() + timeout, threading.Event()
        with watcher().follow(*self.watched_folders(agent), news=rang) as inboxes, self.heard(agent, rang.set):
            while True:
                inboxes.changed()
                may_die = self._import_pending(agent)
                [(is_there, due)] = self._ask("SELECT * FROM await_mail(%s, %s)", agent)
                if is_there:
                    return True
                left = deadline - boottime()
                if left <= 0:
                    return False
                due = min(HOLDER_POLL_INTERVAL if may_die else left, left if due is None else due)
                inboxes.wait(min(left, max(_MIN_WAIT, due)))

    def watched_folders(self, agent: str) -> tuple[str, ...]:
        """Return the folders where messages from Claude Code appear."""
        return (self._claude.inboxes,)

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Call `wake`, from any thread, when mail may have arrived that no folder shows."""
        import hashlib

        box = f"{self._key}/{folder_name('an agent', agent)}"
        key = hashlib.md5(box.encode(), usedforsecurity=False).hexdigest()[:16]  # as in the SQL function `mail_channel`
        return self._database.listener.subscription(f"mail_{key}").callback(wake)

    def holders(self, agent: str) -> list[str]:
        """Return the holders of `agent`'s taken, unacknowledged messages."""
        rows = self._ask(
            "SELECT DISTINCT m.holder FROM message m JOIN box b ON b.id = m.box"
            " WHERE b.team = %s AND b.agent = %s AND m.state = 'delivered' ORDER BY m.holder",
            agent,
        )
        return [row[0] for row in rows]

    def known(self) -> list[str]:
        """Return every agent that can get mail here."""
        names = set(self._teams.known(self.team))
        claude = self._claude.config_or(self.damaged)
        names.update(member.name for member in (claude.members if claude else ()))
        return sorted(names)

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Delete messages of `agent` that were read and stored before `before_ms`; return how many."""
        rows = self._ask(
            "WITH gone AS (DELETE FROM message m USING box b WHERE b.id = m.box AND b.team = %s AND b.agent = %s"
            " AND m.state = 'read' AND m.stored_at < to_timestamp(%s / 1000.0) RETURNING 1) SELECT count(*) FROM gone",
            agent,
            before_ms,
        )
        return int(rows[0][0])

    def close(self) -> None:
        """Give back taken, unacknowledged messages, unless they belong to the instance."""
        self._readers.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, sql: Any, agent: str, *more: object) -> list[Any]:
        """Run one statement about the mailbox of `agent`; its first two values are the team and the agent."""
        return self._database.ask(sql, [self._key, folder_name("an agent", agent), *more])

    def _belongs_to_claude(self, recipient: str) -> bool:
        """Return whether mail to `recipient` goes to an inbox of Claude Code on this host; see `Mail`."""
        try:
            return self._claude.delivers_to(recipient)
        except Damaged:
            if not mail.is_among(recipient, self.known()):
                raise
            return False

    def _import_pending(self, agent: str) -> bool:
        """Import messages that Claude Code on this host sent to `agent`, and requeue those of dead readers.

        Returns whether live readers of this host still hold mail of it.
        """
        for message_id, body in self._claude.brought(agent, self.damaged):
            while not self._stored(agent, message_id, body):
                self.open_box(agent)
        return self._readers.settle(self._key, folder_name("an agent", agent))

    def _opened(self, row: tuple[uuid.UUID, str, bool]) -> Message | None:
        """Return the message in a row; an unreadable one is quarantined and reported."""
        message_id, body, is_again = str(row[0]), row[1], row[2]
        try:
            return decode_message(message_id, body.encode(), message_id=message_id, redelivered=is_again)
        except Damaged as error:
            self.damaged.append(error)
            self._database.ask("UPDATE message SET state = 'bad' WHERE id = %s", [message_id])
            return None
