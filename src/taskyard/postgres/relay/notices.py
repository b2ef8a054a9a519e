"""Notices and job events of all hosts that share a database.

`ReplicatedOutbox` delivers notices with the guarantees of `jobs.notices`: redelivered until acknowledged,
always under the same id, `redelivered` only if a receiver exited before acknowledging, urgent ones first, the
next in line if the recipient is gone. Two readers of one name on two hosts never both get a notice: the
database delivers it once. Leases of receivers and `hold` timeouts use the database clock.

`ReplicatedNotices` verifies notices. Each home has its own signing key, which never leaves it. The stored text
is compared word for word; the signature is computed here if the notice was issued here, otherwise by the home
that issued it, which must be reachable: a notice that cannot be verified is refused (`HostAway`), never taken
as genuine.

`ReplicatedEvents` reads the event stream from any id on, then follows it. Ids are assigned by the database in
one global order. LISTEN wakes followers at once; nothing is missed while the connection is down, since each
reads from its own position. Deleted events are never skipped silently: `EventsGone` is raised.
"""

from __future__ import annotations

import json
import os

from taskyard.core.system import boottime
from taskyard.core.values import PERSON, NamedTuple, as_object, cast
from taskyard.errors import BadValue, EventsGone, HostAway, JobNotFound
from taskyard.jobs import notices as jobs_notices
from taskyard.jobs import outbox as jobs_outbox
from taskyard.jobs import query
from taskyard.jobs.events import Event, Events
from taskyard.jobs.notice import MAX_BATCH, NEXT, Notice, NoticeBatch, from_payload, select_batch
from taskyard.jobs.notice_check import LocalNotices
from taskyard.jobs.notices import Outbox, text_size
from taskyard.postgres.relay import records, uploader
from taskyard.postgres.relay.ensure_running import ensure_relay
from taskyard.postgres.relay.handler import RpcClient
from taskyard.postgres.relay.uploader import Uploader
from taskyard.storage import message_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from taskyard.jobs.model import Job
    from taskyard.jobs.notices import NoticeWaiter
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.records import Host
    from taskyard.storage.process_registry import Instance


_MARK_JOB_READ = """
    UPDATE notice SET state = 'read', holder = NULL, until = NULL, op = NULL, changed = clock_timestamp()
    WHERE job = %s AND state <> 'read' RETURNING id
"""

_SELECT_NOTICES = "SELECT body, is_again, state, host, recipient FROM notice "


class IssuedNotice(NamedTuple):
    """A notice stored in the database."""

    notice: Notice
    state: str  #: stored, delivered, read
    host: str  #: id of the home that issued it


def mark_job_read(host: Host, database: Database, job: Job, here: Sequence[str]) -> tuple[str, ...]:
    """Mark every notice about a job as read, including those filed `here` before they were uploaded."""
    filed = [notice for notice_id in here if (notice := jobs_outbox.find_notice(host.home, notice_id)) is not None]
    uploader.upload_read(host, database, filed)
    return (*here, *(str(row[0]) for row in database.ask(_MARK_JOB_READ, [job.id]) if row[0] not in here))


def find_notice(database: Database, notice_id: str) -> IssuedNotice | None:
    """Return the notice with this id; None if it was never uploaded."""
    return next(iter(_parse_rows(database.ask(_SELECT_NOTICES + "WHERE id = %s", [notice_id]))), None)


def job_notices(database: Database, job_id: str) -> list[IssuedNotice]:
    """Return every notice of a job: waiting, delivered or read."""
    return _parse_rows(database.ask(_SELECT_NOTICES + "WHERE job = %s ORDER BY at, id", [job_id]))


def parse_notice(body: str, *, is_again: bool) -> Notice | None:
    """Return the notice in a stored body; None if it is not one."""
    try:
        news = as_object((as_object(json.loads(body)) or {}).get("news"))
    except (ValueError, RecursionError):
        return None
    notice = None if news is None else from_payload(news)
    return None if notice is None else notice._replace(redelivered=is_again)


def _parse_rows(rows: Sequence[Sequence[object]]) -> list[IssuedNotice]:
    found = [(parse_notice(str(row[0]), is_again=bool(row[1])), row) for row in rows]
    return [IssuedNotice(notice, str(row[2]), str(row[3])) for notice, row in found if notice is not None]


#: Poll interval in seconds while notices are unread: a receiver that is killed sends no notification.
_POLL_INTERVAL = 1.0

#: Poll interval in seconds otherwise: a supervisor here may have been killed unobserved.
_IDLE_WAIT = 30.0

#: Rows examined at once; more than any caller takes.
_MAX_PEEKED = 1000

_SELECT_WAITING = "SELECT id, body, recipient, is_again, rest FROM waiting_notices(%s, %s)"

_TAKE = """
    UPDATE notice SET state = 'delivered', holder = %s, op = %s, changed = clock_timestamp(),
        until = clock_timestamp() + %s::float8 * interval '1 second'
    WHERE id = ANY(%s) AND (state = 'stored' OR (state = 'delivered' AND op = %s)) RETURNING id, is_again
"""

_ACK = """
    UPDATE notice SET state = 'read', holder = NULL, until = NULL, op = %s, changed = clock_timestamp()
    WHERE id = ANY(%s) AND (state IN ('delivered', 'stored') OR (state = 'read' AND op = %s))
    RETURNING id
"""

_GIVE_BACK = """
    WITH back AS (
        UPDATE notice SET state = 'stored', is_again = true, holder = NULL, changed = clock_timestamp()
        WHERE state = 'delivered' AND holder = %s AND until IS NULL RETURNING id
    )
    SELECT pg_notify('notices', '') FROM back LIMIT 1
"""

_REGISTER_RECEIVER = """
    INSERT INTO receiver (instance, box) VALUES (%s, %s) ON CONFLICT (instance) DO UPDATE SET box = excluded.box
"""


#: Whether an exited receiver or an expired hold could make a notice available.
_HAS_UNREAD = "SELECT EXISTS (SELECT FROM notice WHERE state <> 'read')"


class ReplicatedOutbox(Outbox):
    """The notices waiting for one recipient, or for all, on any host."""

    def __init__(
        self,
        host: Host,
        database: Database,
        recipient: str | None = PERSON,
        *,
        instance: Instance | None = None,
        silence: float,
    ) -> None:
        """Take the arguments of `Outbox`; nothing is created or read yet.

        `silence`: seconds for which an instance counts as alive without another heartbeat.
        """
        super().__init__(host.home, recipient, instance=instance)
        self._instance = instance
        self._database = database
        self._silence = silence
        self._uploader = Uploader(host, database)
        self._is_named = False
        self._unnamed = ""

    def batch(
        self,
        most: int = MAX_BATCH,
        *,
        characters: int | None = None,
        hold: float | None = None,
        force: bool = False,
        exclude: Container[str] = (),
        only_next: bool = False,
    ) -> NoticeBatch:
        """Take the first waiting notices for this process; the arguments are those of `Outbox.batch`."""
        if most < 1:
            raise BadValue("limit", most, "a number from 1")
        while force or not self.is_held():
            found, rest = self._found(_MAX_PEEKED if exclude or only_next else most)
            line = [notice for notice in found if notice.task_id not in exclude]
            if only_next:
                line = [notice for notice in line if notice.priority == NEXT]
                rest = len(found)
            if not line:
                break
            count = len(select_batch(line, most=most, characters=characters, size=text_size).notices)
            if taken := self._taken(line[:count], hold):
                return NoticeBatch(taken, max(0, rest - (len(found) - len(line)) - count))
        return NoticeBatch()

    def _taken(self, notices: list[Notice], hold: float | None) -> tuple[Notice, ...]:
        holder = f"until-{os.urandom(6).hex()}" if hold is not None else self._holder()
        op = os.urandom(8).hex()
        rows = self._database.ask(_TAKE, [holder, op, hold, [notice.id for notice in notices], op])
        got = {str(row[0]): bool(row[1]) for row in rows}
        return tuple(notice._replace(redelivered=got[notice.id]) for notice in notices if notice.id in got)

    def _holder(self) -> str:
        """Return the holder, kept alive by heartbeat: the agent's instance, or an unnamed one of this process."""
        from taskyard.postgres.heartbeat import process_heartbeat

        holder = self._hands.holder()
        process_heartbeat(self._database).keep(holder, silence=self._silence)
        if self._instance is None or holder != self._instance.id:
            self._unnamed = holder
        return holder

    def ack(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Mark notices as read, by whichever process they were taken; return the ids marked by this call."""
        wanted = list(ids)
        for notice_id in wanted:
            if not message_ids.is_message_id(notice_id):
                raise BadValue("The id of a notice", notice_id, "an id as `take` gives it")
        if not wanted:
            return ()
        op = os.urandom(8).hex()
        done = {str(row[0]) for row in self._database.ask(_ACK, [op, wanted, op])}
        return tuple(notice_id for notice_id in wanted if notice_id in done)

    def waiting(self) -> list[Notice]:
        """Return the waiting notices in order without taking them, even if delivery is paused."""
        return self._found(_MAX_PEEKED)[0]

    def state(self, notice_id: str) -> str | None:
        """Return the state of a notice: "stored", "delivered" (taken) or "read"; None if there is none."""
        if not message_ids.is_message_id(notice_id):
            return None
        self._uploader.upload_pending()
        rows = self._database.ask("SELECT state FROM notice WHERE id = %s", [notice_id])
        return str(rows[0][0]) if rows else None

    def is_held(self) -> bool:
        """Whether delivery is paused, on this host or on all."""
        return jobs_notices.is_delivery_paused(self.home) or bool(self._database.ask("SELECT is_on FROM hold"))

    def _waiting(self) -> NoticeWaiter:
        return cast("NoticeWaiter", _OutboxWait(self, self._database))

    def close(self) -> None:
        """Give back taken, unacknowledged notices, unless they belong to the instance."""
        if self._unnamed:
            from taskyard.postgres.heartbeat import process_heartbeat

            unnamed, self._unnamed = self._unnamed, ""
            self._database.ask(_GIVE_BACK, [unnamed])
            process_heartbeat(self._database).let_go(unnamed)
        super().close()

    def _found(self, most: int) -> tuple[list[Notice], int]:
        """Upload what waits on this host; return the first waiting notices and how many there are."""
        self._register_name()
        self._uploader.upload_pending()
        rows = self._database.ask(_SELECT_WAITING, [self.recipient, most])
        found: list[Notice] = []
        for _, body, recipient, is_again, _ in rows:
            notice = parse_notice(str(body), is_again=bool(is_again))
            if notice is not None:
                is_ours = self.recipient in (None, recipient)
                found.append(notice if is_ours else notice._replace(orphaned_from=str(recipient)))
        return found, int(rows[0][4]) if rows else 0

    def _register_name(self) -> None:
        """Register the instance's name, so that its notices do not go to the next in line."""
        instance = self._instance
        if self._is_named or instance is None or not instance.name:
            return
        from taskyard.jobs.notice_payload import box_name
        from taskyard.postgres.heartbeat import process_heartbeat

        process_heartbeat(self._database).keep(instance.id, silence=self._silence)
        self._database.ask(_REGISTER_RECEIVER, [instance.id, box_name(instance.name)])
        self._is_named = True


class _OutboxWait:
    """A wait for notices of an outbox; `cancel` ends it from another thread."""

    def __init__(self, outbox: ReplicatedOutbox, database: Database) -> None:
        self._outbox = outbox
        self._database = database
        self._sound = database.listener.subscription("notices")
        self._is_cancelled = False

    def wait(self, timeout: float) -> bool:
        """Return whether a notice can be taken, now or within `timeout` seconds."""
        until = boottime() + timeout
        count = self._sound.count
        if any(query.live_ids(self._outbox.home)):
            ensure_relay(self._outbox.home, self._database.address)
        while not self._is_cancelled:
            if not self._outbox.is_held() and self._outbox.waiting():
                return True
            left = until - boottime()
            if left <= 0:
                return False
            is_open = bool(self._database.ask(_HAS_UNREAD)[0][0])
            count = self._sound.wait(count, min(left, _POLL_INTERVAL if is_open else _IDLE_WAIT))
        return False

    def cancel(self) -> None:
        """End the wait."""
        self._is_cancelled = True
        self._sound.ring()

    def __enter__(self) -> _OutboxWait:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


class ReplicatedNotices:
    """The notices of all homes that share a database."""

    def __init__(self, host: Host, database: Database, agent: str | None) -> None:
        self._host = host
        self._database = database
        self._asking = RpcClient(database, agent)
        self._here = LocalNotices(host.home)
        self._hosts: dict[str, str] = {}  #: notice id → id of the home that issued it
        Uploader(host, database).upload_pending()

    def with_id(self, notice_id: str) -> Notice | None:
        """Return the notice with this id."""
        if not message_ids.is_message_id(notice_id):
            return None
        found = find_notice(self._database, notice_id)
        if found is None:
            return self._here.with_id(notice_id)
        self._hosts[notice_id] = found.host
        return found.notice

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Return every notice about a job."""
        found = job_notices(self._database, job_id)
        self._hosts.update((one.notice.id, one.host) for one in found)
        return [one.notice for one in found] or self._here.of_job(job_id)

    def is_read(self, notice_id: str) -> bool:
        """Return whether a notice was acknowledged."""
        found = find_notice(self._database, notice_id)
        return self._here.is_read(notice_id) if found is None else found.state == "read"

    def is_signed(self, notice: Notice) -> bool:
        """Return whether the home that issued the notice confirms its signature.

        Raises:
            HostAway: that home is unreachable, so it cannot be verified.
        """
        host = self._hosts.get(notice.id, self._host.id)
        if host == self._host.id:
            return self._here.is_signed(notice)
        far = records.find_jobs(self._database, [notice.task_id]).get(notice.task_id)
        if far is None or far.host != host:
            raise HostAway(host, notice.task_id, seconds=0.0)
        return self._asking.ask(far, "check", {"news": dict(notice.news)}).get("genuine") is True


#: Rows read at once.
_PAGE_SIZE = 500

#: Longest single sleep while following, in seconds: a host going offline sends no notification.
_EVENTS_IDLE_WAIT = 30.0

_SELECT_BOUNDS = (
    "SELECT (SELECT value FROM tally WHERE name = 'event_floor'), (SELECT value FROM tally WHERE name = 'event')"
)

_SELECT_EVENTS = """
    SELECT id, at, subtype, job, body FROM event
    WHERE id > %s AND (%s::text IS NULL OR job = %s) ORDER BY id LIMIT %s
"""


class ReplicatedEvents(Events):
    """Events of the jobs of every host, in order; `for` and `async for` continue where the last one stopped."""

    def __init__(
        self, database: Database, since: int | None = None, *, follow: bool = False, job: str | None = None
    ) -> None:
        """Find the start position; the arguments are those of `Events`.

        Raises:
            EventsGone: some events after `since` were deleted, or the stream never came that far.
            BadValue: `since` cannot be an id.
            JobNotFound: no host knows this job.
        """
        self.unreadable = 0
        self._database = database
        self._follows = follow
        self._job = job
        self._is_closed = False
        self._sound = database.listener.subscription("events")
        if since is not None and since < 0:
            raise BadValue("since", since, "the id of an event, or 0")
        if job is not None and not self._rows_of_job():
            raise JobNotFound(job)
        first, last = self._ends()
        self.position = since if since is not None else first
        self._check(first, last)

    def skip(self) -> int:
        """Skip all existing events; return the new position."""
        self.position = self._ends()[1]
        return self.position

    def close(self) -> None:
        """End every wait for more events, in any thread."""
        self._is_closed = True
        self._sound.ring()

    def _steps(self) -> Iterator[Event | Callable[[], object]]:
        """Yield each event and, between them, the functions to wait with."""
        count = self._sound.count
        while not self._is_closed:
            is_over = not self._follows or self._is_job_over()
            yield from self._fresh()
            if is_over:
                return
            before = count
            yield lambda before=before: self._sound.wait(before, _EVENTS_IDLE_WAIT)  # type: ignore[misc]
            count = self._sound.count

    def _fresh(self) -> Iterator[Event]:
        """Yield the events that are new since the last call."""
        while not self._is_closed:
            self._check(*self._ends())
            rows = self._database.ask(_SELECT_EVENTS, [self.position, self._job, self._job, _PAGE_SIZE])
            for event_id, at, subtype, job, body in rows:
                self.position = int(event_id)
                yield Event(self.position, int(at), str(subtype), str(job), as_object(json.loads(body)) or {})
            if len(rows) < _PAGE_SIZE:
                return

    def _check(self, first: int, last: int) -> None:
        if not first <= self.position <= last:
            raise EventsGone(self.position, first=first, last=last)

    def _ends(self) -> tuple[int, int]:
        row = self._database.ask(_SELECT_BOUNDS)[0]
        return int(row[0]), int(row[1])

    def _is_job_over(self) -> bool:
        return self._job is not None and all(bool(row[0]) for row in self._rows_of_job())

    def _rows_of_job(self) -> list[tuple[bool]]:
        return self._database.ask("SELECT is_final FROM job WHERE id = %s", [self._job])
