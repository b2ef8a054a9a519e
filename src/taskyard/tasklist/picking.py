"""Which free task comes next, and why none does."""

from __future__ import annotations

from taskyard.errors import AgentBusy, Conflict, Damaged, NotFound, NothingFree
from taskyard.tasklist import rules
from taskyard.tasklist.extras import priority_of, requires_of
from taskyard.tasklist.graph import open_blockers
from taskyard.tasklist.model import TaskStatus
from taskyard.tasklist.overlap import overlaps, refusing
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasklist.model import Act, Decision, Facts, Lease, Task
    from taskyard.tasklist.service import TaskList
    from taskyard.tasklist.store import Rule, TaskStore


class Claim(NamedTuple):
    """All that a claim of a free task is: whose it is from now on, and how."""

    owner: str | None
    status: TaskStatus
    lease: Lease | None


class InOrder:
    """The ids of free, ready and suitable tasks, by priority where set, then by id."""

    def __init__(self, suits: Callable[[Task], bool] | None = None, *, agent: str | None, policy: str = "off") -> None:
        """`suits`: which of them; those that require nothing if not given."""
        self._suits = suits if suits is not None else requires_nothing
        self._agent = agent
        self._policy = policy
        #: Whether the first task that is offered to everybody is the first of these: a store may know that one.
        self.is_plain = suits is None and policy != "refuse"

    def __call__(self, tasks: Sequence[Task]) -> list[str]:
        """All of them, of a whole list."""
        by_id = {task.id: task for task in tasks}
        ready = [task for task in rules.free(tasks) if not open_blockers(task, by_id) and self._suits(task)]
        if self._policy == "refuse":
            ready = [task for task in ready if not overlaps(task, tasks, self._agent)]
        return [task.id for task in sorted(ready, key=lambda task: (priority_of(task), int(task.id)))]


class Pick:
    """What `claim_next` decides about a task that was free a moment ago."""

    def __init__(self, caller: rules.Caller, *, start: bool, check_busy: bool) -> None:
        self._caller = caller
        self._start = start
        self._check_busy = check_busy

    def __call__(self, facts: Facts) -> Decision:
        """The rule."""
        return rules.pick(facts, self._caller, start=self._start, check_busy=self._check_busy)

    @property
    def claim(self) -> Claim | None:
        """What it makes of every task that is offered and waits for none; None if that depends on other tasks."""
        if self._check_busy:
            return None
        status = TaskStatus.IN_PROGRESS if self._start else TaskStatus.PENDING
        return Claim(self._caller.agent, status, self._caller.lease)


def is_offered(task: Task) -> bool:
    """Whether anybody may have a task once nothing blocks it."""
    return bool(rules.free([task])) and requires_nothing(task)


def requires_nothing(task: Task) -> bool:
    """Whether it takes no special capability."""
    return not requires_of(task)


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
