"""
What may happen to a task, decided without touching the disk.

Every rule takes the facts and answers with the task as it shall be, and the lease that goes with
it, or raises a `Conflict`. The caller holds the locks, gathers the facts, and saves the answer.

    pending ◀──▶ in_progress        either ──▶ completed        completed ──▶ pending
"""

from __future__ import annotations

from taskyard.errors import (
    AgentBusy,
    AlreadyClaimed,
    AlreadyResolved,
    BadTransition,
    Blocked,
    LeaseLost,
)
from taskyard.tasklist.model import Decision, Facts, Lease, Links, Task, TaskStatus
from taskyard.tasklist.relinking import own_side
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PENDING, _DOING, _DONE = TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED

_MOVES = {(_PENDING, _DOING), (_DOING, _PENDING), (_PENDING, _DONE), (_DOING, _DONE), (_DONE, _PENDING)}


class Caller(NamedTuple):
    """Who asks for a change, and with what right."""

    agent: str | None = None  #: the name everyone sees
    token: str | None = None  #: of the claim the caller believes to hold
    lease: Lease | None = None  #: what the caller would hold the task under
    now: int = 0  #: epoch ms of the call, a sign of life for a lease that runs out
    force: bool = False  #: a person's word against open blockers and another's claim
    instance: str = ""  #: the one process, job or person behind the name
    leads: bool = False  #: it leads the team, and may hand on and remove what others hold


class Patch(NamedTuple):
    """What shall be different; None = leave it. Owner and active form: "" takes them away."""

    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    status: TaskStatus | None = None
    metadata: Mapping[str, object] | None = None  #: merged key by key; None as a value deletes the key
    extras: Mapping[str, object] | None = None  #: laid over `metadata.taskyard`, key by key
    links: Links | None = None  #: dependencies that come and go; the others' sides are the store's


def open_blockers(facts: Facts) -> tuple[str, ...]:
    """The ids the task still waits for; a deleted blocker no longer blocks."""
    looked = ((blocker, facts.look(blocker)) for blocker in facts.task.blocked_by)
    return tuple(blocker for blocker, found in looked if found is not None and not found.is_done)


def claim(facts: Facts, caller: Caller) -> Decision:
    """Give the task to the caller.

    Claiming one's own again is no change, so an agent may retry safely. Its own: held by this
    very instance, or under its name by no living instance.
    """
    task, agent = facts.task, caller.agent
    if task.is_done:
        raise AlreadyResolved(task.id)
    if task.owner is not None and not _is_mine(facts, caller):
        raise _taken(facts, caller)
    _check_blockers(facts, caller)
    if task.owner == agent and facts.lease is not None:
        return Decision(task, renewed(facts.lease, caller))
    return Decision(_taken_up(task)._replace(owner=agent), caller.lease)


def claim_if_idle(facts: Facts, caller: Caller) -> Decision:
    """Claim, unless the caller still owns other open work."""
    refuse_busy(facts.everything(), caller.agent, but=facts.task.id)
    return claim(facts, caller)


def refuse_busy(tasks: Iterable[Task], agent: str | None, *, but: str | None = None) -> None:
    """Refuse if `agent` still owns open work, other than the task it asks for."""
    own = (task for task in tasks if task.owner == agent and not task.is_done and not task.is_internal)
    if agent is not None and (busy := [task.id for task in own if task.id != but]):
        raise AgentBusy(agent, busy)


def apply(facts: Facts, patch: Patch, caller: Caller) -> Decision:
    """Change fields and status in one step: all of it or nothing."""
    check_token(facts, caller)
    task = facts.task if patch.links is None else own_side(facts.task, patch.links)
    changes: dict[str, object] = {
        name: value or None if name == "active_form" else value
        for name in ("subject", "description", "active_form")
        if (value := getattr(patch, name)) is not None
    }
    if patch.metadata is not None:
        changes["metadata"] = merged(task.metadata, patch.metadata)
    if patch.extras is not None:
        changed = task._replace(metadata=changes.get("metadata", task.metadata))  # type: ignore[arg-type]
        changes["metadata"] = {**changed.metadata, "taskyard": {**changed.extra, **patch.extras}}
    is_holder = caller.token is not None or _is_mine(facts, caller)
    lease = renewed(facts.lease, caller) if is_holder else facts.lease
    decision = Decision(task._replace(**changes) if changes else task, lease)  # type: ignore[arg-type]
    if patch.owner is not None:
        decision = _assigned(facts, decision, patch, caller)
    if patch.status is not None:
        facts = facts._replace(task=decision.task, lease=decision.lease)
        decision = _moved(facts, patch.status, caller, owner_named=patch.owner is not None)
    return decision


def _moved(facts: Facts, to: TaskStatus, caller: Caller, *, owner_named: bool) -> Decision:
    task = facts.task
    if to is _DOING and not owner_named:
        _check_owner(facts, caller)
    if to is _DOING or to is not task.status:
        _check_claim(facts, caller)
    if to is task.status:
        return Decision(task, facts.lease)
    if (task.status, to) not in _MOVES:
        raise BadTransition(task.id, task.status.value, to.value)
    if to is _PENDING:
        # Back in the pool means nobody's, unless the same change names somebody.
        owner = task.owner if owner_named else None
        return Decision(task._replace(status=to, owner=owner), facts.lease if owner else None)
    _check_blockers(facts, caller)
    if to is _DONE:
        return Decision(task._replace(status=to), None)
    return _started(facts, caller)


def _started(facts: Facts, caller: Caller) -> Decision:
    task = facts.task
    if task.owner is None:
        taken = _taken_up(task)._replace(status=_DOING, owner=caller.agent)
        return Decision(taken, caller.lease if caller.agent else None)
    mine = task.owner == caller.agent
    return Decision(task._replace(status=_DOING), facts.lease or (caller.lease if mine else None))


def _check_owner(facts: Facts, caller: Caller) -> None:
    """Nobody starts what is meant for somebody else, be it claimed or only assigned."""
    owner = facts.task.owner
    if owner is not None and caller.agent not in (None, owner) and not facts.task.is_done and not caller.force:
        raise AlreadyClaimed(facts.task.id, owner, forcible=True)


def _check_claim(facts: Facts, caller: Caller) -> None:
    """Nobody starts, finishes or gives back what another holds.

    A name alone, without a lease, is an assignment or another program's: no claim of ours protects it.
    """
    task, held = facts.task, facts.lease
    if held is None or task.owner is None or caller.force:
        return
    if held.token == caller.token or _is_mine(facts, caller):
        return
    raise _taken(facts, caller, forcible=True)


def _taken(facts: Facts, caller: Caller, *, forcible: bool = False) -> AlreadyClaimed:
    """The refusal; where the holder has the caller's own name, it says which instance that is."""
    owner, lease = facts.task.owner or "", facts.lease
    instance = lease.instance if lease is not None and owner == caller.agent else None
    nameless = caller.agent is None and lease is not None and lease.kind == "manual"
    return AlreadyClaimed(facts.task.id, owner, instance=instance, forcible=forcible, nameless=nameless)


def release(facts: Facts, caller: Caller) -> Decision:
    """Put the task back into the pool."""
    check_token(facts, caller)
    task = facts.task
    if task.is_done:
        raise AlreadyResolved(task.id)
    _check_claim(facts, caller)
    return Decision(task._replace(owner=None, status=_PENDING), None)


def check_removal(facts: Facts, caller: Caller) -> None:
    """Nobody takes away what another is at work on."""
    check_token(facts, caller)
    if not (facts.task.is_done or caller.leads):
        _check_claim(facts, caller)


def give_back(facts: Facts, agent: str) -> Decision:
    """Put the task of an agent that left or died back into the pool, whatever it was held under."""
    if facts.task.owner != agent:
        return refuse_taken(facts)
    return release(facts, Caller(agent, force=True))


def renew(facts: Facts, caller: Caller) -> Decision:
    """Hold on to a claim for longer."""
    check_token(facts, caller)
    if facts.lease is None or not _is_mine(facts, caller):
        raise LeaseLost(facts.task.id, facts.task.owner)
    return Decision(facts.task, renewed(facts.lease, caller))


def renewed(lease: Lease | None, caller: Caller) -> Lease | None:
    """The lease after a sign of life from its holder."""
    if lease is None or lease.kind != "time" or not lease.span:
        return lease
    return lease._replace(expires=max(lease.expires or 0, caller.now + lease.span))


def lose(task: Task, *, losses: int, most: int) -> Task:
    """The task after its holder died: in the pool again, or set aside if that happens too often."""
    back = task._replace(owner=None, status=_PENDING)
    if losses < most:
        return back
    return back._replace(metadata=merged(task.metadata, {"taskyard": {**task.extra, "held": True}}))


def _taken_up(task: Task) -> Task:
    """The task, no longer set aside: somebody takes care of it."""
    if not task.is_held:
        return task
    ours = {key: value for key, value in task.extra.items() if key != "held"}
    return task._replace(metadata=merged(task.metadata, {"taskyard": ours or None}))


def check_token(facts: Facts, caller: Caller) -> None:
    """Refuse a write under a claim that is no longer the current one."""
    if caller.token is not None and (facts.lease is None or facts.lease.token != caller.token):
        raise LeaseLost(facts.task.id, facts.task.owner)


def merged(metadata: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """`metadata` with `patch` laid over it, key by key; a None deletes its key."""
    found = {**metadata, **patch}
    return {key: value for key, value in found.items() if not (value is None and key in patch)}


def free(tasks: Iterable[Task]) -> list[Task]:
    """The tasks nobody has and nothing holds back, blockers aside."""
    return [
        task
        for task in tasks
        if task.status is _PENDING and task.owner is None and not task.is_internal and not task.is_held
    ]


def _is_mine(facts: Facts, caller: Caller) -> bool:
    """Whether the caller is the owner: the very instance, or its name where no other instance lives."""
    if facts.task.owner != caller.agent:
        return False
    held = facts.lease
    if held is None or held.kind == "manual" or held.token == caller.token:
        return True
    return bool(caller.instance) and held.instance == caller.instance


def _assigned(facts: Facts, decision: Decision, patch: Patch, caller: Caller) -> Decision:
    """Taking a task for oneself is a claim. Another new owner has no lease: it is a name until its instance claims."""
    task, owner = decision.task, patch.owner or None
    if task.is_done and patch.status is not _PENDING:
        return Decision(task._replace(owner=owner), None)  # nothing is left to hold
    if owner is not None and owner == caller.agent and not caller.force:
        if task.owner is not None and not task.is_done and not _is_mine(facts, caller):
            raise _taken(facts, caller, forcible=True)
        _check_blockers(facts._replace(task=task), caller)
    elif owner != task.owner and not caller.leads:
        _check_claim(facts, caller)
    if owner == task.owner and decision.lease is not None:
        return decision
    lease = caller.lease if owner is not None and owner == caller.agent else None
    return Decision((_taken_up(task) if owner else task)._replace(owner=owner), lease)


def _check_blockers(facts: Facts, caller: Caller) -> None:
    if facts.task.blocked_by and not caller.force and (waiting_for := open_blockers(facts)):
        raise Blocked(facts.task.id, waiting_for)


def pick(facts: Facts, caller: Caller, *, start: bool, check_busy: bool = False) -> Decision:
    """What `claim_next` decides about a task that was free a moment ago; `start` is part of the same step."""
    if facts.task.owner is not None:
        return refuse_taken(facts)  # be it the caller's own by now: it asked for another
    decision = claim_if_idle(facts, caller) if check_busy else claim(facts, caller)
    return decision._replace(task=decision.task._replace(status=_DOING)) if start else decision


def refuse_taken(facts: Facts) -> Decision:
    """The answer about a task that changed hands meanwhile."""
    raise AlreadyClaimed(facts.task.id, facts.task.owner or "")
