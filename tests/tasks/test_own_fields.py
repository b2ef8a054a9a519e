"""Taskyard's own fields survive another program that merges its update into metadata it read earlier."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.foreign import NODE, ForeignWriter, needs_node, node
from support.list_truth import faults
from support.lists import SharedList
from support.scale import FULL
from taskyard.errors import Untrusted

ACCEPTANCE = {"command": "exit 3"}


@pytest.fixture
def shared(tmp_path: Path) -> SharedList:
    return SharedList(tmp_path / "tasks", "beside others")


@pytest.fixture
def yard(shared: SharedList) -> Iterator[taskyard.Yard]:
    with shared.open() as opened:
        yield opened


def raw(shared: SharedList, task_id: str = "1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(shared.folder, f"{task_id}.json").read_text(encoding="utf-8"))
    return found


def overwrite(shared: SharedList, document: object, task_id: str = "1") -> None:
    """Write in place, as Claude Code does."""
    with open(Path(shared.folder, f"{task_id}.json"), "r+", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2))
        file.truncate()


def undo(shared: SharedList, before: dict[str, Any], **patch: object) -> None:
    """A write of another program: its patch, merged into the metadata of an earlier read."""
    metadata = {**before.get("metadata", {}), **patch}
    overwrite(shared, {**raw(shared), "metadata": metadata})


@needs_node
@pytest.mark.req("L-02", "L-21")
def test_a_client_that_merges_into_an_earlier_read_undoes_nothing_of_ours(
    shared: SharedList, yard: taskyard.Yard
) -> None:
    yard.tasks.create("one", priority=5)
    client = subprocess.Popen(
        ["node", str(NODE / "stale_client.mjs"), shared.folder, "1", "note"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    assert json.loads(client.stdout.readline()) == {"ready": True}  # it has read the task
    yard.tasks.update("1", priority=1, labels=["a"], acceptance=ACCEPTANCE)
    client.communicate("go\n", timeout=60)
    assert client.returncode == 0
    assert raw(shared)["metadata"] == {"taskyard": {"priority": 5}, "note": "the client's"}

    (task,) = yard.tasks.list()
    ours = {"priority": 1, "labels": ["a"], "acceptance": ACCEPTANCE}
    assert task.metadata == {"taskyard": ours, "note": "the client's"}
    assert raw(shared)["metadata"] == {"taskyard": ours, "note": "the client's"}
    told = yard.tasks.log("1")[-1].act
    assert told.cause == "external"
    assert told.note == "it undid, and Taskyard put back: acceptance, labels, priority"
    seen_by_client = node("console.log((await list.getTask(args[0], '1')).metadata.taskyard.priority)", shared.folder)
    assert seen_by_client == "1\n"


@pytest.mark.req("L-21")
def test_one_task_alone_is_shown_and_put_back_too(shared: SharedList, yard: taskyard.Yard) -> None:
    yard.tasks.create("one")
    before = raw(shared)
    yard.tasks.update("1", due="2027-01-01")
    undo(shared, before, theirs=1)
    with shared.open() as other:
        assert other.tasks.get("1").extra == {"due": "2027-01-01"}
    assert raw(shared)["metadata"] == {"taskyard": {"due": "2027-01-01"}, "theirs": 1}


@pytest.mark.req("L-21")
def test_an_acceptance_command_that_was_undone_still_decides(shared: SharedList, yard: taskyard.Yard) -> None:
    yard.tasks.create("one")
    before = raw(shared)
    yard.tasks.update("1", acceptance=ACCEPTANCE)
    undo(shared, before)
    with shared.open() as other, pytest.raises(Untrusted):
        other.tasks.complete("1")


@pytest.mark.req("L-09")
def test_a_task_that_was_set_aside_stays_aside(shared: SharedList, yard: taskyard.Yard) -> None:
    yard.tasks.create("one")
    before = raw(shared)
    yard.tasks.update("1", metadata={"taskyard": {"held": True}})
    undo(shared, before, theirs=1)
    assert yard.tasks.claim_next(agent="ada") is None
    assert yard.tasks.get("1").is_held


@pytest.mark.req("L-21")
def test_a_field_that_was_cleared_does_not_come_back(shared: SharedList, yard: taskyard.Yard) -> None:
    yard.tasks.create("one", due="2027-01-01")
    before = raw(shared)
    yard.tasks.update("1", clear=["due"])
    undo(shared, before, theirs=1)
    assert yard.tasks.list()[0].metadata == {"theirs": 1}
    assert raw(shared)["metadata"] == {"theirs": 1}


@pytest.mark.req("L-21")
def test_fields_that_taskyard_never_wrote_are_the_other_programs_to_change(
    shared: SharedList, yard: taskyard.Yard
) -> None:
    yard.tasks.create("one")
    for priority in (2, 3):
        overwrite(shared, {**raw(shared), "metadata": {"taskyard": {"priority": priority}}})
        assert yard.tasks.list()[0].extra == {"priority": priority}
    yard.tasks.update("1", labels=["a"])  # from here on they are ours
    overwrite(shared, {**raw(shared), "metadata": {"taskyard": {"priority": 4}}})
    assert yard.tasks.list()[0].extra == {"priority": 3, "labels": ["a"]}


@pytest.mark.req("L-11")
def test_a_task_that_another_program_made_again_has_that_programs_fields(
    shared: SharedList, yard: taskyard.Yard
) -> None:
    yard.tasks.create("one", priority=1)
    document = raw(shared)
    os.unlink(os.path.join(shared.folder, "1.json"))
    assert yard.tasks.list() == ()
    again = json.dumps({**document, "metadata": {"taskyard": {"priority": 7}}})
    Path(shared.folder, "1.json").write_text(again, encoding="utf-8")
    assert yard.tasks.list()[0].extra == {"priority": 7}


@pytest.mark.req("L-21", "L-11")
def test_fields_survive_the_loss_of_the_ledger(shared: SharedList) -> None:
    with shared.open() as yard:
        yard.tasks.create("one")
        before = raw(shared)
        yard.tasks.update("1", priority=1)
    undo(shared, before, theirs=1)
    os.unlink(os.path.join(shared.folder, ".taskyard", "ledger"))
    with shared.open() as yard:
        yard.tasks.update("1", subject="two")
        assert yard.tasks.get("1").extra == {"priority": 1}
    assert raw(shared)["metadata"] == {"taskyard": {"priority": 1}, "theirs": 1}


@pytest.mark.req("L-21")
def test_many_undone_at_once_all_come_back(shared: SharedList, yard: taskyard.Yard) -> None:
    count = 150  # more than are looked at one by one
    for number in range(count):
        yard.tasks.create(f"task {number}", priority=1)
    for number in range(1, count + 1):
        overwrite(shared, {**raw(shared, str(number)), "metadata": {"theirs": number}}, str(number))
    with shared.open() as other:
        assert [task.extra for task in other.tasks.list()] == [{"priority": 1}] * count
    for number in range(1, count + 1):
        assert raw(shared, str(number))["metadata"] == {"theirs": number, "taskyard": {"priority": 1}}


@needs_node
@pytest.mark.req("L-02", "L-21")
@pytest.mark.timeout(400)
def test_beside_clients_that_merge_into_earlier_reads_no_acknowledged_value_is_lost(
    shared: SharedList, tmp_path: Path
) -> None:
    seconds = 120.0 if FULL else 3.0
    with shared.open() as yard:
        for number in range(4):
            yard.tasks.create(f"task {number}")
        clients = [
            ForeignWriter(shared.folder, tmp_path / f"{name}.jsonl", seconds=seconds, name=name, seed=seed, stale=True)
            for seed, name in enumerate(("node-1", "node-2"))
        ]
        acknowledged: dict[str, dict[str, object]] = {}
        try:
            for client in clients:
                client.go()
            writes = 0
            while any(client.is_running for client in clients):
                task_id = str(writes % 4 + 1)
                writes += 1
                yard.tasks.update(task_id, labels=[f"w{writes}"], acceptance={"command": f"test {writes}"})
                acknowledged[task_id] = {"labels": [f"w{writes}"], "acceptance": {"command": f"test {writes}"}}
                for other, fields in acknowledged.items():
                    assert yard.tasks.get(other).extra == fields
            done = [line for client in clients for line in client.done()]
        finally:
            for client in clients:
                client.end()
        undone = [change for change in yard.tasks.log() if "put back" in change.act.note]
        assert yard.tasks.list().damaged == ()
    assert {task_id: raw(shared, task_id)["metadata"]["taskyard"] for task_id in acknowledged} == acknowledged
    assert faults(shared.folder, foreign_edges=True) == []
    print(f"{writes} writes of ours, {len(done)} of two clients, {len(undone)} undone and put back, 0 lost")
