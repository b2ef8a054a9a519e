"""Notices, mail counts and reminders that are piggybacked on the next answer to a caller.

They have to wait for an answer, since no server can start a model's turn.

What an answer delivered (notices, and mail that was read) is acknowledged once the caller sends its next request after
having had an answer to everything before: of several calls at once, later ones may have been sent before any answer was
seen. If the caller exits first, it is delivered again: what was taken is bound to this process, whose exit the kernel
detects, or, where many callers share a process, to a time limit.

`ReminderCounter` decides when to remind a model of a list it has not used for long. The rule of
`taskyard.integrations.model_context` counts turns of the model; a server sees only calls, so calls that begin while
another is being answered belong to one turn. A turn without a call is not seen, so a reminder never comes too early.
TaskList shows all that a reminder would, so one is due ten turns after it at the soonest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from taskyard.errors import TaskyardError
from taskyard.integrations.model_context import MOST_REMINDERS, TASK_TOOLS, ReminderConfig
from taskyard.jobs.notice import Notice, NoticeBatch, for_model, to_json
from taskyard.yard import Yard

#: Most characters of notices on one answer; the rest comes with the next.
_MOST_CHARACTERS = 8_000


class PiggybackItems(NamedTuple):
    """What is piggybacked on one answer."""

    text: tuple[str, ...] = ()
    notices: tuple[Mapping[str, object], ...] = ()


def _order_texts(batch: NoticeBatch, waiting: list[str]) -> list[str]:
    """Order `next` notices, waiting messages, `later` notices; the count of the rest is part of the last."""
    first, later = batch.first, batch.later
    before = [for_model(first, rest=0 if later else batch.rest)] if first else []
    return [*before, *waiting, *([for_model(later, rest=batch.rest)] if later else [])]


class Piggyback:
    """The notices and mail of one caller that are being delivered."""

    def __init__(self, yard: Yard, *, hold: float | None = None) -> None:
        """Set up. `hold`: seconds until what was not acknowledged is requeued; None: when this process exits."""
        self._yard = yard
        self._post = yard
        self._outbox = yard.notices()
        self._hold = hold
        self._is_over = False
        self._calls = 0  # in progress
        self._given: dict[str, Notice] = {}  # on an answer that was sent
        self._mail: tuple[str, ...] = ()  # likewise
        self._answered: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # notices and mail, to acknowledge
        self._missed: dict[str, Notice] = {}  # on an answer that was not sent

    def begin(self) -> bool:
        """Begin a call; return whether it proves that everything before it has arrived (see `arrived`)."""
        self._calls += 1
        return self._calls == 1

    def end(self, *, was_sent: bool = True) -> None:
        """End a call that was answered or cancelled; if not sent, its mail stays unacknowledged and comes again."""
        self._calls -= 1
        if not was_sent:
            self._mail = ()
        if self._calls == 0:
            notices, mail = self._answered
            self._answered = ((*notices, *self._given), (*mail, *self._mail))
            self._given, self._mail = {}, ()

    def arrived(self) -> None:
        """Acknowledge everything that was delivered before the caller was last idle."""
        (notices, mail), self._answered = self._answered, ((), ())
        if notices:
            self._outbox.ack(notices)
        if mail and self._yard.agent:
            self._post.mail.ack(self._yard.agent, mail)

    def use_mail_of(self, yard: Yard) -> None:
        """Use the mail of another list from now on."""
        self._post = yard

    def mark_mail_sent(self, ids: Iterable[str]) -> None:
        """Record messages that are part of an answer."""
        self._mail += tuple(ids)

    def next(self, *, exclude: Container[str] = ()) -> PiggybackItems:
        """Take what waits now, except for the jobs in `exclude`, which the caller polls itself."""
        if self._is_over:
            return PiggybackItems()  # the caller is gone: what is taken now would never be requeued
        try:
            batch = self._outbox.batch(characters=_MOST_CHARACTERS, hold=self._hold, exclude=exclude)
            mail = self._post.mail.unread_count(self._yard.agent) if self._yard.agent else 0
        except TaskyardError:
            return PiggybackItems()  # an answer matters more than notices, which wait
        notices = tuple({**self._missed, **{notice.id: notice for notice in batch.notices}}.values())
        self._missed = {}
        self._given.update((notice.id, notice) for notice in notices)
        waiting = [f"[{report}]" for report in self._yard.jobs.reports(exclude=exclude)]
        if mail:
            waiting.append(
                f"[{mail} {'message waits' if mail == 1 else 'messages wait'} for you: ReadMail shows them.]"
            )
        text = _order_texts(NoticeBatch(notices, batch.rest), waiting)
        return PiggybackItems(tuple(text), tuple(to_json(notice) for notice in notices))

    def requeue(self, piggyback_items: PiggybackItems) -> None:
        """Requeue what was on an answer that was never sent."""
        for notice in piggyback_items.notices:
            if (given := self._given.pop(str(notice["id"]), None)) is not None:
                self._missed[given.id] = given

    def close(self) -> None:
        """Close it: what the caller did not acknowledge is delivered again."""
        self._is_over = True
        self._outbox.close()


#: Claiming a task changes it, as TaskUpdate does.
_USE_TOOLS = TASK_TOOLS | {"TaskClaim"}
_SHOW_TOOL = "TaskList"


class ReminderCounter:
    """Counts the turns for which one caller has not used its list."""

    def __init__(self, config: ReminderConfig) -> None:
        self.config = config
        self._since_use = self._since_reminder = 0
        self._reminders = 0

    def called(self, tool: str, *, begins_turn: bool) -> None:
        """Count a call; `begins_turn`: no other call was being answered when it came."""
        self._since_use += begins_turn
        self._since_reminder += begins_turn
        if tool in _USE_TOOLS:
            self._since_use = 0
        if tool == _SHOW_TOOL:
            self._since_reminder = 0

    def is_due(self) -> bool:
        """Return whether a reminder is due; if so, it counts as given."""
        config = self.config
        most = min(config.most_reminders, MOST_REMINDERS)
        is_due = (
            config.enabled
            and self._since_use >= config.turns_since_use
            and self._since_reminder >= config.turns_between
            and self._reminders < most
        )
        if is_due:
            self._since_reminder = 0
            self._reminders += 1
        return is_due
