"""Another program works on the same list, by its own rules: nothing of either side is lost, doubled or torn."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import taskyard
from support.claude_rules import raw_tasks, unseen
from support.foreign import ForeignWriter, needs_node, node
from support.linearizable import Event
from support.list_truth import entries, faults, log_says
from support.lists import SharedList
from support.racing import Race, Racer, answered
from support.scale import FULL

pytestmark = needs_node

PROCESSES = 4
SECONDS = 30.0 if FULL else 3.0

#: What somebody who works beside others may hear: that it is gone, another's, waiting, or done.
HEARD = {"ok", "not_found", "already_claimed", "already_resolved", "blocked", "lease_lost"}


@pytest.fixture
def shared(memory: Path) -> SharedList:
    return SharedList(memory, "beside others")


class Told(NamedTuple):
    """Everything both sides say they did."""

    created: list[str]
    deleted: set[str]
    notes: list[tuple[str, str]]  #: (task, metadata key), each set once and never taken away
    links: list[tuple[str, str]]  #: (blocker, blocked)


@pytest.mark.req("L-02", "L-11", "L-06")
@pytest.mark.serial
@pytest.mark.timeout(600)
def test_beside_another_programs_writer_nothing_is_lost_doubled_or_torn(shared: SharedList, tmp_path: Path) -> None:
    with shared.open() as yard:
        first = [yard.tasks.create(f"First {number}").id for number in range(5)]
    others = [
        ForeignWriter(shared.folder, tmp_path / f"{name}.jsonl", seconds=SECONDS, name=name, seed=seed)
        for seed, name in enumerate(("node-1", "node-2"))
    ]
    try:
        racers = Race(PROCESSES, lambda racer: _work(racer, shared), tmp_path / "race")
        for other in others:
            other.go()
        racers.go()
        history = racers.wait(timeout=SECONDS + 60)
        foreign = [line for other in others for line in other.done()]
    finally:
        for other in others:
            other.end()
    told = _told(history, foreign, first)
    with shared.open() as yard:
        assert yard.tasks.list().damaged == ()
    assert {event.result for event in history if event.op not in ("create", "list")} <= HEARD
    assert {event.result for event in answered(history, "list")} == {()}
    _check(told, shared.folder)
    _check_log(shared.folder, foreign)
    assert faults(shared.folder, foreign_edges=True) == []
    print(f"{len(history)} operations of ours beside {len(foreign)} of two Node programs in {SECONDS:.0f} s")


def _work(racer: Racer, shared: SharedList) -> None:
    dice = random.Random(racer.number)
    mine: list[str] = []
    with shared.open(racer.name) as yard:
        racer.start()
        end = time.monotonic() + SECONDS
        serial = 0
        while time.monotonic() < end:
            serial += 1
            ids = [task.id for task in yard.tasks.list()]
            racer.do("list", (), lambda: tuple(map(str, yard.tasks.list().damaged)))
            _do_one(racer, yard, ids, mine, f"{racer.name}.{serial}", dice)


def _do_one(racer: Racer, yard: taskyard.Yard, ids: list[str], mine: list[str], key: str, dice: random.Random) -> None:
    tasks, task_id = yard.tasks, dice.choice(ids)
    match dice.choices(["create", "update", "link", "claim", "complete", "delete"], [3, 5, 2, 2, 1, 1])[0]:
        case "create":
            new = racer.do("create", (key,), lambda: tasks.create(key, metadata={key: 1}).id)
            mine.append(str(new))
        case "update":
            racer.do("update", (task_id, key), tasks.update, task_id, metadata={key: 1})
        case "link":
            blocker, blocked = sorted(dice.sample(ids, 2), key=int)
            racer.do("link", (blocker, blocked), tasks.block, blocked, by=blocker)
        case "claim":
            racer.do("claim", (task_id,), tasks.claim, task_id)
        case "complete":
            racer.do("complete", (task_id,), tasks.complete, task_id)
        case _ if mine:
            doomed = mine.pop(dice.randrange(len(mine)))
            racer.do("delete", (doomed,), tasks.delete, doomed)


def _told(history: list[Event], foreign: list[dict[str, Any]], first: list[str]) -> Told:
    created = [str(event.result) for event in answered(history, "create")]
    notes = [(str(event.result), str(event.args[0])) for event in answered(history, "create")]
    notes += [(str(event.args[0]), str(event.args[1])) for event in answered(history, "update", "ok")]
    links = [(str(event.args[0]), str(event.args[1])) for event in answered(history, "link", "ok")]
    deleted = {str(event.args[0]) for event in answered(history, "delete", "ok")}
    by_op: dict[str, list[dict[str, Any]]] = {"create": [], "delete": [], "link": [], "update": []}
    for line in foreign:
        by_op[line["op"]].append(line)
        notes += [(line["id"], key) for key in line["fields"].get("metadata", {})]
    return Told(
        [*first, *created, *(line["id"] for line in by_op["create"])],
        deleted | {line["id"] for line in by_op["delete"]},
        notes,
        links + [(line["id"], line["fields"]["blocks"]) for line in by_op["link"]],
    )


def _check(told: Told, folder: str) -> None:
    assert len(told.created) == len(set(told.created)), "an id was given out twice"
    assert unseen(folder) == []
    tasks: dict[str, dict[str, Any]] = {**raw_tasks(folder)}
    assert set(tasks) == set(told.created) - told.deleted
    lost = [(task_id, key) for task_id, key in told.notes if task_id in tasks and key not in tasks[task_id]["metadata"]]
    assert lost == []
    for blocker, blocked in told.links:
        if blocker in tasks and blocked in tasks:
            assert blocked in tasks[blocker]["blocks"], f"#{blocker} no longer knows that it blocks #{blocked}"
            assert blocker in tasks[blocked]["blockedBy"], f"#{blocked} no longer waits for #{blocker}"


def _check_log(folder: str, foreign: list[dict[str, Any]]) -> None:
    """What another program made and left there is in our log as its doing."""
    external = {task_id for _, entry in entries(folder) if entry["cause"] == "external" for task_id in entry["tasks"]}
    left = {line["id"] for line in foreign if line["op"] == "create"} & set(raw_tasks(folder))
    assert left <= external
    assert {task_id for task_id, state in log_says(folder).items() if state is not None} == set(raw_tasks(folder))


@pytest.mark.req("L-02")
@pytest.mark.serial
def test_npm_waits_for_our_lock_and_takes_it_when_it_is_stale(shared: SharedList) -> None:
    with shared.open() as yard:
        yard.tasks.create("Task")
    lock = f"{shared.folder}/1.json.lock"
    os.mkdir(lock, 0o1755)
    ask = """
        const release = await lockfile.lock(args[0], { retries: 0 }).catch((error) => error.code);
        process.stdout.write(typeof release === 'string' ? release : 'taken');
        if (typeof release !== 'string') await release();
    """

    assert node(ask, f"{shared.folder}/1.json") == "ELOCKED"
    assert os.path.isdir(lock)

    long_ago = time.time() - 11
    os.utime(lock, (long_ago, long_ago))
    assert node(ask, f"{shared.folder}/1.json") == "taken"
    assert not os.path.exists(lock)


@pytest.mark.req("L-02")
@pytest.mark.serial
def test_we_wait_for_npms_lock_and_take_it_when_it_is_stale(
    shared: SharedList, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared.open() as yard:
        yard.tasks.create("Task")
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.3")
    lock = f"{shared.folder}/1.json.lock"
    # As npm leaves it when its process is killed: locked, and nobody there to give it back.
    killed = "await lockfile.lock(args[0]); process.kill(process.pid, 'SIGKILL');"
    node(killed, lock.removesuffix(".lock"), ends=-signal.SIGKILL)
    assert os.path.isdir(lock)
    with shared.open() as yard:
        with pytest.raises(taskyard.Busy, match="another program"):
            yard.tasks.update("1", subject="Changed")
        long_ago = time.time() - 11
        os.utime(lock, (long_ago, long_ago))

        assert yard.tasks.update("1", subject="Changed").subject == "Changed"
    assert not os.path.exists(lock)


@pytest.mark.req("L-03", "L-02")
@pytest.mark.serial
def test_both_programs_count_on_together_and_neither_repeats_an_id(shared: SharedList) -> None:
    with shared.open() as yard:
        ids = []
        for number in range(3):
            ids.append(yard.tasks.create(f"Ours {number}").id)
            theirs = "process.stdout.write(await list.createTask(args[0], { subject: 'x', description: 'y' }));"
            ids.append(node(theirs, shared.folder))
            yard.tasks.delete(ids[-2])
            node("await list.deleteTask(args[0], args[1]);", shared.folder, ids[-1])
    assert ids == [str(number) for number in range(1, 7)]
