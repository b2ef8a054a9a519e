"""Upload events, job records and notices of this home into the database, each exactly once.

    events     continue at the position stored in the database; a batch counts only if that is unchanged
    records    are replaced by newer ones until the final one, which stays
    notices    are inserted under their own ids, and only then filed here as read

A repeated upload is idempotent. The relay uploads after each change, and a process that reads notices uploads
once before: neither depends on the other. An exit is written into the job's record in the same statement as its
event. A notice carries its chain of recipients, computed from records that only this host has, for the case
that its recipient is gone.
"""

from __future__ import annotations

import json
import os
from itertools import islice

from taskyard.core.system import now_ms, this_host
from taskyard.core.values import NamedTuple, is_folder_safe
from taskyard.errors import Damaged, EventsGone, JobNotFound, StorageError, TaskyardError
from taskyard.jobs import outbox
from taskyard.jobs.events import Events, is_end_pending, wait_for_end
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.helper_process import append_log
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End, is_job_id
from taskyard.jobs.notice import NEXT, decode_notice
from taskyard.jobs.notice_payload import PEOPLE, recipient_of
from taskyard.jobs.query import read_job, recover_all
from taskyard.postgres.relay.records import encode_job, find_jobs
from taskyard.storage import maildir
from taskyard.storage.maildir import REDELIVERED, Maildir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.jobs.events import Event
    from taskyard.jobs.model import Job
    from taskyard.jobs.notice import Notice
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.records import Host


#: Notices uploaded per statement.
_NOTICE_BATCH = 200

#: Seconds to file one notice; if the process is killed meanwhile, it is requeued and its upload repeated
#: (idempotent).
_ACK_TIMEOUT = 5.0

#: Nesting of jobs deeper than this must be a cycle written by hand.
_MAX_DEPTH = 64

_INSERT_NOTICES = "SELECT put_notices(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


class _QueuedNotice(NamedTuple):
    box: Maildir
    name: str
    body: bytes
    notice: Notice


def is_outbox_empty(home: str) -> bool:
    """Return whether no notice waits for upload or is taken and may be requeued."""
    return not any(box.count() or _has_taken(box) for box in outbox.boxes(home))


def upload_notices(host: Host, database: Database) -> int:
    """Upload all waiting notices; return how many.

    Raises:
        StoreAway, SchemaMismatch, StorageError: the rest keeps waiting.
    """
    count = 0
    batch: list[_QueuedNotice] = []
    for found in _queued_notices(host.home):
        batch.append(found)
        if len(batch) == _NOTICE_BATCH:
            count += _upload_batch(host, database, batch)
            batch = []
    return count + (_upload_batch(host, database, batch) if batch else 0)


def upload_read(host: Host, database: Database, notices: Sequence[Notice]) -> None:
    """Upload notices as read that were read here before their upload."""
    rows = [(notice, notice.recipient, json.dumps({"end": None, "news": dict(notice.news)})) for notice in notices]
    if rows:
        _insert_notices(host, database, "read", rows)


def _queued_notices(home: str) -> Iterator[_QueuedNotice]:
    for box in outbox.boxes(home):
        box.check()
        box.requeue_abandoned()
        for name in box.waiting():
            try:
                data = box.read(name)
                if data is not None:
                    yield _QueuedNotice(
                        box, name, data, decode_notice(name, data, redelivered=name.endswith(REDELIVERED))
                    )
            except (Damaged, StorageError):
                holder = maildir.timed_holder(_ACK_TIMEOUT)
                if box.take(name, holder):
                    box.quarantine(name, holder)


def _upload_batch(host: Host, database: Database, batch: Sequence[_QueuedNotice]) -> int:
    rows = [(found.notice, os.path.basename(found.box.path), found.body.decode("utf-8", "replace")) for found in batch]
    _insert_notices(host, database, "stored", rows)
    for found in batch:
        holder = maildir.timed_holder(_ACK_TIMEOUT)
        if found.box.take(found.name, holder):
            found.box.acknowledge(found.notice.id, holder)
    return len(batch)


def _insert_notices(host: Host, database: Database, state: str, rows: Sequence[tuple[Notice, str, str]]) -> None:
    notices = [notice for notice, _, _ in rows]
    database.ask(
        _INSERT_NOTICES,
        [
            host.id,
            state,
            [notice.id for notice in notices],
            [notice.task_id for notice in notices],
            [recipient for _, recipient, _ in rows],
            [notice.priority == NEXT for notice in notices],
            [notice.at for notice in notices],
            [notice.redelivered for notice in notices],
            [body for _, _, body in rows],
            [json.dumps(recipient_chain(host.home, notice.task_id)) for notice in notices],
        ],
    )


def recipient_chain(home: str, job_id: str) -> list[dict[str, object]]:
    """Return the recipients of a job's notices in order: its starter, then its parent job's, and so on.

    Where the record of a parent job is missing, the chain ends: the user is next.
    """
    line: list[dict[str, object]] = []
    while len(line) < _MAX_DEPTH and (record := read_json(JobPaths(home, job_id).record)) is not None:
        parent, instance = record.get("parent"), record.get("instance")
        around = parent if is_job_id(parent) else None
        named = instance if isinstance(instance, str) and instance and is_folder_safe(instance) else None
        box = recipient_of(record)
        if box == PEOPLE:
            around = named = None  # no next in line
        line.append({"box": box, "parent": around, "instance": named})
        if around is None:
            break
        job_id = around
    return line


def _has_taken(box: Maildir) -> bool:
    return any(maildir.list_dir(f"{box.path}/taken/{holder}") for holder in box.holders())


#: Events uploaded per statement.
_EVENT_BATCH = 500

#: Events kept in the database, of all hosts: as many as 512 MB of files hold.
MAX_EVENTS = 1_000_000

#: Log file for failures of the relay.
LOG = "relay.log"

_REGISTER_HOST = "SELECT stream, position FROM greet(%s, %s, %s, %s, %s)"
_PUSH = "SELECT push_jobs(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_MOVE_POSITION = "UPDATE host SET stream = %s, position = %s WHERE id = %s AND stream = %s AND position = %s"
_SELECT_OPEN = "SELECT id FROM job WHERE host = %s AND NOT is_final"


class StreamPosition(NamedTuple):
    """The last event of this home that is in the database."""

    stream: int
    position: int


class Uploader:
    """Uploads of one process for its home."""

    def __init__(self, host: Host, database: Database, *, silence: float = 0.0) -> None:
        """`silence`: seconds for which each contact makes this home count as having a relay."""
        self._host = host
        self._home = host.home
        self._database = database
        self._silence = silence
        self._place: StreamPosition | None = None
        self._sent: dict[str, str] = {}  #: last uploaded record of each unfinished job

    def register_host(self) -> None:
        """Register this host and read the position of its events in the database."""
        host = self._host
        rows = self._database.ask(
            _REGISTER_HOST, [host.id, host.name, this_host(), round(self._silence * 1000), host.since]
        )
        self._place = StreamPosition(int(rows[0][0]), int(rows[0][1]))

    def unfinished(self) -> set[str]:
        """Return this home's jobs that are unfinished in the database; those missing here are marked lost."""
        found = {str(row[0]) for row in self._database.ask(_SELECT_OPEN, [self._host.id])}
        gone = [job_id for job_id in found if self._is_gone(job_id)]
        if gone:
            known = [far.job for far in find_jobs(self._database, gone).values() if far.host == self._host.id]
            while not self._send(self._stream_position(), [], [_mark_lost(job) for job in known]):
                pass  # another process made progress: retry
        return found.difference(gone)

    def push(self, jobs: Iterable[str] = ()) -> set[str]:
        """Upload all new events, these jobs and the jobs of the events; return the ids still running.

        Raises:
            StoreAway, SchemaMismatch, StorageError: not all of it arrived; the next upload sends the rest.
        """
        wanted = set(jobs)
        while True:
            place = self._stream_position()
            events = self._events(place)
            wanted |= {event.task_id for event in events}
            for event in events:
                if is_end_pending(self._home, event):
                    wait_for_end(self._home, event)
            is_last = len(events) < _EVENT_BATCH
            found = self._look_at(wanted) if is_last else []
            if is_last and len(self._events(place)) > len(events):
                continue  # something changed meanwhile: an exit must go with its event
            if self._send(place, events, found) and is_last:
                return {job.id for job in found if not job.is_final}

    def notices(self) -> int:
        """Upload the notices waiting in the outboxes; return how many."""
        self._stream_position()  # registers the host, which notices refer to
        return upload_notices(self._host, self._database)

    def upload_pending(self) -> None:
        """Upload what waits here before a read, so that reading does not depend on a running relay."""
        recover_all(self._home)
        if not is_outbox_empty(self._home):
            self.push()
            self.notices()

    def is_behind(self) -> bool:
        """Return whether something was not uploaded yet, as far as this process knows."""
        if self._place is None or not is_outbox_empty(self._home):
            return True
        try:
            return next(iter(Events(self._home, self._place.position)), None) is not None
        except EventsGone:
            return True

    def _stream_position(self) -> StreamPosition:
        if self._place is None:
            self.register_host()
        assert self._place is not None
        return self._place

    def _events(self, place: StreamPosition) -> list[Event]:
        try:
            return list(islice(Events(self._home, place.position), _EVENT_BATCH))
        except EventsGone as gone:
            began_anew = place.position > gone.last
            after = StreamPosition(place.stream + began_anew, gone.first)
            if not began_anew:
                append_log(
                    self._home, LOG, f"events {place.position} to {gone.first} were no longer kept, so not forwarded"
                )
            self._database.ask(_MOVE_POSITION, [*after, self._host.id, *place])
            self._place = None
            return self._events(self._stream_position())

    def _is_gone(self, job_id: str) -> bool:
        try:
            read_job(self._home, job_id)
        except JobNotFound:
            return True
        except (TaskyardError, OSError):
            pass  # something exists
        return False

    def _look(self, job_id: str) -> Job | None:
        try:
            return read_job(self._home, job_id)
        except (TaskyardError, OSError):
            return None  # removed meanwhile, or unreadable: `doctor` reports it

    def _look_at(self, job_ids: Iterable[str]) -> list[Job]:
        return [job for job_id in job_ids if is_job_id(job_id) and (job := self._look(job_id)) is not None]

    def _send(self, place: StreamPosition, events: list[Event], jobs: list[Job]) -> bool:
        """Return whether everything is stored; False if another process uploaded events meanwhile: look again."""
        bodies = {job.id: encode_job(job) for job in jobs}
        jobs = [job for job in jobs if self._sent.get(job.id) != bodies[job.id]]
        if not events and not jobs:
            return True
        rows = self._database.ask(
            _PUSH, [self._host.id, *place, *_event_columns(events), *_job_columns(jobs, bodies), MAX_EVENTS]
        )
        if not rows[0][0]:
            self._place = None
            return False
        self._place = place._replace(position=events[-1].id) if events else place
        for job in jobs:
            if job.is_final:
                self._sent.pop(job.id, None)
            else:
                self._sent[job.id] = bodies[job.id]
        return True


def _mark_lost(job: Job) -> Job:
    """Return the job as lost: nothing is left of it on its own host."""
    end = End("lost", error="its host no longer knows it", proof="best_effort", at=now_ms())
    return job._replace(status=end.status, end=end)


def _event_columns(events: list[Event]) -> list[list[object]]:
    import json

    return [
        [event.id for event in events],
        [event.at for event in events],
        [event.subtype.replace("\0", "") for event in events],
        [event.task_id for event in events],
        [json.dumps(dict(event.data)) for event in events],
    ]


def _job_columns(jobs: list[Job], bodies: dict[str, str]) -> list[list[object]]:
    return [
        [job.id for job in jobs],
        [job.is_final for job in jobs],
        [job.start_time for job in jobs],
        [bodies[job.id] for job in jobs],
    ]
