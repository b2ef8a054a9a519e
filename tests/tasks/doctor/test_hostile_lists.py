"""Lists that somebody else made unusable: locks from the future, ids without room, disks that fail at the last step."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path

import pytest

import taskyard as product
from support.cli import taskyard
from support.yards import open_yard
from taskyard.storage import locks
from taskyard.storage.journal import SEGMENT_SIZE


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with one task, in a folder that other programs write to."""
    monkeypatch.delenv("TASKYARD_TASKS_DIR", raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TASKYARD_LIST", "plan")
    assert taskyard("task", "add", "one").code == 0
    return tmp_path / "tasks" / "plan"


def lock_ahead(plan: Path, name: str, seconds: float) -> Path:
    """A lock folder of another program, stamped ahead of the clock."""
    lock = plan / name
    lock.mkdir()
    touch_ahead(lock, seconds)
    return lock


def touch_ahead(lock: Path, seconds: float) -> None:
    """Stamp a lock folder with a time that is still to come."""
    at = time.time() + seconds
    os.utime(lock, (at, at))


@pytest.mark.req("L-04")
def test_a_lock_stamped_ahead_of_the_clock_counts_as_abandoned_after_it_was_watched(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STALE_AFTER", 0.5)
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "5")
    lock_ahead(plan, ".lock.lock", 86_400)
    lock_ahead(plan, "1.json.lock", 86_400)
    assert taskyard("task", "add", "two").code == 0
    assert taskyard("task", "edit", "1", "--priority", "1").code == 0


@pytest.mark.req("L-04")
def test_whoever_gives_up_waiting_hands_on_what_was_watched(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MAX_CLOCK_SKEW", 0.2)
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.5")
    lock = lock_ahead(plan, ".lock.lock", 86_400)
    ran = taskyard("task", "add", "two")
    assert ran.code != 0 and "another program" in ran.err
    assert abs(lock.stat().st_mtime - time.time()) < 5  # from now on every program sees it age


@pytest.mark.req("L-04")
def test_a_lock_that_its_holder_touches_is_never_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STALE_AFTER", 0.3)
    lock = lock_ahead(tmp_path, "x.lock", 100)
    over = threading.Event()

    def hold() -> None:
        while not over.wait(0.05):
            touch_ahead(lock, 100)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert not locks.free_stale_lock(str(lock))
    finally:
        over.set()
        holder.join()
    assert lock.is_dir()


@pytest.mark.req("L-04")
def test_doctor_names_and_frees_a_lock_from_the_future(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STALE_AFTER", 0.5)
    lock = lock_ahead(plan, ".lock.lock", 86_400)
    told = taskyard("doctor")
    assert "stale-lock" in told.out and "ahead of the clock" in told.out
    assert "freed it" in taskyard("doctor", "--fix").out
    assert not lock.exists()
    assert "stale-lock" not in taskyard("doctor").out


@pytest.mark.req("L-03")
def test_an_id_that_leaves_no_room_blocks_no_creation(plan: Path) -> None:
    task: dict[str, object] = {
        "id": "999999999",
        "subject": "trap",
        "description": "",
        "status": "pending",
        "blocks": [],
        "blockedBy": [],
    }
    (plan / "999999999.json").write_text(json.dumps(task), encoding="utf-8")
    (plan / ".highwatermark").write_text("999999999", encoding="utf-8")
    assert "trap" in taskyard("task", "list").out
    assert taskyard("task", "add", "two", "--json").data["id"] == "2"
    assert "id-without-room" in taskyard("doctor").out
    taskyard("doctor", "--fix")
    taskyard("doctor", "--fix", "impossible-mark")
    assert taskyard("task", "add", "three", "--json").data["id"] == "3"
    assert taskyard("task", "rm", "999999999", "--yes").code == 0
    assert taskyard("task", "add", "four", "--json").data["id"] == "4"
    assert "id-without-room" not in taskyard("doctor").out


@pytest.mark.req("L-03")
def test_doctor_repairs_a_mark_without_room(plan: Path) -> None:
    (plan / ".highwatermark").write_text("999999999", encoding="utf-8")
    assert "impossible-mark" in taskyard("doctor").out
    taskyard("doctor", "--fix", "impossible-mark")
    assert (plan / ".highwatermark").read_text(encoding="utf-8") == "1"


@pytest.mark.req("L-11")
def test_a_full_segment_is_no_dead_writer(plan: Path) -> None:
    log = plan / ".taskyard" / "log" / "0.jsonl"
    entry: dict[str, object] = {
        "at": 1,
        "by": None,
        "cause": "update",
        "via": "api",
        "prev": {},
        "tasks": {},
        "note": "x" * SEGMENT_SIZE,
    }
    with log.open("ab") as file:
        file.write(b"\n" + json.dumps(entry).encode() + b"\n")
    assert taskyard("task", "add", "two").code == 0  # written behind the end of the full segment, and again to the next
    assert log.stat().st_size > SEGMENT_SIZE + 100
    assert len(list(log.parent.iterdir())) == 2
    assert "torn-log" not in taskyard("doctor", "--all").out + taskyard("doctor").out
    with log.open("rb+") as file:
        file.write(b"\ntorn{")  # the first entry: now somebody did die
    assert "torn-log" in taskyard("doctor").out


@pytest.mark.req("L-11")
@pytest.mark.parametrize("verb", ["rm", "edit"])
def test_a_disk_that_fails_at_the_last_unlink_breaks_nothing(
    plan: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    real = os.unlink

    def failing(path: str, **how: object) -> None:
        if "/.taskyard/tmp/" in os.fspath(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        real(path, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "unlink", failing)
    words = ("task", "rm", "1", "--yes") if verb == "rm" else ("task", "edit", "1", "--subject", "new")
    assert taskyard(*words).code == 0
    monkeypatch.undo()
    with open_yard(plan.parent, "ada") as yard:
        assert [task.subject for task in yard.tasks.list()] == ([] if verb == "rm" else ["new"])
        if verb == "rm":
            assert yard.tasks.restore("1").subject == "one"


@pytest.mark.req("L-09")
@pytest.mark.parametrize(("cloned", "owner"), [(False, None), (True, "ada")])
def test_after_a_restart_claims_come_back_but_not_those_of_a_cloned_machine(
    tmp_path: Path, cloned: bool, owner: str | None
) -> None:
    tasks = tmp_path / "tasks"
    with product.open(tasks_dir=str(tasks), list="plan", agent="ada") as yard:
        yard.tasks.create("one")
        yard.tasks.claim("1")
        record = tasks / "plan" / ".taskyard" / "leases" / "1.json"
        lease = json.loads(record.read_text(encoding="utf-8"))
        assert lease["kind"] == "process"
        lease["host"] = lease["host"].partition("/")[0] + "/an-earlier-boot"
        if cloned:  # the same machine id, folder and names, on other hardware
            name, _, rest = lease["place"].partition(" ")
            lease["place"] = f"{name.partition('.')[0]}.00000000 {rest}"
        record.unlink()
        record.write_text(json.dumps(lease), encoding="utf-8")
        with product.open(tasks_dir=str(tasks), list="plan", agent="bob") as other:
            assert other.tasks.list()[0].owner == owner
