"""Which free task comes next, and why none does."""

from __future__ import annotations

from taskyard.errors import AgentBusy, Conflict, Damaged, NotFound, NothingFree
from taskyard.tasklist import rules
from taskyard.tasklist.extras import priority_of
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.overlap import overlaps, refusing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from taskyard.tasklist.model import Act, Task
    from taskyard.tasklist.service import TaskList
    from taskyard.tasklist.store import Rule, TaskStore


class InOrder:
    """The ids of free, ready and suitable tasks, by priority where set, then by id: all of them, or one after another.

    A store that keeps its free tasks in that order need not look at all others for each claim.
    """

    def __init__(self, suits: Callable[[Task], bool], *, agent: str | None, policy: str = "off") -> None:
        self._suits = suits
        self._agent = agent
        self._policy = policy

    def __call__(self, tasks: Sequence[Task]) -> list[str]:
        """All of them."""
        by_id = {task.id: task for task in tasks}
        ready = [task for task in rules.free(tasks) if not open_blockers(task, by_id) and self._suits(task)]
        if self._policy == "refuse":
            ready = [task for task in ready if not overlaps(task, tasks, self._agent)]
        return [task.id for task in sorted(ready, key=place_of)]

    def one_by_one(self, free: Iterable[Task], tasks: Mapping[str, Task]) -> Iterator[str] | None:
        """Those among the free, which come in order; None if it takes a look at everything."""
        if self._policy == "refuse":
            return None
        return (task.id for task in free if not open_blockers(task, tasks) and self._suits(task))


def place_of(task: Task) -> tuple[int, int]:
    """Where a free task stands among others."""
    return priority_of(task), int(task.id)


def claim_if_idle(
    store: TaskStore,
    order: Callable[[Sequence[Task]], Sequence[str]],
    rule: Rule,
    act: Act,
    *,
    agent: str | None,
    policy: str = "off",
) -> Task | None:
    """`store.claim_next` by a rule that looks at everything the agent has: of two claims at once, one is refused.

    Raises:
        AgentBusy: the agent has open work, whether or not anything is free.
    """
    if policy == "refuse":
        rule = refusing(rule, whole_list=True)
    tasks = store.list()
    rules.refuse_busy(tasks, agent)
    for task_id in order(tasks):
        try:
            return store.update(task_id, rule, act, with_blockers=True, whole_list=True)
        except AgentBusy:
            raise
        except (Conflict, NotFound, Damaged):
            continue  # somebody was quicker, or it is not to be had
    return None


def nothing_free(tasks: TaskList) -> NothingFree:
    """Why a list has nothing for its agent now."""
    left = [task for task in tasks.list() if not task.is_done]
    taken = sum(task.owner is not None for task in left)
    return NothingFree(tasks.agent or "", list_name=tasks.name, open=len(left), taken=taken)
