"""Lead a team: start members, report events, replace members that die, and shut the team down.

The lead does none of the work; the task list alone coordinates the members. The lead reports what happens on
the list, in its mailbox and in the members' jobs, releases the claims of members that ended, and on exit
leaves no process and no claim behind. The team is dissolved afterwards; its task list stays.

`TeamEvents` wakes the lead, the `describe_*` functions are pure formatters for event lines, and `TeamOutcome`
sums up counts from the list's log and time, tokens and cost from the jobs.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

from taskyard import config
from taskyard.agents.lead import members as lead_members
from taskyard.agents.lead import removal
from taskyard.agents.lead.members import clean_up_member, continue_job, free_names
from taskyard.core.system import now_ms
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.errors import (
    AlreadyExists,
    Damaged,
    JobNotFound,
    MemberNotStarted,
    NotFound,
    RecipientNotFound,
    StorageError,
    TeamNotFound,
)
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.job_text import end_text
from taskyard.jobs.model import JobStatus
from taskyard.jobs.rate_limit import STOPPED_FACT
from taskyard.jobs.recovery import SupervisorWatcher
from taskyard.storage.inotify import watcher
from taskyard.tasks.model import requires_of
from taskyard.tasks.text import verification_nudge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
    from typing import Self

    from taskyard.agents.lead.members import MemberHandle, MemberSpec
    from taskyard.agents.lead.plan_file import TeamPlan
    from taskyard.agents.mail import Message
    from taskyard.jobs.model import Job
    from taskyard.storage.inotify import Subscription
    from taskyard.tasks.model import Change, Task
    from taskyard.yard import Yard


class TeamCounters:
    """Counters kept by the lead while it runs."""

    def __init__(self, began: int) -> None:
        self.began = began  #: epoch ms
        self.ended = began
        self.jobs: list[str] = []
        self.died = 0
        self.replaced = 0
        self.faults: list[str] = []


class TeamOutcome(NamedTuple):
    """The result of a team's work."""

    team: str
    tasks: tuple[Task, ...]
    done_by: Mapping[str, int]  #: completed tasks per agent
    seconds: float
    jobs: tuple[str, ...]
    died: int
    replaced: int
    tokens: int
    tools: int
    cost_usd: float | None  #: None: no engine reported a cost
    nudge: str | None  #: reminder to verify the work, if no verifier did
    faults: tuple[str, ...]

    @property
    def open(self) -> tuple[Task, ...]:
        """The unfinished tasks."""
        return tuple(task for task in self.tasks if not task.is_done)

    @classmethod
    def of(cls, yard: Yard, team: str, tally: TeamCounters, *, since: int) -> Self:
        """Compute the outcome from the list, the jobs, and the log from entry `since` on."""
        tasks = tuple(yard.tasks.list())
        done: Counter[str] = Counter()
        for change in yard.tasks.log(since=since):
            if change.act.cause == "complete" and not change.aborted:
                real = [task for task in change.tasks.values() if task is not None and not task.is_internal]
                done[change.act.by or "unknown"] += len(real)
        tokens, tools, cost = _spent(yard, tally.jobs)
        settings = yard.settings
        return cls(
            team,
            tasks,
            {name: count for name, count in sorted(done.items()) if count},
            (tally.ended - tally.began) / 1000,
            tuple(tally.jobs),
            tally.died,
            tally.replaced,
            tokens,
            tools,
            cost,
            verification_nudge(tasks, verifier=settings.verifier) if settings.verify_nudge else None,
            tuple(tally.faults),
        )


def _spent(yard: Yard, jobs: list[str]) -> tuple[int, int, float | None]:
    tokens = tools = 0
    cost: float | None = None
    for job_id in jobs:
        try:
            facts = yard.jobs.get(job_id).facts
        except JobNotFound:
            continue
        usage = as_object(facts.get("usage")) or {}
        tokens += _count(usage.get("total_tokens"))
        tools += _count(usage.get("tool_uses"))
        if isinstance(usd := facts.get("costUsd"), (int, float)) and not isinstance(usd, bool):
            cost = (cost or 0.0) + float(usd)
    return tokens, tools, cost


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


#: Verbs of event lines: `ada completes #3 Compile the sources`.
_VERBS = {
    "claim": "takes",
    "start": "starts",
    "complete": "completes",
    "release": "gives back",
    "reopen": "opens again",
    "create": "adds",
}

#: Maximum characters of a text in one event line.
_LONGEST = 300


def describe_change(change: Change) -> str:
    """Return the event line for a log entry of the list; empty if it is not worth one."""
    if change.aborted:
        return ""
    tasks = [task for task in change.tasks.values() if task is not None and not task.is_internal]
    if not tasks:
        return ""
    named = ", ".join(f"#{task.id} {one_line(task.subject)}" for task in tasks)
    if change.act.cause == "lease_lost":
        aside = ", and is quarantined" if any(task.is_held for task in tasks) else ""
        return f"{named} comes back to the pool{aside}: {one_line(change.act.by or 'its holder')} is gone"
    verb = _VERBS.get(change.act.cause)
    if verb is None:
        return ""
    if change.act.cause == "release" and change.act.note:
        return f"{named} comes back to the pool: {one_line(change.act.note)}"
    return f"{one_line(change.act.by or 'an unnamed agent')} {verb} {named}"


def describe_message(message: Message) -> str:
    """Return the event line for a message to the lead."""
    sender = one_line(message.sender)
    if message.type == "idle_notification":
        why = as_text(message.data.get("idleReason"))
        return f"{sender} is idle{f' ({one_line(why)})' if why and why != 'available' else ''}"
    if message.type == "shutdown_approved":
        return f"{sender} shuts down"
    if message.type == "plan_approval_request":
        from shlex import quote

        plan = as_text(message.data.get("planContent")) or message.text
        who = f"{quote(one_line(message.team))} {quote(sender)}"
        return (
            f"{sender} wants a plan approved: {one_line(plan)}\n"
            f"        taskyard team approve {who}  or  taskyard team reject {who} 'WHY'"
        )
    return f"{sender} writes: {one_line(message.summary or message.text)}"


def describe_question(name: str, job: Job) -> str:
    """Return the event line for a member that waits for an answer, with the command to answer it."""
    question = clip_middle(as_text(job.facts.get("question"))) or "it waits for input"
    return f"{one_line(name)} asks: {question}\n        taskyard send {job.id} 'ANSWER'"


def describe_end(name: str, job: Job) -> str:
    """Return the event line for a member that ended without being asked to."""
    how = end_text(job.end) if job.end is not None else "gone"
    error = job.end.error if job.end is not None else ""
    why = f": {one_line(error)}" if error and error not in how else ""
    return f"{one_line(name)} died ({how}){why}"


def describe_stop(name: str, job: Job) -> str:
    """Return the event line for a member that stopped on a rate limit instead of waiting."""
    return f"{one_line(name)} stops: {one_line(job.end.error if job.end is not None else '')}"


def describe_owner(task: Task, team: str) -> str:
    """Return the event line for a task owned by an agent that is not a member at work."""
    where = _list_option(team)
    return (
        f"waits for {one_line(task.owner or 'its owner')}: #{task.id} {one_line(task.subject)}\n"
        f"        taskyard task assign {task.id} AGENT {where}  or  taskyard task release {task.id} --force {where}"
    )


def describe_open_task(task: Task, tasks: dict[str, Task], team: str) -> str:
    """Return why no member works on an unfinished task."""
    named = f"#{task.id} {one_line(task.subject)}"
    if task.is_held:
        failed = as_object(task.extra.get("failed")) or {}
        last = one_line(as_text(failed.get("reason")))
        why = f"it failed, last because: {last}" if last else "it lost its holders too often"
        return (
            f"{named}: quarantined, {why.rstrip('.')}. `taskyard task edit {task.id} --clear held {_list_option(team)}`"
        )
    waits = [blocker for blocker in task.blocked_by if blocker in tasks and not tasks[blocker].is_done]
    if waits:
        return f"{named}: waits for {', '.join('#' + blocker for blocker in waits)}"
    if task.owner:
        return f"{named}: {one_line(task.owner)} has it"
    requires = requires_of(task)
    return f"{named}: requires {one_line(', '.join(requires))}" if requires else named


def _list_option(team: str) -> str:
    """Return the `--list` option for the team's list: the user's default list may be another."""
    from shlex import quote

    return f"--list {quote(one_line(team))}"


def clip_middle(text: str) -> str:
    """Return a question on one line: its beginning has the subject, its end the offered answers."""
    line = escape_control(" ".join(text.split()))
    if len(line) <= 2 * _LONGEST:
        return line
    return f"{line[:_LONGEST]} … {line[-_LONGEST:]}"


def one_line(text: str) -> str:
    """Return outside text on one line, control characters escaped, clipped."""
    line = escape_control(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


#: Files of a member's job folder that wake the lead: its facts and its exit record. The transcript changes
#: all the time.
_WATCHED_FILES = frozenset({"facts.json", "end.json"})

#: Seconds in which a burst of changes is gathered.
_DEBOUNCE = 0.01


class TeamEvents:
    """Wake-ups of a lead from list, mail, teams and member jobs; `with` closes the subscriptions."""

    def __init__(self, yard: Yard) -> None:
        """Subscribe from now on; earlier changes are not reported."""
        self._home = yard.home
        self._bell = watcher().follow(os.path.join(config.resolve_tasks_dir(yard.tasks_dir), yard.tasks.name))
        others = (*yard.mail.watched_folders(yard.agent or ""), f"{yard.home}/teams")
        self._places = [self._bell, *(watcher().follow(path, wake=self._bell) for path in others)]
        self._members: dict[str, Subscription] = {}
        self._deaths = SupervisorWatcher(yard.home)
        self._hearing = ExitStack()  # changes in a database do not show in a folder
        self._hearing.enter_context(yard.list_changes(self._bell.ring))
        self._hearing.enter_context(yard.mail.heard(yard.agent or "", self._bell.ring))
        self._hearing.enter_context(yard.teams.heard(self._bell.ring))

    def wait(self, seconds: float, jobs: Collection[str]) -> None:
        """Sleep until something may have changed, including in `jobs`, for at most `seconds`."""
        if self._watch_jobs(jobs):
            return  # changes before the subscription are not reported: check now
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._bell.wait(left, debounce=_DEBOUNCE):
            if self._is_news():
                return

    def __enter__(self) -> Self:
        self._deaths.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._deaths.__exit__()
        self._hearing.close()
        for each in (*self._members.values(), *self._places):
            each.close()

    def _watch_jobs(self, jobs: Collection[str]) -> bool:
        """Subscribe to exactly these jobs; return whether any is new."""
        for job_id in self._members.keys() - set(jobs):
            self._members.pop(job_id).close()
        fresh = set(jobs) - self._members.keys()
        for job_id in fresh:
            self._members[job_id] = watcher().follow(JobPaths(self._home, job_id).path, wake=self._bell)
            self._deaths.watch(job_id)
        return bool(fresh)

    def _is_news(self) -> bool:
        places = [place.changed() for place in self._places]
        members = [member.changed() for member in self._members.values()]
        return any(names is None or names for names in places) or any(
            names is None or not _WATCHED_FILES.isdisjoint(names) for names in members
        )


#: Seconds between checks of everything while there are no events.
_POLL_INTERVAL = 2.0

#: Seconds a member has to answer a shutdown request before it is stopped.
_SHUTDOWN_TIMEOUT = 10.0

#: Seconds a host process has to exit after its last member.
_HOST_EXIT_TIMEOUT = 2.0

#: Seconds that no task can be worked on before the team counts as stuck.
_STUCK_AFTER = 2.0


class TeamOptions(NamedTuple):
    """How a team is led."""

    wish: MemberSpec
    agents: int
    place: str = "process"
    names: tuple[str, ...] = ()
    replace: int = 10  #: maximum number of replacements for members that died
    until: str = "done"  #: "done" ends with the last task; "stopped" waits for more


class TeamLead:
    """The lead of one team."""

    def __init__(self, yard: Yard, team_options: TeamOptions, *, tell: Callable[[str], None]) -> None:
        """Prepare; nothing is started yet. `tell` is called with each event, one or more lines."""
        self._yard, self._team_options, self._tell = yard, team_options, tell
        self._team = team_options.wish.team
        self._me = yard.agent or ""
        self._hands: dict[str, MemberHandle] = {}
        self._joining: dict[str, float] = {}  # members that have yet to join, and when each was started
        self._asked: dict[str, str] = {}
        self._limits: dict[str, str] = {}  # rate limit last reported for each member
        self._hosts: set[str] = set()
        self._told: set[tuple[str, str | None]] = set()
        self._tally = TeamCounters(began=now_ms())
        self._position = yard.tasks.store.position()
        self._first = self._position
        self._names = free_names(yard.home, self._team, [self._me], wanted=team_options.names)
        self._stuck_since: float | None = None

    def lead(self) -> TeamOutcome:
        """Run the team until the work is done and return the outcome.

        Ctrl+C stops all members, verifies that they are gone, and propagates.

        Raises:
            MemberNotStarted: a member of the first round did not join.
        """
        try:
            if self._team_options.until == "stopped" or not self._all_done():
                self._hire(self._team_options.agents)
            with TeamEvents(self._yard) as ears:
                while self._round():
                    ears.wait(_POLL_INTERVAL, [hand.job_id for hand in self._hands.values()])
            self._shut_down()
        except BaseException:
            self._stop()
            raise
        self._news()
        return self._outcome()

    def stopped(self) -> TeamOutcome:
        """Return the outcome after an interruption."""
        return self._outcome()

    # -- members -----------------------------------------------------------------------------

    def _hire(self, count: int) -> None:
        """Start several members at once and confirm that each joins."""
        for hand in self._start(count):
            lead_members.confirm(self._yard, self._team, hand)
            self._report_joined(hand)

    def _start(self, count: int) -> list[MemberHandle]:
        started: list[MemberHandle] = []
        names = [next(self._names) for _ in range(count)]
        for hand in lead_members.start(self._yard, self._team_options.wish, names, place=self._team_options.place):
            self._hands[hand.name] = hand
            self._hosts.update([hand.host] if hand.host else [])
            self._tally.jobs.append(hand.job_id)
            started.append(hand)
        return started

    def _report_joined(self, hand: MemberHandle) -> None:
        where = f" in window {hand.pane.pane} of {hand.pane.session}" if hand.pane is not None else ""
        self._say(f"{hand.name} joins as {hand.job_id}{where}")

    def _check_joined(self, hand: MemberHandle, job: Job) -> bool:
        """Return whether a member has joined; a replacement is not waited for but checked in each round."""
        began = self._joining.get(hand.name)
        if began is None:
            return True
        try:
            if not lead_members.has_joined(self._yard, self._team, hand, job, began=began):
                return False
        except MemberNotStarted as error:
            self._on_start_failure(error)
            return False
        del self._joining[hand.name]
        self._report_joined(hand)
        return True

    def _on_start_failure(self, error: MemberNotStarted) -> None:
        self._hands.pop(error.member, None)
        self._joining.pop(error.member, None)
        self._tally.died += 1
        self._say(str(error))

    def _look_at(self, hand: MemberHandle, job: Job) -> None:
        if not self._check_joined(hand, job):
            return
        question = str(job.facts.get("question", "")) if job.needs_input else ""
        if job.needs_input and self._asked.get(hand.name) != question:
            self._say(describe_question(hand.name, job))
        self._asked[hand.name] = question
        self._tell_limit(hand, job)
        if job.is_final:
            self._ended(hand, job)

    def _tell_limit(self, hand: MemberHandle, job: Job) -> None:
        """Report once that a member waits for a rate limit, and once that it continues."""
        limit, before = job.rate_limited, self._limits.get(hand.name, "")
        now = "" if limit is None else limit.state()
        if now == before or job.is_final:
            return
        self._limits[hand.name] = now
        self._say(f"{hand.name} {now}" if now else f"{hand.name} continues after the rate limit")

    def _ended(self, hand: MemberHandle, job: Job) -> None:
        """Handle the end of a member: release its tasks, and replace it if it died early."""
        del self._hands[hand.name]
        self._asked.pop(hand.name, None)
        self._limits.pop(hand.name, None)
        if hand.pane is not None:
            lead_members.stop_member(self._yard, hand)
        clean_up_member(self._yard, self._team, hand.name)
        if job.status is JobStatus.COMPLETED:
            self._say(f"{hand.name} is done and leaves")
            return
        if job.facts.get(STOPPED_FACT) is True:
            self._say(describe_stop(hand.name, job))  # a replacement would hit the same rate limit
            self._tally.faults.append(describe_stop(hand.name, job))
            return
        self._tally.died += 1
        self._say(describe_end(hand.name, job))
        self._replace()

    def _replace(self) -> None:
        if self._all_done() or self._tally.replaced >= self._team_options.replace:
            return
        self._tally.replaced += 1
        try:
            [hand] = self._start(1)
        except MemberNotStarted as error:
            self._on_start_failure(error)
        else:
            self._joining[hand.name] = time.monotonic()

    # -- one round ---------------------------------------------------------------------------

    def _round(self) -> bool:
        """Check everything once; False when there is nothing left to lead."""
        self._news()
        for hand in list(self._hands.values()):
            self._look_at(hand, self._yard.jobs.get(hand.job_id))
        if not self._is_there():
            self._say(f"team {self._team} was removed")
            return False
        if self._team_options.until == "stopped":
            return bool(self._hands)
        return not self._all_done() and not self._is_stuck()

    def _news(self) -> None:
        """Report changes of the list and messages to the lead."""
        for change in self._yard.tasks.log(since=self._position):
            self._position = change.id + 1
            if line := describe_change(change):
                self._say(line)
        for message in self._yard.mail.take(self._me):
            self._yard.mail.ack(self._me, [message.id])
            self._say(describe_message(message))

    def _is_there(self) -> bool:
        try:
            return bool(self._yard.teams.get(self._team))
        except TeamNotFound:
            return False
        except Damaged:
            return True  # work continues by list and mail; a forced removal moves the record away

    def _all_done(self) -> bool:
        return all(task.is_done for task in self._yard.tasks.list())

    def _is_stuck(self) -> bool:
        """Return whether no unfinished task can progress: no members are left, or none may take what is left."""
        if not self._hands:
            return True
        if movable := list(self._movable_tasks()):
            self._stuck_since = None
            self._report_foreign_owners(movable)
            return False
        if self._stuck_since is None:
            self._stuck_since = time.monotonic()
        return time.monotonic() - self._stuck_since > _STUCK_AFTER

    def _report_foreign_owners(self, movable: Sequence[Task]) -> None:
        """Report tasks owned by agents outside the team, once each, if no other task can progress."""
        if any(task.owner is None or task.owner in self._hands for task in movable):
            return
        for task in movable:
            if (task.id, task.owner) not in self._told:
                self._told.add((task.id, task.owner))
                self._say(describe_owner(task, self._team))

    def _movable_tasks(self) -> Iterator[Task]:
        tasks = {task.id: task for task in self._yard.tasks.list()}
        able = frozenset(self._team_options.wish.can)
        for task in tasks.values():
            if task.is_done or task.is_held:
                continue
            if any(blocker in tasks and not tasks[blocker].is_done for blocker in task.blocked_by):
                continue
            if task.owner or able.issuperset(requires_of(task)):
                yield task

    # -- shutdown ----------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Ask all members to shut down, then stop those that did not."""
        request = {"reason": "the work is over", "from": self._me, "type": "shutdown_request"}
        for name in self._hands:
            try:
                data = {**request, "requestId": f"shutdown-{now_ms()}@{name}"}
                self._yard.mail.send(self._me, name, type="shutdown_request", data=data)
            except (RecipientNotFound, StorageError):
                pass  # it has left, or is leaving now and its mailbox is gone; the rest is stopped below
        deadline = time.monotonic() + _SHUTDOWN_TIMEOUT
        while self._hands and time.monotonic() < deadline:
            for hand in list(self._hands.values()):
                if self._yard.jobs.wait(hand.job_id, timeout=max(0.0, deadline - time.monotonic())).is_final:
                    self._gone(hand)
        self._stop()

    def _gone(self, hand: MemberHandle) -> None:
        self._hands.pop(hand.name, None)
        if not lead_members.stop_member(self._yard, hand, grace=0):
            self._tally.faults.append(f"something of {hand.name} ({hand.job_id}) may be left")
        clean_up_member(self._yard, self._team, hand.name)

    def _stop(self) -> None:
        """Stop all remaining members at once and verify that they are gone."""
        for hand in self._hands.values():
            # A member stopped by a signal can then exit cleanly.
            continue_job(JobPaths(self._yard.home, hand.host or hand.job_id))
        if ids := [hand.job_id for hand in self._hands.values()]:
            self._yard.jobs.stop(*ids)
        for hand in list(self._hands.values()):
            self._gone(hand)
        hosts = sorted(self._hosts)
        self._yard.jobs.wait_all(hosts, timeout=_HOST_EXIT_TIMEOUT)
        for host in hosts:
            if not lead_members.stop_host(self._yard, host):
                self._tally.faults.append(f"processes of {host}, which hosted members, may be left")

    def _outcome(self) -> TeamOutcome:
        self._tally.ended = now_ms()
        return TeamOutcome.of(self._yard, self._team, self._tally, since=self._first)

    def _say(self, line: str) -> None:
        self._tell(line)


def lead_name(agent: str | None) -> str:
    """Return the name of a team's lead: the given one, else `$TASKYARD_AGENT`, else "lead"."""
    return agent or os.environ.get("TASKYARD_AGENT") or "lead"


@contextmanager
def create_team(yard: Yard, team: str, plan: TeamPlan | None) -> Generator[None]:
    """Create `team`, led by the agent of `yard`, with the tasks of a plan on its list; remove it on exit.

    An existing team of that name without live members is taken over.

    Raises:
        AlreadyExists, TeamHasLivingMembers: a team of that name has live members.
        HookRefused: a hook refused a task of the plan; tasks before it stay on the list.
    """
    _remove_dead_team(yard, team)
    yard.teams.create(team, lead=yard.agent)
    try:
        removal.record_lead(yard.home, team)
        if plan is not None:
            yard.tasks.add_all(plan.tasks)
        yield
    finally:
        _dissolve(yard, team)
        removal.forget_lead(yard.home, team)


def _remove_dead_team(yard: Yard, team: str) -> None:
    """Dissolve a team of that name whose lead and members are dead, as left by a killed `team up`."""
    try:
        found = yard.teams.get(team)
    except NotFound:
        return
    living = {seen.member.name: seen.liveness for seen in yard.teams.members(team)}
    if found.source != "taskyard" or found.lead is None or living.get(found.lead) != "dead":
        hint = f"`taskyard team show {team}` shows it; `taskyard team join {team} --engine …` adds a member at work."
        if found.source == "taskyard":
            hint += f" `taskyard team remove {team}` dissolves it, and its list stays."
        raise AlreadyExists("a team", team, hint=hint)
    yard.teams.remove(team)


def _dissolve(yard: Yard, team: str) -> None:
    try:
        yard.teams.remove(team, force=True)
    except NotFound:
        pass  # another process removed it
