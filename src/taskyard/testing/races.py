"""What a store promises to threads that use it at the same time."""

from __future__ import annotations

import threading
from functools import partial

from taskyard.errors import AlreadyClaimed, Conflict, Cycle
from taskyard.tasklist.model import Decision, Facts
from taskyard.testing.acts import act, add, edges, lease, put, take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.store import TaskStore

#: Longer than any lock is waited for; a check that takes it hangs.
_LONGEST = 30.0


def _at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call answers, all made at the same moment; a conflict is an answer too."""
    start, answers = threading.Barrier(len(calls)), dict[int, object]()

    def run(index: int, call: Callable[[], object]) -> None:
        start.wait(_LONGEST)
        try:
            answers[index] = call()
        except Conflict as refusal:
            answers[index] = refusal

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_LONGEST)
    assert len(answers) == len(calls), "a call raised something else than a conflict, or never returned"
    return [answers[index] for index in range(len(calls))]


def _creating_at_once_never_gives_an_id_twice(store: TaskStore) -> None:
    given: list[str] = []
    _at_once(*[lambda: given.extend([add(store) for _ in range(4)])] * 4)
    assert len(set(given)) == 16, f"ids were given twice: {given}"
    assert {task.id for task in store.list()} == set(given)


def _claiming_at_once_has_one_winner(store: TaskStore) -> None:
    for _ in range(5):
        task_id = add(store)

        def claim(name: str, task_id: str = task_id) -> str:
            def rule(facts: Facts) -> Decision:
                if facts.task.owner is not None:
                    raise AlreadyClaimed(task_id, facts.task.owner)
                return take(lease(name))(facts)

            store.update(task_id, rule, act("claim"), with_blockers=True)
            return name

        answers = _at_once(*[partial(claim, name) for name in ("ada", "bob", "eve", "joe")])
        winners = [answer for answer in answers if isinstance(answer, str)]
        assert winners == [store.get(task_id).owner], f"{winners} all think they have #{task_id}"


def _deciding_about_the_whole_list_at_once_is_one_after_the_other(store: TaskStore) -> None:
    for _ in range(5):
        pair = [add(store), add(store)]

        def claim(task_id: str, pair: list[str] = pair) -> str:
            def rule(facts: Facts) -> Decision:
                if any(other.owner for other in facts.everything() if other.id in pair):
                    raise Conflict("one of the two is enough")
                return take(lease())(facts)

            store.update(task_id, rule, act("claim"), with_blockers=True, whole_list=True)
            return task_id

        answers = _at_once(*[partial(claim, task_id) for task_id in pair])
        winners = [answer for answer in answers if isinstance(answer, str)]
        assert len(winners) == 1, f"{winners} were both claimed, each in the belief to be the only one"


def _linking_both_ways_at_once_closes_no_circle(store: TaskStore) -> None:
    for _ in range(5):
        a, b = add(store), add(store)
        answers = _at_once(partial(store.link, [(a, b)], act("block")), partial(store.link, [(b, a)], act("block")))
        assert sum(isinstance(answer, Cycle) for answer in answers) == 1, "both ways were accepted, or none"
    assert len(edges(store)) == 5


def _changes_of_two_tasks_at_once_are_both_kept(store: TaskStore) -> None:
    a, b = add(store), add(store)

    def rename(task_id: str) -> None:
        for number in range(10):
            put(store, task_id, subject=str(number))

    _at_once(lambda: rename(a), lambda: rename(b))
    for task_id in (a, b):
        told = [task.subject for change in store.changes(task_id=task_id) if (task := change.tasks.get(task_id))]
        assert told == ["a", *map(str, range(10))], f"the log of #{task_id} is not what happened: {told}"
    assert {task.subject for task in store.list()} == {"9"}


RACES: tuple[Callable[[TaskStore], None], ...] = (
    _creating_at_once_never_gives_an_id_twice,
    _claiming_at_once_has_one_winner,
    _deciding_about_the_whole_list_at_once_is_one_after_the_other,
    _linking_both_ways_at_once_closes_no_circle,
    _changes_of_two_tasks_at_once_are_both_kept,
)
