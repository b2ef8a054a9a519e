"""Many processes want the same thing at once: each gets an answer that could have come one at a time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import taskyard
from support.claude_rules import broken_edges, circle
from support.linearizable import Event, check
from support.lists import COMPANY, ListInDatabase, SharedList, shared_list
from support.racing import Racer, Rounds, answered, race
from support.scale import scale
from support.task_models import IdCounter, State, TaskModel, TaskState
from taskyard.tasks.task_list import TaskList


@pytest.fixture(params=[*COMPANY, pytest.param("postgresql", marks=pytest.mark.req("X-01"))])
def shared(request: pytest.FixtureRequest, memory: Path, monkeypatch: pytest.MonkeyPatch) -> SharedList:
    if request.param == "postgresql":
        return ListInDatabase(request.getfixturevalue("address"))
    return shared_list(memory, request.param, monkeypatch)


def lesser(shared: SharedList, count: int) -> int:
    """Network locks are polled for, so fewer contend; so do those who wait for answers of a server."""
    if shared.is_network:
        return max(count // 8, 2)
    return max(count // 3, 2) if isinstance(shared, ListInDatabase) else count


@pytest.mark.req("L-03", "L-04")
@pytest.mark.timeout(600)
def test_fifty_processes_create_twenty_tasks_each_and_every_one_is_there(shared: SharedList, tmp_path: Path) -> None:
    processes, each = lesser(shared, 50), scale(20, least=4)

    def work(racer: Racer) -> None:
        with shared.open() as yard:
            racer.start()
            for number in range(each):
                racer.do("next_id", (), _new_id, yard, f"{racer.name} {number}")

    history = race(processes, work, tmp_path / "race")
    ids = [event.result for event in history]
    assert len(set(ids)) == len(ids) == processes * each
    assert check(history, IdCounter.of(history)) is None
    found = shared.raw()
    assert {int(task_id) for task_id in found} == set(ids)
    assert {raw["subject"] for raw in found.values()} == {
        f"racer-{number} {index}" for number in range(processes) for index in range(each)
    }
    assert shared.faults() == []
    print(f"{processes} processes made {len(ids)} tasks in {_seconds(history):.1f} s")


@pytest.mark.req("L-08", "L-09")
@pytest.mark.timeout(900)
def test_of_64_processes_that_race_for_a_claim_one_wins_and_the_others_hear_who(
    shared: SharedList, tmp_path: Path
) -> None:
    processes, rounds = lesser(shared, 64), lesser(shared, scale(1000))
    with shared.open() as yard:
        ids = [yard.tasks.create(f"Task {number}").id for number in range(rounds)]
    gate = Rounds(processes)

    def work(racer: Racer) -> None:
        with shared.open(racer.name) as yard:
            racer.start()
            for task_id in ids:
                gate.together()
                racer.do("claim", (task_id, racer.name), _claimed, yard, task_id)
            gate.together()  # whoever leaves gives back what it has

    history = race(processes, work, tmp_path / "race", timeout=800)
    winners = {event.args[0]: event.args[1] for event in answered(history, "claim", "ok")}
    assert list(winners) == list(dict.fromkeys(winners)) and set(winners) == set(ids)
    losers = [event for event in history if event.result != "ok"]
    assert len(losers) == (processes - 1) * rounds
    assert all(event.result == ("already_claimed", winners[event.args[0]]) for event in losers)
    assert {task_id: raw["owner"] for task_id, raw in shared.raw().items()} == winners
    plain = [event if event.result == "ok" else event._replace(result="already_claimed") for event in history]
    assert check(plain, TaskModel(initial=TaskState())) is None
    print(f"{processes} processes raced for {rounds} claims in {_seconds(history):.1f} s")


def _new_id(yard: taskyard.Yard, subject: str) -> int:
    return int(yard.tasks.create(subject).id)


def _claimed(yard: taskyard.Yard, task_id: str) -> str | tuple[str, str]:
    try:
        yard.tasks.claim(task_id)
    except taskyard.AlreadyClaimed as lost:
        return lost.code, lost.owner
    return "ok"


@pytest.mark.req("L-08", "L-07", "M-04")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dependent", [False, True], ids=["free", "dependent"])
def test_32_workers_drain_500_tasks_each_once_and_in_order(shared: SharedList, tmp_path: Path, dependent: bool) -> None:
    workers, count = lesser(shared, 32), lesser(shared, scale(500))
    blockers = {number: number // 2 for number in range(2, count + 1)} if dependent else {}
    with shared.open() as yard:
        for number in range(1, count + 1):
            yard.tasks.create(f"Task {number}", blocked_by=[str(blockers[number])] if number in blockers else ())

    def work(racer: Racer) -> None:
        with shared.open(racer.name) as yard:
            racer.start()
            while any(not task.is_done for task in yard.tasks.list()):
                task_id = racer.do("claim_next", (), _next, yard)
                if task_id is None:
                    yard.tasks.store.wait(0.05)
                else:
                    racer.do("complete", (task_id, racer.name), yard.tasks.complete, str(task_id))

    history = race(workers, work, tmp_path / "race", timeout=800)
    claims = {int(str(event.result)): event for event in answered(history, "claim_next") if event.result is not None}
    done = {int(str(event.args[0])): event for event in answered(history, "complete", "ok")}
    assert len([event for event in answered(history, "claim_next") if event.result is not None]) == count
    assert set(claims) == set(done) == set(range(1, count + 1))
    for number, claim in claims.items():
        assert claim.t0 <= done[number].t0
        if number in blockers:
            assert done[blockers[number]].t0 < (claim.t1 or 0), f"#{number} was given out before its blocker was done"
    if not dependent:
        _check_order(claims)
    with shared.open() as yard:
        assert [change.act.cause for change in yard.tasks.log()].count("complete") == count
    assert shared.faults() == []
    print(f"{workers} workers drained {count} tasks in {_seconds(history):.1f} s")


def _next(yard: taskyard.Yard) -> str | None:
    task = yard.tasks.claim_next()
    return task.id if task is not None else None


def _check_order(claims: dict[int, Event]) -> None:
    """While a lower id was free, nobody got a higher one: its claim had begun by then."""
    latest = 0
    for number in sorted(claims):
        assert latest <= (claims[number].t1 or 0), f"#{number} was given out while a lower one was free"
        latest = max(latest, claims[number].t0)


class LeasedTask(TaskModel):
    """The model, with `put_back` (status pending, from wherever), and leases that end with a task's completion."""

    def step(self, state: State, event: Event) -> list[State]:
        if not isinstance(state, TaskState):
            return list(super().step(state, event))
        if event.result == "lease_lost" and state.status == "completed":
            return [state]  # somebody else completed it, which ended the caller's claim
        if event.op == "put_back" and event.result == "ok":
            return [state if state.status == "pending" else TaskState()]
        return list(super().step(state, event._replace(op="release") if event.op == "put_back" else event))


@pytest.mark.req("L-01", "L-08", "L-04")
@pytest.mark.timeout(900)
def test_whatever_many_processes_do_to_a_few_tasks_could_have_been_done_one_at_a_time(
    shared: SharedList, tmp_path: Path
) -> None:
    processes, each = lesser(shared, 12), lesser(shared, scale(1500))
    with shared.open() as yard:
        ids = [yard.tasks.create(f"Task {number}").id for number in range(4)]

    gate = Rounds(processes)

    def work(racer: Racer) -> None:
        dice = random.Random(racer.number)
        with shared.open(racer.name) as yard:
            racer.start()
            for _ in range(each):
                _do_anything(racer, yard, dice.choice(ids), dice)
            gate.together()  # whoever leaves gives back what it has

    history = race(processes, work, tmp_path / "race", timeout=800)
    assert {event.op for event in history} == {"claim", "start", "complete", "release", "put_back", "get"}
    violation = check(history, LeasedTask(initial=TaskState()))
    assert violation is None, violation
    assert shared.faults() == []
    print(f"{processes} processes did {len(history)} things in {_seconds(history):.1f} s")


def _do_anything(racer: Racer, yard: taskyard.Yard, task_id: str, dice: random.Random) -> None:
    tasks, me = yard.tasks, (task_id, racer.name)
    match dice.choices(["claim", "start", "complete", "release", "put_back", "get"], [4, 2, 2, 3, 2, 2])[0]:
        case "claim":
            racer.do("claim", me, tasks.claim, task_id)
        case "start":
            racer.do("start", me, tasks.start, task_id)
        case "complete":
            racer.do("complete", me, tasks.complete, task_id)
        case "release":
            racer.do("release", me, tasks.release, task_id)
        case "put_back":
            racer.do("put_back", me, tasks.update, task_id, status="pending")
        case _:
            racer.do("get", (task_id,), _seen, tasks, task_id)


def _seen(tasks: TaskList, task_id: str) -> tuple[str, str | None]:
    task = tasks.get(task_id)
    return task.status.value, task.owner


def _seconds(history: list[Event]) -> float:
    return (max(event.t1 or 0 for event in history) - min(event.t0 for event in history)) / 1e9


@pytest.mark.req("L-06", "L-05", "L-04")
@pytest.mark.timeout(900)
def test_dependencies_made_from_all_sides_at_once_never_close_a_circle(shared: SharedList, tmp_path: Path) -> None:
    processes, rounds = 3, lesser(shared, scale(400))
    with shared.open() as yard:
        ids = [yard.tasks.create(f"Task {number}").id for number in range(processes)]
    gate = Rounds(processes)

    def work(racer: Racer) -> None:
        me, following = ids[racer.number], ids[(racer.number + 1) % processes]
        with shared.open(racer.name) as yard:
            racer.start()
            for number in range(rounds):
                gate.together()
                racer.do("block", (number, me), yard.tasks.block, me, by=following)
                gate.together()
                if racer.number == 0:
                    tasks = shared.raw()
                    racer.tell("look", (number,), (*broken_edges(tasks), *circle(tasks)))
                gate.together()
                racer.do("unblock", (number, me), yard.tasks.unblock, me, by=following)

    history = race(processes, work, tmp_path / "race", timeout=800)
    assert [event for event in answered(history, "look") if event.result] == []
    for number in range(rounds):
        results = [event.result for event in answered(history, "block") if event.args[0] == number]
        assert sorted(map(str, results)) == ["cycle", "ok", "ok"]
    assert not any(raw["blocks"] or raw["blockedBy"] for raw in shared.raw().values())
    assert shared.faults() == []
    print(f"{rounds} rounds of {processes} dependencies that would close a circle in {_seconds(history):.1f} s")


@pytest.mark.req("L-04", "L-01")
@pytest.mark.timeout(600)
def test_sixteen_processes_change_different_fields_of_one_task_and_all_changes_survive(
    shared: SharedList, tmp_path: Path
) -> None:
    processes, each = lesser(shared, 16), lesser(shared, scale(200))
    with shared.open() as yard:
        yard.tasks.create("Task")

    def work(racer: Racer) -> None:
        with shared.open(racer.name) as yard:
            racer.start()
            for number in range(each):
                patch = {f"{racer.name}.{number}": number}
                racer.do("update", (), yard.tasks.update, "1", metadata=patch)
            if racer.number == 0:
                racer.do("update", (), yard.tasks.update, "1", subject="Changed")
            if racer.number == 1:
                racer.do("update", (), yard.tasks.update, "1", description="Also changed")

    history = race(processes, work, tmp_path / "race")
    assert {event.result for event in history} == {"ok"}
    raw = shared.raw()["1"]
    assert raw["metadata"] == {f"racer-{n}.{i}": i for n in range(processes) for i in range(each)}
    assert (raw["subject"], raw["description"]) == ("Changed", "Also changed")
    assert shared.faults() == []
    print(f"{len(history)} changes of one task by {processes} processes in {_seconds(history):.1f} s")


@pytest.mark.req("L-05", "L-11")
@pytest.mark.timeout(900)
def test_a_task_that_is_deleted_or_restored_while_others_are_tied_to_it_leaves_no_loose_end(
    shared: SharedList, tmp_path: Path
) -> None:
    rounds = lesser(shared, scale(400))
    with shared.open() as yard:
        ids = [yard.tasks.create(f"Task {number}").id for number in range(3)]
    gate = Rounds(3)

    def work(racer: Racer) -> None:
        with shared.open(racer.name) as yard:
            tasks = yard.tasks
            racer.start()
            for number in range(rounds):
                gate.together()
                if racer.number == 0:
                    racer.do("delete", (number,), tasks.delete, ids[0])
                    racer.do("restore", (number,), tasks.restore, ids[0])
                elif racer.number == 1:
                    racer.do("block", (number,), tasks.block, ids[0], by=ids[1])
                    racer.do("block", (number,), tasks.block, ids[2], by=ids[0])
                else:
                    racer.do("delete", (number,), tasks.delete, ids[2])
                    racer.do("restore", (number,), tasks.restore, ids[2])
                gate.together()
                if racer.number == 0:
                    found = shared.raw()
                    racer.tell("look", (number,), (*broken_edges(found), *circle(found), *(set(ids) - set(found))))
                gate.together()
                if racer.number == 1:
                    racer.do("unblock", (number,), tasks.unblock, ids[0], by=ids[1])

    history = race(3, work, tmp_path / "race", timeout=800)
    assert [event for event in answered(history, "look") if event.result] == []
    assert {event.result for op in ("delete", "restore") for event in answered(history, op)} == {"ok"}
    assert {event.result for event in answered(history, "block")} <= {"ok", "not_found"}
    assert shared.faults() == []
    print(f"{rounds} rounds of deleting, restoring and linking at once in {_seconds(history):.1f} s")
