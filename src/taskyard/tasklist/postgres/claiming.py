"""
Picking and claiming in one step: the first of the free tasks that is still free when the server looks.

Many want the first of a list at once. So the server is sent a few to choose from, each with what the choice rests on.
It passes over those that somebody else began meanwhile, and tells which, so that they are not asked for again. If
anything else happened since the look, which may have made another task the first, one looks anew.
"""

from __future__ import annotations

import threading

from taskyard.errors import Conflict, TaskNotFound
from taskyard.tasklist.model import Facts
from taskyard.tasklist.picking import InOrder
from taskyard.tasklist.postgres.mirror import Tasks
from taskyard.tasklist.postgres.writes import CLAIM, claim_values, is_plain_claim, new_op
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.tasklist.model import Act, Lease, Task
    from taskyard.tasklist.postgres.committing import Committing
    from taskyard.tasklist.postgres.mirror import Known
    from taskyard.tasklist.store import Rule

    Order = Callable[[Sequence[Task]], Sequence[str]]

#: How many the server is sent to choose from: at least, and at most, where others are quicker.
_FEW, _MANY = 2, 32

#: So many tasks that others began are remembered before one looks anew: the server looks through as many each time.
_PASSED = 100

#: How often one tries before it takes them one by one.
_TRIES = 20


class NotPlain(Exception):
    """To claim a task is more than to name its owner, or it was tried too often: they must be tried one by one."""


class _Choice(NamedTuple):
    """A free task as it would be for whoever claims it."""

    task: Task
    lease: Lease | None
    seen: dict[str, int]  #: what that rests on


class Claiming:
    """Claims of the first free task, one after the other."""

    def __init__(
        self, commits: Committing, look: Callable[[], Known], orphans: Callable[[Known], Sequence[str]]
    ) -> None:
        """`look` brings everything, as it is now; `orphans` tells whose holders are gone."""
        self._commits = commits
        self._look = look
        self._orphans = orphans
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._passed: set[str] = set()
        self._count = _FEW

    def claim_next(self, order: Order, rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts; None if it refuses them all.

        Raises:
            NotPlain: they must be tried one by one.
        """
        with self._lock:
            known, is_fresh = self._recent() if isinstance(order, InOrder) else (self._fresh(), True)
            for _ in range(_TRIES):
                choices = self._choices(known, order, rule)
                if choices:
                    found, is_old = self._claimed(known, choices, act)
                    if found is not None:
                        return found
                    if not is_old:
                        continue
                elif is_fresh:
                    return None
                known, is_fresh = self._fresh(), True
            raise NotPlain

    def _recent(self) -> tuple[Known, bool]:
        """What was known at the last claim, if that will do, and whether it is fresh."""
        known = self._known
        if known is None or known is not self._commits.mirror.known or len(self._passed) > _PASSED:
            return self._fresh(), True
        return (self._fresh(), True) if known.dead or self._orphans(known) else (known, False)

    def _fresh(self) -> Known:
        self._passed.clear()
        self._known = self._look()
        return self._known

    def _choices(self, known: Known, order: Order, rule: Rule) -> list[_Choice]:
        """The first that the rule accepts."""
        found: list[_Choice] = []
        for task_id in self._in_order(known, order):
            view = self._commits.view_of(known, fresh=True)
            task = view.look(task_id)
            if task is None or task_id in self._passed:
                continue
            try:
                decided, lease = rule(Facts(task, view.lease(task_id), view.look, view.everything))
            except (Conflict, TaskNotFound):
                continue
            if view.whole is not None or not is_plain_claim(task, decided):
                raise NotPlain
            choice = _Choice(decided._replace(lease=None), lease, view.seen)
            if found and _claim(choice) != _claim(found[0]):
                break
            found.append(choice)
            if len(found) >= self._count:
                break
        return found

    def _in_order(self, known: Known, order: Order) -> Iterable[str]:
        """The ids of the tasks, in order; of a list that is kept in order, no more are looked at than are wanted."""
        if isinstance(order, InOrder):
            free = (known[task_id].task for _, number in known.free if (task_id := str(number)) not in self._passed)
            found = order.one_by_one(free, Tasks(known))
            if found is not None:
                return found
        return order(self._commits.mirror.listing())

    def _claimed(self, known: Known, choices: list[_Choice], act: Act) -> tuple[Task | None, bool]:
        """The task that is ours now; None, and whether one must look anew."""
        first = choices[0]
        values = claim_values(
            self._commits.list_id(),
            known.tick,
            [choice.task.id for choice in choices],
            [(task_id, tick, choice.task.id) for choice in choices for task_id, tick in choice.seen.items()],
            first.task.status,
            first.lease,
            first.task.owner,
            act,
            new_op(),
            host=self._commits.host,
            silence=self._commits.silence,
        )
        number, at, passed, is_old = self._commits.database.ask(CLAIM, values)[0]
        self._passed.update(map(str, passed))
        self._count = max(_FEW, min(_MANY, (4 if number is None else 2) * len(passed)))
        if number is None:
            return None, is_old
        self._passed.add(str(number))
        taken = next(choice.task for choice in choices if choice.task.id == str(number))
        return taken._replace(updated_at=at, lease=first.lease), False


def _claim(choice: _Choice) -> tuple[object, ...]:
    return choice.task.owner, choice.task.status, choice.lease
