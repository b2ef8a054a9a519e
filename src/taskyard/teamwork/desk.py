"""
What one teammate does with its list, its mail and its team: calls that take milliseconds and block.

Each is made under the teammate's own name and instance, so that all it holds goes back when it leaves or dies.
"""

from __future__ import annotations

import os

from taskyard.app import for_teammate
from taskyard.clock import now_ms
from taskyard.errors import (
    AcceptanceFailed,
    Blocked,
    Conflict,
    Damaged,
    HookRefused,
    NotFound,
    TaskyardError,
    Untrusted,
)
from taskyard.names import storable
from taskyard.places import mail_of
from taskyard.tasklist import rules, trackers
from taskyard.tasklist.extras import labels_of, requires_of
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.model import Act, TaskStatus
from taskyard.teamwork.colours import coloured
from taskyard.teamwork.failing import PERSON, failures, handed_to_person, returned
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from taskyard.identity import Acting
    from taskyard.tasklist.message import Message
    from taskyard.tasklist.model import Task
    from taskyard.teamwork.office import Office

#: Messages fetched at once.
_BITE = 10


class Ending(NamedTuple):
    """What came of saying that a task is done: neither, if it is no longer this teammate's."""

    is_done: bool = False
    refusal: str = ""  #: why it does not count as done yet
    gave_up: bool = False  #: the agent itself put it back to pending


class Desk:
    """One teammate's."""

    def __init__(
        self,
        office: Office,
        who: Acting,
        *,
        kind: str,
        capabilities: Sequence[str] = (),
        labels: Sequence[str] = (),
        report: Callable[[str], None],
        cwd: str | None = None,
    ) -> None:
        """`kind` is a member's (`team_record.KINDS`); `report` gets what people should know and no call returns.

        `cwd` is the folder the teammate works in; if not given, the current folder of this process.
        """
        self.who = who
        self.in_hand: Task | None = None  #: what it works on
        self.is_outcast = False  #: it is in the team no longer
        self.may_have_been_given = True  #: somebody may have named it the owner of a task
        self._office = office
        self._kind = kind
        self._able = frozenset(capabilities)
        self._labels = frozenset(labels)
        self._report = report
        self._cwd = cwd or os.getcwd()
        self._tracker = ""
        self._has_joined = False
        self._yard = for_teammate(office.store, home=office.home, settings=office.settings, report=report, cwd=cwd)
        self._post = mail_of(office.settings, office.home, office.list_name, instance=who.instance)

    # -- coming and going --------------------------------------------------------------------

    def join(self, prompt: str, colour: str | None) -> str | None:
        """Be in the team, which is founded if there is none; its colour there.

        Raises:
            AlreadyExists: a member of that name may still live.
        """
        teams, who = self._yard.teams, self.who
        try:
            teams.get(who.team)
        except NotFound:
            try:
                teams.create(who.team)
            except Conflict:
                pass  # somebody else was quicker
        if teams.get(who.team).source == "claude":
            member = teams.join(who.team, who.name, colour=colour)
        else:
            member = teams.join(who.team, who.name, kind=self._kind, instance=who.instance, colour=colour)
            now = teams.change(who.team, lambda team: team and coloured(team, who.name))
            member = (now.member(who.name) if now is not None else None) or member
        self._has_joined = True
        self._yard.tasks.list(internal=True)  # a look settles the trackers of the dead
        self._tracker = trackers.begin(self._office.store, who.name, prompt, who.instance)
        return member.colour

    def leave(self) -> None:
        """Give back what it holds, and be gone: from the list, the team and among the living."""
        acts: list[Callable[[], object]] = [
            lambda: self.release("it left"),
            self._give_back_all,
            lambda: trackers.end(self._office.store, self._tracker, self.who.name) if self._tracker else None,
            lambda: self._yard.teams.leave(self.who.team, self.who.name) if self._is_member() else None,
        ]
        try:
            for act in acts:
                try:
                    act()
                except (NotFound, Conflict):
                    pass  # the team is gone, or somebody took it out
                except TaskyardError as error:
                    self._report(str(error))
        finally:
            self._post.close()
            self.who.instance.leave()

    def _give_back_all(self) -> None:
        """What its programs claimed in its name, beside what is in hand."""
        for task in self._yard.tasks.list():
            if task.lease is not None and task.lease.instance == self.who.instance.id:
                self.in_hand = task
                self.release("it left")

    def _is_member(self) -> bool:
        """Whether it is in the team: this very one, not another of its name."""
        team = self._yard.teams.get(self.who.team)
        there = team.member(self.who.name)
        return self._has_joined and there is not None and there.instance in ("", self.who.instance.id)

    def progress(self, state: str = "working") -> None:
        """Let the team know that it gets on, or has nothing to do."""
        try:
            self._yard.teams.progress(self.who.team, self.who.name, state=state)
        except NotFound:
            self.is_outcast = True
        except TaskyardError:
            pass  # Claude Code's team has no place for it, or its record is locked or damaged: doctor tells

    # -- the list ----------------------------------------------------------------------------

    def suits(self, task: Task) -> bool:
        """Whether it is for this teammate to do."""
        wanted = not self._labels or not self._labels.isdisjoint(labels_of(task))
        return wanted and self._able.issuperset(requires_of(task))

    def take(self) -> Task | None:
        """The next task, started: what it was given first, then the lowest free id; None if there is none."""
        self.in_hand = self._given() if self.may_have_been_given else None
        if self.in_hand is None:
            self.in_hand = self._yard.tasks.claim_next(capabilities=self._able, where=self.suits, start=True)
        if self.in_hand is None and not self.may_have_been_given:
            self.in_hand = self._given()  # mail tells of it, but not of what other programs do
        return self.in_hand

    def _given(self) -> Task | None:
        self.may_have_been_given = False  # before the look: mail may tell of more while it lasts
        tasks = self._yard.tasks.list()
        mine = [task for task in tasks if task.owner == self.who.name and not task.is_done and task.lease is None]
        if not mine:
            return None
        self.may_have_been_given = True
        by_id = {task.id: task for task in tasks}
        for task in mine:
            if open_blockers(task, by_id):
                continue
            try:
                self._yard.tasks.claim(task.id)  # a fresh claim: it may have held this one before
                return self._yard.tasks.start(task.id)
            except (Conflict, NotFound, Damaged):
                continue  # taken back, or blocked again
        return None

    def is_finished(self) -> bool:
        """Whether there was something to do, and all of it is done."""
        tasks = self._yard.tasks.list()
        return bool(tasks) and all(task.is_done for task in tasks)

    def is_checked(self, task: Task) -> bool:
        """Whether somebody has a word in whether it is done: that may take a while."""
        return "acceptance" in task.extra or self._yard.tasks.outside.is_guarded("TaskCompleted")

    def complete(self, task: Task) -> Ending:
        """Say that it is done. One that is ours no longer is let go; what is refused stays in hand."""
        try:
            now = self._yard.tasks.get(task.id)
            if now.status is TaskStatus.PENDING and now.owner in (None, self.who.name):
                self.in_hand = now
                self.fail("its worker put it back to pending: it is not done")
                return Ending(gave_up=True)
            if not now.is_done:
                self._yard.tasks.complete(task.id)
        except (HookRefused, AcceptanceFailed) as refusal:
            return Ending(refusal=str(refusal))
        except Untrusted as refusal:
            self._hand_to_person(task, refusal)
            return Ending()
        except Blocked as refusal:
            self.release(str(refusal))
            return Ending()
        except (Conflict, NotFound) as error:
            self._report(f"Task #{task.id} went out of its hands: {error}")
            self.in_hand = None
            return Ending()
        self.in_hand = None
        return Ending(is_done=True)

    def fail(self, reason: str, *, most: int | None = None) -> None:
        """Give the task in hand back with the reason; the `most`th failure sets it aside, and the lead hears."""
        task, self.in_hand = self.in_hand, None
        if task is None:
            return
        limit = self._office.settings.lease_losses if most is None else most
        caller = self._caller(task)
        act = Act(self.who.name, "release", note=storable(f"failed: {reason}")[:500])
        try:
            now = self._office.store.update(
                task.id, lambda facts: returned(facts, caller, reason=storable(reason), most=limit), act
            )
        except (Conflict, NotFound, Damaged) as error:
            self._report(f"Task #{task.id} went out of its hands: {error}")
            return
        if now.is_held:
            from shlex import quote

            where = f"--list {quote(self._office.list_name)}"
            times = "once" if failures(now) == 1 else f"{failures(now)} times"
            text = (
                f"Task #{task.id} was set aside: it failed {times}, last because: {reason[:2000].rstrip('.')}."
                f" Look into it, then claim it or `taskyard task assign {task.id} AGENT {where}`."
            )
            self.tell_lead(text=storable(text), data={"taskId": task.id, "subject": task.subject})

    def _hand_to_person(self, task: Task, refusal: Untrusted) -> None:
        """Leave a finished task in progress until a person trusts its acceptance command; the lead hears of it."""
        from shlex import quote

        self.in_hand = None
        caller = self._caller(task)
        reason = f"its acceptance command is not trusted: {refusal.command}"
        act = Act(self.who.name, "update", note=storable(f"finished, {reason}")[:500])
        try:
            self._office.store.update(
                task.id, lambda facts: handed_to_person(facts, caller, reason=storable(reason), cwd=self._cwd), act
            )
        except (Conflict, NotFound, Damaged) as error:
            self._report(f"Task #{task.id} went out of its hands: {error}")
            return
        where = f"--list {quote(self._office.list_name)}"
        text = (
            f"Task #{task.id} is finished and waits for a person: {reason[:2000]}"
            f"\nRead the command, then run `taskyard trust {task.id} {where}`, which also completes the task."
        )
        self.tell_lead(text=storable(text), data={"taskId": task.id, "subject": task.subject})

    def release(self, why: str) -> None:
        """Put what is in hand back into the pool."""
        task, self.in_hand = self.in_hand, None
        if task is None:
            return
        caller = self._caller(task)
        act = Act(self.who.name, "release", note=storable(why)[:500])
        try:
            self._office.store.update(task.id, lambda facts: rules.release(facts, caller), act)
        except (Conflict, NotFound, Damaged):
            pass  # done, handed on or removed meanwhile

    def _caller(self, task: Task) -> rules.Caller:
        token = task.lease.token if task.lease is not None else None
        return rules.Caller(self.who.name, token, None, now_ms(), instance=self.who.instance.id)

    # -- mail --------------------------------------------------------------------------------

    def mail(self) -> list[Message]:
        """What waits for it, now in its hands."""
        try:
            return self._post.take(self.who.name, limit=_BITE)
        except FileNotFoundError:
            return []  # its box went with a team that was dissolved

    def read(self, message_id: str) -> None:
        """A message was dealt with."""
        self._post.ack(self.who.name, [message_id])

    def watched_folders(self) -> tuple[str, ...]:
        """Where new mail shows."""
        return self._post.watched_folders(self.who.name)

    def hears(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when mail may have come that shows in no folder."""
        return self._post.heard(self.who.name, wake)

    def lead(self) -> str:
        """Who leads the team; the person, if nobody does."""
        try:
            return self._yard.teams.get(self.who.team).lead or PERSON
        except (NotFound, Damaged):
            return PERSON

    def obeys(self, sender: str) -> bool:
        """Whether `sender` may shut it down, or say what becomes of a plan."""
        return sender in (self.lead(), PERSON)

    def tell_lead(self, *, type: str = "message", text: str = "", data: Mapping[str, object]) -> None:
        """Mail the lead; a lead that is this teammate itself knows."""
        self.write(self.lead(), type=type, text=text, data=data)

    def write(self, recipient: str, *, type: str = "message", text: str = "", data: Mapping[str, object]) -> None:
        """Send mail. What it tells of has happened: mail that cannot be sent is reported, and undoes nothing."""
        try:
            self._post.inform(self.who.name, recipient, text, type=type, data=data)
        except (TaskyardError, OSError) as error:  # its folders go with a team that is dissolved
            self._report(f"No mail to {recipient!r}: {error}")
