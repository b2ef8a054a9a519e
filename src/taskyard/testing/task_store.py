"""What every `TaskStore` promises, as checks that run."""

from __future__ import annotations

from taskyard.errors import AlreadyExists, Conflict, Cycle, NotFound, StillOpen, TaskNotFound
from taskyard.tasklist.model import Decision, Draft, Facts, TaskStatus
from taskyard.testing.acts import act, add, edges, lease, put, refused, take, told
from taskyard.testing.adopting import ADOPTING
from taskyard.testing.holding import HOLDING
from taskyard.testing.races import RACES
from taskyard.testing.rewiring import REWIRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.store import TaskStore


def check_task_store(make: Callable[[], TaskStore]) -> None:
    """Assert every promise of `TaskStore`. `make` returns a fresh, empty list each time."""
    for check in (*_CHECKS, *REWIRING, *HOLDING, *ADOPTING, *RACES):
        store = make()
        try:
            check(store)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__.strip('_').replace('_', ' ')}: {error}") from error
        finally:
            store.close()


def _an_empty_list_is_empty_and_finished(store: TaskStore) -> None:
    assert (*store.list(), *store.list().damaged, *store.changes(), store.is_finished()) == (True,)
    assert refused(store, TaskNotFound, lambda: store.get("1")).restorable is False


def _ids_count_up_and_never_return(store: TaskStore) -> None:
    assert [add(store), add(store)] == ["1", "2"]
    assert store.reserve() == "3"
    assert add(store) == "4", "a reserved id was given out again"
    store.remove(["4"], act("delete"))
    assert add(store) == "5", "an id came back after its task was removed"
    store.remove(["1", "2", "5"], act("reset"))
    store.restore("2", act("restore"))
    refused(store, NotFound, lambda: add(store, blocked_by=("77",)))
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
    refused(store, TaskNotFound, lambda: store.create(drafts[0], act("create")))
    assert store.create(drafts[1], act("create")).extra == {"parent": "1"}


def _lists_are_in_the_order_of_ids_as_numbers(store: TaskStore) -> None:
    ids = [add(store) for _ in range(11)]
    assert [task.id for task in store.list()] == ids == [*map(str, range(1, 12))]


def _an_update_saves_what_its_rule_says(store: TaskStore) -> None:
    task_id = add(store)
    before, start = store.get(task_id), store.position()
    after = put(store, task_id, subject="b", metadata={"k": "v"})
    assert store.get(task_id) == after == before._replace(subject="b", metadata={"k": "v"}, updated_at=after.updated_at)
    assert (after.updated_at or 0) >= (before.updated_at or 0)
    assert told(store, start) == [("put", {task_id: "b"})]


def _no_difference_is_no_change(store: TaskStore) -> None:
    task_id = add(store)
    before, start = store.get(task_id), store.position()
    assert put(store, task_id) == before
    assert store.get(task_id) == before, "the time of the last change moved without one"
    assert (told(store, start), store.position()) == ([], start)


def _a_rule_that_refuses_changes_nothing(store: TaskStore) -> None:
    task_id = add(store)

    def refuse(facts: Facts) -> Decision:
        raise Conflict("no")

    refused(store, Conflict, lambda: store.update(task_id, refuse, act("put")))
    refused(store, TaskNotFound, lambda: store.update("9", refuse, act("put")))


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
        store.update(task_id, take(lease(ends_in=-1)), act("claim"))
    start = store.position()
    free = store.list()[0]
    assert (free.owner, free.status, free.lease) == (None, TaskStatus.PENDING, None), "listing did not notice"
    assert store.get(second).owner is None
    seen = store.update(third, take(lease("bob")), act("claim"))
    assert seen.owner == "bob"
    causes = [change.act.cause for change in store.changes(start)]
    assert causes.count("lease_lost") == 3, "each loss is in the log once"


def _the_third_loss_sets_a_task_aside(store: TaskStore) -> None:
    task_id = add(store)
    for losses in (1, 2, 3):
        assert not store.get(task_id).is_held, f"set aside after {losses - 1} losses"
        store.update(task_id, take(lease(ends_in=-1)), act("claim"))
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
        return take(lease())(facts)

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
    assert told(store, start) == [], "a dependency that is there already is no change"
    assert edges(store) == {(a, c), (c, b), (a, b)}
    assert [tuple(store.waiting_for(task_id)) for task_id in (a, b, c)] == [(b, c), (), (b,)]
    assert store.unlink([(a, c), (b, a), (c, b)], act("unblock")) == ((a, c), (c, b)), "not what was there"
    start = store.position()
    assert store.unlink([(a, c)], act("unblock")) == ()
    assert told(store, start) == [], "taking away what is not there is no change"
    assert edges(store) == {(a, b)}
    assert refused(store, TaskNotFound, lambda: store.unlink([(a, "77")], act("unblock"))).task_id == "77"
    assert refused(store, TaskNotFound, lambda: store.unlink([(a, b), ("77", b)], act("unblock"))).task_id == "77"


def _unknown_ids_and_cycles_are_refused_from_both_sides(store: TaskStore) -> None:
    a, b, c = add(store), add(store, blocked_by=("1",)), add(store, blocked_by=("2",))
    assert refused(store, TaskNotFound, lambda: store.link([(a, "77")], act("block"))).task_id == "77"
    assert refused(store, TaskNotFound, lambda: store.link([("77", a)], act("block"))).task_id == "77"
    refused(store, TaskNotFound, lambda: add(store, blocks=("77",)))
    assert set(refused(store, Cycle, lambda: store.link([(c, a)], act("block"))).path) == {a, b, c}
    assert set(refused(store, Cycle, lambda: store.link([(b, b)], act("block"))).path) == {b}
    refused(store, Cycle, lambda: add(store, blocks=(a,), blocked_by=(c,)))
    refused(store, Cycle, lambda: add(store, blocks=(a,), blocked_by=(a,)))
    d = add(store)
    refused(store, Cycle, lambda: store.link([(c, d), (d, a)], act("block")))
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
    assert refused(store, TaskNotFound, lambda: store.get(b)).restorable
    refused(store, TaskNotFound, lambda: store.remove([a, b], act("delete")))
    put(store, c, status=TaskStatus.COMPLETED)
    assert refused(store, StillOpen, lambda: store.remove([a, c], act("archive"), only_done=True)).tasks == (a,)
    assert [task.id for task in store.remove([c], act("archive"), only_done=True)] == [c]


def _restoring_brings_back_what_still_makes_sense(store: TaskStore) -> None:
    a, b = add(store), add(store, blocked_by=("1",))
    c, d = add(store, blocked_by=(b,)), add(store)
    store.link([(d, b)], act("block"))
    store.update(b, take(lease()), act("claim"))
    store.remove([d, b], act("delete"))
    store.link([(c, a)], act("block"))
    back = store.restore(b, act("restore"))
    assert (back.id, back.owner, back.status) == (b, None, TaskStatus.PENDING), "what comes back is free"
    found = edges(store)
    assert (c, a) in found
    assert len(found) == 2, "of the two old dependencies that now close a circle, one is left out"
    assert store.get(b) == back
    refused(store, AlreadyExists, lambda: store.restore(b, act("restore")))
    refused(store, TaskNotFound, lambda: store.restore("77", act("restore")))
    put(store, a, status=TaskStatus.COMPLETED)
    store.remove([a], act("archive"))
    assert store.restore(a, act("restore")).is_done, "what was done stays done"


def _every_change_is_told_once_in_order_and_from_anywhere(store: TaskStore) -> None:
    a, b = add(store, "one"), add(store, "two")
    put(store, a, subject="uno")
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
    put(store, a, status=TaskStatus.COMPLETED)
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
    _the_third_loss_sets_a_task_aside,
    _claim_next_takes_the_first_that_its_rule_accepts,
    _dependencies_are_known_on_both_sides,
    _unknown_ids_and_cycles_are_refused_from_both_sides,
    _removing_strips_a_task_from_everyone,
    _restoring_brings_back_what_still_makes_sense,
    _every_change_is_told_once_in_order_and_from_anywhere,
    _completed_work_and_trackers_make_a_finished_list,
    _waiting_ends_at_a_change,
)
