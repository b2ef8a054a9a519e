"""Claims are fenced: who holds a task, until when, and what a late writer is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import taskyard
from support.wait import until
from support.yards import on_disk, open_yard, write_task, yards
from taskyard.errors import AlreadyClaimed, LeaseLost
from taskyard.tasks import list_folder
from taskyard.tasks.list_folder import ListFolder
from taskyard.tasks.model import Lease

#: Claims a task under a name, says its token, and lives until it is killed.
HOLD = """
import sys, taskyard
yard = taskyard.open(tasks_dir=sys.argv[1], list="plan", agent=sys.argv[2], foreign_writers=False)
for task_id in sys.argv[3:]:
    task = yard.tasks.start(task_id)
    print(yard.agent, task.lease.token, flush=True)
sys.stdin.read()
"""


class Holder:
    """Another process that claims tasks."""

    def __init__(self, folder: Path, agent: str, *ids: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), agent, *ids],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = [self.process.stdout.readline().split() for _ in ids]
        self.name, self.token = said[0]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=10)


@pytest.mark.req("L-09", "L-10")
def test_what_a_killed_process_held_is_back_in_the_pool_at_the_next_look(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        for subject in ("a", "b", "c"):
            yard.tasks.create(subject)
        holder = Holder(tmp_path, "bob", "1", "2")
        assert [task.owner for task in yard.tasks.list()] == ["bob", "bob", None]
        with pytest.raises(AlreadyClaimed):
            yard.tasks.claim("1")
        holder.kill()

        assert [(task.owner, task.status.value) for task in yard.tasks.list()] == [(None, "pending")] * 3
        lost = yard.tasks.log("1")[-1]
        assert (lost.act.cause, lost.act.by) == ("lease_lost", "bob")
        assert on_disk(tmp_path / "plan", "1").get("owner") is None


@pytest.mark.req("L-09")
def test_a_single_look_and_a_claim_notice_a_dead_holder_too(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b")
        holder = Holder(tmp_path, "bob", "1", "2")
        holder.kill()

        assert yard.tasks.get("1").owner is None
        assert yard.tasks.claim("2").owner == "ada"


@pytest.mark.req("L-09")
def test_a_write_with_the_token_of_a_lost_claim_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        holder = Holder(tmp_path, "bob", "1")
        holder.kill()
        yard.tasks.claim("1")
        before = (tmp_path / "plan" / "1.json").read_bytes()

        attempts: list[Callable[[], object]] = [
            lambda: yard.tasks.complete("1", agent="bob", token=holder.token),
            lambda: yard.tasks.update("1", agent="bob", token=holder.token, subject="late"),
            lambda: yard.tasks.release("1", agent="bob", token=holder.token),
            lambda: yard.tasks.renew("1", agent="bob", token=holder.token),
        ]
        for late in attempts:
            with pytest.raises(LeaseLost) as caught:
                late()
            assert caught.value.owner == "ada"
        assert (tmp_path / "plan" / "1.json").read_bytes() == before


@pytest.mark.req("L-09")
def test_the_third_loss_sets_a_task_aside_until_a_person_takes_it(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("deadly")
        for losses in (1, 2, 3):
            Holder(tmp_path, "bob", "1").kill()
            task = yard.tasks.get("1")
            assert (task.owner, task.status.value, task.is_held) == (None, "pending", losses == 3)
        assert yard.tasks.claim_next() is None
        assert yard.tasks.claim("1").owner == "ada"


@pytest.mark.req("L-09")
def test_finishing_a_task_forgets_the_holders_it_lost(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        for _ in range(2):
            Holder(tmp_path, "bob", "1").kill()
            assert yard.tasks.get("1").owner is None
        yard.tasks.complete("1")
        assert os.listdir(tmp_path / "plan" / ".taskyard" / "leases") == []


@pytest.mark.req("L-09")
def test_a_second_living_instance_of_a_name_is_somebody_else(tmp_path: Path) -> None:
    with open_yard(tmp_path, "writer") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b")
        yard.tasks.claim("1")
        holder = Holder(tmp_path, "writer", "2")
        try:
            assert holder.name == "writer-2"
            assert yard.tasks.get("2").owner == "writer-2"
            with pytest.raises(AlreadyClaimed):
                yard.tasks.claim("2")
        finally:
            holder.kill()


@pytest.mark.req("L-09")
def test_a_person_is_one_principal_across_commands_and_never_presumed_dead(tmp_path: Path) -> None:
    with open_yard(tmp_path, "bob", person=True) as first:
        first.tasks.create("a")
        lease = first.tasks.claim("1").lease
        assert lease is not None
        assert (lease.kind, lease.expires) == ("manual", None)
    with open_yard(tmp_path, "bob", person=True) as second, open_yard(tmp_path, "ada", person=True) as other:
        assert [task.owner for task in other.tasks.list()] == ["bob"]
        with pytest.raises(AlreadyClaimed):
            other.tasks.claim("1")
        assert second.tasks.complete("1").is_done


@pytest.mark.req("L-09")
def test_a_claim_with_an_end_lapses_and_is_kept_alive_by_calls(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        ada.tasks.create("b")
        first = ada.tasks.claim("1", lease=60).lease
        assert first is not None
        assert first.expires is not None
        until(lambda: (ada.tasks.renew("1").lease or first).expires != first.expires)
        ada.tasks.claim("2", lease=0.001)

        until(lambda: bob.tasks.get("2").owner is None, timeout=5)
        with pytest.raises(LeaseLost):
            ada.tasks.complete("2")
        assert bob.tasks.claim("2").owner == "bob"
        assert bob.tasks.get("1").owner == "ada"


@pytest.mark.req("L-09")
def test_an_owner_without_a_record_is_another_programs_and_never_presumed_dead(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1", owner="carol", status="in_progress")
    with open_yard(tmp_path, "ada") as yard:
        assert [(task.owner, task.status.value) for task in yard.tasks.list()] == [("carol", "in_progress")]
        with pytest.raises(AlreadyClaimed):
            yard.tasks.claim("1")
        assert yard.tasks.claim_next() is None


@pytest.mark.req("L-09")
def test_a_task_another_program_gave_away_is_not_taken_back_when_the_old_holder_dies(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        holder = Holder(tmp_path, "bob", "1")
        write_task(tmp_path / "plan", "1", owner="carol", status="in_progress")
        holder.kill()

        assert [task.owner for task in yard.tasks.list()] == ["carol"]
        assert yard.tasks.get("1").lease is None


@pytest.mark.req("L-09", "L-10")
def test_the_record_of_a_vanished_task_keeps_no_other_from_coming_back(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b")
        holder = Holder(tmp_path, "bob", "1", "2")
        yard.tasks.list()
        (tmp_path / "plan" / "1.json").unlink()
        holder.kill()

        until(lambda: [task.owner for task in yard.tasks.list()] == [None])
        assert not (tmp_path / "plan" / ".taskyard" / "leases" / "1.json").exists()


@pytest.mark.req("L-09")
def test_a_token_never_stands_in_a_task_file(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        lease = yard.tasks.start("1").lease
    assert lease is not None
    assert lease.token not in (tmp_path / "plan" / "1.json").read_text()
    record = tmp_path / "plan" / ".taskyard" / "leases" / "1.json"
    assert lease.token in record.read_text()
    assert record.stat().st_mode & 0o777 == 0o600


@pytest.mark.req("L-09")
def test_a_command_inside_a_job_claims_for_that_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_INSTANCE", "job-1")
    with taskyard.open(tasks_dir=tmp_path, list="plan", agent="ada", is_person=True) as yard:
        yard.tasks.create("a")
        lease = yard.tasks.claim("1").lease
    assert lease is not None
    assert (lease.kind, lease.instance) == ("process", "job-1")
    assert lease.lock.endswith("/instances/job-1.lock")


@pytest.fixture
def records(tmp_path: Path) -> list_folder.LeaseFiles:
    folder = ListFolder(str(tmp_path), "plan")
    folder.make()
    return list_folder.LeaseFiles(folder, alive=lambda lease: lease.lock == "living")


@pytest.mark.req("L-09")
def test_a_record_reads_back_and_vanishes_with_its_last_fact(records: list_folder.LeaseFiles) -> None:
    lease = Lease("ada", "i", "t", "time", 5, 10, span=5)
    records.write("1", lease, 2)
    assert records.read("1") == (lease, 2)
    records.write("1", None, 2)
    assert records.read("1") == (None, 2)
    records.write("1", None, 0)
    records.write("1", None, 0)
    assert records.read("1") == (None, 0)


@pytest.mark.req("L-09")
@pytest.mark.parametrize(
    ("lease", "dead"),
    [
        (Lease("a", "i", "t", "process", 1, host="h", lock="living"), False),
        (Lease("a", "i", "t", "process", 1, host="h", lock="gone"), True),
        (Lease("a", "i", "t", "time", 1, expires=1), True),
        (Lease("a", "i", "t", "time", 1, expires=1 << 50), False),
        (Lease("a", "i", "t", "time", 1), False),
        (Lease("a", "i", "t", "manual", 1), False),
        (Lease("a", "i", "t", "of a later version", 1), False),
    ],
)
def test_only_what_is_gone_for_certain_is_dead(records: list_folder.LeaseFiles, lease: Lease, dead: bool) -> None:
    assert records.is_dead(lease) is dead


@pytest.mark.req("L-09")
@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"5", b'{"token": 5}', b'{"token": "t", "owner": []}', b"x" * 70_000, b'{"losses": "x"}'],
)
def test_a_record_that_cannot_be_read_holds_nothing(
    tmp_path: Path, records: list_folder.LeaseFiles, data: bytes
) -> None:
    (tmp_path / "plan" / ".taskyard" / "leases" / "1.json").write_bytes(data)

    assert records.read("1") == (None, 0)


@pytest.mark.req("L-09")
def test_unknown_fields_of_a_later_version_do_no_harm(tmp_path: Path, records: list_folder.LeaseFiles) -> None:
    raw = {"owner": "ada", "instance": "i", "token": "t", "kind": "manual", "since": "x", "new": 1, "losses": 1}
    (tmp_path / "plan" / ".taskyard" / "leases" / "1.json").write_text(json.dumps(raw))

    assert records.read("1") == (Lease("ada", "i", "t", "manual", 0), 1)


@pytest.mark.req("L-10")
def test_nothing_is_left_of_a_claim_whose_writer_died_over_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    rename = os.rename

    def die(source: str, target: str) -> None:
        if "/leases/" in target:
            raise Killed
        rename(source, target)

    def records() -> list[str]:
        ours = tmp_path / "plan" / ".taskyard"
        return [
            path.name for name in ("leases", "tmp") for path in (ours / name).iterdir() if b"token" in path.read_bytes()
        ]

    with open_yard(tmp_path, agent="ada") as yard:
        task = yard.tasks.create("One")
        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", die)
            with pytest.raises(Killed):
                yard.tasks.start(task.id)
    assert len(records()) == 1
    with open_yard(tmp_path, agent="bob") as yard:
        assert [task.owner for task in yard.tasks.list()] == [None]
    assert records() == []
