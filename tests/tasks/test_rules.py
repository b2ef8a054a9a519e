"""What may happen to a task, decided without a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import (
    AgentBusy,
    AlreadyClaimed,
    AlreadyResolved,
    BadTransition,
    Blocked,
    Conflict,
    LeaseLost,
)
from taskyard.tasks import rules
from taskyard.tasks.model import Decision, Facts, Lease, Task, TaskStatus
from taskyard.tasks.rules import Caller, Patch

PENDING, DOING, DONE = TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED
TASK = Task("1", "a", "a")
ADA = Caller("ada", lease=Lease("ada", "i-ada", "t-ada", "process", 1), instance="i-ada")
NOBODY = Caller()


def facts(task: Task = TASK, lease: Lease | None = None, others: Iterable[Task] = ()) -> Facts:
    known = {other.id: other for other in (task, *others)}
    return Facts(task, lease, known.get, lambda: list(known.values()))


def held(owner: str = "bob", kind: str = "process", token: str = "t-1") -> Lease:
    return Lease(owner, f"i-{owner}", token, kind, 1, 1000 if kind == "time" else None)


@pytest.mark.req("L-08")
def test_claiming_a_free_task_sets_its_owner_and_lease_and_nothing_else() -> None:
    assert rules.claim(facts(), ADA) == (TASK._replace(owner="ada"), ADA.lease)


@pytest.mark.req("L-08")
def test_claiming_ones_own_again_changes_nothing() -> None:
    mine = TASK._replace(owner="ada")
    lease = held("ada")
    assert rules.claim(facts(mine, lease), ADA) == (mine, lease)


@pytest.mark.req("L-09")
def test_a_name_without_a_living_instance_can_be_taken_up_by_its_own_agent() -> None:
    mine = TASK._replace(owner="ada")
    assert rules.claim(facts(mine), ADA).lease == ADA.lease
    assert rules.claim(facts(mine, held("ada", "manual")), ADA).lease == held("ada", "manual")


@pytest.mark.req("L-09")
def test_another_living_instance_of_the_same_name_is_not_the_owner() -> None:
    other = held("ada")._replace(instance="i-other")
    with pytest.raises(AlreadyClaimed):
        rules.claim(facts(TASK._replace(owner="ada"), other), ADA)
    same = ADA._replace(token=other.token)
    assert rules.claim(facts(TASK._replace(owner="ada"), other), same).lease == other


@pytest.mark.req("L-08")
def test_each_refusal_of_a_claim_is_its_own() -> None:
    with pytest.raises(AlreadyClaimed) as claimed:
        rules.claim(facts(TASK._replace(owner="bob")), ADA)
    with pytest.raises(AlreadyResolved):
        rules.claim(facts(TASK._replace(status=DONE)), ADA)
    with pytest.raises(Blocked) as blocked:
        rules.claim(
            facts(TASK._replace(blocked_by=("2", "3", "9")), others=[Task("2", "b"), Task("3", "c", status=DONE)]), ADA
        )
    with pytest.raises(AgentBusy) as busy:
        rules.claim_if_idle(facts(others=[Task("2", "b", owner="ada")]), ADA)
    assert (claimed.value.owner, blocked.value.blockers, busy.value.tasks) == ("bob", ("2",), ("2",))


@pytest.mark.req("L-08", "L-12")
def test_done_work_trackers_and_the_task_itself_do_not_make_an_agent_busy() -> None:
    others = [
        Task("2", "b", owner="ada", status=DONE),
        Task("3", "ada", owner="ada", metadata={"_internal": True}),
        Task("4", "c", owner="bob"),
    ]
    mine = TASK._replace(owner="ada")
    assert rules.claim_if_idle(facts(mine, others=others), ADA).task.owner == "ada"
    assert rules.claim_if_idle(facts(others=others), Caller()).task.owner is None


@pytest.mark.req("L-01")
@pytest.mark.parametrize("was", list(TaskStatus))
@pytest.mark.parametrize("wanted", list(TaskStatus))
def test_every_move_is_allowed_or_a_bad_transition(was: TaskStatus, wanted: TaskStatus) -> None:
    task = TASK._replace(status=was, owner="ada")
    allowed = (was, wanted) != (DONE, DOING)
    if allowed:
        assert rules.apply_patch(facts(task), Patch(status=wanted), ADA).task.status is wanted
    else:
        with pytest.raises(BadTransition) as caught:
            rules.apply_patch(facts(task), Patch(status=wanted), ADA)
        assert (caught.value.was, caught.value.wanted) == ("completed", "in_progress")


@pytest.mark.req("L-01")
def test_going_where_one_is_changes_nothing() -> None:
    for status in TaskStatus:
        task = TASK._replace(status=status, owner="ada", blocked_by=("2",))
        lease = held("ada")
        assert rules.apply_patch(facts(task, lease, [Task("2", "b")]), Patch(status=status), ADA) == (task, lease)


@pytest.mark.req("L-10")
def test_back_to_pending_is_back_in_the_pool_unless_somebody_is_named() -> None:
    doing = TASK._replace(status=DOING, owner="bob")
    mine = TASK._replace(status=DOING, owner="ada")
    assert rules.apply_patch(facts(mine, held("ada")), Patch(status=PENDING), ADA) == (TASK, None)
    named = rules.apply_patch(facts(mine, held("ada")), Patch(status=PENDING, owner="eve"), ADA)
    assert (named.task.owner, named.lease) == ("eve", None)
    with pytest.raises(AlreadyClaimed):
        rules.apply_patch(facts(doing, held()), Patch(status=PENDING, owner="eve"), ADA)
    reopened = rules.apply_patch(facts(TASK._replace(status=DONE, owner="bob")), Patch(status=PENDING), ADA)
    assert reopened == (TASK, None)


@pytest.mark.req("L-15")
def test_starting_makes_the_starter_owner_only_where_there_is_none() -> None:
    assert rules.apply_patch(facts(), Patch(status=DOING), ADA) == (TASK._replace(status=DOING, owner="ada"), ADA.lease)
    for status in (PENDING, DOING):
        with pytest.raises(AlreadyClaimed):
            rules.apply_patch(facts(TASK._replace(owner="bob", status=status), held()), Patch(status=DOING), ADA)
    by_hand = held("bob", "manual")
    with pytest.raises(AlreadyClaimed, match="--by bob"):
        rules.apply_patch(facts(TASK._replace(owner="bob"), by_hand), Patch(status=DOING), NOBODY)
    nobody = rules.apply_patch(
        facts(TASK._replace(owner="bob"), by_hand), Patch(status=DOING), NOBODY._replace(force=True)
    )
    assert (nobody.task.owner, nobody.lease) == ("bob", by_hand)
    with pytest.raises(AlreadyClaimed):
        rules.apply_patch(facts(TASK._replace(owner="bob")), Patch(status=DOING), ADA)
    assert rules.apply_patch(facts(), Patch(status=DOING), Caller()).task.owner is None
    assigned = rules.apply_patch(facts(TASK._replace(owner="ada")), Patch(status=DOING), ADA)
    assert assigned.lease == ADA.lease
    named = rules.apply_patch(facts(), Patch(status=DOING, owner="ada"), ADA)
    assert named == (TASK._replace(status=DOING, owner="ada"), ADA.lease)


@pytest.mark.req("L-07")
@pytest.mark.parametrize("status", [DOING, DONE])
def test_a_blocked_task_neither_starts_nor_ends_unless_a_person_insists(status: TaskStatus) -> None:
    blocked = facts(TASK._replace(blocked_by=("2",)), others=[Task("2", "b", status=DOING)])
    with pytest.raises(Blocked):
        rules.apply_patch(blocked, Patch(status=status), ADA)
    assert rules.apply_patch(blocked, Patch(status=status), ADA._replace(force=True)).task.status is status
    done = facts(TASK._replace(blocked_by=("2",)), others=[Task("2", "b", status=DONE)])
    assert rules.apply_patch(done, Patch(status=status), ADA).task.status is status


@pytest.mark.req("L-09")
@pytest.mark.parametrize("lease", [None, held("ada", token="another")])
def test_a_write_with_an_old_token_is_refused_whatever_it_wants(lease: Lease | None) -> None:
    stale = ADA._replace(token="t-old")
    now = facts(TASK._replace(owner="ada"), lease)
    attempts: list[Callable[[], Decision]] = [
        lambda: rules.apply_patch(now, Patch(subject="b"), stale),
        lambda: rules.release(now, stale),
        lambda: rules.renew(now, stale),
    ]
    for attempt in attempts:
        with pytest.raises(LeaseLost):
            attempt()


@pytest.mark.req("L-09")
def test_completing_and_assigning_end_a_lease_and_other_changes_keep_it() -> None:
    mine = facts(TASK._replace(owner="ada", status=DOING), held("ada"))
    assert rules.apply_patch(mine, Patch(status=DONE), ADA).lease is None
    assert rules.apply_patch(mine, Patch(owner="bob"), ADA).lease is None
    assert rules.apply_patch(mine, Patch(owner="ada"), ADA).lease == held("ada")
    assert rules.apply_patch(mine, Patch(subject="b"), ADA).lease == held("ada")


MOVES: list[Callable[[Facts, Caller], Decision]] = [
    lambda now, caller: rules.apply_patch(now, Patch(status=DONE), caller),
    lambda now, caller: rules.apply_patch(now, Patch(status=PENDING), caller),
    lambda now, caller: rules.apply_patch(now, Patch(status=DOING), caller),
    rules.release,
]


@pytest.mark.req("L-09")
@pytest.mark.parametrize("move", MOVES, ids=["complete", "reopen", "start", "release"])
def test_a_claim_protects_its_task_from_everyone_but_its_holder(move: Callable[[Facts, Caller], Decision]) -> None:
    doing = TASK._replace(owner="bob", status=DOING)
    bob = Caller("bob", instance="i-bob")
    living, timed, by_name = held(), held(kind="time"), held(kind="manual")
    for lease, stranger in (
        (living, ADA),
        (timed, ADA),
        (by_name, ADA),
        (living, NOBODY),
        (timed, NOBODY),
        (by_name, NOBODY),
        (living, bob._replace(instance="i-another")),
        (living, bob._replace(instance="")),
        (timed, bob._replace(instance="")),
    ):
        with pytest.raises(AlreadyClaimed, match=r"--force") as refused:
            move(facts(doing, lease), stranger)
        assert (refused.value.task_id, refused.value.owner) == ("1", "bob")
    for allowed, caller in (
        (living, bob),
        (timed, bob),
        (by_name, bob._replace(instance="")),
        (by_name, NOBODY._replace(force=True)),
        (living, NOBODY._replace(token="t-1")),
        (living, ADA._replace(force=True)),
        (timed, NOBODY._replace(force=True)),
        (None, bob._replace(instance="")),
        (None, NOBODY),
    ):
        move(facts(doing, allowed), caller)


@pytest.mark.req("L-09", "L-15")
def test_a_name_without_a_claim_protects_from_being_started_alone() -> None:
    assigned = facts(TASK._replace(owner="bob", status=DOING))
    assert rules.apply_patch(assigned, Patch(status=DONE), ADA).task.is_done
    assert rules.release(assigned, ADA) == (TASK, None)
    with pytest.raises(AlreadyClaimed):
        rules.apply_patch(assigned, Patch(status=DOING), ADA)


@pytest.mark.req("L-09")
def test_a_claim_keeps_nobody_from_mending_the_words_and_others_from_handing_it_on_or_removing_it() -> None:
    theirs = facts(TASK._replace(owner="bob", status=DOING), held())
    assert rules.apply_patch(theirs, Patch(subject="b"), ADA).task.subject == "b"
    for owner in ("eve", "ada", ""):
        with pytest.raises(AlreadyClaimed, match=r"--force"):
            rules.apply_patch(theirs, Patch(owner=owner), ADA)
        forced = rules.apply_patch(theirs, Patch(owner=owner), ADA._replace(force=True))
        assert forced == (theirs.task._replace(owner=owner or None), ADA.lease if owner == "ada" else None)
    with pytest.raises(AlreadyClaimed, match=r"--force"):
        rules.check_removal(theirs, ADA)
    for caller in (Caller("bob", instance="i-bob"), ADA._replace(force=True), ADA._replace(leads=True)):
        rules.check_removal(theirs, caller)
        assert rules.apply_patch(theirs, Patch(owner="eve"), caller).lease is None
    rules.check_removal(facts(TASK._replace(owner="bob", status=DONE), held()), ADA)
    rules.check_removal(facts(TASK._replace(owner="bob", status=DOING)), ADA)


@pytest.mark.req("L-09", "L-08")
def test_naming_oneself_as_the_owner_is_a_claim() -> None:
    mine = Patch(owner="ada")
    assert rules.apply_patch(facts(), mine, ADA) == (TASK._replace(owner="ada"), ADA.lease)
    assert rules.apply_patch(facts(TASK._replace(owner="ada")), mine, ADA).lease == ADA.lease
    for lease in (None, held()):
        with pytest.raises(AlreadyClaimed):
            rules.apply_patch(facts(TASK._replace(owner="bob"), lease), mine, ADA._replace(leads=True))
    with pytest.raises(AlreadyClaimed, match="another live agent 'ada'"):
        rules.apply_patch(facts(TASK._replace(owner="ada"), held("ada")), mine, ADA._replace(instance="i-another"))
    with pytest.raises(Blocked):
        rules.apply_patch(facts(TASK._replace(blocked_by=("2",)), others=[Task("2", "b")]), mine, ADA)
    done = TASK._replace(status=DONE, owner="bob")
    assert rules.apply_patch(facts(done), mine, ADA) == (done._replace(owner="ada"), None)
    again = rules.apply_patch(facts(done), Patch(owner="ada", status=PENDING), ADA)
    assert again == (TASK._replace(owner="ada"), ADA.lease)


@pytest.mark.req("L-10")
def test_what_is_done_is_not_released_and_whoever_left_gives_back_only_its_own() -> None:
    with pytest.raises(AlreadyResolved):
        rules.release(facts(TASK._replace(status=DONE)), ADA)
    theirs = facts(TASK._replace(owner="bob", status=DOING), held())
    assert rules.release_for(theirs, "bob") == (TASK, None)
    with pytest.raises(AlreadyClaimed):
        rules.release_for(theirs, "ada")


@pytest.mark.req("L-09")
def test_only_a_time_lease_gets_longer_and_only_for_its_holder() -> None:
    mine = TASK._replace(owner="ada")
    timed, lasting = held("ada", "time")._replace(span=500), held("ada")
    later = ADA._replace(now=2000)
    assert rules.renew(facts(mine, timed), later).lease == timed._replace(expires=2500)
    assert rules.renew(facts(mine, timed), ADA._replace(now=1)).lease == timed, "no sign of life shortens a claim"
    assert rules.claim(facts(mine, timed), later).lease == timed._replace(expires=2500)
    assert rules.apply_patch(facts(mine, timed), Patch(), later._replace(token=timed.token)).lease == timed._replace(
        expires=2500
    )
    assert rules.apply_patch(facts(mine, timed), Patch(), later).lease == timed._replace(expires=2500)
    for other in (later._replace(instance="i-other"), later._replace(agent="bob"), NOBODY._replace(now=2000)):
        assert rules.apply_patch(facts(mine, timed), Patch(), other).lease == timed, (
            "it was no sign of its holder's life"
        )
    assert rules.renew(facts(mine, lasting), later).lease == lasting
    for now in (facts(mine), facts(TASK._replace(owner="bob"), held())):
        with pytest.raises(LeaseLost):
            rules.renew(now, ADA)


@pytest.mark.req("L-09")
def test_the_loss_of_a_holder_frees_a_task_and_the_last_one_sets_it_aside() -> None:
    doing = TASK._replace(owner="ada", status=DOING, metadata={"taskyard": {"priority": 1}, "k": 1})
    assert rules.requeue_lost(doing, losses=2, most=3) == TASK._replace(metadata=doing.metadata)
    aside = rules.requeue_lost(doing, losses=3, most=3)
    assert (aside.owner, aside.status, aside.is_held) == (None, PENDING, True)
    assert aside.metadata == {"taskyard": {"priority": 1, "held": True}, "k": 1}


@pytest.mark.req("L-01")
def test_a_patch_changes_what_it_names_and_empty_text_takes_optional_fields_away() -> None:
    task = TASK._replace(active_form="Doing a", owner="bob", metadata={"k": 1, "gone": 2})
    patch = Patch(subject="b", description="", active_form="", owner="", metadata={"gone": None, "new": [1]})
    after = rules.apply_patch(facts(task), patch, ADA).task
    assert after == Task("1", "b", "", metadata={"k": 1, "new": [1]})


@pytest.mark.req("L-21")
def test_extras_are_laid_over_those_the_task_has_by_then() -> None:
    task = TASK._replace(metadata={"k": 1, "taskyard": {"priority": 1, "labels": ["x"]}})
    after = rules.apply_patch(facts(task), Patch(metadata={"k": 2}, extras={"priority": 3}), ADA).task
    assert after.metadata == {"k": 2, "taskyard": {"priority": 3, "labels": ["x"]}}


@pytest.mark.req("L-12", "L-08")
def test_free_is_what_nobody_has_and_nothing_holds_back() -> None:
    tasks = [
        Task("1", "a"),
        Task("2", "b", owner="bob"),
        Task("3", "c", status=DOING),
        Task("4", "d", metadata={"_internal": True}),
        Task("5", "e", metadata={"taskyard": {"held": True}}),
        Task("6", "f", status=DONE),
    ]
    assert [task.id for task in rules.free_tasks(tasks)] == ["1"]
    with pytest.raises(AlreadyClaimed):
        rules.claim_free(facts(tasks[1]), ADA, start=False)
    picked = rules.claim_free(facts(tasks[0]), ADA, start=True)
    assert picked == (tasks[0]._replace(owner="ada", status=DOING), ADA.lease)


TASKS = st.builds(
    Task,
    st.just("1"),
    st.just("a"),
    owner=st.sampled_from([None, "ada", "bob"]),
    status=st.sampled_from(TaskStatus),
    blocked_by=st.sampled_from([(), ("2",), ("3",), ("2", "3")]),
)
CALLERS = st.builds(
    Caller,
    st.sampled_from([None, "ada", "bob"]),
    st.sampled_from([None, "t-1", "t-2"]),
    force=st.booleans(),
).map(
    lambda caller: (
        caller._replace(lease=held(caller.agent, token="t-2"), instance=f"i-{caller.agent}") if caller.agent else caller
    )
)
PATCHES = st.builds(
    Patch,
    owner=st.sampled_from([None, "", "bob"]),
    status=st.one_of(st.none(), st.sampled_from(TaskStatus)),
)


@pytest.mark.req("L-07", "L-09")
@given(TASKS, st.sampled_from([None, held("ada"), held("bob")]), CALLERS, PATCHES)
def test_whatever_is_asked_no_rule_breaks_what_always_holds(
    task: Task, lease: Lease | None, caller: Caller, patch: Patch
) -> None:
    if lease is not None and (lease.owner != task.owner or task.is_done):
        lease = None  # stores show a rule no other
    now = facts(task, lease, [Task("2", "b"), Task("3", "c", status=DONE)])
    waiting = rules.open_blockers(now)
    decisions: list[Callable[[], Decision]] = [
        lambda: rules.claim(now, caller),
        lambda: rules.apply_patch(now, patch, caller),
        lambda: rules.release(now, caller),
    ]
    for decide in decisions if caller.agent else decisions[1:]:
        try:
            after, kept = decide()
        except Conflict:
            continue
        assert after.id == task.id
        assert after.owner is not None or kept is None, "a lease without an owner"
        assert not (after.is_done and not task.is_done and kept), "a lease on finished work"
        moved_on = after.status is not task.status and after.status is not PENDING
        assert caller.force or not (moved_on and waiting), "went on in spite of open blockers"
        theirs = lease is not None and caller.token != lease.token and caller.agent != lease.owner
        assert caller.force or patch.owner is not None or not (theirs and after.status is not task.status), "taken over"
