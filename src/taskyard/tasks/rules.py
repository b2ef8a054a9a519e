"""Pure rules: what may happen to a task, which free task to claim next, and path overlaps.

Every rule takes the facts and returns the new task with its lease, or raises a `Conflict`. The caller holds
the locks, gathers the facts, and saves the decision. Two open claims on the same paths are warned about or
refused, by setting.

    pending ◀──▶ in_progress        either ──▶ completed        completed ──▶ pending
"""

from __future__ import annotations

from taskyard.core.values import NamedTuple
from taskyard.errors import (
    AgentBusy,
    AlreadyClaimed,
    AlreadyResolved,
    BadTransition,
    Blocked,
    Conflict,
    Damaged,
    LeaseLost,
    NotFound,
    NothingFree,
    PathsOverlap,
)
from taskyard.tasks.model import (
    Decision,
    Facts,
    Lease,
    LinkChange,
    Task,
    TaskStatus,
    paths_of,
    paths_overlap,
    priority_of,
    requires_of,
)
from taskyard.tasks.model import open_blockers as graph_open_blockers
from taskyard.tasks.transitions import apply_own_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from taskyard.tasks.model import Act
    from taskyard.tasks.store import Rule, TaskStore
    from taskyard.tasks.task_list import TaskList


_PENDING, _DOING, _DONE = TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED

_TRANSITIONS = {(_PENDING, _DOING), (_DOING, _PENDING), (_PENDING, _DONE), (_DOING, _DONE), (_DONE, _PENDING)}


class Caller(NamedTuple):
    """The agent that requests a change, and its rights."""

    agent: str | None = None  #: its public name
    token: str | None = None  #: fencing token of the claim the caller believes to hold
    lease: Lease | None = None  #: the lease under which the caller would hold the task
    now: int = 0  #: epoch ms of the call, which extends an expiring lease
    force: bool = False  #: a user overrides open blockers and another agent's claim
    instance: str = ""  #: the process, job or user behind the name
    leads: bool = False  #: it leads the team, and may reassign and remove what others hold


class Patch(NamedTuple):
    """The fields to change; None = unchanged. "" removes owner or active form."""

    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus | None = None
    metadata: Mapping[str, object] | None = None  #: merged key by key; None as a value deletes the key
    extras: Mapping[str, object] | None = None  #: merged into `metadata.taskyard`, key by key
    links: LinkChange | None = None  #: dependencies to add and remove; the store updates the other tasks


def open_blockers(facts: Facts) -> tuple[str, ...]:
    """Return the ids the task still waits for; a deleted blocker no longer blocks."""
    looked = ((blocker, facts.look(blocker)) for blocker in facts.task.blocked_by)
    return tuple(blocker for blocker, found in looked if found is not None and not found.is_done)


def claim(facts: Facts, caller: Caller) -> Decision:
    """Claim the task for the caller.

    Claiming one's own task again is no change, so an agent may retry safely. Its own means: held by this very
    instance, or under its name by no live instance.
    """
    task, agent = facts.task, caller.agent
    if task.is_done:
        raise AlreadyResolved(task.id)
    if task.owner is not None and not _is_holder(facts, caller):
        raise _already_claimed(facts, caller)
    _check_blockers(facts, caller)
    if task.owner == agent and facts.lease is not None:
        return Decision(task, extend_lease(facts.lease, caller))
    return Decision(_unquarantine(task)._replace(owner=agent), caller.lease)


def claim_if_idle(facts: Facts, caller: Caller) -> Decision:
    """Claim, unless the caller already owns unfinished tasks."""
    refuse_busy(facts.everything(), caller.agent, exclude=facts.task.id)
    return claim(facts, caller)


def refuse_busy(tasks: Iterable[Task], agent: str | None, *, exclude: str | None = None) -> None:
    """Raise AgentBusy if `agent` owns unfinished tasks other than `exclude`."""
    own = (task for task in tasks if task.owner == agent and not task.is_done and not task.is_internal)
    if agent is not None and (busy := [task.id for task in own if task.id != exclude]):
        raise AgentBusy(agent, busy)


def apply_patch(facts: Facts, patch: Patch, caller: Caller) -> Decision:
    """Change fields and status in one step: all of it or nothing."""
    check_token(facts, caller)
    task = facts.task if patch.links is None else apply_own_links(facts.task, patch.links)
    changes: dict[str, object] = {
        name: value or None if name == "active_form" else value
        for name in ("subject", "description", "active_form")
        if (value := getattr(patch, name)) is not None
    }
    if patch.metadata is not None:
        changes["metadata"] = merge_metadata(task.metadata, patch.metadata)
    if patch.extras is not None:
        changed = task._replace(metadata=changes.get("metadata", task.metadata))  # type: ignore[arg-type]
        changes["metadata"] = {**changed.metadata, "taskyard": {**changed.extra, **patch.extras}}
    is_holder = caller.token is not None or _is_holder(facts, caller)
    lease = extend_lease(facts.lease, caller) if is_holder else facts.lease
    decision = Decision(task._replace(**changes) if changes else task, lease)  # type: ignore[arg-type]
    if patch.owner is not None:
        decision = _assign(facts, decision, patch, caller)
    if patch.status is not None:
        facts = facts._replace(task=decision.task, lease=decision.lease)
        decision = _change_status(facts, patch.status, caller, owner_named=patch.owner is not None)
    return decision


def _change_status(facts: Facts, to: TaskStatus, caller: Caller, *, owner_named: bool) -> Decision:
    task = facts.task
    if to is _DOING and not owner_named:
        _check_owner(facts, caller)
    if to is _DOING or to is not task.status:
        _check_claim(facts, caller)
    if to is task.status:
        return Decision(task, facts.lease)
    if (task.status, to) not in _TRANSITIONS:
        raise BadTransition(task.id, task.status.value, to.value)
    if to is _PENDING:
        # A pending task has no owner, unless the same change names one.
        owner = task.owner if owner_named else None
        return Decision(task._replace(status=to, owner=owner), facts.lease if owner else None)
    _check_blockers(facts, caller)
    if to is _DONE:
        return Decision(task._replace(status=to), None)
    return _start_task(facts, caller)


def _start_task(facts: Facts, caller: Caller) -> Decision:
    task = facts.task
    if task.owner is None:
        taken = _unquarantine(task)._replace(status=_DOING, owner=caller.agent)
        return Decision(taken, caller.lease if caller.agent else None)
    mine = task.owner == caller.agent
    return Decision(task._replace(status=_DOING), facts.lease or (caller.lease if mine else None))


def _check_owner(facts: Facts, caller: Caller) -> None:
    """Refuse to start a task of another owner, claimed or only assigned."""
    owner = facts.task.owner
    if owner is not None and caller.agent not in (None, owner) and not facts.task.is_done and not caller.force:
        raise AlreadyClaimed(facts.task.id, owner, forcible=True)


def _check_claim(facts: Facts, caller: Caller) -> None:
    """Refuse to start, complete or release a task that another instance holds.

    An owner without a lease is an assignment, or set by another program: no claim of ours protects it.
    """
    task, held = facts.task, facts.lease
    if held is None or task.owner is None or caller.force:
        return
    if held.token == caller.token or _is_holder(facts, caller):
        return
    raise _already_claimed(facts, caller, forcible=True)


def _already_claimed(facts: Facts, caller: Caller, *, forcible: bool = False) -> AlreadyClaimed:
    """Return the refusal; if the holder has the caller's own name, it names the instance."""
    owner, lease = facts.task.owner or "", facts.lease
    instance = lease.instance if lease is not None and owner == caller.agent else None
    nameless = caller.agent is None and lease is not None and lease.kind == "manual"
    return AlreadyClaimed(facts.task.id, owner, instance=instance, forcible=forcible, nameless=nameless)


def release(facts: Facts, caller: Caller) -> Decision:
    """Return the task to the pool."""
    check_token(facts, caller)
    task = facts.task
    if task.is_done:
        raise AlreadyResolved(task.id)
    _check_claim(facts, caller)
    return Decision(task._replace(owner=None, status=_PENDING), None)


def check_removal(facts: Facts, caller: Caller) -> None:
    """Refuse to remove a task that another instance is working on."""
    check_token(facts, caller)
    if not (facts.task.is_done or caller.leads):
        _check_claim(facts, caller)


def release_for(facts: Facts, agent: str) -> Decision:
    """Return the task of an agent that left or crashed to the pool, whatever its lease."""
    if facts.task.owner != agent:
        return refuse_taken(facts)
    return release(facts, Caller(agent, force=True))


def renew(facts: Facts, caller: Caller) -> Decision:
    """Extend a claim."""
    check_token(facts, caller)
    if facts.lease is None or not _is_holder(facts, caller):
        raise LeaseLost(facts.task.id, facts.task.owner)
    return Decision(facts.task, extend_lease(facts.lease, caller))


def extend_lease(lease: Lease | None, caller: Caller) -> Lease | None:
    """Return the lease extended by a call of its holder."""
    if lease is None or lease.kind != "time" or not lease.span:
        return lease
    return lease._replace(expires=max(lease.expires or 0, caller.now + lease.span))


def requeue_lost(task: Task, *, losses: int, most: int) -> Task:
    """Return the task after its holder died: pending again, or quarantined after `most` losses."""
    back = task._replace(owner=None, status=_PENDING)
    if losses < most:
        return back
    return back._replace(metadata=merge_metadata(task.metadata, {"taskyard": {**task.extra, "held": True}}))


def _unquarantine(task: Task) -> Task:
    """Return the task without its quarantine, since an agent takes it."""
    if not task.is_held:
        return task
    ours = {key: value for key, value in task.extra.items() if key != "held"}
    return task._replace(metadata=merge_metadata(task.metadata, {"taskyard": ours or None}))


def check_token(facts: Facts, caller: Caller) -> None:
    """Refuse a write under a claim that is no longer the current one."""
    if caller.token is not None and (facts.lease is None or facts.lease.token != caller.token):
        raise LeaseLost(facts.task.id, facts.task.owner)


def merge_metadata(metadata: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """Return `metadata` with `patch` merged key by key; None deletes its key."""
    found = {**metadata, **patch}
    return {key: value for key, value in found.items() if not (value is None and key in patch)}


def free_tasks(tasks: Iterable[Task]) -> list[Task]:
    """Return the pending tasks without owner or quarantine; blockers are not considered."""
    return [
        task
        for task in tasks
        if task.status is _PENDING and task.owner is None and not task.is_internal and not task.is_held
    ]


def _is_holder(facts: Facts, caller: Caller) -> bool:
    """Return whether the caller is the owner: the same instance, or the same name if no other instance is alive."""
    if facts.task.owner != caller.agent:
        return False
    held = facts.lease
    if held is None or held.kind == "manual" or held.token == caller.token:
        return True
    return bool(caller.instance) and held.instance == caller.instance


def _assign(facts: Facts, decision: Decision, patch: Patch, caller: Caller) -> Decision:
    """Set the owner. Assigning to oneself is a claim; another owner has no lease until its instance claims."""
    task, owner = decision.task, patch.owner or None
    if task.is_done and patch.status is not _PENDING:
        return Decision(task._replace(owner=owner), None)  # there is nothing left to hold
    if owner is not None and owner == caller.agent and not caller.force:
        if task.owner is not None and not task.is_done and not _is_holder(facts, caller):
            raise _already_claimed(facts, caller, forcible=True)
        _check_blockers(facts._replace(task=task), caller)
    elif owner != task.owner and not caller.leads:
        _check_claim(facts, caller)
    if owner == task.owner and decision.lease is not None:
        return decision
    lease = caller.lease if owner is not None and owner == caller.agent else None
    return Decision((_unquarantine(task) if owner else task)._replace(owner=owner), lease)


def _check_blockers(facts: Facts, caller: Caller) -> None:
    if facts.task.blocked_by and not caller.force and (waiting_for := open_blockers(facts)):
        raise Blocked(facts.task.id, waiting_for)


def claim_free(facts: Facts, caller: Caller, *, start: bool, check_busy: bool = False) -> Decision:
    """Decide for `claim_next` about a task that was free a moment ago; `start` is part of the same step."""
    if facts.task.owner is not None:
        return refuse_taken(facts)  # even if by the caller itself: it asked for another
    decision = claim_if_idle(facts, caller) if check_busy else claim(facts, caller)
    return decision._replace(task=decision.task._replace(status=_DOING)) if start else decision


def refuse_taken(facts: Facts) -> Decision:
    """Refuse a task that another agent has taken meanwhile."""
    raise AlreadyClaimed(facts.task.id, facts.task.owner or "")


def find_overlaps(task: Task, others: Sequence[Task], agent: str | None) -> list[PathsOverlap]:
    """Return the overlaps of `task` with tasks that other agents are working on."""
    mine = paths_of(task)
    if not mine:
        return []
    found: list[PathsOverlap] = []
    for other in others:
        if other.id == task.id or other.owner in (None, agent) or other.is_done:
            continue
        if shared := paths_overlap(mine, paths_of(other)):
            found.append(PathsOverlap(task.id, other.id, other.owner or "", shared))
    return found


class _ListLockNeeded(Conflict):
    """The task names paths, but the list is not locked, so they cannot be compared with those of others."""


def has_paths(task: Task) -> bool:
    """Return whether a claim on `task` must be compared with other claims."""
    return bool(paths_of(task))


def with_overlap_check(rule: Rule, *, whole_list: bool) -> Rule:
    """Return `rule` with a check that refuses a claim on paths on which another agent works."""

    def decide(facts: Facts) -> Decision:
        decision = rule(facts)
        is_held = facts.lease is not None and facts.task.owner == decision.task.owner
        if is_held or decision == (facts.task, facts.lease) or not paths_of(decision.task):
            return decision
        if not whole_list:
            raise _ListLockNeeded("The task came to name paths.")
        if found := find_overlaps(decision.task, facts.everything(), decision.task.owner):
            raise found[0]
        return decision

    return decide


def update_without_overlap(
    store: TaskStore, task_id: str, rule: Rule, act: Act, *, whole_list: bool = False, links: LinkChange | None = None
) -> Task:
    """Run `store.update` with a rule that refuses overlaps: of two concurrent claims on a path, one succeeds.

    Only tasks that name paths need the list lock.

    Raises:
        PathsOverlap: another agent works on these paths.
    """

    def attempt(whole: bool) -> Task:
        if whole:
            store.list()  # releases the tasks of dead holders
        decide = with_overlap_check(rule, whole_list=whole)
        return store.update(task_id, decide, act, with_blockers=True, whole_list=whole, links=links)

    try:
        return attempt(whole_list or has_paths(store.get(task_id)))
    except _ListLockNeeded:
        return attempt(True)


def claim_next_without_overlap(
    store: TaskStore, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act
) -> Task | None:
    """Run `store.claim_next` with a rule that refuses overlaps; overlapping tasks are skipped."""
    tasks = store.list()
    naming = {task.id for task in tasks if has_paths(task)}
    for task_id in order(tasks):
        try:
            return update_without_overlap(store, task_id, rule, act, whole_list=task_id in naming)
        except (Conflict, NotFound, Damaged):
            continue  # another agent was faster, or it cannot be claimed
    return None


def overlap_warnings(store: TaskStore, task: Task, policy: str) -> tuple[str, ...]:
    """Return overlap warnings for the new owner of `task`; only tasks that name paths cost a listing."""
    if policy == "off" or not paths_of(task):
        return ()
    return tuple(str(overlap) for overlap in find_overlaps(task, store.list(), task.owner))


class ClaimResult(NamedTuple):
    """The result of claiming a free task: owner, status and lease."""

    owner: str | None
    status: TaskStatus
    lease: Lease | None


class ClaimOrder:
    """Orders free, ready and suitable tasks: by priority where set, then by id."""

    def __init__(self, suits: Callable[[Task], bool] | None = None, *, agent: str | None, policy: str = "off") -> None:
        """Select tasks by `suits`; by default those that require no capability."""
        self._suits = suits if suits is not None else requires_nothing
        self._agent = agent
        self._policy = policy
        #: Whether the first of these is the first task claimable by any agent, which a store may know.
        self.is_plain = suits is None and policy != "refuse"

    def __call__(self, tasks: Sequence[Task]) -> list[str]:
        """Return the ids in claim order, given a whole list."""
        by_id = {task.id: task for task in tasks}
        ready = [task for task in free_tasks(tasks) if not graph_open_blockers(task, by_id) and self._suits(task)]
        if self._policy == "refuse":
            ready = [task for task in ready if not find_overlaps(task, tasks, self._agent)]
        return [task.id for task in sorted(ready, key=lambda task: (priority_of(task), int(task.id)))]


class ClaimRule:
    """Decides for `claim_next` about a task that was free a moment ago."""

    def __init__(self, caller: Caller, *, start: bool, check_busy: bool) -> None:
        self._caller = caller
        self._start = start
        self._check_busy = check_busy

    def __call__(self, facts: Facts) -> Decision:
        """Apply the rule."""
        return claim_free(facts, self._caller, start=self._start, check_busy=self._check_busy)

    @property
    def claim(self) -> ClaimResult | None:
        """The result for every claimable task without blockers; None if it depends on other tasks."""
        if self._check_busy:
            return None
        status = TaskStatus.IN_PROGRESS if self._start else TaskStatus.PENDING
        return ClaimResult(self._caller.agent, status, self._caller.lease)


def is_claimable(task: Task) -> bool:
    """Return whether any agent may claim the task once nothing blocks it."""
    return bool(free_tasks([task])) and requires_nothing(task)


def requires_nothing(task: Task) -> bool:
    """Return whether the task requires no capability."""
    return not requires_of(task)


def claim_next_if_idle(
    store: TaskStore,
    order: Callable[[Sequence[Task]], Sequence[str]],
    rule: Rule,
    act: Act,
    *,
    agent: str | None,
    policy: str = "off",
) -> Task | None:
    """Run `store.claim_next` with a rule that reads all the agent's tasks: one of two concurrent claims fails.

    Raises:
        AgentBusy: the agent owns unfinished tasks, whether or not any task is free.
    """
    if policy == "refuse":
        rule = with_overlap_check(rule, whole_list=True)
    tasks = store.list()
    refuse_busy(tasks, agent)
    for task_id in order(tasks):
        try:
            return store.update(task_id, rule, act, with_blockers=True, whole_list=True)
        except AgentBusy:
            raise
        except (Conflict, NotFound, Damaged):
            continue  # another agent was faster, or it cannot be claimed
    return None


def nothing_free(tasks: TaskList) -> NothingFree:
    """Return the error that explains why a list has no task for its agent now."""
    left = [task for task in tasks.list() if not task.is_done]
    taken = sum(task.owner is not None for task in left)
    return NothingFree(tasks.agent or "", list_name=tasks.name, open=len(left), taken=taken)


def newly_ready(done: Task, others: Sequence[Task], look: Mapping[str, Task]) -> tuple[Task, ...]:
    """Return the pending tasks for which `done` was the last open blocker."""
    return tuple(
        other
        for other in others
        if done.id in other.blocked_by
        and other.status is TaskStatus.PENDING
        and all(look[blocker].is_done for blocker in other.blocked_by if blocker in look and blocker != done.id)
    )
