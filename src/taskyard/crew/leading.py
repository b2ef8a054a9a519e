"""
The lead's round: members are hired, followed, replaced when they die, and shut down when all is done.

The lead does none of the work. The list alone coordinates the members; the lead tells what happens, answers for the
living and the dead, and at the end leaves no process and no claim behind.
"""

from __future__ import annotations

import time

from taskyard.clock import now_ms
from taskyard.crew import hiring, news
from taskyard.crew.ending import wake
from taskyard.crew.listening import Ears
from taskyard.crew.member import see_out
from taskyard.crew.outcome import Outcome, Tally
from taskyard.crew.wish import free_names
from taskyard.errors import Damaged, MemberNotStarted, RecipientNotFound, StorageError, TeamNotFound
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import JobStatus
from taskyard.runtime.rate_limit import STOPPED
from taskyard.tasklist.extras import requires_of
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.app import Yard
    from taskyard.crew.hiring import Hand
    from taskyard.crew.wish import Wish
    from taskyard.runtime.model import Job
    from taskyard.tasklist.model import Task

#: Seconds between two looks at everything while nobody says a word.
_LOOK = 2.0

#: Seconds a member has to answer a request to shut down, before it is stopped.
_POLITE = 10.0

#: Seconds that the process around members has to end after the last of them.
_LAST_MOMENT = 2.0

#: Seconds everybody must have been without anything to do before the rest counts as impossible.
_STUCK = 2.0


class Course(NamedTuple):
    """How a team is led."""

    wish: Wish
    agents: int
    place: str = "process"
    names: tuple[str, ...] = ()
    replace: int = 10  #: members that died and are replaced, in all
    until: str = "done"  #: "done" ends with the last task; "stopped" waits for more


class Lead:
    """One lead at work."""

    def __init__(self, yard: Yard, course: Course, *, tell: Callable[[str], None]) -> None:
        """Nothing is started yet. `tell` gets each piece of news, a line or more."""
        self._yard, self._course, self._tell = yard, course, tell
        self._team = course.wish.team
        self._me = yard.agent or ""
        self._hands: dict[str, Hand] = {}
        self._coming: dict[str, float] = {}  # members that have yet to join, and when each was started
        self._asked: dict[str, str] = {}
        self._limits: dict[str, str] = {}  # what each member was last said to wait for
        self._hosts: set[str] = set()
        self._told: set[tuple[str, str | None]] = set()
        self._tally = Tally(began=now_ms())
        self._position = yard.tasks.store.position()
        self._first = self._position
        self._names = free_names(yard.home, self._team, [self._me], wanted=course.names)
        self._stuck_since: float | None = None

    def lead(self) -> Outcome:
        """Have the work done, and say how it went. Ctrl+C stops the whole team, with proof, and goes on up.

        Raises:
            MemberNotStarted: a member of the first round did not come.
        """
        try:
            if self._course.until == "stopped" or not self._all_done():
                self._hire(self._course.agents)
            with Ears(self._yard) as ears:
                while self._round():
                    ears.wait(_LOOK, [hand.job_id for hand in self._hands.values()])
            self._shut_down()
        except BaseException:
            self._stop()
            raise
        self._news()
        return self._outcome()

    def stopped(self) -> Outcome:
        """What there was to say when it was interrupted."""
        return self._outcome()

    # -- members -----------------------------------------------------------------------------

    def _hire(self, count: int) -> None:
        """Start several at once, and see each of them come."""
        for hand in self._start(count):
            hiring.confirm(self._yard, self._team, hand)
            self._welcome(hand)

    def _start(self, count: int) -> list[Hand]:
        started: list[Hand] = []
        names = [next(self._names) for _ in range(count)]
        for hand in hiring.start(self._yard, self._course.wish, names, place=self._course.place):
            self._hands[hand.name] = hand
            self._hosts.update([hand.host] if hand.host else [])
            self._tally.jobs.append(hand.job_id)
            started.append(hand)
        return started

    def _welcome(self, hand: Hand) -> None:
        where = f" in window {hand.pane.pane} of {hand.pane.session}" if hand.pane is not None else ""
        self._say(f"{hand.name} joins as {hand.job_id}{where}")

    def _has_come(self, hand: Hand, job: Job) -> bool:
        """Whether a member is there; of one that was started in place of another, that shows by and by."""
        began = self._coming.get(hand.name)
        if began is None:
            return True
        try:
            if not hiring.has_come(self._yard, self._team, hand, job, began=began):
                return False
        except MemberNotStarted as error:
            self._did_not_come(error)
            return False
        del self._coming[hand.name]
        self._welcome(hand)
        return True

    def _did_not_come(self, error: MemberNotStarted) -> None:
        self._hands.pop(error.member, None)
        self._coming.pop(error.member, None)
        self._tally.died += 1
        self._say(str(error))

    def _look_at(self, hand: Hand, job: Job) -> None:
        if not self._has_come(hand, job):
            return
        question = str(job.facts.get("question", "")) if job.needs_input else ""
        if job.needs_input and self._asked.get(hand.name) != question:
            self._say(news.of_question(hand.name, job))
        self._asked[hand.name] = question
        self._tell_limit(hand, job)
        if job.is_final:
            self._ended(hand, job)

    def _tell_limit(self, hand: Hand, job: Job) -> None:
        """Say once that a member waits for a rate limit, and that it goes on."""
        limit, before = job.rate_limited, self._limits.get(hand.name, "")
        now = "" if limit is None else limit.state()
        if now == before or job.is_final:
            return
        self._limits[hand.name] = now
        self._say(f"{hand.name} {now}" if now else f"{hand.name} continues after the rate limit")

    def _ended(self, hand: Hand, job: Job) -> None:
        """A member is no more: what it held goes back, and another comes if it died before its time."""
        del self._hands[hand.name]
        self._asked.pop(hand.name, None)
        self._limits.pop(hand.name, None)
        if hand.pane is not None:
            hiring.let_go(self._yard, hand)
        see_out(self._yard, self._team, hand.name)
        if job.status is JobStatus.COMPLETED:
            self._say(f"{hand.name} is done and leaves")
            return
        if job.facts.get(STOPPED) is True:
            self._say(news.of_stop(hand.name, job))  # another would be refused as well
            self._tally.faults.append(news.of_stop(hand.name, job))
            return
        self._tally.died += 1
        self._say(news.of_end(hand.name, job))
        self._replace()

    def _replace(self) -> None:
        if self._all_done() or self._tally.replaced >= self._course.replace:
            return
        self._tally.replaced += 1
        try:
            [hand] = self._start(1)
        except MemberNotStarted as error:
            self._did_not_come(error)
        else:
            self._coming[hand.name] = time.monotonic()

    # -- one round ---------------------------------------------------------------------------

    def _round(self) -> bool:
        """Look at everything once; False when there is nothing left to lead."""
        self._news()
        for hand in list(self._hands.values()):
            self._look_at(hand, self._yard.jobs.get(hand.job_id))
        if not self._is_there():
            self._say(f"team {self._team} was removed")
            return False
        if self._course.until == "stopped":
            return bool(self._hands)
        return not self._all_done() and not self._is_stuck()

    def _news(self) -> None:
        """Tell what happened on the list, and what was written to us."""
        for change in self._yard.tasks.log(since=self._position):
            self._position = change.id + 1
            if line := news.of_change(change):
                self._say(line)
        for message in self._yard.mail.take(self._me):
            self._yard.mail.ack(self._me, [message.id])
            self._say(news.of_message(message))

    def _is_there(self) -> bool:
        try:
            return bool(self._yard.teams.get(self._team))
        except TeamNotFound:
            return False
        except Damaged:
            return True  # the work goes on by list and mail; who removes it by force puts the record aside

    def _all_done(self) -> bool:
        return all(task.is_done for task in self._yard.tasks.list())

    def _is_stuck(self) -> bool:
        """Whether nothing unfinished can ever move: nobody is left, or all that is left is nobody's to take."""
        if not self._hands:
            return True
        if movable := list(self._can_move()):
            self._stuck_since = None
            self._tell_of_others(movable)
            return False
        if self._stuck_since is None:
            self._stuck_since = time.monotonic()
        return time.monotonic() - self._stuck_since > _STUCK

    def _tell_of_others(self, movable: Sequence[Task]) -> None:
        """Say it once where all that can go on is somebody's who is not a member: nobody here will take it."""
        if any(task.owner is None or task.owner in self._hands for task in movable):
            return
        for task in movable:
            if (task.id, task.owner) not in self._told:
                self._told.add((task.id, task.owner))
                self._say(news.of_owner(task, self._team))

    def _can_move(self) -> Iterator[Task]:
        tasks = {task.id: task for task in self._yard.tasks.list()}
        able = frozenset(self._course.wish.can)
        for task in tasks.values():
            if task.is_done or task.is_held:
                continue
            if any(blocker in tasks and not tasks[blocker].is_done for blocker in task.blocked_by):
                continue
            if task.owner or able.issuperset(requires_of(task)):
                yield task

    # -- the end -----------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Ask everybody to go, then have those go who did not."""
        request = {"reason": "the work is over", "from": self._me, "type": "shutdown_request"}
        for name in self._hands:
            try:
                data = {**request, "requestId": f"shutdown-{now_ms()}@{name}"}
                self._yard.mail.send(self._me, name, type="shutdown_request", data=data)
            except (RecipientNotFound, StorageError):
                pass  # it has left, or leaves this moment and its box with it; whoever stays is stopped below
        deadline = time.monotonic() + _POLITE
        while self._hands and time.monotonic() < deadline:
            for hand in list(self._hands.values()):
                if self._yard.jobs.wait(hand.job_id, timeout=max(0.0, deadline - time.monotonic())).is_final:
                    self._gone(hand)
        self._stop()

    def _gone(self, hand: Hand) -> None:
        self._hands.pop(hand.name, None)
        if not hiring.let_go(self._yard, hand, grace=0):
            self._tally.faults.append(f"something of {hand.name} ({hand.job_id}) may be left")
        see_out(self._yard, self._team, hand.name)

    def _stop(self) -> None:
        """End whoever is left, all at once, with proof."""
        for hand in self._hands.values():
            wake(JobFolder(self._yard.home, hand.host or hand.job_id))  # whoever somebody has stopped can then end well
        if ids := [hand.job_id for hand in self._hands.values()]:
            self._yard.jobs.stop(*ids)
        for hand in list(self._hands.values()):
            self._gone(hand)
        hosts = sorted(self._hosts)
        self._yard.jobs.wait_all(hosts, timeout=_LAST_MOMENT)
        for host in hosts:
            if not hiring.stop_host(self._yard, host):
                self._tally.faults.append(f"something of {host}, in which members lived, may be left")

    def _outcome(self) -> Outcome:
        self._tally.ended = now_ms()
        return Outcome.of(self._yard, self._team, self._tally, since=self._first)

    def _say(self, line: str) -> None:
        self._tell(line)
