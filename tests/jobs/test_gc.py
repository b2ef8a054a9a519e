"""What ended jobs keep on disk: bounded by age and quota, never at the cost of what runs or is unread."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
from pathlib import Path

import pytest

from support.job_outputs import ended_by_hand, made_by_hand, running_job, start_job, wait_for_end
from taskyard.config import Settings
from taskyard.core.system import encode_deadline, now_ms
from taskyard.errors import Busy, StorageError
from taskyard.jobs import gc
from taskyard.jobs.ended_index import find_entry
from taskyard.jobs.gc import (
    MIN_AGE,
    EndedJob,
    GcResult,
    JobStoreScan,
    choose,
    collect,
    collect_if_due,
    scan_jobs,
)
from taskyard.jobs.job_dir import JobPaths, outbox_path
from taskyard.storage.locks import RangeLock
from taskyard.storage.maildir import Maildir, timed_holder

pytestmark = pytest.mark.req("O-04", "B-06")

DAY = 86_400
LARGE = 10**12
KEPT = 256 * 1024


def old(home: Path, days: float, size: int = KEPT) -> JobPaths:
    return ended_by_hand(home, at=now_ms() - int(days * DAY * 1000), size=size)


def gone(done: GcResult) -> list[str]:
    return [one.job.id for one in done.removed]


def tidy(home: Path, *, quota: int = LARGE, days: float = 30, dry_run: bool = False) -> GcResult:
    return collect(str(home), quota=quota, age_limit=days * DAY, dry_run=dry_run, timeout=1.0)


def test_what_is_older_than_the_age_limit_goes_and_the_rest_stays(tmp_path: Path) -> None:
    ancient, older, fresh = old(tmp_path, 90), old(tmp_path, 31), old(tmp_path, 29)

    done = tidy(tmp_path)

    assert gone(done) == [ancient.id, older.id]
    assert sorted(os.listdir(tmp_path / "jobs")) == sorted([fresh.id, "ended.jsonl", ".gc.lock"])
    assert done.freed >= 2 * KEPT and done.left == done.store.size - done.freed


def test_a_store_over_its_quota_loses_its_oldest_until_it_fits(tmp_path: Path) -> None:
    folders = [old(tmp_path, days) for days in (5, 4, 3, 2, 1)]

    done = tidy(tmp_path, quota=3 * KEPT)

    assert gone(done) == [folder.id for folder in folders[:3]]
    assert done.left <= 3 * KEPT
    assert scan_jobs(str(tmp_path)).size == done.left
    assert gone(tidy(tmp_path, quota=3 * KEPT)) == []


def test_holes_take_no_room_in_the_quota(tmp_path: Path) -> None:
    folder = old(tmp_path, 1, size=0)
    os.truncate(folder.output, 10**9)

    assert scan_jobs(str(tmp_path)).size < 100_000


def test_what_runs_is_never_touched_however_old_and_large(tmp_path: Path) -> None:
    with running_job(tmp_path, "head -c 300000 /dev/zero; sleep 60") as folder:
        done = tidy(tmp_path, quota=0, days=0)

        assert (gone(done), done.store.running) == ([], 1)
        assert os.path.exists(folder.output)


def test_a_job_without_an_end_is_never_touched_even_if_nobody_keeps_it(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path)

    done = tidy(tmp_path, quota=0, days=0)

    assert (gone(done), done.store.unread, done.store.running) == ([], 1, 0)
    assert os.path.exists(folder.record)


def test_the_quota_takes_no_job_whose_notice_is_unread(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "echo done", silent=False)
    wait_for_end(folder)
    box = Maildir(str(tmp_path), outbox_path(str(tmp_path), "me"))
    [name] = box.waiting()
    later = now_ms() + 60 * DAY * 1000

    def left() -> list[str]:
        return gone(collect(str(tmp_path), quota=0, age_limit=90 * DAY, now=later))

    assert (left(), scan_jobs(str(tmp_path)).unread) == ([], 1)
    holder = timed_holder(60)
    assert box.take(name, holder)
    assert (left(), scan_jobs(str(tmp_path)).unread) == ([], 1)
    assert box.give_back(name, holder)
    assert (left(), scan_jobs(str(tmp_path)).unread) == ([], 1)
    assert box.take(name + ".again", holder) and box.acknowledge(name, holder)
    assert left() == [folder.id]


@pytest.mark.req("Q-11", "O-04")
def test_a_job_older_than_the_age_limit_goes_unread_and_its_notice_stays(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "echo done", silent=False)
    wait_for_end(folder)
    box = Maildir(str(tmp_path), outbox_path(str(tmp_path), "me"))
    waiting = box.waiting()
    later = now_ms() + 60 * DAY * 1000

    assert gone(collect(str(tmp_path), quota=1 << 40, age_limit=30 * DAY, now=later)) == [folder.id]
    assert box.waiting() == waiting != []


def test_a_job_stays_while_the_notice_of_its_end_lies_in_its_folder(tmp_path: Path) -> None:
    folder = old(tmp_path, 90)
    Path(folder.notice).write_text("{}", encoding="utf-8")

    done = tidy(tmp_path, quota=0)

    assert (gone(done), done.store.unread) == ([], 1)


@pytest.mark.parametrize("name", ["job.json", "end.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff\xfe"])
def test_what_cannot_be_understood_is_left_to_a_person(tmp_path: Path, name: str, content: bytes) -> None:
    folder = old(tmp_path, 90)
    Path(folder.path, name).write_bytes(content)

    done = tidy(tmp_path, quota=0)

    assert (gone(done), done.store.strange) == ([], 1)


def test_a_job_that_somebody_takes_in_hand_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old(tmp_path, 90)
    lock = RangeLock(folder.lock)

    def choose_while_it_is_taken(
        store: JobStoreScan, *, now: int, quota: int, age_limit: float
    ) -> tuple[EndedJob, ...]:
        lock.take(0, timeout=0, what="the job")
        return choose(store, now=now, quota=quota, age_limit=age_limit)

    monkeypatch.setattr(gc, "choose", choose_while_it_is_taken)
    with lock:
        assert gone(tidy(tmp_path)) == []
    monkeypatch.undo()
    assert gone(tidy(tmp_path)) == [folder.id]


def test_a_job_whose_keeper_is_not_done_yet_counts_as_running(tmp_path: Path) -> None:
    folder = old(tmp_path, 90)
    with RangeLock(folder.lock) as lock:
        lock.take(0, timeout=0, what="the job")

        assert scan_jobs(str(tmp_path)).running == 1


def test_any_id_that_was_ever_issued_is_still_known(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "exit 3")
    wait_for_end(folder)
    assert find_entry(str(tmp_path), folder.id) is None

    collect(str(tmp_path), quota=0, age_limit=0, now=now_ms() + 1000)

    assert not os.path.exists(folder.path)
    known = find_entry(str(tmp_path), folder.id)
    assert known is not None and known["endTime"] and known["startTime"]
    assert {name: known[name] for name in ("id", "type", "description", "status", "cause", "exitCode")} == {
        "id": folder.id,
        "type": "local_bash",
        "description": "exit 3",
        "status": "failed",
        "cause": "exited",
        "exitCode": 3,
    }
    assert os.stat(tmp_path / "jobs" / "ended.jsonl").st_mode & 0o777 == 0o600


def test_a_line_of_one_who_was_killed_over_it_spoils_no_other(tmp_path: Path) -> None:
    first = old(tmp_path, 90)
    tidy(tmp_path)
    index = tmp_path / "jobs" / "ended.jsonl"
    with index.open("ab") as file:
        file.write(b'{"id":"b00000000","desc')
    second = old(tmp_path, 90)
    tidy(tmp_path)

    for folder in (first, second):
        assert find_entry(str(tmp_path), folder.id)
    assert find_entry(str(tmp_path), "b00000000") is None


def test_an_id_is_found_wherever_it_stands_in_a_large_index_and_not_inside_a_description(tmp_path: Path) -> None:
    index = tmp_path / "jobs" / "ended.jsonl"
    index.parent.mkdir()
    lines = [
        json.dumps({"id": f"b{n:08}", "description": '{"id":"bxxxxxxxx"'}, separators=(",", ":")) for n in range(40_000)
    ]
    index.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert index.stat().st_size > 2 << 20

    for number in (0, 1, 20_017, 39_999):
        assert (find_entry(str(tmp_path), f"b{number:08}") or {})["id"] == f"b{number:08}"
    assert find_entry(str(tmp_path), "bxxxxxxxx") is None
    assert find_entry(str(tmp_path), "b99999999") is None


@pytest.mark.parametrize("before", [0, 1, 5, 16])
def test_an_id_is_found_where_two_pieces_that_are_read_meet(tmp_path: Path, before: int) -> None:
    index = tmp_path / "jobs" / "ended.jsonl"
    index.parent.mkdir()
    index.write_bytes(b"x" * ((1 << 20) - before - 1) + b'\n{"id":"b00000000","status":"failed"}\n')

    assert find_entry(str(tmp_path), "b00000000") == {"id": "b00000000", "status": "failed"}


def test_blocks_are_freed_though_somebody_has_the_output_open(tmp_path: Path) -> None:
    folder = old(tmp_path, 90)
    with open(folder.output, "rb") as reader:
        tidy(tmp_path)

        assert os.fstat(reader.fileno()).st_size == 0


def test_an_output_that_somebody_kept_under_another_name_is_not_emptied(tmp_path: Path) -> None:
    folder = old(tmp_path, 90)
    os.link(folder.output, tmp_path / "mine")

    tidy(tmp_path)

    assert (tmp_path / "mine").stat().st_size == KEPT


def test_no_link_is_followed_out_of_a_folder_that_goes(tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine", old(tmp_path, 90)
    mine.mkdir()
    (mine / "file").write_text("precious", encoding="utf-8")
    os.unlink(folder.output)
    os.symlink(mine / "file", folder.output)
    os.symlink(mine, f"{folder.path}/children")
    os.mkdir(f"{folder.path}/deeper")
    os.symlink(mine, f"{folder.path}/deeper/link")
    os.mkfifo(f"{folder.path}/control")

    assert gone(tidy(tmp_path)) == [folder.id]
    assert (mine / "file").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("name", ["", "keeper.lock", "job.json", "end.json"])
def test_a_job_with_a_link_in_the_place_of_what_we_need_is_left_alone(tmp_path: Path, name: str) -> None:
    folder = old(tmp_path, 90)
    path = f"{folder.path}/{name}".rstrip("/")
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)

    assert gone(tidy(tmp_path)) == []
    assert os.path.lexists(path) and (tmp_path / "elsewhere").exists()


def test_a_link_in_the_place_of_the_folder_of_jobs_or_of_the_index_is_refused(tmp_path: Path) -> None:
    old(tmp_path, 90)
    os.symlink(tmp_path / "victim", tmp_path / "jobs" / "ended.jsonl")
    with pytest.raises(StorageError):
        tidy(tmp_path)
    assert not (tmp_path / "victim").exists()

    os.rename(tmp_path / "jobs", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", tmp_path / "jobs")
    with pytest.raises(StorageError, match="symbolic link"):
        tidy(tmp_path)


def test_half_made_jobs_that_nobody_makes_any_more_are_removed(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    for name in (".new-b00000000", ".new-b00000001", ".new-b00000002", ".gone-b00000003"):
        (jobs / name).mkdir(parents=True)
        (jobs / name / "keeper.lock").touch()
    for name in (".new-b00000000", ".new-b00000001"):
        os.utime(jobs / name, (0, 0))
    with open(jobs / ".new-b00000001" / "keeper.lock", "rb+") as held:
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, request)

        done = tidy(tmp_path)

    assert done.incomplete == 2
    assert sorted(name for name in os.listdir(jobs) if name != ".gc.lock") == [".new-b00000001", ".new-b00000002"]


def test_a_dry_run_says_the_same_and_does_nothing(tmp_path: Path) -> None:
    folder = old(tmp_path, 90)
    (tmp_path / "jobs" / ".gone-b00000003").mkdir()
    before = sorted(os.listdir(tmp_path / "jobs"))

    planned = tidy(tmp_path, dry_run=True)

    assert sorted(os.listdir(tmp_path / "jobs")) == before
    assert (gone(planned), planned.incomplete) == ([folder.id], 1)
    assert tidy(tmp_path).removed == planned.removed


def test_without_jobs_there_is_nothing_to_do_and_nothing_is_made(tmp_path: Path) -> None:
    assert tidy(tmp_path) == GcResult((), JobStoreScan((), 0))
    assert collect_if_due(str(tmp_path), Settings()) is None
    assert os.listdir(tmp_path) == []


def test_one_that_ended_a_moment_ago_does_not_go_for_the_quotas_sake(tmp_path: Path) -> None:
    ended_by_hand(tmp_path, at=now_ms(), size=KEPT)
    store = scan_jobs(str(tmp_path))

    assert choose(store, now=now_ms(), quota=0, age_limit=DAY) == ()
    assert choose(store, now=now_ms() + (MIN_AGE + 1) * 1000, quota=0, age_limit=DAY) == store.ended


def test_two_who_collect_at_once_take_each_job_once(tmp_path: Path) -> None:
    folders = {old(tmp_path, 90, size=10).id for _ in range(40)}
    done: list[GcResult] = []
    threads = [threading.Thread(target=lambda: done.append(tidy(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    taken = [job_id for one in done for job_id in gone(one)]
    assert sorted(taken) == sorted(folders)
    assert len((tmp_path / "jobs" / "ended.jsonl").read_text(encoding="utf-8").splitlines()) == 40


def test_it_runs_by_itself_at_most_once_an_hour(tmp_path: Path) -> None:
    home, stamp = str(tmp_path), tmp_path / "jobs" / ".gc-stamp"
    first = old(tmp_path, 90)
    done = collect_if_due(home, Settings())
    assert done is not None and gone(done) == [first.id]

    second = old(tmp_path, 90)
    assert collect_if_due(home, Settings()) is None
    assert os.path.exists(second.path)
    os.utime(stamp, (0, 0))
    done = collect_if_due(home, Settings())
    assert done is not None and gone(done) == [second.id]


def test_not_being_able_to_tidy_up_keeps_nobody_from_starting_a_job(tmp_path: Path) -> None:
    old(tmp_path, 90)
    with RangeLock(f"{tmp_path}/jobs/.gc.lock") as lock:
        lock.take(0, timeout=0, what="the collection")
        assert collect_if_due(str(tmp_path), Settings()) is None
        with pytest.raises(Busy):
            collect(str(tmp_path), quota=0, age_limit=0, timeout=0.05)


@pytest.mark.req("O-04")
def test_a_clock_that_was_set_is_trusted_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, stamp = str(tmp_path), tmp_path / "jobs" / ".gc-stamp"
    ended_by_hand(home, at=1)
    ended_by_hand(home, at=now_ms())
    wall, uptime, boot = encode_deadline(0).split("-")
    stamp.write_text(json.dumps({"clock": f"{int(wall) - 40 * 86_400_000}-{uptime}-{boot}"}), encoding="utf-8")

    def collected() -> int:
        os.utime(stamp, (1, 1))
        done = collect_if_due(home, Settings())
        assert done is not None
        return len(done.removed)

    assert [collected(), collected()] == [0, 0]
    monkeypatch.setattr(gc, "_PROBATION", 0)
    assert collected() == 1
