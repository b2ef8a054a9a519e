"""Two open claims on the same paths: warned of or refused, by setting."""

from __future__ import annotations

from taskyard.errors import Conflict, Damaged, NotFound, PathsOverlap
from taskyard.tasklist.extras import paths_of, paths_overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Act, Decision, Facts, Links, Task
    from taskyard.tasklist.store import Rule, TaskStore


def overlaps(task: Task, others: Sequence[Task], agent: str | None) -> list[PathsOverlap]:
    """Who else works on paths of `task` right now."""
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


class _Unguarded(Conflict):
    """The task names paths, and the list is not held: its paths cannot be compared with others'."""


def names_paths(task: Task) -> bool:
    """Whether a claim on `task` must be compared with other claims."""
    return bool(paths_of(task))


def refusing(rule: Rule, *, whole_list: bool) -> Rule:
    """`rule`, and a refusal where it makes somebody work on paths that somebody else works on."""

    def decide(facts: Facts) -> Decision:
        decision = rule(facts)
        is_held = facts.lease is not None and facts.task.owner == decision.task.owner
        if is_held or decision == (facts.task, facts.lease) or not paths_of(decision.task):
            return decision
        if not whole_list:
            raise _Unguarded("The task came to name paths.")
        if found := overlaps(decision.task, facts.everything(), decision.task.owner):
            raise found[0]
        return decision

    return decide


def update_refusing(
    store: TaskStore, task_id: str, rule: Rule, act: Act, *, whole_list: bool = False, links: Links | None = None
) -> Task:
    """`store.update` by a rule that refuses overlaps: of two who want the same paths at once, one gets them.

    Only tasks that name paths cost the list's lock.

    Raises:
        PathsOverlap: somebody else works there.
    """

    def attempt(whole: bool) -> Task:
        if whole:
            store.list()  # what the dead held is nobody's work any more
        decide = refusing(rule, whole_list=whole)
        return store.update(task_id, decide, act, with_blockers=True, whole_list=whole, links=links)

    try:
        return attempt(whole_list or names_paths(store.get(task_id)))
    except _Unguarded:
        return attempt(True)


def claim_next_refusing(
    store: TaskStore, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act
) -> Task | None:
    """`store.claim_next` by a rule that refuses overlaps; tasks in the way of others are passed over."""
    tasks = store.list()
    naming = {task.id for task in tasks if names_paths(task)}
    for task_id in order(tasks):
        try:
            return update_refusing(store, task_id, rule, act, whole_list=task_id in naming)
        except (Conflict, NotFound, Damaged):
            continue  # somebody was quicker, or it is not to be had
    return None


def warnings(store: TaskStore, task: Task, policy: str) -> tuple[str, ...]:
    """What the new owner of `task` should know; only tasks that name paths cost a look at the list."""
    if policy == "off" or not paths_of(task):
        return ()
    return tuple(str(overlap) for overlap in overlaps(task, store.list(), task.owner))
