"""
Picking and claiming in one step: the first of the free tasks that is still free when the server looks.

Many want the first of a list at once. So the server is sent a few to choose from, each with what the choice rests on,
and passes over those that somebody else has by now. One that is free, and another than it was seen, is looked at anew.
"""

from __future__ import annotations

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

#: How many the server is sent to choose from: at first, and at most, where others are quicker.
_FEW, _MANY = 2, 16

#: How often one looks anew before it tries them one by one.
_LOOKS = 5


class _Choice(NamedTuple):
    """A free task as it would be for whoever claims it."""

    task: Task
    lease: Lease | None
    seen: dict[str, int]  #: what that rests on


def claim_next(
    commits: Committing,
    look: Callable[[], Known],
    order: Callable[[Sequence[Task]], Sequence[str]],
    rule: Rule,
    act: Act,
) -> Task | None:
    """The first task, in the order given, that `rule` accepts; None if it refuses them all.

    Raises:
        NotPlain: to claim one is more than to name its owner, or it was tried too often: they must be tried one by one.
    """
    for _ in range(_LOOKS):
        known = look()
        choices = _choices(commits, known, _in_order(commits, known, order), rule)
        if not choices:
            return None
        if (found := _claimed(commits, choices, act)) is not None:
            return found
    raise NotPlain


def _in_order(commits: Committing, known: Known, order: Callable[[Sequence[Task]], Sequence[str]]) -> Iterable[str]:
    """The ids of the tasks, in order; of a list that is kept in order, no more are looked at than are wanted."""
    if isinstance(order, InOrder):
        free = (known[str(number)].task for _, number in known.free)
        found = order.one_by_one(free, Tasks(known))
        if found is not None:
            return found
    return order(commits.mirror.listing())


class NotPlain(Exception):
    """Tasks that are not to be had by this way."""


def _choices(commits: Committing, known: Known, ids: Iterable[str], rule: Rule) -> list[_Choice]:
    """The first that the rule accepts."""
    found: list[_Choice] = []
    for task_id in ids:
        view = commits.view_of(known, fresh=True)
        task = view.look(task_id)
        if task is None:
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
        if len(found) >= commits.choices:
            break
    return found


def _claim(choice: _Choice) -> tuple[object, ...]:
    return choice.task.owner, choice.task.status, choice.lease


def _claimed(commits: Committing, choices: list[_Choice], act: Act) -> Task | None:
    first = choices[0]
    values = claim_values(
        commits.list_id(),
        [choice.task.id for choice in choices],
        [(task_id, tick, choice.task.id) for choice in choices for task_id, tick in choice.seen.items()],
        first.task.status,
        first.lease,
        first.task.owner,
        act,
        new_op(),
        host=commits.host,
        silence=commits.silence,
    )
    number, _, at = commits.database.ask(CLAIM, values)[0]
    for index, choice in enumerate(choices):
        if choice.task.id == str(number):
            commits.choices = max(_FEW, min(_MANY, 2 * index + 1))
            return choice.task._replace(updated_at=at, lease=first.lease)
    commits.choices = _MANY
    return None
