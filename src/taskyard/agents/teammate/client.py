"""Blocking operations of one teammate on its list, mail and team; each takes milliseconds.

All calls use the teammate's own name and instance, so that its claims are released when it leaves or dies.
"""

from __future__ import annotations

import os

from taskyard.agents.teammate.rules import assign_colour, failure_count, hand_to_person, return_failed
from taskyard.core.system import now_ms
from taskyard.core.values import PERSON, NamedTuple, escape_unstorable
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
from taskyard.tasks import rules, trackers
from taskyard.tasks.model import Act, TaskStatus, labels_of, open_blockers, requires_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from taskyard.agents.identity import TeammateIdentity
    from taskyard.agents.mail import Message
    from taskyard.agents.teammate.workers import SharedWorkers
    from taskyard.tasks.model import Task

#: Messages fetched at once.
_MAIL_BATCH = 10


class CompletionResult(NamedTuple):
    """Result of completing a task; all empty if it is no longer this teammate's."""

    is_done: bool = False
    refusal: str = ""  #: why it does not count as done yet
    gave_up: bool = False  #: the agent itself set it back to pending


class TeammateClient:
    """Operations of one teammate."""

    def __init__(
        self,
        office: SharedWorkers,
        who: TeammateIdentity,
        *,
        kind: str,
        capabilities: Sequence[str] = (),
        labels: Sequence[str] = (),
        report: Callable[[str], None],
        cwd: str | None = None,
    ) -> None:
        """Open the teammate's view of list, mail and team.

        Args:
            office: Shared store and threads.
            who: Name, team and instance.
            kind: A member kind (`team_record.KINDS`).
            capabilities: For tasks that require some.
            labels: If given, only tasks with one of them.
            report: Called with problems that people should know and no call returns.
            cwd: The working folder; default: the current folder of this process.
        """
        self.who = who
        self.current_task: Task | None = None  #: the claimed task
        self.is_removed = False  #: it is no longer in the team
        self.may_be_assigned = True  #: a task may have been assigned to it
        self._workers = office
        self._kind = kind
        self._able = frozenset(capabilities)
        self._labels = frozenset(labels)
        self._report = report
        self._cwd = cwd or os.getcwd()
        self._tracker = ""
        self._has_joined = False
        self._yard = office.services.teammate_yard(office.settings, office.home, office.store, report=report, cwd=cwd)
        self._post = office.services.mail(office.settings, office.home, office.list_name, instance=who.instance)

    # -- join and leave ----------------------------------------------------------------------

    def join(self, prompt: str, colour: str | None) -> str | None:
        """Join the team, creating it if there is none, and return the member's colour.

        Raises:
            AlreadyExists: a member of that name may still be alive.
        """
        teams, who = self._yard.teams, self.who
        try:
            teams.get(who.team)
        except NotFound:
            try:
                teams.create(who.team)
            except Conflict:
                pass  # another process created it
        if teams.get(who.team).source == "claude":
            member = teams.join(who.team, who.name, colour=colour)
        else:
            member = teams.join(who.team, who.name, kind=self._kind, instance=who.instance, colour=colour)
            now = teams.change(who.team, lambda team: team and assign_colour(team, who.name))
            member = (now.member(who.name) if now is not None else None) or member
        self._has_joined = True
        self._yard.tasks.list(internal=True)  # listing also completes the trackers of dead jobs
        self._tracker = trackers.create_tracker(self._workers.store, who.name, prompt, who.instance)
        return member.colour

    def leave(self) -> None:
        """Release all claims and leave the list, the team and the process registry."""
        acts: list[Callable[[], object]] = [
            lambda: self.release("it left"),
            self._release_all_claims,
            lambda: (
                trackers.complete_tracker(self._workers.store, self._tracker, self.who.name) if self._tracker else None
            ),
            lambda: self._yard.teams.leave(self.who.team, self.who.name) if self._is_member() else None,
        ]
        try:
            for act in acts:
                try:
                    act()
                except (NotFound, Conflict):
                    pass  # the team is gone, or it was removed from it
                except TaskyardError as error:
                    self._report(str(error))
        finally:
            self._post.close()
            self.who.instance.leave()

    def _release_all_claims(self) -> None:
        """Release tasks that its programs claimed in its name, besides the current one."""
        for task in self._yard.tasks.list():
            if task.lease is not None and task.lease.instance == self.who.instance.id:
                self.current_task = task
                self.release("it left")

    def _is_member(self) -> bool:
        """Return whether this instance is in the team, not another of its name."""
        team = self._yard.teams.get(self.who.team)
        there = team.member(self.who.name)
        return self._has_joined and there is not None and there.instance in ("", self.who.instance.id)

    def progress(self, state: str = "working") -> None:
        """Report progress, or that it is idle, to the team."""
        try:
            self._yard.teams.progress(self.who.team, self.who.name, state=state)
        except NotFound:
            self.is_removed = True
        except TaskyardError:
            pass  # not supported by Claude Code's team, or the record is locked or damaged: `doctor` reports it

    # -- the list ----------------------------------------------------------------------------

    def suits(self, task: Task) -> bool:
        """Return whether labels and capabilities allow this teammate to do the task."""
        wanted = not self._labels or not self._labels.isdisjoint(labels_of(task))
        return wanted and self._able.issuperset(requires_of(task))

    def take(self) -> Task | None:
        """Claim and start the next task: assigned ones first, then the lowest free id; None if there is none."""
        self.current_task = self._given() if self.may_be_assigned else None
        if self.current_task is None:
            self.current_task = self._yard.tasks.claim_next(capabilities=self._able, where=self.suits, start=True)
        if self.current_task is None and not self.may_be_assigned:
            self.current_task = self._given()  # other programs may assign without mail
        return self.current_task

    def _given(self) -> Task | None:
        self.may_be_assigned = False  # before listing: mail may announce more meanwhile
        tasks = self._yard.tasks.list()
        mine = [task for task in tasks if task.owner == self.who.name and not task.is_done and task.lease is None]
        if not mine:
            return None
        self.may_be_assigned = True
        by_id = {task.id: task for task in tasks}
        for task in mine:
            if open_blockers(task, by_id):
                continue
            try:
                self._yard.tasks.claim(task.id)  # a fresh claim: it may have owned this task before
                return self._yard.tasks.start(task.id)
            except (Conflict, NotFound, Damaged):
                continue  # unassigned, or blocked again
        return None

    def is_finished(self) -> bool:
        """Return whether the list has tasks and all are done."""
        tasks = self._yard.tasks.list()
        return bool(tasks) and all(task.is_done for task in tasks)

    def has_completion_check(self, task: Task) -> bool:
        """Return whether a hook or an acceptance check decides on completion: that may take a while."""
        return "acceptance" in task.extra or self._yard.tasks.outside.is_guarded("TaskCompleted")

    def complete(self, task: Task) -> CompletionResult:
        """Complete a task. One that is no longer ours is dropped; a refused one stays the current task."""
        try:
            now = self._yard.tasks.get(task.id)
            if now.status is TaskStatus.PENDING and now.owner in (None, self.who.name):
                self.current_task = now
                self.fail("its worker put it back to pending: it is not done")
                return CompletionResult(gave_up=True)
            if not now.is_done:
                self._yard.tasks.complete(task.id)
        except (HookRefused, AcceptanceFailed) as refusal:
            return CompletionResult(refusal=str(refusal))
        except Untrusted as refusal:
            self._hand_to_person(task, refusal)
            return CompletionResult()
        except Blocked as refusal:
            self.release(str(refusal))
            return CompletionResult()
        except (Conflict, NotFound) as error:
            self._report(f"Task #{task.id} is no longer its own: {error}")
            self.current_task = None
            return CompletionResult()
        self.current_task = None
        return CompletionResult(is_done=True)

    def fail(self, reason: str, *, most: int | None = None) -> None:
        """Release the current task with the reason; the `most`th failure quarantines it and notifies the lead."""
        task, self.current_task = self.current_task, None
        if task is None:
            return
        limit = self._workers.settings.lease_losses if most is None else most
        caller = self._caller(task)
        act = Act(self.who.name, "release", note=escape_unstorable(f"failed: {reason}")[:500])
        try:
            now = self._workers.store.update(
                task.id, lambda facts: return_failed(facts, caller, reason=escape_unstorable(reason), most=limit), act
            )
        except (Conflict, NotFound, Damaged) as error:
            self._report(f"Task #{task.id} is no longer its own: {error}")
            return
        if now.is_held:
            from shlex import quote

            where = f"--list {quote(self._workers.list_name)}"
            times = "once" if failure_count(now) == 1 else f"{failure_count(now)} times"
            text = (
                f"Task #{task.id} was set aside: it failed {times}, last because: {reason[:2000].rstrip('.')}."
                f" Look into it, then claim it or `taskyard task assign {task.id} AGENT {where}`."
            )
            self.mail_lead(text=escape_unstorable(text), data={"taskId": task.id, "subject": task.subject})

    def _hand_to_person(self, task: Task, refusal: Untrusted) -> None:
        """Leave a finished task in progress until the user trusts its acceptance command; notify the lead."""
        from shlex import quote

        self.current_task = None
        caller = self._caller(task)
        reason = f"its acceptance command is not trusted: {refusal.command}"
        act = Act(self.who.name, "update", note=escape_unstorable(f"finished, {reason}")[:500])
        try:
            self._workers.store.update(
                task.id,
                lambda facts: hand_to_person(facts, caller, reason=escape_unstorable(reason), cwd=self._cwd),
                act,
            )
        except (Conflict, NotFound, Damaged) as error:
            self._report(f"Task #{task.id} is no longer its own: {error}")
            return
        where = f"--list {quote(self._workers.list_name)}"
        text = (
            f"Task #{task.id} is finished and waits for a person: {reason[:2000]}"
            f"\nRead the command, then run `taskyard trust {task.id} {where}`, which also completes the task."
        )
        self.mail_lead(text=escape_unstorable(text), data={"taskId": task.id, "subject": task.subject})

    def release(self, why: str) -> None:
        """Return the current task to the pool."""
        task, self.current_task = self.current_task, None
        if task is None:
            return
        caller = self._caller(task)
        act = Act(self.who.name, "release", note=escape_unstorable(why)[:500])
        try:
            self._workers.store.update(task.id, lambda facts: rules.release(facts, caller), act)
        except (Conflict, NotFound, Damaged):
            pass  # completed, reassigned or removed meanwhile

    def _caller(self, task: Task) -> rules.Caller:
        token = task.lease.token if task.lease is not None else None
        return rules.Caller(self.who.name, token, None, now_ms(), instance=self.who.instance.id)

    # -- mail --------------------------------------------------------------------------------

    def mail(self) -> list[Message]:
        """Take waiting messages from the mailbox."""
        try:
            return self._post.take(self.who.name, limit=_MAIL_BATCH)
        except FileNotFoundError:
            return []  # its mailbox was removed with a dissolved team

    def read(self, message_id: str) -> None:
        """Acknowledge a message."""
        self._post.ack(self.who.name, [message_id])

    def watched_folders(self) -> tuple[str, ...]:
        """Return the folders that change when mail arrives."""
        return self._post.watched_folders(self.who.name)

    def hears(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe `wake`, called from any thread, to mail that does not show in a folder."""
        return self._post.heard(self.who.name, wake)

    def lead(self) -> str:
        """Return the lead's name; the user, if the team has none."""
        try:
            return self._yard.teams.get(self.who.team).lead or PERSON
        except (NotFound, Damaged):
            return PERSON

    def is_authorised(self, sender: str) -> bool:
        """Return whether `sender` may shut it down or approve plans."""
        return sender in (self.lead(), PERSON)

    def mail_lead(self, *, type: str = "message", text: str = "", data: Mapping[str, object]) -> None:
        """Send mail to the lead."""
        self.write(self.lead(), type=type, text=text, data=data)

    def write(self, recipient: str, *, type: str = "message", text: str = "", data: Mapping[str, object]) -> None:
        """Send mail. A failure to send is reported and undoes nothing: what it reports has happened."""
        try:
            self._post.inform(self.who.name, recipient, text, type=type, data=data)
        except (TaskyardError, OSError) as error:  # folders vanish with a dissolved team
            self._report(f"No mail to {recipient!r}: {error}")
