"""The shared task list as its users see it: `yard.tasks`.

Every method validates its arguments, lets a pure rule (`rules`) decide inside one store operation, and only
then, with no lock held, notifies owners and watchers through `side_effects`. Hooks and acceptance commands
run before the store operation, also without a lock; if status, owner, blockers or acceptance command of the
task changed meanwhile, everything is decided again.

An update lays new values over old ones. Fields to clear are removed from what the rule decided, under the
same lock, so a hook or rule that refuses the update keeps them. After a completion the tasks that became
ready are reported, and the main agent may be asked to start an independent verifier.

Over 1,000 lines because the class `TaskList` is whole in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from taskyard.config import Settings
from taskyard.core.system import boottime, iso, now_ms
from taskyard.core.values import as_object, cast, check_id, check_name, check_subject, check_text
from taskyard.errors import (
    AcceptanceFailed,
    BadValue,
    Busy,
    Cancelled,
    Conflict,
    Damaged,
    HookRefused,
    ListNotEmpty,
    NotFound,
    StillOpen,
    Untrusted,
    UsageError,
)
from taskyard.tasks import rules
from taskyard.tasks.graph import MissingParent, refuse_bad_parent
from taskyard.tasks.model import (
    Act,
    Change,
    Decision,
    Draft,
    Facts,
    LinkChange,
    Listing,
    Task,
    TaskStatus,
    metadata_parent,
    with_blocks,
)
from taskyard.tasks.rules import check_removal, merge_metadata, newly_ready
from taskyard.tasks.text import verification_nudge
from taskyard.tasks.transitions import TaskGraph, apply_links, linked_ids, may_be_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self, TypedDict, Unpack

    from taskyard.tasks.formats.exchange import ImportedTask
    from taskyard.tasks.model import Lease
    from taskyard.tasks.rules import Patch
    from taskyard.tasks.side_effects import SideEffects
    from taskyard.tasks.store import Rule, TaskStore


if TYPE_CHECKING:

    class Extras(TypedDict, total=False):
        """Optional fields, kept under `metadata.taskyard`."""

        priority: int
        labels: Iterable[str]
        due: str
        parent: str
        external: Mapping[str, str]
        requires: Iterable[str]
        paths: Iterable[str]
        acceptance: Mapping[str, object]


#: Hook events of a task that is created as completed; one that is open has only the first.
_HOOK_EVENTS = ("TaskCreated", "TaskCompleted")

#: Seconds (one year): a claim meant to last longer should not expire.
LONGEST_LEASE = 31_536_000


class TaskListContext:
    """A store, its side effects, and the agent on whose behalf calls are made."""

    def __init__(
        self,
        store: TaskStore,
        *,
        settings: Settings | None = None,
        outside: SideEffects | None = None,
        agent: str | None = None,
        via: str = "api",
    ) -> None:
        self.store = store
        self.settings = settings if settings is not None else Settings()
        self.outside: SideEffects = outside if outside is not None else _no_side_effects()
        self.agent = agent
        self._via = via
        self.cancel: threading.Event | None = None
        self._tokens: dict[str, tuple[str, str]] = {}  # by task: the claiming agent and its token

    @property
    def name(self) -> str:
        """The list's name."""
        return self.store.name

    def unless(self, cancel: threading.Event) -> Self:
        """Return the same list bound to `cancel`: once it is set, hooks and checks stop and nothing is saved."""
        import copy

        seen = copy.copy(self)
        seen.cancel = cancel
        return seen

    def refuse_cancelled(self) -> None:
        """Raise `Cancelled` if the caller has given up, so that nothing is saved."""
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled("The change")

    def _act(self, agent: str | None, cause: str, *, force: bool = False, note: str = "") -> Act:
        return Act(agent or self.agent, cause, self._via, "forced" if force else note)

    def _somebody(self, agent: str | None) -> str:
        name = agent or self.agent
        if not name:
            raise UsageError("Who claims it? Give an agent's name (`agent=`, `--by`, or TASKYARD_AGENT).")
        return name

    def _caller(
        self,
        task_id: str | None,
        agent: str | None,
        *,
        token: str | None = None,
        force: bool = False,
        seconds: float | None = None,
        claims: bool = False,
        may_lead: bool = False,
    ) -> rules.Caller:
        """Describe the caller: the token of the claim it believes to hold, and a lease to claim under."""
        if agent is not None and agent is not self.agent:
            check_name("an agent", agent)
        if token is None and task_id in self._tokens:
            holder, remembered = self._tokens[task_id]
            token = remembered if agent in (None, holder) else None
        if seconds is not None:
            seconds = _check_lease(seconds)
        if not agent:
            return rules.Caller(None, token, None, now_ms(), force)
        lease = self.outside.lease(agent, seconds=seconds) if claims else None
        instance = lease.instance if lease is not None else self.outside.instance(agent)
        leads = may_lead and self.outside.leads(agent)
        return rules.Caller(agent, token, lease, now_ms(), force, instance, leads)

    def _remember(self, task: Task) -> None:
        """Keep the fencing token of a claim for later writes of its holder."""
        if task.lease is not None:
            self._tokens[task.id] = (task.lease.owner, task.lease.token)

    def _claimed(self, task: Task, notes: tuple[str, ...] = ()) -> Task:
        self._remember(task)
        self.outside.changed()
        return task._replace(notes=notes) if notes else task

    def _metadata(self, metadata: Mapping[str, object] | None, extras: Extras) -> dict[str, object]:
        found = validate_metadata(metadata, is_new=True)
        if extras:
            from taskyard.tasks.model import check_named_extras

            if given := check_named_extras(cast("Mapping[str, object]", extras)):
                found["taskyard"] = {**(as_object(found.get("taskyard")) or {}), **given}
        return found

    def _with_cleared(self, fields: str | Iterable[str], given: Extras) -> Self:
        """Return the same list with a store whose updates also clear `fields`, except those in `given`."""
        if not fields:
            return self
        import copy

        from taskyard.tasks.model import check_clear

        seen = copy.copy(self)
        gone = [name for name in check_clear(fields) if name not in given]
        seen.store = cast("TaskStore", FieldClearingStore(self.store, gone))  # the rest of a store by __getattr__
        return seen

    def _add(self, draft: Draft, act: Act, lease: Lease | None = None) -> Task:
        """Create a task if the hooks agree, and notify its owner unless the task is completed already.

        Raises:
            HookRefused: a hook refused; the id is spent.
        """
        task_id = None
        if any(self.outside.is_guarded(event) for event in _events(draft)):
            task_id = self.store.reserve()
            self._ask_hooks(Task(task_id, *draft), act)
        self.refuse_cancelled()
        task = self.store.create(draft, act, task_id=task_id, lease=lease)
        if not task.is_done:
            self._notify_owner(task, None, act.by)
        return task

    def _ask_hooks(self, task: Task, act: Act) -> None:
        """Run the hooks for a new task."""
        for event in _events(task):
            if self.outside.is_guarded(event):
                self.outside.ask_hooks(event, task, act.by, cancel=self.cancel)

    def _notify_owner(self, task: Task, before: str | None, by: str | None) -> None:
        if task.owner is None or task.owner in (before, by):
            return  # no mail about one's own act
        data = {
            "taskId": task.id,
            "subject": task.subject,
            "description": task.description,
            "assignedBy": by or "",
            "timestamp": iso(now_ms()),
        }
        self.outside.tell(task.owner, sender=by, kind="task_assignment", text="", data=data)


def _events(task: Task | Draft) -> tuple[str, ...]:
    return _HOOK_EVENTS if task.status is TaskStatus.COMPLETED else _HOOK_EVENTS[:1]


def _no_side_effects() -> SideEffects:
    from taskyard.tasks.side_effects import NoSideEffects

    return NoSideEffects()


def validate_metadata(metadata: Mapping[str, object] | None, *, is_new: bool = False) -> dict[str, object]:
    """Return a copy of `metadata` that can be stored, {} for None; the `taskyard` part is validated like fields.

    None for `taskyard` removes that part; a new task has none to remove.
    """
    given: object = dict(metadata) if isinstance(metadata, Mapping) else metadata
    if given is None:
        return {}
    from taskyard.tasks.reader import check_metadata

    found = check_metadata(given)
    if found.get("taskyard") is not None:
        from taskyard.tasks.model import check_own_metadata

        found["taskyard"] = check_own_metadata(found["taskyard"], is_new=is_new)
    elif is_new:
        found.pop("taskyard", None)
    return found


def _check_lease(seconds: object) -> float:
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds <= LONGEST_LEASE:
        return float(seconds)
    raise BadValue("lease", seconds, f"seconds, above 0 and at most {LONGEST_LEASE:,}")


def check_ids(ids: str | Iterable[str]) -> tuple[str, ...]:
    """Return one or several ids, validated and without duplicates."""
    if not ids:
        return ()
    return tuple(dict.fromkeys(check_id(task_id) for task_id in as_texts("The ids", ids)))


def as_texts(field: str, given: str | Iterable[str]) -> Iterable[str]:
    """Return one text or several as an iterable; untyped callers may pass anything."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadValue(field, given, "one text or several")
    return given


#: Seconds of one wait when nothing is unfinished: then only file events matter.
_IDLE_WAIT = 3600.0


class TaskListBase(TaskListContext):
    """Methods that need no rule about task status and claims."""

    # -- reading -----------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """Return a task.

        Raises:
            TaskNotFound: there is none; names similar ids, or that it can be restored.
            Damaged: its file cannot be read.
        """
        return self.store.get(check_id(task_id))

    def list(self, *, internal: bool = False) -> Listing:
        """Return every task by ascending id; trackers only with `internal`. `.damaged` names unreadable files."""
        found = self.store.list()
        if not internal:
            return found.visible
        from taskyard.tasks import trackers

        return self.store.list() if trackers.complete_dead_trackers(self.store, found) else found

    def log(self, task_id: str | None = None, *, since: int = 0) -> tuple[Change, ...]:
        """Return log entries, oldest first: of one task, or of the list from entry id `since` on."""
        since = _check_entry_id("since", since)
        return tuple(self.store.changes(since, task_id=None if task_id is None else check_id(task_id)))

    def watch(self, *, since: int | None = None, timeout: float | None = None) -> Iterator[Change]:
        """Yield every change as it happens, by any program, from now or from entry id `since` on.

        Ends after `timeout` seconds without a change; never, if not given. While a task is unfinished it also polls
        every few seconds, so that tasks of dead holders are released.
        """
        start = self.store.position() if since is None else _check_entry_id("since", since)
        return self._watching(start, None if timeout is None else _check_timeout("timeout", timeout))

    def _watching(self, position: int, timeout: float | None) -> Iterator[Change]:
        deadline = None if timeout is None else boottime() + timeout
        unfinished = True
        while True:
            for is_told in (True, False):  # report what woke us before anything else is read
                if not is_told:
                    unfinished = any(not task.is_done for task in self.store.list().visible)
                for change in self.store.changes(position):
                    position = change.id + 1
                    yield change
                    deadline = None if timeout is None else boottime() + timeout
            pause = self.settings.poll_interval if unfinished else _IDLE_WAIT
            if deadline is not None:
                pause = min(pause, deadline - boottime())
                if pause <= 0:
                    return
            self.store.wait(pause)

    def export(self, format: str = "json") -> str:
        """Return the list as text: json, markdown, csv, dot or mermaid."""
        from taskyard.tasks.transfer import export

        return export(self.list(), format, list_name=self.name, last_id=self.store.last_id())

    def import_(
        self, text: str, format: str = "json", *, keep_ids: bool = False, agent: str | None = None
    ) -> tuple[Task, ...]:
        """Add the tasks of an export (json, markdown, csv) that are not on the list yet; return those added.

        Each is added as by `create`: hooks run, its owner is notified. `notes` name what had to be left out. With
        `keep_ids` an empty list becomes a copy of the exported one (JSON only), with ids and times, in one step;
        hooks run first, and owners are not notified.

        Raises:
            ListNotEmpty: `keep_ids`, and the list has other tasks than those.
            UsageError: the text cannot be parsed; names the position.
            Cycle: its tasks wait for each other. Nothing was added.
            HookRefused: a hook refused one; `added` names those before it, which stay.
        """
        if keep_ids:
            return self._import_with_ids(text, format, agent)
        from taskyard.tasks.transfer import parse_tasks

        return self.add_all(parse_tasks(text, format, source=""), agent=agent)

    def _import_with_ids(self, text: str, format: str, agent: str | None) -> tuple[Task, ...]:
        from taskyard.tasks import transfer

        if format != "json":
            raise BadValue("format", format, "json, which alone holds all that is kept with the ids")
        found, there = transfer.parse_list_export(text), self.store.list()
        if there and not transfer.contains_all(found.tasks, there):
            raise ListNotEmpty(self.name, len(there))
        if there or not found.tasks:
            return ()
        act = self._act(agent, "import")
        for task in found.tasks:
            self._ask_hooks(task, act)
        self.refuse_cancelled()
        self.store.adopt(found.tasks, act, last=found.last)
        self.outside.changed()
        return found.tasks

    def add_all(self, imported: Sequence[ImportedTask], *, agent: str | None = None) -> tuple[Task, ...]:
        """Import tasks that are parsed already; see `import_`."""
        from taskyard.tasks.transfer import plan_import

        plan = plan_import(imported, self.list(), list_name=self.name)
        ids, parts = plan.known_ids(), plan.late_parts()
        added: dict[str, Task] = {}
        try:
            for item in plan.create:
                task = self._add(plan.draft(item, ids), self._act(agent, "import"))
                ids[item.key] = task.id
                added[task.id] = task._replace(notes=plan.notes(item))
                for part in parts.get(item.key, ()):
                    notes = added[ids[part]].notes
                    added[ids[part]] = self._set_parent(ids[part], task.id, agent)._replace(notes=notes)
        except HookRefused as refusal:
            raise refusal.after(added) from None
        finally:
            if added:
                self.outside.changed()
        return tuple(added.values())

    def _set_parent(self, task_id: str, parent: str, agent: str | None) -> Task:
        def rule(facts: Facts) -> Decision:
            extra = {"taskyard": {**facts.task.extra, "parent": parent}}
            return Decision(facts.task._replace(metadata=merge_metadata(facts.task.metadata, extra)), facts.lease)

        return self.store.update(task_id, rule, self._act(agent, "import"))

    def block(self, task_id: str, *, by: str | Iterable[str], agent: str | None = None) -> Task:
        """Make a task wait for others: for all of them, or nothing changes.

        Raises:
            Cycle: tasks would wait for each other; names the path.
        """
        task_id = check_id(task_id)
        self.store.link([(blocker, task_id) for blocker in check_ids(by)], self._act(agent, "block"))
        self.outside.changed()
        return self.store.get(task_id)

    def unblock(self, task_id: str, *, by: str | Iterable[str], agent: str | None = None) -> Task:
        """Remove dependencies of a task; `notes` of the result name those that did not exist.

        Raises:
            TaskNotFound: there is no such task, and no dependency on that id.
        """
        task_id = check_id(task_id)
        edges = [(blocker, task_id) for blocker in check_ids(by)]
        there = self.store.unlink(edges, self._act(agent, "unblock"))
        self.outside.changed()
        idle = [f"#{blocker}" for blocker, blocked in edges if (blocker, blocked) not in there]
        task = self.store.get(task_id)
        if there and not idle:
            return task
        said = f"#{task_id} did not wait for {', '.join(idle) or 'anything'}."
        return task._replace(notes=(said if there else f"Nothing changed: {said}",))

    # -- removing and restoring --------------------------------------------------------------

    def delete(
        self, task_id: str, *, agent: str | None = None, note: str = "", force: bool = False, token: str | None = None
    ) -> Task:
        """Remove a task from the list and from all dependencies. `restore` brings it back.

        Raises:
            AlreadyClaimed: another agent holds it; only its holder, the team's lead, or a user with `force` may.
            LeaseLost: the caller's claim is no longer the current one.
        """
        return self.delete_all([task_id], agent=agent, note=note, force=force, token=token)[0]

    def delete_all(
        self,
        task_ids: Iterable[str],
        *,
        agent: str | None = None,
        note: str = "",
        force: bool = False,
        token: str | None = None,
    ) -> tuple[Task, ...]:
        """Delete several tasks: all of them, or none."""
        by, ids = agent or self.agent, check_ids(task_ids)
        callers = {one: self._caller(one, by, token=token, force=force, may_lead=True) for one in ids}

        def check(facts: Facts) -> None:
            check_removal(facts, callers[facts.task.id])

        return self._remove(ids, "delete", agent, note or ("forced" if force else ""), check=check)

    def archive(self, *task_ids: str, agent: str | None = None, force: bool = False) -> tuple[Task, ...]:
        """Archive completed tasks; without ids, all of them. `restore` brings each back.

        Raises:
            StillOpen: a named task is not completed; `force` archives it all the same.
        """
        note = "forced" if force else ""
        if task_ids:
            return self._remove([check_id(i) for i in task_ids], "archive", agent, note, only_done=not force)
        ids = [task.id for task in self.list() if task.is_done]
        while True:
            try:
                return self._remove(ids, "archive", agent, note, only_done=True)
            except StillOpen as reopened:  # reopened since they were listed
                ids = [task_id for task_id in ids if task_id not in reopened.tasks]

    def reset(self, *, agent: str | None = None) -> tuple[Task, ...]:
        """Remove all tasks. Ids continue from the last one; `restore` brings each task back."""
        return self._remove([task.id for task in self.store.list()], "reset", agent, "")

    def restore(self, task_id: str, *, agent: str | None = None) -> Task:
        """Restore a task that was deleted, archived, reset, or removed by another program."""
        task = self.store.restore(check_id(task_id), self._act(agent, "restore"))
        self.outside.changed()
        return task

    def _remove(
        self,
        ids: Sequence[str],
        cause: str,
        agent: str | None,
        note: str,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        if not ids:
            return ()
        gone = self.store.remove(ids, self._act(agent, cause, note=note), only_done=only_done, check=check)
        for task_id in ids:
            self._tokens.pop(task_id, None)
        self.outside.changed()
        return gone


def _check_entry_id(name: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise BadValue(name, value, "the id of an entry of the log: a whole number from 0")
    return value


def _check_timeout(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise BadValue(name, value, "seconds, from 0")
    return value


class TaskList(TaskListBase):
    """Create, claim and complete tasks that several agents share."""

    # -- creating ----------------------------------------------------------------------------

    def create(
        self,
        subject: str,
        *,
        description: str | None = None,
        active_form: str | None = None,
        owner: str | None = None,
        blocks: Iterable[str] = (),
        blocked_by: Iterable[str] = (),
        metadata: Mapping[str, object] | None = None,
        agent: str | None = None,
        **extras: Unpack[Extras],
    ) -> Task:
        """Create a pending task. The description defaults to the subject.

        If the owner is the caller itself, it holds the task from the start, as by `claim`.

        Raises:
            UsageError: a value cannot be stored.
            TaskNotFound: a dependency or the parent names no task.
            Cycle: the dependencies would wait for each other.
            HookRefused: a TaskCreated hook refused; the id is spent.
        """
        subject = check_subject(subject)
        draft = Draft(
            subject,
            check_text("description", description) if description else subject,
            check_text("active form", active_form) or None if active_form is not None else None,
            check_name("an owner", owner) if owner else None,
            TaskStatus.PENDING,
            check_ids(blocks),
            check_ids(blocked_by),
            self._metadata(metadata, extras),
        )
        taker = agent or self.agent
        lease = self._caller(None, taker, claims=True).lease if draft.owner and draft.owner == taker else None
        task = self._add(draft, self._act(agent, "create"), lease)
        self._remember(task)
        self.outside.changed()
        return task

    # -- working -----------------------------------------------------------------------------

    def claim(
        self,
        task_id: str,
        *,
        agent: str | None = None,
        check_busy: bool = False,
        force: bool = False,
        lease: float | None = None,
        token: str | None = None,
    ) -> Task:
        """Claim the task for `agent`. Idempotent: claiming one's own task again succeeds.

        Args:
            task_id: The task.
            agent: The claiming agent; the yard's own agent if not given.
            check_busy: Refuse if the agent already owns unfinished tasks.
            force: Claim even if the task is blocked, on a user's behalf; recorded in the log.
            lease: Seconds until the claim expires unless renewed; without it, it lasts as long as its holder.
            token: Fencing token of an earlier claim of the same holder, which renews it this way.

        Raises:
            AlreadyClaimed, AlreadyResolved, Blocked, AgentBusy, PathsOverlap, TaskNotFound
        """
        task_id = check_id(task_id)
        caller = self._caller(task_id, self._somebody(agent), force=force, seconds=lease, token=token, claims=True)
        act = self._act(caller.agent, "claim", force=force)
        chosen = rules.claim_if_idle if check_busy else rules.claim
        rule: Rule = lambda facts: chosen(facts, caller)  # noqa: E731
        if self.settings.paths_policy == "refuse":
            from taskyard.tasks.rules import update_without_overlap

            return self._claimed(update_without_overlap(self.store, task_id, rule, act, whole_list=check_busy))
        task = self.store.update(task_id, rule, act, with_blockers=True, whole_list=check_busy)
        return self._claimed(task, self._overlaps(task) if task.extra else ())

    def _overlaps(self, task: Task) -> tuple[str, ...]:
        """Return warnings about other agents that work on the task's paths."""
        from taskyard.tasks.rules import overlap_warnings

        return overlap_warnings(self.store, task, self.settings.paths_policy)

    def claim_next(
        self,
        *,
        agent: str | None = None,
        where: Callable[[Task], bool] | None = None,
        capabilities: Iterable[str] = (),
        lease: float | None = None,
        start: bool = False,
        check_busy: bool = False,
    ) -> Task | None:
        """Pick and claim a task in one step: by priority where set, then the lowest free id; None if none is free.

        Args:
            agent: The claiming agent; the yard's own agent if not given.
            where: Only tasks for which it returns True.
            capabilities: Of the agent; a task that requires others is not offered.
            lease: Seconds until the claim expires unless renewed.
            start: Set the task in progress in the same step.
            check_busy: Raise AgentBusy if the agent already owns unfinished tasks.
        """
        from taskyard.tasks.model import requires_of
        from taskyard.tasks.rules import ClaimOrder, ClaimRule, claim_next_if_idle

        able = frozenset(as_texts("capabilities", capabilities))
        caller = self._caller(None, self._somebody(agent), seconds=lease, claims=True)
        policy = self.settings.paths_policy

        def suits(task: Task) -> bool:
            return able.issuperset(requires_of(task)) and (where is None or where(task))

        order = ClaimOrder(suits if able or where is not None else None, agent=caller.agent, policy=policy)
        rule = ClaimRule(caller, start=start, check_busy=check_busy)
        act = self._act(caller.agent, "start" if start else "claim")
        if check_busy:
            found = claim_next_if_idle(self.store, order, rule, act, agent=caller.agent, policy=policy)
        elif policy == "refuse":
            from taskyard.tasks.rules import claim_next_without_overlap

            found = claim_next_without_overlap(self.store, order, rule, act)
        else:
            found = self.store.claim_next(order, rule, act)
        return None if found is None else self._claimed(found)

    def start(self, task_id: str, *, agent: str | None = None, force: bool = False, token: str | None = None) -> Task:
        """Set a task in progress. A task without an owner becomes the caller's."""
        return self.update(task_id, status="in_progress", agent=agent, force=force, token=token)

    def complete(
        self, task_id: str, *, agent: str | None = None, force: bool = False, token: str | None = None
    ) -> Task:
        """Mark a task completed. `ready` of the result names the tasks that waited only for this one.

        Raises:
            Blocked: it waits for others itself.
            HookRefused, AcceptanceFailed, Untrusted: it does not count as completed yet.
            LeaseLost: the caller's claim is no longer the current one.
        """
        return self.update(task_id, status="completed", agent=agent, force=force, token=token)

    def assign(self, task_id: str, owner: str | None, *, agent: str | None = None, force: bool = False) -> Task:
        """Set a new owner, which gets mail; None removes the owner. Assigning to oneself is a claim.

        Raises:
            AlreadyClaimed: another agent holds it; only its holder, the team's lead, or a user with `force` may.
        """
        return self.update(task_id, owner=owner or "", agent=agent, force=force)

    def release(self, task_id: str, *, agent: str | None = None, token: str | None = None, force: bool = False) -> Task:
        """Return a task to the pool: no owner, pending. With `force`, also another agent's."""
        task_id = check_id(task_id)
        caller = self._caller(task_id, agent or self.agent, token=token, force=force)
        act = self._act(caller.agent, "release", force=force)
        task = self.store.update(task_id, lambda facts: rules.release(facts, caller), act)
        self._tokens.pop(task_id, None)
        self.outside.changed()
        return task

    def release_all(self, agent: str) -> tuple[Task, ...]:
        """Return all unfinished tasks of an agent that left or crashed to the pool."""
        mine = [task.id for task in self.store.list() if task.owner == agent and not task.is_done]
        act = self._act(self.agent or agent, "release", note=f"{agent} left")
        released: list[Task] = []
        for task_id in mine:
            try:
                released.append(self.store.update(task_id, lambda facts: rules.release_for(facts, agent), act))
                self._tokens.pop(task_id, None)
            except (Conflict, NotFound, Damaged):
                continue  # completed, reassigned or removed meanwhile: no longer the agent's
        if released:
            self.outside.changed()
        return tuple(released)

    def renew(self, task_id: str, *, agent: str | None = None, token: str | None = None) -> Task:
        """Extend a claim, from now, by the duration it was made for.

        Raises:
            LeaseLost: the caller no longer holds it.
        """
        task_id = check_id(task_id)
        caller = self._caller(task_id, self._somebody(agent), token=token, claims=True)
        act = self._act(caller.agent, "renew")
        return self.store.update(task_id, lambda facts: rules.renew(facts, caller), act)

    # -- updating ----------------------------------------------------------------------------

    def update(
        self,
        task_id: str,
        *,
        subject: str | None = None,
        description: str | None = None,
        active_form: str | None = None,
        owner: str | None = None,
        status: str | None = None,
        metadata: Mapping[str, object] | None = None,
        agent: str | None = None,
        token: str | None = None,
        force: bool = False,
        clear: str | Iterable[str] = (),
        add_blocks: str | Iterable[str] = (),
        add_blocked_by: str | Iterable[str] = (),
        remove_blocks: str | Iterable[str] = (),
        remove_blocked_by: str | Iterable[str] = (),
        **extras: Unpack[Extras],
    ) -> Task:
        """Change fields, status and dependencies in one step: all of it or nothing.

        None leaves a field as it is; "" removes owner or active form; a None inside `metadata` deletes that key.
        Extras are merged into those of the task; `clear` names those to remove, also "held", which offers a
        quarantined task again. Dependencies are removed before new ones are added.

        Raises:
            TaskNotFound: there is no such task, parent or dependency.
            Cycle: the parent is a part of the task, or tasks would wait for each other.
            Conflict: its state forbids it; see `claim` and `complete`.
        """
        task_id = check_id(task_id)
        patch = rules.Patch(
            check_subject(subject) if subject is not None else None,
            check_text("description", description) if description is not None else None,
            check_text("active form", active_form) if active_form is not None else None,
            (check_name("an owner", owner) if owner else owner),
            parse_status(status),
            validate_metadata(metadata) or None,
            validate_extras(extras),
            make_link_change(task_id, add_blocks, add_blocked_by, remove_blocks, remove_blocked_by),
        )
        taker = agent or self.agent
        claims = patch.status is TaskStatus.IN_PROGRESS or bool(owner and owner == taker)
        hands_on = owner is not None
        caller = self._caller(task_id, taker, token=token, force=force, claims=claims, may_lead=hands_on)
        act = self._act(caller.agent, update_cause(patch), force=force)
        before, task = run_update(self._with_cleared(clear, extras), task_id, patch, caller, act)
        return self._changed(before, task, caller)

    def _changed(self, before: Task, task: Task, caller: rules.Caller) -> Task:
        """Run what follows an update, with no lock held: remember or forget the claim, and notify owners."""
        if task.lease is not None and caller.lease is not None and task.lease.token == caller.lease.token:
            self._remember(task)
        elif task.lease is None:
            self._tokens.pop(task.id, None)  # our own write ended the claim: completed, reassigned or released
        self._notify_owner(task, before.owner, caller.agent)
        if task.is_done and not before.is_done:
            task = after_completion(self, task, caller.agent)
        self.outside.changed()
        return task


_CAUSES = {TaskStatus.IN_PROGRESS: "start", TaskStatus.COMPLETED: "complete", TaskStatus.PENDING: "reopen"}


def parse_status(status: str | None) -> TaskStatus | None:
    """Return the status with this name."""
    if status is None:
        return None
    try:
        return TaskStatus(status)
    except ValueError:
        raise BadValue("status", status, "pending, in_progress or completed") from None


def validate_extras(extras: Extras) -> dict[str, object] | None:
    """Return the optional fields validated; None if there are none."""
    if not extras:
        return None
    from taskyard.tasks.model import check_named_extras

    return check_named_extras(cast("dict[str, object]", extras)) or None


def make_link_change(
    task_id: str,
    add_blocks: Iterable[str],
    add_blocked_by: Iterable[str],
    remove_blocks: Iterable[str],
    remove_blocked_by: Iterable[str],
) -> LinkChange | None:
    """Return the dependencies that an update adds and removes; None if there are none."""
    if not (add_blocks or add_blocked_by or remove_blocks or remove_blocked_by):
        return None
    new = [(task_id, other) for other in check_ids(add_blocks)]
    new += [(other, task_id) for other in check_ids(add_blocked_by)]
    gone = [(task_id, other) for other in check_ids(remove_blocks)]
    gone += [(other, task_id) for other in check_ids(remove_blocked_by)]
    return LinkChange(tuple(new), tuple(gone)) if new or gone else None


def update_cause(patch: Patch) -> str:
    """Return the cause under which an update is logged: its most important part."""
    if patch.status is not None:
        return _CAUSES[patch.status]
    if patch.owner is not None:
        return "assign"
    if patch.links is None or any(part is not None for part in patch[:-1]):
        return "update"
    return "block" if patch.links.new else "unblock"


class FieldClearingStore:
    """A store whose updates also remove optional fields; everything else is delegated to the store."""

    def __init__(self, store: TaskStore, fields: Sequence[str]) -> None:
        self._store = store
        self._fields = frozenset(fields)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: LinkChange | None = None,
    ) -> Task:
        """Let `rule` decide about a task and save its decision without the cleared fields."""
        return self._store.update(
            task_id,
            lambda facts: clear_fields(rule(facts), self._fields),
            act,
            with_blockers=with_blockers,
            whole_list=whole_list,
            links=links,
        )


def clear_fields(decision: Decision, fields: frozenset[str]) -> Decision:
    """Return the decision with `fields` removed from its task."""
    task = decision.task
    left = {name: value for name, value in task.extra.items() if name not in fields}
    if len(left) == len(task.extra):
        return decision
    return decision._replace(task=task._replace(metadata=merge_metadata(task.metadata, {"taskyard": left or None})))


#: Attempts to run hooks and save, while the task keeps changing in between.
_MAX_TRIES = 5


class _TaskChanged(Exception):
    """The task changed after the hooks ran."""


def run_update(tasks: TaskList, task_id: str, patch: rules.Patch, caller: rules.Caller, act: Act) -> tuple[Task, Task]:
    """Run the update; return the task as it was and as it is now."""
    completing = patch.status is TaskStatus.COMPLETED
    parent = metadata_parent(patch.metadata or {}) or metadata_parent({"taskyard": patch.extras})
    for _ in range(_MAX_TRIES):
        asked = _run_completion_hooks(tasks, task_id, patch, caller) if completing else None
        evidence = _run_acceptance(tasks, asked) if asked is not None else {}
        update_rule = _UpdateRule(tasks, patch, caller, asked, evidence)
        try:
            task = _store_update(tasks, task_id, update_rule, act, whole=parent is not None)
        except _TaskChanged:
            continue
        except MissingParent as missing:
            tasks.store.get(missing.parent)  # raises TaskNotFound with similar ids
            continue
        return update_rule.before or task, task
    raise Busy(f"task #{task_id}", "other processes that keep changing it", 0.0)


def _store_update(tasks: TaskList, task_id: str, update_rule: _UpdateRule, act: Act, *, whole: bool) -> Task:
    """Save the update. `whole` locks the list, so that two tasks cannot be made each other's parent at once."""
    status, links = update_rule.patch.status, update_rule.patch.links
    if status is TaskStatus.IN_PROGRESS and tasks.settings.paths_policy == "refuse":
        from taskyard.tasks.rules import update_without_overlap

        return update_without_overlap(tasks.store, task_id, update_rule, act, whole_list=whole, links=links)
    with_blockers = status is not None
    return tasks.store.update(task_id, update_rule, act, with_blockers=with_blockers, whole_list=whole, links=links)


class _UpdateRule:
    """The rule of one update; it remembers the task as it found it."""

    def __init__(
        self,
        tasks: TaskList,
        patch: rules.Patch,
        caller: rules.Caller,
        asked: Task | None,
        evidence: dict[str, object],
    ) -> None:
        self._tasks = tasks
        self.patch, self._caller, self._asked, self._evidence = patch, caller, asked, evidence
        self.before: Task | None = None

    def __call__(self, facts: Facts) -> Decision:
        self._tasks.refuse_cancelled()
        if self._asked is not None and _decision_key(facts.task) != _decision_key(self._asked):
            raise _TaskChanged
        self.before = facts.task
        decision = rules.apply_patch(facts, self.patch, self._caller)
        if decision.task.metadata is not facts.task.metadata:
            refuse_bad_parent(facts, decision.task)
        if not self._evidence:
            return decision
        extra = {"taskyard": {**decision.task.extra, "evidence": self._evidence}}
        return decision._replace(
            task=decision.task._replace(metadata=rules.merge_metadata(decision.task.metadata, extra))
        )


def _run_completion_hooks(tasks: TaskList, task_id: str, patch: rules.Patch, caller: rules.Caller) -> Task | None:
    """Run the completion hooks and return the task they agreed on; None if there is nothing to check."""
    task = tasks.store.get(task_id)
    guarded = tasks.outside.is_guarded("TaskCompleted")
    if task.is_done or not (guarded or task.extra.get("acceptance")):
        return None
    # Refuse what would be refused anyway before any command runs.
    look: Callable[[str], Task | None] = lambda other: _find_task(tasks, other)  # noqa: E731
    wanted = rules.apply_patch(Facts(task, task.lease, look, tuple), patch, caller).task
    if patch.links is not None:
        _refuse_bad_links(tasks, task, patch.links)
    if guarded:
        tasks.outside.ask_hooks("TaskCompleted", wanted, caller.agent, cancel=tasks.cancel)
    return task


def _refuse_bad_links(tasks: TaskList, task: Task, links: LinkChange) -> None:
    held = {task.id: task}
    for other in linked_ids(task.id, links):
        try:
            held[other] = tasks.store.get(other)
        except NotFound:
            if not may_be_missing(task, other, links):
                raise
    apply_links(
        held, links, lambda changed: TaskGraph(lambda other: _find_task(tasks, other), tasks.store.list, changed)
    )


def _run_acceptance(tasks: TaskList, task: Task) -> dict[str, object]:
    spec = as_object(task.extra.get("acceptance"))
    if spec is None:
        return {}
    try:
        found = tasks.outside.accept(spec, cancel=tasks.cancel)
    except Untrusted as error:
        raise Untrusted(error.what, error.command, f"taskyard trust {task.id}") from None
    if found.exit_code != 0:
        raise AcceptanceFailed(task.id, found.command, found.exit_code, found.output)
    return found._asdict()


def _decision_key(task: Task) -> tuple[object, ...]:
    return task.status, task.owner, task.blocked_by, task.extra.get("acceptance")


def after_completion(tasks: TaskList, done: Task, by: str | None) -> Task:
    """Return `done` with the tasks that became ready, notifying each owner once, and perhaps a verifier note."""
    dependents = tasks.store.waiting_for(done.id)
    done = with_blocks(done, dependents)
    waiting = [other for task_id in dependents if (other := _find_task(tasks, task_id)) is not None]
    blockers = {blocker for other in waiting for blocker in other.blocked_by}
    known = {task_id: found for task_id in blockers if (found := _find_task(tasks, task_id)) is not None}
    ready = newly_ready(done, waiting, known)
    for other in ready:
        if other.owner is not None and other.owner != by and _was_last_blocker(tasks, done, other):
            text = f"Task #{other.id} is ready: its last blocker, #{done.id}, is completed."
            data = {"taskId": other.id, "subject": other.subject, "unblockedBy": done.id}
            tasks.outside.tell(other.owner, sender=by, kind="message", text=text, data=data)
    return done._replace(ready=tuple(other.id for other in ready), notes=() if ready else _nudge(tasks, by))


def _nudge(tasks: TaskList, by: str | None) -> tuple[str, ...]:
    if not (tasks.settings.verify_nudge and tasks.outside.is_main(by) and tasks.store.is_finished()):
        return ()
    nudge = verification_nudge(tasks.list(), verifier=tasks.settings.verifier)
    return (nudge,) if nudge else ()


def _was_last_blocker(tasks: TaskList, done: Task, other: Task) -> bool:
    """Return whether completing `done` made `other` ready.

    If its last two blockers are completed at the same moment, both callers find it ready; the order of the log
    decides which of them notifies the owner.
    """
    if len(other.blocked_by) == 1:
        return True
    act = Act(None, "look", "watch")
    try:  # locking its blockers for a moment ensures that none of their completions is half written
        tasks.store.update(other.id, lambda facts: Decision(facts.task, facts.lease), act, with_blockers=True)
    except (NotFound, Damaged):
        return False
    return all(_completion_entry(tasks, blocker) <= _completion_entry(tasks, done.id) for blocker in other.blocked_by)


def _completion_entry(tasks: TaskList, task_id: str) -> int:
    """Return the log entry id of the task's last completion; 0 if none is logged."""
    found, was_done = 0, False
    for change in tasks.store.changes(task_id=task_id):
        task = change.tasks.get(task_id)
        is_done = task is not None and task.is_done
        if is_done and not was_done:
            found = change.id
        was_done = is_done
    return found


def _find_task(tasks: TaskList, task_id: str) -> Task | None:
    try:
        return tasks.store.get(task_id)
    except NotFound:
        return None
    except Damaged:
        return Task(task_id, "")
