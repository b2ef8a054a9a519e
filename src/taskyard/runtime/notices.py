"""
Notices on their way to a receiver: nothing lost, nothing twice, the urgent first.

Life of a notice
    1. a keeper puts it into the box of whoever started the job (`ending`)
    2. `take`   it is in the hands of a living receiver
    3. `ack`    read: filed away; every id is acknowledged once
    A receiver that dies before 3 gives it back: same id, `redelivered`. If whoever it was meant for is gone, the
    next in line finds it (`heirs`).

    with Outbox(home, "ada") as outbox:
        for notice in outbox:             # each counts as read when the next is asked for
            messages.append(notice.as_user_message())
"""

from __future__ import annotations

from taskyard import maildir, message_ids
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.hands import Hands
from taskyard.maildir import AGAIN, Box
from taskyard.runtime import heirs, holding, outboxes
from taskyard.runtime.batch import MOST, Batch, arranged, order
from taskyard.runtime.looking import settle_all
from taskyard.runtime.notice import NEXT, PERSON, Notice, decoded
from taskyard.runtime.notice_text import body
from taskyard.runtime.recipients import PEOPLE, box_name
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Container, Iterable, Iterator

    from taskyard.instances import Instance
    from taskyard.runtime.notice_waiting import Waiting

#: The line is looked at anew after this part of it was taken: an urgent one is found soon, and ten thousand that
#: wait are not listed ten thousand times.
_FRESH = 100

#: Seconds for moving a file that is nobody's yet; if we die over it, it goes back.
_MOMENT = 5.0

#: One sleep of whoever waits without end, in seconds.
_LONG = 3600.0


class _Place(NamedTuple):
    """Where a notice waits."""

    box: Box
    name: str
    notice: Notice


class Outbox:
    """What waits for one receiver, or for everyone."""

    def __init__(self, home: str, recipient: str | None = PERSON, *, instance: Instance | None = None) -> None:
        """Nothing is made or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            recipient: Who receives; None: every recipient this user has; PEOPLE: what is for people and no model.
            instance: The living instance that takes notices; without one the process takes them unnamed.
        """
        self.home = home
        self.recipient = recipient if recipient in (None, PEOPLE) else box_name(recipient)
        self.damaged: list[Damaged] = []  #: what could not be read so far; it is kept, never removed
        self._hands = Hands(home, instance)
        self._line: list[_Place] = []  #: in order, as of the last look
        self._until_look = 0  #: how many may be taken before the next look
        self._seen: dict[str, Notice] = {}  #: by path; what is in a file never changes
        self._asked: str | None = None

    def take(self, limit: int = MOST, *, hold: float | None = None, force: bool = False) -> list[Notice]:
        """The first that wait, `next` before `later`, now in this process's hands until `ack`.

        They come back if this process dies first; with `hold`, after that many seconds instead: for a receiver
        that answers through another process. While there is a hold on notices there are none, unless by `force`.
        """
        return list(self.batch(limit, hold=hold, force=force).notices)

    def batch(
        self,
        most: int = MOST,
        *,
        characters: int | None = None,
        hold: float | None = None,
        force: bool = False,
        but: Container[str] = (),
        only_next: bool = False,
    ) -> Batch:
        """As `take`, for one turn of a model: bounded also by `characters`, and with a count of the rest.

        What is told of the jobs in `but` is left where it is: their reader waits for them another way. With
        `only_next` the notices of priority `later` are left where they are, and not counted.
        """
        if most < 1:
            raise BadValue("limit", most, "a number from 1")
        while (force or not self.is_held()) and (line := self._in_line(but)):
            due = sum(place.notice.priority == NEXT for place in line) if only_next else len(line)
            if not due:
                break
            first = [place.notice for place in line[: min(most, due)]]
            count = len(arranged(first, most=most, characters=characters, size=size).notices)
            places, line[:count] = line[:count], []
            self._until_look -= count
            holder = self._hands.holder() if hold is None else maildir.hold_for(hold)
            taken = tuple(place.notice for place in places if place.box.take(place.name, holder))
            if taken:
                return Batch(taken, due - count)
        return Batch()

    def ack(self, ids: Iterable[str]) -> tuple[str, ...]:
        """File notices as read, taken or not; answers those that are filed by this call."""
        done: list[str] = []
        for notice_id in ids:
            if not message_ids.is_id(notice_id):
                raise BadValue("The id of a notice", notice_id, "an id as `take` gives it")
            if any(self._filed(box, notice_id) for box in outboxes.boxes(self.home)):
                done.append(notice_id)
        return tuple(done)

    def waiting(self) -> list[Notice]:
        """What waits, in order, left where it is; held back or not."""
        self._look()
        return [place.notice for place in self._line]

    def state(self, notice_id: str) -> str | None:
        """Where a notice is: "stored", "delivered" (in somebody's hands) or "read"; None if there is none."""
        if not message_ids.is_id(notice_id):
            return None
        return next(filter(None, (box.state(notice_id) for box in outboxes.boxes(self.home))), None)

    def is_held(self) -> bool:
        """Whether notices are held back from agents."""
        return holding.is_on(self.home)

    def wait(self, timeout: float) -> bool:
        """Whether a notice can be taken, now or within `timeout` seconds; a new one wakes at once."""
        with self._waiting() as waiting:
            return waiting.wait(timeout)

    def _waiting(self) -> Waiting:
        from taskyard.runtime.notice_waiting import Waiting  # only those who wait pay for it

        return Waiting(self)

    def __iter__(self) -> Iterator[Notice]:
        """Each that waits; it counts as read when the next is asked for."""
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
        """Each that waits, then each as it comes, without end."""
        import asyncio

        while True:
            for notice in self:
                yield notice
            with self._waiting() as waiting:
                await asyncio.to_thread(waiting.wait, _LONG)

    def close(self) -> None:
        """Give back what was taken and not acknowledged, unless it is the instance's."""
        self._hands.open()

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _in_line(self, but: Container[str] = ()) -> list[_Place]:
        """What waits, from memory where that is fresh enough."""
        if not self._line or self._until_look <= 0:
            self._look()
        if but:
            self._line = [place for place in self._line if place.notice.task_id not in but]
        return self._line

    def _look(self) -> None:
        """See what waits for us in all boxes, with the news of lost jobs and what dead receivers had in hand."""
        settle_all(self.home)
        alive = heirs.living(self.home)
        found: list[_Place] = []
        for name in outboxes.names(self.home):
            if self._is_closed_to_us(name, alive):
                continue
            box = outboxes.box_of(self.home, name)
            box.check()
            box.return_from_the_dead()
            found += self._places(name, box, alive)
        found.sort(key=lambda place: order(place.notice))
        self._line = found
        self._until_look = len(found) // _FRESH
        self._seen = {_path(place): place.notice for place in found}

    def _places(self, name: str, box: Box, alive: frozenset[str]) -> Iterator[_Place]:
        for file in box.waiting():
            notice = self._seen.get(f"{box.path}/new/{file}") or self._opened(box, file)
            if notice is None:
                continue
            if self.recipient in (None, name):
                yield _Place(box, file, notice)
            elif heirs.heir(self.home, notice.task_id, name, alive) == self.recipient:
                yield _Place(box, file, notice._replace(orphaned_from=name))

    def _is_closed_to_us(self, name: str, alive: frozenset[str]) -> bool:
        """Whether a box is somebody's who can look into it himself."""
        return self.recipient not in (None, name) and (name in alive or name in (PERSON, PEOPLE))

    def _opened(self, box: Box, name: str) -> Notice | None:
        """The notice in a file; what is none is set aside and reported."""
        try:
            data = box.read(name)
            return None if data is None else decoded(name, data, redelivered=name.endswith(AGAIN))
        except (Damaged, StorageError) as error:
            holder = maildir.hold_for(_MOMENT)
            if box.take(name, holder):
                self.damaged.append(Damaged(box.set_aside(name, holder), error.why))
            return None

    def _filed(self, box: Box, notice_id: str) -> bool:
        mine = self._hands.found()
        if mine and box.acknowledge(notice_id, mine):
            return True
        if any(box.acknowledge(notice_id, holder) for holder in box.holders()):
            return True
        holder = maildir.hold_for(_MOMENT)
        is_taken = box.take(notice_id, holder) or box.take(notice_id + AGAIN, holder)
        return is_taken and box.acknowledge(notice_id, holder)


def size(notice: Notice) -> int:
    """Characters it takes in a model's context."""
    return len(body(notice))


def _path(place: _Place) -> str:
    return f"{place.box.path}/new/{place.name}"
