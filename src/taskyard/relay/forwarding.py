"""
From this home into the database: events, records of jobs, notices. Each once, whoever does it and however often.

    events     go on from where the database says it is; a batch counts only if that is still so
    records    are replaced by newer ones until the last, which stays
    notices    are put under their own ids, and filed away here only then

The relay does it when something happened, and whoever reads notices does it once before: neither depends on the other,
and what both send is there once. An end is put into the record in the statement that tells of it in the stream.
"""

from __future__ import annotations

from itertools import islice

from taskyard.clock import now_ms
from taskyard.disk.processes import this_host
from taskyard.errors import EventsGone, JobNotFound, TaskyardError
from taskyard.relay import spool
from taskyard.relay.records import body_of, find_all
from taskyard.runtime.events import Events, is_early, until_ended
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.log import note
from taskyard.runtime.looking import look, settle_all
from taskyard.runtime.model import End
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.runtime.events import Event
    from taskyard.runtime.model import Job

#: Events sent at once.
_BATCH = 500

#: Events that stay in the database, of all hosts: as many as half a gigabyte of files holds.
KEPT_EVENTS = 1_000_000

#: Where what the relay could not do is noted.
LOG = "relay.log"

_GREET = "SELECT stream, position FROM greet(%s, %s, %s, %s, %s)"
_PUSH = "SELECT push_jobs(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_MOVE = "UPDATE host SET stream = %s, position = %s WHERE id = %s AND stream = %s AND position = %s"
_OPEN = "SELECT id FROM job WHERE host = %s AND NOT is_final"


class Place(NamedTuple):
    """Up to where events of this home are in the database."""

    stream: int
    position: int


class Forwarding:
    """What one process sends of its home."""

    def __init__(self, host: Host, database: Database, *, silence: float = 0.0) -> None:
        """`silence`: seconds for which each word of ours lets others believe that this home has a relay."""
        self._host = host
        self._home = host.home
        self._database = database
        self._silence = silence
        self._place: Place | None = None
        self._sent: dict[str, str] = {}  #: the record of each job that is not over, as it was sent

    def greet(self) -> None:
        """Say that we are here, and learn how far others were told."""
        host = self._host
        rows = self._database.ask(_GREET, [host.id, host.name, this_host(), round(self._silence * 1000), host.since])
        self._place = Place(int(rows[0][0]), int(rows[0][1]))

    def unfinished(self) -> set[str]:
        """The jobs of this home that the database does not know to be over; those that are gone from here are lost."""
        found = {str(row[0]) for row in self._database.ask(_OPEN, [self._host.id])}
        gone = [job_id for job_id in found if self._is_gone(job_id)]
        if gone:
            known = [far.job for far in find_all(self._database, gone).values() if far.host == self._host.id]
            while not self._send(self._known_place(), [], [_lost(job) for job in known]):
                pass  # whoever was quicker has made progress
        return found.difference(gone)

    def push(self, jobs: Iterable[str] = ()) -> set[str]:
        """Send all events that are new, and how these jobs stand, with those the events tell of; the ids of the living.

        Raises:
            StoreAway, SchemaMismatch, StorageError: not all of it arrived; the next time will bring it.
        """
        wanted = set(jobs)
        while True:
            place = self._known_place()
            events = self._events(place)
            wanted |= {event.task_id for event in events}
            for event in events:
                if is_early(self._home, event):
                    until_ended(self._home, event)
            is_last = len(events) < _BATCH
            found = self._look_at(wanted) if is_last else []
            if is_last and len(self._events(place)) > len(events):
                continue  # something happened while we looked: an end goes with what the stream tells of it
            if self._send(place, events, found) and is_last:
                return {job.id for job in found if not job.is_final}

    def notices(self) -> int:
        """Send what waits in the outboxes here; how many."""
        self._known_place()  # which says who we are: notices name their host
        return spool.forward(self._host, self._database)

    def before_reading(self) -> None:
        """Send what waits here, for whoever is about to read: nothing depends on a relay that happens to live."""
        settle_all(self._home)
        if not spool.is_empty(self._home):
            self.push()
            self.notices()

    def is_behind(self) -> bool:
        """Whether something here was not sent yet, as far as we know."""
        if self._place is None or not spool.is_empty(self._home):
            return True
        try:
            return next(iter(Events(self._home, self._place.position)), None) is not None
        except EventsGone:
            return True

    def _known_place(self) -> Place:
        if self._place is None:
            self.greet()
        assert self._place is not None
        return self._place

    def _events(self, place: Place) -> list[Event]:
        try:
            return list(islice(Events(self._home, place.position), _BATCH))
        except EventsGone as gone:
            began_anew = place.position > gone.last
            after = Place(place.stream + began_anew, gone.first)
            if not began_anew:
                note(self._home, LOG, f"events {place.position} to {gone.first} were no longer kept, so not forwarded")
            self._database.ask(_MOVE, [*after, self._host.id, *place])
            self._place = None
            return self._events(self._known_place())

    def _is_gone(self, job_id: str) -> bool:
        try:
            look(self._home, job_id)
        except JobNotFound:
            return True
        except (TaskyardError, OSError):
            pass  # there is something
        return False

    def _look(self, job_id: str) -> Job | None:
        try:
            return look(self._home, job_id)
        except (TaskyardError, OSError):
            return None  # gone by now, or it cannot be read: doctor says so

    def _look_at(self, job_ids: Iterable[str]) -> list[Job]:
        return [job for job_id in job_ids if is_job_id(job_id) and (job := self._look(job_id)) is not None]

    def _send(self, place: Place, events: list[Event], jobs: list[Job]) -> bool:
        """Whether all of it is there now; False: somebody else sent events meanwhile, and we must look again."""
        bodies = {job.id: body_of(job) for job in jobs}
        jobs = [job for job in jobs if self._sent.get(job.id) != bodies[job.id]]
        if not events and not jobs:
            return True
        rows = self._database.ask(_PUSH, [self._host.id, *place, *_columns(events), *_rows(jobs, bodies), KEPT_EVENTS])
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


def _lost(job: Job) -> Job:
    """A job of which nothing is left on its own machine."""
    end = End("lost", error="its machine knows nothing of it any more", proof="best_effort", at=now_ms())
    return job._replace(status=end.status, end=end)


def _columns(events: list[Event]) -> list[list[object]]:
    import json

    return [
        [event.id for event in events],
        [event.at for event in events],
        [event.subtype.replace("\0", "") for event in events],
        [event.task_id for event in events],
        [json.dumps(dict(event.data)) for event in events],
    ]


def _rows(jobs: list[Job], bodies: dict[str, str]) -> list[list[object]]:
    return [
        [job.id for job in jobs],
        [job.is_final for job in jobs],
        [job.start_time for job in jobs],
        [bodies[job.id] for job in jobs],
    ]
