"""Which free task comes next."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.yards import yards
from taskyard.errors import AgentBusy
from taskyard.tasks.model import Facts, Lease, Task, TaskStatus
from taskyard.tasks.rules import Caller, ClaimOrder, ClaimRule, is_claimable


def task(number: int, *, priority: int | None = None, **fields: object) -> Task:
    extra: dict[str, object] = {} if priority is None else {"priority": priority}
    if "paths" in fields:
        extra["paths"] = fields.pop("paths")
    return Task(str(number), "x", metadata={"taskyard": extra})._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.req("L-08")
def test_the_lowest_id_comes_first_as_a_number() -> None:
    assert ClaimOrder(lambda _: True, agent="ada")([task(10), task(9), task(2)]) == ["2", "9", "10"]


@pytest.mark.req("L-08", "L-21")
def test_priority_comes_before_id_and_none_stands_in_the_middle() -> None:
    tasks = [task(1, priority=9), task(2), task(3, priority=1), task(4, priority=5), task(5, priority=1)]

    assert ClaimOrder(lambda _: True, agent="ada")(tasks) == ["3", "5", "2", "4", "1"]


@pytest.mark.req("L-08", "L-07")
def test_what_is_owned_blocked_or_unsuitable_is_not_offered() -> None:
    tasks = [
        task(1, owner="bob"),
        task(2, blocked_by=("1",)),
        task(3, blocked_by=("4",)),
        task(4, status=TaskStatus.COMPLETED),
        task(5),
    ]

    assert ClaimOrder(lambda found: found.id != "5", agent="ada")(tasks) == ["3"]


@pytest.mark.req("L-21")
def test_paths_somebody_works_on_are_left_out_where_overlap_is_refused() -> None:
    tasks = [task(1, owner="bob", paths=["src"]), task(2, paths=["src/a.py"]), task(3, paths=["docs"])]

    assert ClaimOrder(lambda _: True, agent="ada", policy="refuse")(tasks) == ["3"]
    assert ClaimOrder(lambda _: True, agent="ada", policy="warn")(tasks) == ["2", "3"]
    assert ClaimOrder(lambda _: True, agent="bob", policy="refuse")(tasks) == ["2", "3"]


@pytest.mark.req("L-08")
@pytest.mark.parametrize("policy", ["warn", "refuse"])
def test_the_next_task_is_not_for_those_who_are_busy_if_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.setenv("TASKYARD_PATHS_POLICY", policy)
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for subject in ("a", "b"):
            ada.tasks.create(subject, paths=[f"src/{subject}"])
        ada.tasks.claim_next(check_busy=True, start=True)
        with pytest.raises(AgentBusy) as busy:
            ada.tasks.claim_next(check_busy=True)
        found = bob.tasks.claim_next(check_busy=True)
        with pytest.raises(AgentBusy):
            ada.tasks.claim_next(check_busy=True)  # not "nothing is free": that is not why
        bob.tasks.complete("2")
        assert bob.tasks.claim_next(check_busy=True) is None

    assert busy.value.tasks == ("1",)
    assert found is not None
    assert found.id == "2"


@pytest.mark.req("L-08")
def test_whoever_becomes_busy_while_the_next_task_is_looked_for_gets_none(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for subject in ("a", "b"):
            ada.tasks.create(subject)

        def meanwhile(_: Task) -> bool:
            bob.tasks.claim("2", agent="ada")
            return True

        with pytest.raises(AgentBusy):
            ada.tasks.claim_next(where=meanwhile, check_busy=True)
        assert ada.tasks.get("1").owner is None


@pytest.mark.req("L-08", "L-21")
@given(
    st.sampled_from(TaskStatus),
    st.sampled_from([None, "ada", "eve"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_what_is_offered_is_claimed_by_whoever_asks_and_nothing_else_of_it_changes(
    status: TaskStatus, owner: str | None, is_held: bool, is_internal: bool, requires: bool, start: bool
) -> None:
    extra: dict[str, object] = {"held": is_held, **({"requires": ["gpu"]} if requires else {})}
    found = Task("1", "x", owner=owner, status=status, metadata={"taskyard": extra, "_internal": is_internal})
    lease = Lease("ada", "ada", "t", "manual", 1)
    pick = ClaimRule(Caller("ada", lease=lease), start=start, check_busy=False)

    assert is_claimable(found) == (ClaimOrder(agent="ada")([found]) == ["1"])
    if is_claimable(found):
        claim = pick.claim
        assert claim is not None
        decided = pick(Facts(found, None, lambda _: None, tuple))
        assert decided == (found._replace(owner=claim.owner, status=claim.status), claim.lease)


def test_a_claim_that_depends_on_other_tasks_is_not_plain() -> None:
    assert ClaimRule(Caller("ada"), start=False, check_busy=True).claim is None
    assert ClaimOrder(agent="ada").is_plain
    assert not ClaimOrder(lambda _: True, agent="ada").is_plain
    assert not ClaimOrder(agent="ada", policy="refuse").is_plain
