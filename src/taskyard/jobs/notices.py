"""Deliver notices to a recipient: none lost, none twice, urgent ones first.

States of a notice:
    1. a supervisor puts it into the box of the job's starter (`exit_record`)
    2. `take`   it is leased to a running receiver
    3. `ack`    read: filed; every id is acknowledged once
    If the receiver is killed before 3, the notice returns with the same id and `redelivered`. If its
    recipient is gone, the next in line receives it (`outbox.current_recipient`).

    with Outbox(home, "ada") as outbox:
        for notice in outbox:             # each counts as read when the next is requested
            messages.append(notice.as_user_message())

While `<home>/hold` exists, delivery is paused and no notice wakes an agent; set by `stop --all --hold`. A
waiting receiver sleeps until inotify reports a new notice, a killed supervisor, or the end of the pause.
"""

from __future__ import annotations

import os

from taskyard.core import files
from taskyard.core.system import boottime
from taskyard.core.values import PERSON, NamedTuple
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.jobs import outbox as jobs_outbox
from taskyard.jobs.job_dir import live_folder
from taskyard.jobs.notice import (
    MAX_BATCH,
    NEXT,
    Notice,
    NoticeBatch,
    decode_notice,
    format_body,
    select_batch,
    sort_key,
)
from taskyard.jobs.notice_payload import PEOPLE, box_name
from taskyard.jobs.query import recover_all
from taskyard.storage import maildir, message_ids
from taskyard.storage.inotify import watcher
from taskyard.storage.maildir import REDELIVERED, Maildir
from taskyard.storage.process_registry import ConsumerId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container, Iterable, Iterator

    from taskyard.storage.inotify import Subscription
    from taskyard.storage.process_registry import Instance


def is_delivery_paused(home: str) -> bool:
    """Return whether delivery is paused."""
    return os.path.lexists(_pause_path(home))


def pause_delivery(home: str) -> None:
    """Pause delivery to agents until `resume_delivery`."""
    files.make_private_folder(home)
    files.replace(_pause_path(home), b"")


def resume_delivery(home: str) -> bool:
    """Resume delivery; return False if it was not paused."""
    try:
        os.unlink(_pause_path(home))
    except FileNotFoundError:
        return False
    return True


def _pause_path(home: str) -> str:
    return f"{home}/hold"


#: The queue is read again after one part in this many was taken: an urgent notice is found soon, and ten
#: thousand waiting ones are not listed ten thousand times.
_RESCAN_PART = 100

#: Seconds of the lease for moving a file; if this process is killed meanwhile, the file returns.
_MOVE_TIMEOUT = 5.0

#: Seconds of one sleep without a timeout.
_WAIT_SLICE = 3600.0


class _QueuedNotice(NamedTuple):
    """A waiting notice and its box."""

    box: Maildir
    name: str
    notice: Notice


class Outbox:
    """The notices that wait for one recipient, or for all."""

    def __init__(self, home: str, recipient: str | None = PERSON, *, instance: Instance | None = None) -> None:
        """Set up; nothing is created or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            recipient: Who receives; None: every recipient of this user; PEOPLE: notices for people and no
                model.
            instance: The running instance that takes notices; without one the process takes them unnamed.
        """
        self.home = home
        self.recipient = recipient if recipient in (None, PEOPLE) else box_name(recipient)
        self.damaged: list[Damaged] = []  #: errors of unreadable notices so far; these are quarantined, never removed
        self._hands = ConsumerId(home, instance)
        self._line: list[_QueuedNotice] = []  #: in order, as of the last scan
        self._until_rescan = 0  #: how many may be taken before the next scan
        self._seen: dict[str, Notice] = {}  #: by path; the content of a file never changes
        self._asked: str | None = None

    def take(self, limit: int = MAX_BATCH, *, hold: float | None = None, force: bool = False) -> list[Notice]:
        """Take the first waiting notices, `next` before `later`; they are leased to this process until `ack`.

        They return if this process is killed first; with `hold`, after that many seconds instead: for a
        receiver that answers through another process. While delivery is paused there are none, except with
        `force`.
        """
        return list(self.batch(limit, hold=hold, force=force).notices)

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
        """Take notices as `take` does, for one turn of a model: limited by `characters` too, with a count of the rest.

        Notices of the jobs in `exclude` are left in their box: their reader waits for these jobs another
        way. With `only_next`, notices of priority `later` are left in their box and not counted.
        """
        if most < 1:
            raise BadValue("limit", most, "a number from 1")
        while (force or not self.is_held()) and (line := self._queue(exclude)):
            due = sum(place.notice.priority == NEXT for place in line) if only_next else len(line)
            if not due:
                break
            first = [place.notice for place in line[: min(most, due)]]
            count = len(select_batch(first, most=most, characters=characters, size=text_size).notices)
            places, line[:count] = line[:count], []
            self._until_rescan -= count
            holder = self._hands.holder() if hold is None else maildir.timed_holder(hold)
            taken = tuple(place.notice for place in places if place.box.take(place.name, holder))
            if taken:
                return NoticeBatch(taken, due - count)
        return NoticeBatch()

    def ack(self, ids: Iterable[str]) -> tuple[str, ...]:
        """File notices as read, taken or not; return the ids filed by this call."""
        done: list[str] = []
        for notice_id in ids:
            if not message_ids.is_message_id(notice_id):
                raise BadValue("The id of a notice", notice_id, "an id as `take` gives it")
            if any(self._filed(box, notice_id) for box in jobs_outbox.boxes(self.home)):
                done.append(notice_id)
        return tuple(done)

    def waiting(self) -> list[Notice]:
        """Return the waiting notices in order without taking them; also while delivery is paused."""
        self._look()
        return [place.notice for place in self._line]

    def state(self, notice_id: str) -> str | None:
        """Return the state of a notice: "stored", "delivered" (leased) or "read"; None if there is none."""
        if not message_ids.is_message_id(notice_id):
            return None
        return next(filter(None, (box.state(notice_id) for box in jobs_outbox.boxes(self.home))), None)

    def is_held(self) -> bool:
        """Return whether delivery to agents is paused."""
        return is_delivery_paused(self.home)

    def wait(self, timeout: float) -> bool:
        """Return whether a notice can be taken, now or within `timeout` seconds; a new one wakes up the wait."""
        with self._waiting() as waiting:
            return waiting.wait(timeout)

    def _waiting(self) -> NoticeWaiter:

        return NoticeWaiter(self)

    def __iter__(self) -> Iterator[Notice]:
        """Yield each waiting notice; it counts as read when the next is requested."""
        while True:
            if self._asked is not None:
                before, self._asked = self._asked, None
                self.ack([before])
            found = self.take(1)
            if not found:
                return
            self._asked = found[0].id
            yield found[0]

    async def __aiter__(self) -> AsyncIterator[Notice]:
        """Yield each waiting notice, then each new one, without end."""
        import asyncio

        while True:
            for notice in self:
                yield notice
            with self._waiting() as waiting:
                await asyncio.to_thread(waiting.wait, _WAIT_SLICE)

    def close(self) -> None:
        """Return unacknowledged notices to their box, unless they are leased to the instance."""
        self._hands.open()

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _queue(self, exclude: Container[str] = ()) -> list[_QueuedNotice]:
        """Return the queue, from memory if that is fresh enough."""
        if not self._line or self._until_rescan <= 0:
            self._look()
        if exclude:
            self._line = [place for place in self._line if place.notice.task_id not in exclude]
        return self._line

    def _look(self) -> None:
        """Scan all boxes for our notices, after recovering lost jobs and expired leases."""
        recover_all(self.home)
        alive = jobs_outbox.live_boxes(self.home)
        found: list[_QueuedNotice] = []
        for name in jobs_outbox.box_names(self.home):
            if self._has_live_owner(name, alive):
                continue
            box = jobs_outbox.box_of(self.home, name)
            box.check()
            box.requeue_abandoned()
            found += self._places(name, box, alive)
        found.sort(key=lambda place: sort_key(place.notice))
        self._line = found
        self._until_rescan = len(found) // _RESCAN_PART
        self._seen = {_queued_path(place): place.notice for place in found}

    def _places(self, name: str, box: Maildir, alive: frozenset[str]) -> Iterator[_QueuedNotice]:
        for file in box.waiting():
            notice = self._seen.get(f"{box.path}/new/{file}") or self._opened(box, file)
            if notice is None:
                continue
            if self.recipient in (None, name):
                yield _QueuedNotice(box, file, notice)
            elif jobs_outbox.current_recipient(self.home, notice.task_id, name, alive) == self.recipient:
                yield _QueuedNotice(box, file, notice._replace(orphaned_from=name))

    def _has_live_owner(self, name: str, alive: frozenset[str]) -> bool:
        """Return whether a box belongs to a running recipient that reads it itself."""
        return self.recipient not in (None, name) and (name in alive or name in (PERSON, PEOPLE))

    def _opened(self, box: Maildir, name: str) -> Notice | None:
        """Return the notice in a file; quarantine and report a file that is none."""
        try:
            data = box.read(name)
            return None if data is None else decode_notice(name, data, redelivered=name.endswith(REDELIVERED))
        except (Damaged, StorageError) as error:
            holder = maildir.timed_holder(_MOVE_TIMEOUT)
            if box.take(name, holder):
                self.damaged.append(Damaged(box.quarantine(name, holder), error.why))
            return None

    def _filed(self, box: Maildir, notice_id: str) -> bool:
        mine = self._hands.found()
        if mine and box.acknowledge(notice_id, mine):
            return True
        if any(box.acknowledge(notice_id, holder) for holder in box.holders()):
            return True
        holder = maildir.timed_holder(_MOVE_TIMEOUT)
        is_taken = box.take(notice_id, holder) or box.take(notice_id + REDELIVERED, holder)
        return is_taken and box.acknowledge(notice_id, holder)


def text_size(notice: Notice) -> int:
    """Return the characters it takes in a model's context."""
    return len(format_body(notice))


def _queued_path(place: _QueuedNotice) -> str:
    return f"{place.box.path}/new/{place.name}"


#: Seconds between checks while leased notices may return: no file event reports a killed receiver.
POLL_INTERVAL = 1.0


class NoticeWaiter:
    """A wait for the notices of an outbox; `cancel` ends it from another thread."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._home = watcher().follow(outbox.home)  # the pause file is created and removed there
        self._followed: dict[str, Subscription] = {}
        self._is_cancelled = False

    def wait(self, timeout: float) -> bool:
        """Return whether a notice can be taken, now or within `timeout` seconds."""
        deadline = boottime() + timeout
        while True:
            for followed in (self._home, *self._followed.values()):
                followed.changed()
            if self._is_cancelled:
                return False
            self._watch_boxes()  # after the events were read: a box created later wakes us again
            is_held = is_delivery_paused(self._outbox.home)
            if not is_held and self._outbox.waiting():
                return True
            left = deadline - boottime()
            if left <= 0:
                return False
            self._home.wait(min(left, POLL_INTERVAL) if not is_held and self._has_pending() else left)

    def cancel(self) -> None:
        """End the wait."""
        self._is_cancelled = True
        self._home.wake()

    def __enter__(self) -> NoticeWaiter:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        for followed in (self._home, *self._followed.values()):
            followed.close()

    def _watch_boxes(self) -> None:
        """Subscribe to every box, also new ones, and to the live names, where a killed supervisor is reported."""
        home = self._outbox.home
        boxes = [
            live_folder(home),
            jobs_outbox.outbox_root(home),
            *(f"{box.path}/new" for box in jobs_outbox.boxes(home)),
        ]
        for path in boxes:
            if path not in self._followed:
                self._followed[path] = watcher().follow(path, wake=self._home)

    def _has_pending(self) -> bool:
        """Return whether notices are leased to, or in the box of, a process that may be killed."""
        return any(
            box.count() or any(maildir.list_dir(f"{box.path}/taken/{holder}") for holder in box.holders())
            for box in jobs_outbox.boxes(self._outbox.home)
        )
