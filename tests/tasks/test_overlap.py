"""Two open claims on the same paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import taskyard
from support.racing import Racer, Rounds, answered, race
from support.scale import scale
from support.yards import open_yard, yards
from taskyard.core.system import now_ms
from taskyard.errors import PathsOverlap
from taskyard.tasks.memory_store import MemoryStore
from taskyard.tasks.model import Act, Decision, Draft, Facts, Task, TaskStatus
from taskyard.tasks.rules import (
    claim_next_without_overlap,
    find_overlaps,
    overlap_warnings,
    update_without_overlap,
)


def draft(owner: str | None, *paths: str, status: TaskStatus = TaskStatus.PENDING) -> Draft:
    return Draft("x", "x", None, owner, status, metadata={"taskyard": {"paths": list(paths)}})


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for new in (
        draft(None, "src/a.py"),
        draft("bob", "src"),
        draft("bob", "src", status=TaskStatus.COMPLETED),
        draft(None, "src"),
        draft("ada", "docs"),
    ):
        store.create(new, Act("x", "create"))
    return store


@pytest.mark.req("L-21")
def test_only_open_claims_of_others_count(store: MemoryStore) -> None:
    found = find_overlaps(store.get("1"), store.list(), "ada")

    assert [(one.other, one.owner, one.paths) for one in found] == [("2", "bob", ("src/a.py",))]
    assert find_overlaps(store.get("1"), store.list(), "bob") == []
    assert find_overlaps(Task("9", "x"), store.list(), "ada") == []


@pytest.mark.req("L-21")
def test_a_claim_on_paths_is_warned_of_by_setting(store: MemoryStore) -> None:
    mine = store.get("1")._replace(owner="ada")

    assert len(overlap_warnings(store, mine, "warn")) == 1
    assert overlap_warnings(store, mine, "off") == ()
    assert overlap_warnings(store, Task("9", "x", owner="ada"), "warn") == ()


def take(facts: Facts) -> Decision:
    return Decision(facts.task._replace(owner="ada"), None)


@pytest.mark.req("L-21")
def test_a_rule_that_refuses_overlaps_decides_by_what_it_sees_under_the_lock(store: MemoryStore) -> None:
    act = Act("ada", "claim")
    with pytest.raises(PathsOverlap):
        update_without_overlap(store, "1", take, act)
    assert update_without_overlap(store, "5", take, act).owner == "ada"
    store.create(Draft("free", "free"), act)
    found = claim_next_without_overlap(store, lambda _: ["1", "77", "4", "6"], take, act)
    assert found is not None and found.id == "6"
    assert claim_next_without_overlap(store, lambda _: ["1", "4"], take, act) is None


@pytest.mark.req("L-21")
def test_a_task_that_names_paths_only_since_the_look_is_compared_all_the_same(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "get", lambda task_id: Task(task_id, "as it was"))

    with pytest.raises(PathsOverlap):
        update_without_overlap(store, "1", take, Act("ada", "claim"))


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_PATHS_POLICY", "refuse")


VERBS: list[Callable[[taskyard.Yard, str], object]] = [
    lambda yard, task_id: yard.tasks.claim(task_id),
    lambda yard, task_id: yard.tasks.claim(task_id, check_busy=True),
    lambda yard, task_id: yard.tasks.start(task_id),
    lambda yard, task_id: yard.tasks.update(task_id, status="in_progress"),
]


@pytest.mark.req("L-21")
@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("verb", VERBS, ids=["claim", "claim if idle", "start", "update"])
@pytest.mark.parametrize("store", ["files", "memory:"])
def test_every_way_to_work_on_a_task_refuses_paths_somebody_works_on(
    tmp_path: Path, verb: Callable[[taskyard.Yard, str], object], store: str
) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="plan", store=store, agent="ada") as yard:
        for paths in (["src"], ["src/a.py"], ["docs"]):
            yard.tasks.create("x", paths=paths)
        yard.tasks.claim("1", agent="bob")

        with pytest.raises(PathsOverlap) as refused:
            verb(yard, "2")
        assert (refused.value.other, refused.value.owner) == ("1", "bob")
        verb(yard, "3")
        assert [task.owner for task in yard.tasks.list()] == ["bob", None, "ada"]
        assert yard.tasks.claim_next(start=True) is None
        yard.tasks.release("1", agent="bob")
        verb(yard, "3")


@pytest.mark.req("L-21")
@pytest.mark.usefixtures("refusing")
def test_an_overlap_that_came_after_the_look_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for path in ("src", "src/a.py"):
            ada.tasks.create("x", paths=[path])
        before = ada.tasks.store.list()
        bob.tasks.claim("1")
        monkeypatch.setattr(ada.tasks.store, "list", lambda: before)  # as if bob came in between

        for verb in VERBS:
            with pytest.raises(PathsOverlap):
                verb(ada, "2")
        assert ada.tasks.claim_next() is None


@pytest.mark.req("L-21", "L-08")
@pytest.mark.usefixtures("refusing")
def test_a_dead_holders_paths_and_ones_own_are_in_nobodys_way(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        for path in ("src", "src/a.py", "src/b.py"):
            ada.tasks.create("x", paths=[path])
        lost = bob.tasks.claim("1", lease=0.001).lease
        assert lost is not None and lost.expires is not None
        while now_ms() <= lost.expires:
            pass

        assert ada.tasks.claim("2").owner == "ada"
        assert ada.tasks.claim("3").owner == "ada"
        assert ada.tasks.claim("2").owner == "ada"
        ada.tasks.assign("1", "bob")
        assert ada.tasks.start("3").status.value == "in_progress", "who holds a task already may go on with it"


@pytest.mark.req("L-21", "L-08")
@pytest.mark.usefixtures("refusing")
def test_of_two_processes_that_want_the_same_paths_at_once_one_gets_them(tmp_path: Path) -> None:
    rounds, gate = scale(200), Rounds(2)
    with open_yard(tmp_path) as yard:
        for number in range(rounds):
            yard.tasks.create("a", paths=[f"p{number}/**"])
            yard.tasks.create("b", paths=[f"p{number}/x"])

    def work(racer: Racer) -> None:
        with open_yard(tmp_path, racer.name) as yard:
            racer.start()
            for number in range(rounds):
                gate.together()
                verb = (yard.tasks.claim, yard.tasks.start)[number % 2]
                racer.do("take", (number,), verb, str(2 * number + 1 + racer.number))
            gate.together()  # nobody dies, and gives back, before the last word

    taken = Counter(event.args[0] for event in answered(race(2, work, tmp_path / "race"), "take", "ok"))
    assert taken == dict.fromkeys(range(rounds), 1)
