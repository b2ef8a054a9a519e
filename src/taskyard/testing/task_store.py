"""Conformance checks for implementations of `taskyard.tasks.store.TaskStore`.

`check_task_store` runs all of them: tasks, dependencies, leases, adoption of a whole list, and concurrent
threads. The first functions of this module are helpers of the checks.
"""

from __future__ import annotations

import threading
from functools import partial

from taskyard.core.system import now_ms
from taskyard.errors import (
    AlreadyClaimed,
    AlreadyExists,
    Conflict,
    Cycle,
    ListNotEmpty,
    NotFound,
    StillOpen,
    TaskNotFound,
)
from taskyard.tasks.model import Act, Decision, Draft, Facts, Lease, LinkChange, Task, TaskStatus, new_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from taskyard.tasks.store import TaskStore


if TYPE_CHECKING:
    E = TypeVar("E", bound=Exception)


def act(cause: str = "check", by: str | None = "ada", note: str = "") -> Act:
    """Return the actor and cause of a change, for the log."""
    return Act(by, cause, "api", note)


def add(store: TaskStore, subject: str = "a", *, blocks: tuple[str, ...] = (), blocked_by: tuple[str, ...] = ()) -> str:
    """Create a task; return its id."""
    return store.create(Draft(subject, subject, blocks=blocks, blocked_by=blocked_by), act("create")).id


def set_fields(store: TaskStore, task_id: str, **fields: object) -> Task:
    """Change fields of a task; its lease stays."""
    return store.update(task_id, lambda facts: Decision(facts.task._replace(**fields), facts.lease), act("put"))  # type: ignore[arg-type]


def new_lease(owner: str = "ada", *, ends_in: int | None = None) -> Lease:
    """Return a lease that never expires, or expires in `ends_in` milliseconds."""
    since = now_ms()
    if ends_in is None:
        return Lease(owner, owner, new_token(), "manual", since)
    return Lease(owner, owner, new_token(), "time", since, since + ends_in)


def claim_rule(held: Lease) -> Callable[[Facts], Decision]:
    """Return an update rule that gives the task to the owner of `held`."""
    return lambda facts: Decision(facts.task._replace(owner=held.owner, status=TaskStatus.IN_PROGRESS), held)


def change_log(store: TaskStore, since: int = 0) -> list[tuple[str, dict[str, str | None]]]:
    """Return the log in short: each change's cause, and the subjects after it (None: removed)."""
    return [
        (change.act.cause, {task_id: task and task.subject for task_id, task in change.tasks.items()})
        for change in store.changes(since)
    ]


def expect_error(store: TaskStore, error: type[E], call: Callable[[], object]) -> E:
    """Return the error that `call` must raise, after asserting that nothing changed."""
    before = tuple(store.list()), tuple(store.changes())
    try:
        call()
    except error as found:
        assert (tuple(store.list()), tuple(store.changes())) == before, (
            f"{error.__name__} was raised, yet things changed"
        )
        return found
    raise AssertionError(f"{error.__name__} was to be raised")


def edges(store: TaskStore) -> set[tuple[str, str]]:
    """Return every dependency as (blocker, blocked), after asserting that both sides agree."""
    tasks = {task.id: task for task in store.list()}
    forward = {(task.id, other) for task in tasks.values() for other in task.blocks}
    backward = {(other, task.id) for task in tasks.values() for other in task.blocked_by}
    assert forward == backward, f"the two sides of dependencies differ: {forward ^ backward}"
    assert all(store.get(task_id).blocks == task.blocks for task_id, task in tasks.items()), "get and list differ"
    return forward


_TASKS = (
    Task("3", "first", "All of it\n✓", "Porting", None, TaskStatus.COMPLETED, ("7",), (), {"k": [1]}, 1000, 2000),
    Task(
        "7", "second", "\0\ud800", None, "ada", TaskStatus.IN_PROGRESS, (), ("3",), {"taskyard": {"p": 1}}, 3000, 4000
    ),
)


def _an_adopted_list_is_unchanged(store: TaskStore) -> None:
    store.adopt(_TASKS, act("import"), last=9)
    assert tuple(store.list()) == _TASKS
    assert store.get("7") == _TASKS[1]
    assert store.last_id() == 9
    assert add(store, blocked_by=("7",)) == "10", "an id that was spent elsewhere was given out"
    [first, _] = store.changes()
    assert first.act == act("import")
    assert [(task.id, task.created_at) for task in first.tasks.values() if task] == [("3", 1000), ("7", 3000)]


def _only_an_empty_list_can_adopt(store: TaskStore) -> None:
    add(store)
    before = (*store.list(), *store.changes())
    expect_error(store, ListNotEmpty, lambda: store.adopt(_TASKS, act("import")))
    assert (*store.list(), *store.changes()) == before
    store.remove(["1"], act("delete"))
    store.adopt(_TASKS, act("import"))
    assert [task.id for task in store.list()] == ["3", "7"]


def _a_time_that_is_not_known_is_now(store: TaskStore) -> None:
    store.adopt([_TASKS[0]._replace(blocks=(), created_at=None, updated_at=None)], act("import"))
    found = store.get("3")
    assert (found.created_at or 0) > 10**12
    assert (found.updated_at or 0) > 10**12


def _the_highest_id_is_known(store: TaskStore) -> None:
    assert store.last_id() == 0
    store.remove([add(store)], act("delete"))
    assert store.last_id() == 1


ADOPT_CHECKS: tuple[Callable[[TaskStore], None], ...] = (
    _an_adopted_list_is_unchanged,
    _only_an_empty_list_can_adopt,
    _a_time_that_is_not_known_is_now,
    _the_highest_id_is_known,
)


def _a_lease_is_stored_with_its_task(store: TaskStore) -> None:
    task_id, held = add(store), new_lease()
    taken = store.update(task_id, claim_rule(held), act("claim"))
    assert (taken.owner, taken.lease) == ("ada", held)
    assert store.get(task_id) == taken
    assert tuple(store.list()) == (taken,)
    start, longer = store.position(), held._replace(kind="time", expires=held.since + 600_000)
    store.update(task_id, lambda facts: Decision(facts.task, longer), act("renew"))
    assert store.get(task_id).lease == longer
    assert change_log(store, start) == [], "renewing a lease is no change of the task"
    set_fields(store, task_id, status=TaskStatus.COMPLETED)
    assert store.get(task_id).lease is None, "a completed task has no holder"


def _a_task_can_be_leased_at_creation(store: TaskStore) -> None:
    first, held = add(store), new_lease()
    for more in ({"task_id": store.reserve()}, {}):
        for draft in (Draft("a", "a", owner="ada"), Draft("a", "a", owner="ada", blocked_by=(first,))):
            task = store.create(draft, act("create"), lease=held, **more)
            assert (task.lease, store.get(task.id).lease) == (held, held), "its owner does not hold it"
            more = {}
    assert store.get(first).lease is None


def _a_removal_is_checked_against_what_is_there(store: TaskStore) -> None:
    ids, held, seen = [add(store), add(store)], new_lease(), list[Facts]()
    store.update(ids[1], claim_rule(held), act("claim"))

    def check(facts: Facts) -> None:
        seen.append(facts)
        if facts.lease is not None:
            raise Conflict(f"no to {facts.task.id}")

    expect_error(store, Conflict, lambda: store.remove(ids, act("delete"), check=check))
    last = [(facts.task.id, facts.lease) for facts in seen][-2:]  # a store may call `check` again
    assert last == [(ids[0], None), (ids[1], held)]
    assert [task.id for task in store.remove(ids[:1], act("delete"), check=check)] == ids[:1]


LEASE_CHECKS: tuple[Callable[[TaskStore], None], ...] = (
    _a_lease_is_stored_with_its_task,
    _a_task_can_be_leased_at_creation,
    _a_removal_is_checked_against_what_is_there,
)


#: Seconds; longer than any lock timeout: a check that reaches it hangs.
_TIMEOUT = 30.0


def _run_concurrently(*calls: Callable[[], object]) -> list[object]:
    """Run all calls at the same moment; return their results, or the conflicts they raised."""
    start, answers = threading.Barrier(len(calls)), dict[int, object]()

    def run(index: int, call: Callable[[], object]) -> None:
        start.wait(_TIMEOUT)
        try:
            answers[index] = call()
        except Conflict as refusal:
            answers[index] = refusal

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT)
    assert len(answers) == len(calls), "a call raised something else than a conflict, or never returned"
    return [answers[index] for index in range(len(calls))]


def _creating_at_once_never_gives_an_id_twice(store: TaskStore) -> None:
    given: list[str] = []
    _run_concurrently(*[lambda: given.extend([add(store) for _ in range(4)])] * 4)
    assert len(set(given)) == 16, f"ids were given twice: {given}"
    assert {task.id for task in store.list()} == set(given)


def _claiming_at_once_has_one_winner(store: TaskStore) -> None:
    for _ in range(5):
        task_id = add(store)

        def claim(name: str, task_id: str = task_id) -> str:
            def rule(facts: Facts) -> Decision:
                if facts.task.owner is not None:
                    raise AlreadyClaimed(task_id, facts.task.owner)
                return claim_rule(new_lease(name))(facts)

            store.update(task_id, rule, act("claim"), with_blockers=True)
            return name

        answers = _run_concurrently(*[partial(claim, name) for name in ("ada", "bob", "eve", "joe")])
        winners = [answer for answer in answers if isinstance(answer, str)]
        assert winners == [store.get(task_id).owner], f"{winners} all think they have #{task_id}"


def _deciding_about_the_whole_list_at_once_is_one_after_the_other(store: TaskStore) -> None:
    for _ in range(5):
        pair = [add(store), add(store)]

        def claim(task_id: str, pair: list[str] = pair) -> str:
            def rule(facts: Facts) -> Decision:
                if any(other.owner for other in facts.everything() if other.id in pair):
                    raise Conflict("one of the two is enough")
                return claim_rule(new_lease())(facts)

            store.update(task_id, rule, act("claim"), with_blockers=True, whole_list=True)
            return task_id

        answers = _run_concurrently(*[partial(claim, task_id) for task_id in pair])
        winners = [answer for answer in answers if isinstance(answer, str)]
        assert len(winners) == 1, f"{winners} were both claimed, each in the belief to be the only one"


def _linking_both_ways_at_once_makes_no_cycle(store: TaskStore) -> None:
    for _ in range(5):
        a, b = add(store), add(store)
        answers = _run_concurrently(
            partial(store.link, [(a, b)], act("block")), partial(store.link, [(b, a)], act("block"))
        )
        assert sum(isinstance(answer, Cycle) for answer in answers) == 1, "both ways were accepted, or none"
    assert len(edges(store)) == 5


def _changes_of_two_tasks_at_once_are_both_kept(store: TaskStore) -> None:
    a, b = add(store), add(store)

    def rename(task_id: str) -> None:
        for number in range(10):
            set_fields(store, task_id, subject=str(number))

    _run_concurrently(lambda: rename(a), lambda: rename(b))
    for task_id in (a, b):
        told = [task.subject for change in store.changes(task_id=task_id) if (task := change.tasks.get(task_id))]
        assert told == ["a", *map(str, range(10))], f"the log of #{task_id} is not what happened: {told}"
    assert {task.subject for task in store.list()} == {"9"}


RACE_CHECKS: tuple[Callable[[TaskStore], None], ...] = (
    _creating_at_once_never_gives_an_id_twice,
    _claiming_at_once_has_one_winner,
    _deciding_about_the_whole_list_at_once_is_one_after_the_other,
    _linking_both_ways_at_once_makes_no_cycle,
    _changes_of_two_tasks_at_once_are_both_kept,
)


def _complete(facts: Facts) -> Decision:
    return Decision(facts.task._replace(status=TaskStatus.COMPLETED), None)


def _complete_and_link(store: TaskStore, task_id: str, *, new: str = "", gone: str = "") -> Task:
    """Complete a task and change dependencies; "1>2" means that 2 is blocked by 1."""
    links = LinkChange(*(tuple((edge[0], edge[2]) for edge in several.split()) for several in (new, gone)))
    return store.update(task_id, _complete, act("complete"), with_blockers=True, links=links)


def _an_update_and_its_dependencies_are_one_change(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store)
    start = store.position()
    task = _complete_and_link(store, a, new="1>3", gone="1>2")
    assert (task.is_done, task.blocks) == (True, (c,))
    assert edges(store) == {(a, c)}
    (change,) = store.changes(start)
    assert set(change.tasks) == {a, b, c}, "not all of it is in one entry of the log"


def _a_dependency_can_be_turned_around_in_one_step(store: TaskStore) -> None:
    a, b = add(store), add(store, blocked_by=("1",))
    _complete_and_link(store, a, new="2>1", gone="1>2")
    assert edges(store) == {(b, a)}


def _a_refused_part_of_an_update_refuses_all_of_it(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store)

    def refuse(facts: Facts) -> Decision:
        raise Conflict(f"no to {facts.task.id}")

    expect_error(store, Conflict, lambda: store.update(c, refuse, act("put"), links=LinkChange(new=((c, a),))))
    expect_error(store, Cycle, lambda: _complete_and_link(store, b, new="2>3 2>1"))
    expect_error(store, Cycle, lambda: _complete_and_link(store, b, new="2>2"))
    assert expect_error(store, TaskNotFound, lambda: _complete_and_link(store, c, new="3>1 3>7")).task_id == "7"
    assert expect_error(store, TaskNotFound, lambda: _complete_and_link(store, c, new="7>3")).task_id == "7"
    assert expect_error(store, TaskNotFound, lambda: _complete_and_link(store, c, gone="7>3")).task_id == "7"


LINK_CHECKS: tuple[Callable[[TaskStore], None], ...] = (
    _an_update_and_its_dependencies_are_one_change,
    _a_dependency_can_be_turned_around_in_one_step,
    _a_refused_part_of_an_update_refuses_all_of_it,
)


def check_task_store(make: Callable[[], TaskStore]) -> None:
    """Assert every guarantee of `TaskStore`. `make` returns a new, empty list each time."""
    for check in (*_CHECKS, *LINK_CHECKS, *LEASE_CHECKS, *ADOPT_CHECKS, *RACE_CHECKS):
        store = make()
        try:
            check(store)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__.strip('_').replace('_', ' ')}: {error}") from error
        finally:
            store.close()


def _an_empty_list_is_empty_and_finished(store: TaskStore) -> None:
    assert (*store.list(), *store.list().damaged, *store.changes(), store.is_finished()) == (True,)
    assert expect_error(store, TaskNotFound, lambda: store.get("1")).restorable is False


def _ids_count_up_and_never_return(store: TaskStore) -> None:
    assert [add(store), add(store)] == ["1", "2"]
    assert store.reserve() == "3"
    assert add(store) == "4", "a reserved id was given out again"
    store.remove(["4"], act("delete"))
    assert add(store) == "5", "an id came back after its task was removed"
    store.remove(["1", "2", "5"], act("reset"))
    store.restore("2", act("restore"))
    expect_error(store, NotFound, lambda: add(store, blocked_by=("77",)))
    assert int(add(store)) > 5, "an id came back after a reset"


def _a_reserved_id_can_be_used(store: TaskStore) -> None:
    task_id = store.reserve()
    assert store.create(Draft("late", "late"), act("create"), task_id=task_id).id == task_id
    assert store.get(task_id).subject == "late"


def _what_is_created_is_read(store: TaskStore) -> None:
    metadata = {"k": [1, {"x": None}], "taskyard": {"p": 1}}
    draft = Draft("Port it", "All of it\n✓", "Porting it", "ada", metadata=metadata)
    task = store.create(draft, act("create"))
    assert task[1:9] == (*draft[:5], (), (), draft.metadata), "the answer is not what was asked for"
    assert isinstance(task.created_at, int), "no creation time"
    assert task.created_at == task.updated_at
    assert (store.get(task.id), *store.list()) == (task, task)
    assert not store.is_finished()


def _a_parent_is_there(store: TaskStore) -> None:
    drafts = [Draft("part", "part", metadata={"taskyard": {"parent": parent}}) for parent in ("77", add(store))]
    expect_error(store, TaskNotFound, lambda: store.create(drafts[0], act("create")))
    assert store.create(drafts[1], act("create")).extra == {"parent": "1"}


def _lists_are_in_the_order_of_ids_as_numbers(store: TaskStore) -> None:
    ids = [add(store) for _ in range(11)]
    assert [task.id for task in store.list()] == ids == [*map(str, range(1, 12))]


def _an_update_saves_what_its_rule_says(store: TaskStore) -> None:
    task_id = add(store)
    before, start = store.get(task_id), store.position()
    after = set_fields(store, task_id, subject="b", metadata={"k": "v"})
    assert store.get(task_id) == after == before._replace(subject="b", metadata={"k": "v"}, updated_at=after.updated_at)
    assert (after.updated_at or 0) >= (before.updated_at or 0)
    assert change_log(store, start) == [("put", {task_id: "b"})]


def _no_difference_is_no_change(store: TaskStore) -> None:
    task_id = add(store)
    before, start = store.get(task_id), store.position()
    assert set_fields(store, task_id) == before
    assert store.get(task_id) == before, "the time of the last change moved without one"
    assert (change_log(store, start), store.position()) == ([], start)


def _a_rule_that_refuses_changes_nothing(store: TaskStore) -> None:
    task_id = add(store)

    def refuse(facts: Facts) -> Decision:
        raise Conflict("no")

    expect_error(store, Conflict, lambda: store.update(task_id, refuse, act("put")))
    expect_error(store, TaskNotFound, lambda: store.update("9", refuse, act("put")))


def _a_rule_sees_the_task_its_blockers_and_everything(store: TaskStore) -> None:
    first, second = add(store, "one"), add(store, "two", blocked_by=("1",))
    found: list[object] = []

    def look(facts: Facts) -> Decision:
        one = facts.look(first)
        found[:] = [facts.task.id, one and one.subject, facts.look("77"), [task.id for task in facts.everything()]]
        return Decision(facts.task, facts.lease)

    store.update(second, look, act("look"), with_blockers=True, whole_list=True)
    assert found == [second, "one", None, [first, second]]


def _a_lease_that_ran_out_puts_the_task_back(store: TaskStore) -> None:
    first, second, third = add(store), add(store), add(store)
    for task_id in (first, second, third):
        store.update(task_id, claim_rule(new_lease(ends_in=-1)), act("claim"))
    start = store.position()
    free = store.list()[0]
    assert (free.owner, free.status, free.lease) == (None, TaskStatus.PENDING, None), "listing did not notice"
    assert store.get(second).owner is None
    seen = store.update(third, claim_rule(new_lease("bob")), act("claim"))
    assert seen.owner == "bob"
    causes = [change.act.cause for change in store.changes(start)]
    assert causes.count("lease_lost") == 3, "each loss is in the log once"


def _the_third_loss_quarantines_a_task(store: TaskStore) -> None:
    task_id = add(store)
    for losses in (1, 2, 3):
        assert not store.get(task_id).is_held, f"quarantined after {losses - 1} losses"
        store.update(task_id, claim_rule(new_lease(ends_in=-1)), act("claim"))
        assert store.get(task_id).owner is None
    assert store.get(task_id).is_held


def _claim_next_takes_the_first_that_its_rule_accepts(store: TaskStore) -> None:
    for _ in range(3):
        add(store)

    def order(tasks: object) -> list[str]:
        assert tuple(store.list()) == tasks
        return ["77", "3", "2", "1"]

    def rule(facts: Facts) -> Decision:
        if facts.task.id == "3":
            raise Conflict("not this one")
        return claim_rule(new_lease())(facts)

    found = store.claim_next(order, rule, act("claim"))
    assert found is not None
    assert (found.id, found.owner) == ("2", "ada")
    assert [task.owner for task in store.list()] == [None, "ada", None]
    assert store.claim_next(lambda _: ["3"], rule, act("claim")) is None
    assert store.claim_next(lambda _: [], rule, act("claim")) is None


def _dependencies_are_known_on_both_sides(store: TaskStore) -> None:
    a, b = add(store), add(store)
    c = add(store, blocks=(b,), blocked_by=(a,))
    assert edges(store) == {(a, c), (c, b)}
    store.link([(a, b)], act("block"))
    start = store.position()
    store.link([(a, b)], act("block"))
    assert change_log(store, start) == [], "a dependency that is there already is no change"
    assert edges(store) == {(a, c), (c, b), (a, b)}
    assert [tuple(store.waiting_for(task_id)) for task_id in (a, b, c)] == [(b, c), (), (b,)]
    assert store.unlink([(a, c), (b, a), (c, b)], act("unblock")) == ((a, c), (c, b)), "not what was there"
    start = store.position()
    assert store.unlink([(a, c)], act("unblock")) == ()
    assert change_log(store, start) == [], "taking away what is not there is no change"
    assert edges(store) == {(a, b)}
    assert expect_error(store, TaskNotFound, lambda: store.unlink([(a, "77")], act("unblock"))).task_id == "77"
    assert expect_error(store, TaskNotFound, lambda: store.unlink([(a, b), ("77", b)], act("unblock"))).task_id == "77"


def _unknown_ids_and_cycles_are_refused_from_both_sides(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store, blocked_by=("2",))
    assert expect_error(store, TaskNotFound, lambda: store.link([(a, "77")], act("block"))).task_id == "77"
    assert expect_error(store, TaskNotFound, lambda: store.link([("77", a)], act("block"))).task_id == "77"
    expect_error(store, TaskNotFound, lambda: add(store, blocks=("77",)))
    assert set(expect_error(store, Cycle, lambda: store.link([(c, a)], act("block"))).path) == {a, b, c}
    assert set(expect_error(store, Cycle, lambda: store.link([(b, b)], act("block"))).path) == {b}
    expect_error(store, Cycle, lambda: add(store, blocks=(a,), blocked_by=(c,)))
    expect_error(store, Cycle, lambda: add(store, blocks=(a,), blocked_by=(a,)))
    d = add(store)
    expect_error(store, Cycle, lambda: store.link([(c, d), (d, a)], act("block")))
    assert edges(store) == {(a, b), (b, c)}, "half of a refused change was made"


def _removing_strips_a_task_from_everyone(store: TaskStore) -> None:
    a, b = add(store, "one"), add(store, "two", blocked_by=("1",))
    c = add(store, "three", blocked_by=(a, b))
    start = store.position()
    gone = store.remove([b], act("delete", by="eve", note="not needed"))
    assert [task.subject for task in gone] == ["two"]
    assert edges(store) == {(a, c)}
    (change,) = store.changes(start)
    assert change.act == act("delete", by="eve", note="not needed")
    assert (change.tasks[b], set(change.tasks)) == (None, {a, b, c})
    assert expect_error(store, TaskNotFound, lambda: store.get(b)).restorable
    expect_error(store, TaskNotFound, lambda: store.remove([a, b], act("delete")))
    set_fields(store, c, status=TaskStatus.COMPLETED)
    assert expect_error(store, StillOpen, lambda: store.remove([a, c], act("archive"), only_done=True)).tasks == (a,)
    assert [task.id for task in store.remove([c], act("archive"), only_done=True)] == [c]


def _restoring_brings_back_what_still_makes_sense(store: TaskStore) -> None:
    a, b = add(store), add(store, blocked_by=("1",))
    c, d = add(store, blocked_by=(b,)), add(store)
    store.link([(d, b)], act("block"))
    store.update(b, claim_rule(new_lease()), act("claim"))
    store.remove([d, b], act("delete"))
    store.link([(c, a)], act("block"))
    back = store.restore(b, act("restore"))
    assert (back.id, back.owner, back.status) == (b, None, TaskStatus.PENDING), "what comes back is free"
    found = edges(store)
    assert (c, a) in found
    assert len(found) == 2, "of the two old dependencies that now close a circle, one is left out"
    assert store.get(b) == back
    expect_error(store, AlreadyExists, lambda: store.restore(b, act("restore")))
    expect_error(store, TaskNotFound, lambda: store.restore("77", act("restore")))
    set_fields(store, a, status=TaskStatus.COMPLETED)
    store.remove([a], act("archive"))
    assert store.restore(a, act("restore")).is_done, "what was done stays done"


def _every_change_is_logged_once_and_in_order(store: TaskStore) -> None:
    a, b = add(store, "one"), add(store, "two")
    set_fields(store, a, subject="uno")
    store.link([(a, b)], act("block"))
    store.remove([a], act("delete"))
    store.restore(a, act("restore"))
    whole = list(store.changes())
    assert [change.act.cause for change in whole][:5] == ["create", "create", "put", "block", "delete"]
    assert sorted({change.id for change in whole}) == [change.id for change in whole], "ids do not grow"
    for index, change in enumerate(whole):
        assert list(store.changes(change.id)) == whole[index:]
        assert list(store.changes(change.id + 1)) == whole[index + 1 :]
    assert list(store.changes(store.position())) == []
    mine = list(store.changes(task_id=b))
    assert [change.act.cause for change in mine][:3] == ["create", "block", "delete"]
    assert mine == [change for change in whole if b in change.tasks]
    assert not any(change.aborted for change in whole)


def _completed_work_and_trackers_make_a_finished_list(store: TaskStore) -> None:
    a = add(store)
    store.create(Draft("bob", "…", metadata={"_internal": True}, status=TaskStatus.IN_PROGRESS), act("create"))
    assert not store.is_finished()
    set_fields(store, a, status=TaskStatus.COMPLETED)
    assert store.is_finished()


def _waiting_ends_at_a_change(store: TaskStore) -> None:
    store.wait(0)
    store.wait(0)
    assert not store.wait(0.01), "woken by nothing"
    add(store)
    assert store.wait(10), "a change went by unnoticed"


_CHECKS: tuple[Callable[[TaskStore], None], ...] = (
    _an_empty_list_is_empty_and_finished,
    _ids_count_up_and_never_return,
    _a_reserved_id_can_be_used,
    _what_is_created_is_read,
    _a_parent_is_there,
    _lists_are_in_the_order_of_ids_as_numbers,
    _an_update_saves_what_its_rule_says,
    _no_difference_is_no_change,
    _a_rule_that_refuses_changes_nothing,
    _a_rule_sees_the_task_its_blockers_and_everything,
    _a_lease_that_ran_out_puts_the_task_back,
    _the_third_loss_quarantines_a_task,
    _claim_next_takes_the_first_that_its_rule_accepts,
    _dependencies_are_known_on_both_sides,
    _unknown_ids_and_cycles_are_refused_from_both_sides,
    _removing_strips_a_task_from_everyone,
    _restoring_brings_back_what_still_makes_sense,
    _every_change_is_logged_once_and_in_order,
    _completed_work_and_trackers_make_a_finished_list,
    _waiting_ends_at_a_change,
)
