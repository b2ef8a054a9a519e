"""
Notices that ride at the end of the next answer, since nothing of ours can begin a turn of a model.

What an answer brought, mail that was read among it, counts as read once its caller asks for the next thing, having had
an answer to everything before: of several calls at once, the later ones may have been sent before any answer was seen.
If the caller dies first it comes again: what was taken is in the hands of this process, which the kernel speaks for,
or, where many callers share a process, for a time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from taskyard.app import Yard
from taskyard.errors import TaskyardError
from taskyard.runtime.batch import Batch
from taskyard.runtime.notice import Notice, to_json
from taskyard.runtime.notice_text import for_model

#: As much as one answer carries, in characters; the rest comes with the next.
_MOST_CHARACTERS = 8_000


class Ride(NamedTuple):
    """What comes along with one answer."""

    text: tuple[str, ...] = ()
    notices: tuple[Mapping[str, object], ...] = ()


def _in_order(batch: Batch, waiting: list[str]) -> list[str]:
    """`next` notices, the messages that wait, `later` notices; the count of the rest stands with the last."""
    first, later = batch.first, batch.later
    before = [for_model(first, rest=0 if later else batch.rest)] if first else []
    return [*before, *waiting, *([for_model(later, rest=batch.rest)] if later else [])]


class Riding:
    """The notices and mail of one caller, on their way."""

    def __init__(self, yard: Yard, *, hold: float | None = None) -> None:
        """`hold`: seconds until what was taken and not acknowledged goes back; None: when this process ends."""
        self._yard = yard
        self._post = yard
        self._outbox = yard.notices()
        self._hold = hold
        self._is_over = False
        self._calls = 0  # on their way
        self._given: dict[str, Notice] = {}  # on an answer that was sent
        self._mail: tuple[str, ...] = ()  # likewise
        self._answered: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # notices and mail before the last silence
        self._missed: dict[str, Notice] = {}  # on one that was not

    def begin(self) -> bool:
        """A call begins; whether it says that everything before it has arrived (`arrived`)."""
        self._calls += 1
        return self._calls == 1

    def end(self, *, was_sent: bool = True) -> None:
        """A call is answered, or given up: then mail that was on it stays in our hands, and comes again."""
        self._calls -= 1
        if not was_sent:
            self._mail = ()
        if self._calls == 0:
            notices, mail = self._answered
            self._answered = ((*notices, *self._given), (*mail, *self._mail))
            self._given, self._mail = {}, ()

    def arrived(self) -> None:
        """The caller has everything that it was answered before it fell silent."""
        (notices, mail), self._answered = self._answered, ((), ())
        if notices:
            self._outbox.ack(notices)
        if mail and self._yard.agent:
            self._post.mail.ack(self._yard.agent, mail)

    def read_mail_of(self, yard: Yard) -> None:
        """From now on the caller's mail is that of another list."""
        self._post = yard

    def gave_mail(self, ids: Iterable[str]) -> None:
        """Messages are on an answer."""
        self._mail += tuple(ids)

    def next(self, *, but: Container[str] = ()) -> Ride:
        """What waits now, but for the jobs that the caller hears of another way; it is in its hands from here on."""
        if self._is_over:
            return Ride()  # in nobody's hands, nothing would ever come back
        try:
            batch = self._outbox.batch(characters=_MOST_CHARACTERS, hold=self._hold, but=but)
            mail = self._post.mail.unread_count(self._yard.agent) if self._yard.agent else 0
        except TaskyardError:
            return Ride()  # an answer is worth more than its passengers, which wait
        notices = tuple({**self._missed, **{notice.id: notice for notice in batch.notices}}.values())
        self._missed = {}
        self._given.update((notice.id, notice) for notice in notices)
        waiting = [f"[{report}]" for report in self._yard.jobs.reports(but=but)]
        if mail:
            waiting.append(
                f"[{mail} {'message waits' if mail == 1 else 'messages wait'} for you: ReadMail shows them.]"
            )
        text = _in_order(Batch(notices, batch.rest), waiting)
        return Ride(tuple(text), tuple(to_json(notice) for notice in notices))

    def missed(self, ride: Ride) -> None:
        """An answer was never sent: what was on it comes with the next."""
        for notice in ride.notices:
            if (given := self._given.pop(str(notice["id"]), None)) is not None:
                self._missed[given.id] = given

    def close(self) -> None:
        """The caller is gone: what it did not acknowledge comes again."""
        self._is_over = True
        self._outbox.close()
