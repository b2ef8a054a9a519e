"""
Carrying out an update, and what completing a task brings with it.

Before: TaskCompleted hooks and the acceptance command, without a lock. If status, owner or
blockers changed while they ran, everything is decided again. After: who is ready now, and the
word about an independent verifier.
"""

from __future__ import annotations

from taskyard.errors import AcceptanceFailed, Busy, Damaged, NotFound, Untrusted
from taskyard.shapes import as_object
from taskyard.tasklist import rules
from taskyard.tasklist.graph import made_ready, with_blocks
from taskyard.tasklist.model import Act, Decision, Facts, Links, Task, TaskStatus
from taskyard.tasklist.nudge import verification_nudge
from taskyard.tasklist.parents import NoParent, parent_in, refuse_bad_parent
from taskyard.tasklist.relinking import Graph, may_be_missing, others, relinked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.service import TaskList

#: Hooks are asked again this often when the task keeps changing under them.
_TRIES = 5


class _Changed(Exception):
    """The task is no longer as it was when the hooks were asked."""


def carry_out(tasks: TaskList, task_id: str, patch: rules.Patch, caller: rules.Caller, act: Act) -> tuple[Task, Task]:
    """Do the update; the task as it was and as it is now."""
    completing = patch.status is TaskStatus.COMPLETED
    parent = parent_in(patch.metadata or {}) or parent_in({"taskyard": patch.extras})
    for _ in range(_TRIES):
        asked = _asked(tasks, task_id, patch, caller) if completing else None
        evidence = _evidence(tasks, asked) if asked is not None else {}
        deciding = _Deciding(tasks, patch, caller, asked, evidence)
        try:
            task = _decided(tasks, task_id, deciding, act, whole=parent is not None)
        except _Changed:
            continue
        except NoParent as missing:
            tasks.store.get(missing.parent)  # says that there is none, and what is near
            continue
        return deciding.before or task, task
    raise Busy(f"task #{task_id}", "somebody who keeps changing it", 0.0)


def _decided(tasks: TaskList, task_id: str, deciding: _Deciding, act: Act, *, whole: bool) -> Task:
    """`whole`: two who make each other's task the parent of their own must see each other: the list decides."""
    status, links = deciding.patch.status, deciding.patch.links
    if status is TaskStatus.IN_PROGRESS and tasks.settings.paths_policy == "refuse":
        from taskyard.tasklist.overlap import update_refusing

        return update_refusing(tasks.store, task_id, deciding, act, whole_list=whole, links=links)
    with_blockers = status is not None
    return tasks.store.update(task_id, deciding, act, with_blockers=with_blockers, whole_list=whole, links=links)


class _Deciding:
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
        if self._asked is not None and _matters(facts.task) != _matters(self._asked):
            raise _Changed
        self.before = facts.task
        decision = rules.apply(facts, self.patch, self._caller)
        refuse_bad_parent(facts, decision.task)
        if not self._evidence:
            return decision
        extra = {"taskyard": {**decision.task.extra, "evidence": self._evidence}}
        return decision._replace(task=decision.task._replace(metadata=rules.merged(decision.task.metadata, extra)))


def _asked(tasks: TaskList, task_id: str, patch: rules.Patch, caller: rules.Caller) -> Task | None:
    """The task after its hooks agreed to its completion; None if there is nothing to ask about."""
    task = tasks.store.get(task_id)
    guarded = tasks.outside.is_guarded("TaskCompleted")
    if task.is_done or not (guarded or task.extra.get("acceptance")):
        return None
    # Refuse what will be refused anyway before anybody's command runs.
    look: Callable[[str], Task | None] = lambda other: _look(tasks, other)  # noqa: E731
    wanted = rules.apply(Facts(task, task.lease, look, tuple), patch, caller).task
    if patch.links is not None:
        _refuse_bad_links(tasks, task, patch.links)
    if guarded:
        tasks.outside.ask_hooks("TaskCompleted", wanted, caller.agent, cancel=tasks.cancel)
    return task


def _refuse_bad_links(tasks: TaskList, task: Task, links: Links) -> None:
    held = {task.id: task}
    for other in others(task.id, links):
        try:
            held[other] = tasks.store.get(other)
        except NotFound:
            if not may_be_missing(task, other, links):
                raise
    relinked(held, links, lambda changed: Graph(lambda other: _look(tasks, other), tasks.store.list, changed))


def _evidence(tasks: TaskList, task: Task) -> dict[str, object]:
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


def _matters(task: Task) -> tuple[object, ...]:
    return task.status, task.owner, task.blocked_by, task.extra.get("acceptance")


def aftermath(tasks: TaskList, done: Task, by: str | None) -> Task:
    """`done` with who is ready now, each told once, and perhaps the word about a verifier."""
    dependents = tasks.store.waiting_for(done.id)
    done = with_blocks(done, dependents)
    waiting = [other for task_id in dependents if (other := _look(tasks, task_id)) is not None]
    blockers = {blocker for other in waiting for blocker in other.blocked_by}
    known = {task_id: found for task_id in blockers if (found := _look(tasks, task_id)) is not None}
    ready = made_ready(done, waiting, known)
    for other in ready:
        if other.owner is not None and other.owner != by and _was_last(tasks, done, other):
            text = f"Task #{other.id} is ready: its last blocker, #{done.id}, is completed."
            data = {"taskId": other.id, "subject": other.subject, "unblockedBy": done.id}
            tasks.outside.tell(other.owner, sender=by, kind="message", text=text, data=data)
    return done._replace(ready=tuple(other.id for other in ready), notes=() if ready else _nudge(tasks, by))


def _nudge(tasks: TaskList, by: str | None) -> tuple[str, ...]:
    if not (tasks.settings.verify_nudge and tasks.outside.is_main(by) and tasks.store.is_finished()):
        return ()
    nudge = verification_nudge(tasks.list(), verifier=tasks.settings.verifier)
    return (nudge,) if nudge else ()


def _was_last(tasks: TaskList, done: Task, other: Task) -> bool:
    """Whether completing `done` was the act that made `other` ready.

    Two who complete its last two blockers at the same moment both find it ready; the log, which
    has all in one order, says which of them tells.
    """
    if len(other.blocked_by) == 1:
        return True
    act = Act(None, "look", "watch")
    try:  # with its blockers held for a moment, no completion of theirs is half written any more
        tasks.store.update(other.id, lambda facts: Decision(facts.task, facts.lease), act, with_blockers=True)
    except (NotFound, Damaged):
        return False
    return all(_completion(tasks, blocker) <= _completion(tasks, done.id) for blocker in other.blocked_by)


def _completion(tasks: TaskList, task_id: str) -> int:
    """The log's id of the last time the task became completed; 0 if it never heard of that."""
    found, was_done = 0, False
    for change in tasks.store.changes(task_id=task_id):
        task = change.tasks.get(task_id)
        is_done = task is not None and task.is_done
        if is_done and not was_done:
            found = change.id
        was_done = is_done
    return found


def _look(tasks: TaskList, task_id: str) -> Task | None:
    try:
        return tasks.store.get(task_id)
    except NotFound:
        return None
    except Damaged:
        return Task(task_id, "")
