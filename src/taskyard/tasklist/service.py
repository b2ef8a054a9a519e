"""
The shared task list, as its users see it: `yard.tasks`.

Every verb checks what it was given, lets a pure rule decide inside one store operation, and only
then, with no lock held, tells whoever must know. Hooks and acceptance commands run before the
operation, also without a lock; if the task changed meanwhile, everything is decided again.
"""

from __future__ import annotations

from taskyard.errors import Conflict, Damaged, NotFound
from taskyard.names import check_id, check_name, check_subject, check_text
from taskyard.tasklist import rules
from taskyard.tasklist.keeping import Keeping
from taskyard.tasklist.list_core import checked_ids, checked_metadata, several
from taskyard.tasklist.model import Draft, Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Unpack

    from taskyard.tasklist.list_core import Extras
    from taskyard.tasklist.store import Rule


class TaskList(Keeping):
    """Create, claim and complete tasks that several agents share."""

    # -- making ------------------------------------------------------------------------------

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
        """Put a new pending task on the list. Without a description, the subject stands for it.

        An owner who is the caller itself holds it from the first, as by `claim`.

        Raises:
            UsageError: something cannot be stored.
            TaskNotFound: a dependency or the parent names no task.
            Cycle: the dependencies would wait for each other.
            HookRefused: a TaskCreated hook said no; the id is spent.
        """
        subject = check_subject(subject)
        draft = Draft(
            subject,
            check_text("description", description) if description else subject,
            check_text("active form", active_form) or None if active_form is not None else None,
            check_name("an owner", owner) if owner else None,
            TaskStatus.PENDING,
            checked_ids(blocks),
            checked_ids(blocked_by),
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
        """Give the task to `agent`; claiming one's own again succeeds.

        Args:
            task_id: The task.
            agent: Who takes it; the yard's own agent if not given.
            check_busy: Refuse if the agent still owns other open work.
            force: A person's word against open blockers; it is logged.
            lease: Seconds until the claim lapses unless renewed; else it lasts as long as its holder.
            token: Of an earlier claim of the same holder, which may renew it this way.

        Raises:
            AlreadyClaimed, AlreadyResolved, Blocked, AgentBusy, PathsOverlap, TaskNotFound
        """
        task_id = check_id(task_id)
        caller = self._caller(task_id, self._somebody(agent), force=force, seconds=lease, token=token, claims=True)
        act = self._act(caller.agent, "claim", force=force)
        chosen = rules.claim_if_idle if check_busy else rules.claim
        rule: Rule = lambda facts: chosen(facts, caller)  # noqa: E731
        if self.settings.paths_policy == "refuse":
            from taskyard.tasklist.overlap import update_refusing

            return self._claimed(update_refusing(self.store, task_id, rule, act, whole_list=check_busy))
        task = self.store.update(task_id, rule, act, with_blockers=True, whole_list=check_busy)
        return self._claimed(task, self._overlaps(task) if task.extra else ())

    def _overlaps(self, task: Task) -> tuple[str, ...]:
        """Who else works on the paths that a task names."""
        from taskyard.tasklist.overlap import warnings

        return warnings(self.store, task, self.settings.paths_policy)

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
        """Pick and claim in one step: the lowest free id first, by priority where set; None if nothing is free.

        `start`: it is in progress in the same step. Tasks that require a capability are offered only to
        those who name it. `check_busy`: AgentBusy is raised if the agent still owns other open work.
        """
        from taskyard.tasklist.extras import requires_of
        from taskyard.tasklist.picking import InOrder, Pick, claim_if_idle

        able = frozenset(several("capabilities", capabilities))
        caller = self._caller(None, self._somebody(agent), seconds=lease, claims=True)
        policy = self.settings.paths_policy

        def suits(task: Task) -> bool:
            return able.issuperset(requires_of(task)) and (where is None or where(task))

        order = InOrder(suits if able or where is not None else None, agent=caller.agent, policy=policy)
        rule = Pick(caller, start=start, check_busy=check_busy)
        act = self._act(caller.agent, "start" if start else "claim")
        if check_busy:
            found = claim_if_idle(self.store, order, rule, act, agent=caller.agent, policy=policy)
        elif policy == "refuse":
            from taskyard.tasklist.overlap import claim_next_refusing

            found = claim_next_refusing(self.store, order, rule, act)
        else:
            found = self.store.claim_next(order, rule, act)
        return None if found is None else self._claimed(found)

    def start(self, task_id: str, *, agent: str | None = None, force: bool = False, token: str | None = None) -> Task:
        """Say that work begins. A task without an owner becomes the starter's."""
        return self.update(task_id, status="in_progress", agent=agent, force=force, token=token)

    def complete(
        self, task_id: str, *, agent: str | None = None, force: bool = False, token: str | None = None
    ) -> Task:
        """Say that it is done. `ready` in the answer names the tasks that waited for this one alone.

        Raises:
            Blocked: it waits for others itself.
            HookRefused, AcceptanceFailed, Untrusted: it does not count as done yet.
            LeaseLost: the caller's claim is no longer the current one.
        """
        return self.update(task_id, status="completed", agent=agent, force=force, token=token)

    def assign(self, task_id: str, owner: str | None, *, agent: str | None = None, force: bool = False) -> Task:
        """Name a new owner, who gets mail; None takes the owner away. Naming oneself is a claim.

        Raises:
            AlreadyClaimed: somebody else holds it; its holder, the team's lead, or a person by `force` may.
        """
        return self.update(task_id, owner=owner or "", agent=agent, force=force)

    def release(self, task_id: str, *, agent: str | None = None, token: str | None = None, force: bool = False) -> Task:
        """Put a task back into the pool: no owner, pending. `force`: also somebody else's."""
        task_id = check_id(task_id)
        caller = self._caller(task_id, agent or self.agent, token=token, force=force)
        act = self._act(caller.agent, "release", force=force)
        task = self.store.update(task_id, lambda facts: rules.release(facts, caller), act)
        self._tokens.pop(task_id, None)
        self.outside.changed()
        return task

    def release_all(self, agent: str) -> tuple[Task, ...]:
        """Put everything unfinished of an agent that left or died back into the pool."""
        mine = [task.id for task in self.store.list() if task.owner == agent and not task.is_done]
        act = self._act(self.agent or agent, "release", note=f"{agent} left")
        released: list[Task] = []
        for task_id in mine:
            try:
                released.append(self.store.update(task_id, lambda facts: rules.give_back(facts, agent), act))
                self._tokens.pop(task_id, None)
            except (Conflict, NotFound, Damaged):
                continue  # finished, handed on or removed meanwhile: not the agent's any more
        if released:
            self.outside.changed()
        return tuple(released)

    def renew(self, task_id: str, *, agent: str | None = None, token: str | None = None) -> Task:
        """Hold on to a claim for longer: from now, for as long as it was made for.

        Raises:
            LeaseLost: it is no longer yours.
        """
        task_id = check_id(task_id)
        caller = self._caller(task_id, self._somebody(agent), token=token, claims=True)
        act = self._act(caller.agent, "renew")
        return self.store.update(task_id, lambda facts: rules.renew(facts, caller), act)

    # -- changing ----------------------------------------------------------------------------

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

        None leaves a field as it is; "" takes owner or active form away; a None inside `metadata`
        deletes that key. Extras are laid over those the task has; `clear` names those to take away,
        also "held", which offers a task again that was set aside. Dependencies go before others come.

        Raises:
            TaskNotFound: there is no such task, no such parent, or none to depend on.
            Cycle: the parent is a part of the task, or tasks would wait for each other.
            Conflict: its state forbids it; see `claim` and `complete`.
        """
        from taskyard.tasklist import completion, patching

        task_id = check_id(task_id)
        patch = rules.Patch(
            check_subject(subject) if subject is not None else None,
            check_text("description", description) if description is not None else None,
            check_text("active form", active_form) if active_form is not None else None,
            (check_name("an owner", owner) if owner else owner),
            patching.checked_status(status),
            checked_metadata(metadata) or None,
            patching.checked_extras(extras),
            patching.checked_links(task_id, add_blocks, add_blocked_by, remove_blocks, remove_blocked_by),
        )
        taker = agent or self.agent
        claims = patch.status is TaskStatus.IN_PROGRESS or bool(owner and owner == taker)
        hands_on = owner is not None
        caller = self._caller(task_id, taker, token=token, force=force, claims=claims, may_lead=hands_on)
        act = self._act(caller.agent, patching.cause_of(patch), force=force)
        before, task = completion.carry_out(self._clearing(clear, extras), task_id, patch, caller, act)
        return self._changed(before, task, caller)

    def _changed(self, before: Task, task: Task, caller: rules.Caller) -> Task:
        """What follows an update, with no lock held: the claim is remembered or forgotten, and people are told."""
        from taskyard.tasklist import completion

        if task.lease is not None and caller.lease is not None and task.lease.token == caller.lease.token:
            self._remember(task)
        elif task.lease is None:
            self._tokens.pop(task.id, None)  # our own write ended the claim: done, given away or given back
        self._tell_owner(task, before.owner, caller.agent)
        if task.is_done and not before.is_done:
            task = completion.aftermath(self, task, caller.agent)
        self.outside.changed()
        return task
