"""A full disk: output that is lost is said to be, the exit code is kept, and nothing needs a repair."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import taskyard
from support.disks import formatted, mounted
from support.wait import until
from taskyard.errors import StorageError
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job
from taskyard.jobs.notices import Outbox


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A small one, which is home to all jobs of a test."""
    with formatted(4_000_000, tmp_path / "image") if request.param == "ext4" else mounted("size=2m,mode=700") as found:
        monkeypatch.setenv("TASKYARD_HOME", str(found))
        yield found


@pytest.fixture
def jobs(disk: Path) -> Iterator[Jobs]:
    found = Jobs(str(disk))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def ended(jobs: Jobs, job: Job) -> tuple[str, int | None, str]:
    end = jobs.wait(job.id, timeout=40).end
    assert end is not None
    return end.cause, end.exit_code, end.output_lost


def fill(path: Path) -> None:
    """Take every block that is left."""
    with path.open("ab", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                pass


FULL = "ENOSPC: No space left on device"


@pytest.mark.req("O-09", "B-05")
@pytest.mark.parametrize(
    ("command", "code"), [("yes", 1), ("yes 2>/dev/null; exit 0", 0), ("head -c 9000000 /dev/zero; exit 3", 3)]
)
def test_a_job_that_fills_the_disk_keeps_its_exit_code_says_what_was_lost_and_is_told(
    jobs: Jobs, command: str, code: int
) -> None:
    job = jobs.start(Shell(command))

    assert ended(jobs, job) == ("exited", code, FULL)
    (notice,) = Outbox(jobs.home).take()
    assert (notice.task_id, notice.exit_code) == (job.id, code)
    assert FULL in notice.summary
    assert taskyard("wait", job.id, "--json").data["output_lost"] == FULL
    assert f"output lost: {FULL}" in taskyard("wait", job.id).out


@pytest.mark.req("O-09")
def test_what_was_lost_is_said_also_where_there_is_room_again_at_the_end(jobs: Jobs, disk: Path) -> None:
    script = f"""
printf %04096d 1
until [ -e {disk}/full ]; do sleep 0.01; done
head -c 20000 /dev/zero 2>/dev/null || mv {disk}/full {disk}/failed
until [ -e {disk}/free ]; do sleep 0.01; done
printf %04096d 3
"""
    job = jobs.start(Shell(script))
    until(lambda: os.path.getsize(job.output_file) == 4096)
    (disk / "not yet").touch()
    fill(disk / "taken")
    (disk / "not yet").rename(disk / "full")
    until((disk / "failed").exists)
    time.sleep(0.3)  # how long it stays full is the point of it: keepers look when output grows, then every 20 ms
    os.truncate(disk / "taken", 0)  # before the job is told that there is room
    (disk / "taken").rename(disk / "free")

    assert ended(jobs, job) == ("exited", 0, FULL)
    assert os.path.getsize(job.output_file) < 4096 + 20000 + 4096


@pytest.mark.req("O-09")
def test_who_prints_into_a_terminal_loses_nothing_in_silence_either(jobs: Jobs) -> None:
    assert ended(jobs, jobs.start(Shell("head -c 4000000 /dev/zero; exit 5", pty=True))) == ("exited", 5, FULL)


@pytest.mark.req("O-09")
def test_where_there_is_room_nothing_is_said_to_be_lost_and_nothing_more_is_kept(jobs: Jobs) -> None:
    job = jobs.start(Shell("head -c 8192 /dev/zero"))

    assert ended(jobs, job) == ("exited", 0, "")
    until(lambda: supervisor_pid(JobPaths(jobs.home, job.id)) is None)
    assert os.stat(job.output_file).st_blocks * 512 == 8192
    assert os.stat(JobPaths(jobs.home, job.id).lock).st_blocks == 0
    assert taskyard("wait", job.id, "--json").data["output_lost"] is None


@pytest.mark.req("O-09", "B-05")
def test_on_a_disk_that_stays_full_there_is_room_to_say_how_a_job_ended(jobs: Jobs, disk: Path) -> None:
    job = jobs.start(Shell(f"echo hi; until [ -e {disk}/go ]; do sleep 0.01; done; exit 5"))
    until(lambda: os.path.getsize(job.output_file))
    (disk / "not yet").touch()
    fill(disk / "taken")
    (disk / "not yet").rename(disk / "go")

    assert ended(jobs, job) == ("exited", 5, FULL)
    assert Path(job.output_file).read_text(encoding="utf-8") == "hi\n"
    (notice,) = Outbox(jobs.home).take()
    assert notice.task_id == job.id


@pytest.mark.req("O-09", "B-08")
def test_others_who_take_every_block_that_becomes_free_do_not_hide_how_a_job_ended(jobs: Jobs, disk: Path) -> None:
    job = jobs.start(Shell(f"until [ -e {disk}/jobs/go ]; do sleep 0.01; done; exit 6"))
    (disk / "jobs" / "go.").touch()
    over = threading.Event()
    taken = disk / "taken"

    def take_all() -> None:
        while not over.is_set():
            fill(taken)

    thief = threading.Thread(target=take_all)
    thief.start()
    try:
        until(lambda: taken.exists() and taken.stat().st_size > 1_000_000)
        (disk / "jobs" / "go.").rename(disk / "jobs" / "go")
        jobs.wait(job.id, timeout=0.5)
    finally:
        over.set()
        thief.join()
        taken.unlink()

    cause, code, _ = ended(jobs, job)
    assert (cause, code) == ("exited", 6)


@pytest.mark.req("O-09")
def test_on_a_full_disk_no_job_is_started_and_nothing_is_left_of_it(jobs: Jobs, disk: Path) -> None:
    jobs.run(Shell("true"), timeout=10)
    taken = disk / "taken"
    fill(taken)
    before = sorted(os.listdir(disk / "jobs")), os.listdir(disk / "jobs" / ".living")

    with pytest.raises(StorageError, match="the disk is full"):
        jobs.start(Shell("true"))

    assert (sorted(os.listdir(disk / "jobs")), os.listdir(disk / "jobs" / ".living")) == before
    taken.unlink()
    assert jobs.run(Shell("true"), timeout=10).status == "completed"


@pytest.mark.req("B-08", "O-09")
def test_a_keeper_that_was_killed_on_a_full_disk_left_a_job_that_is_lost_not_running(jobs: Jobs, disk: Path) -> None:
    job = jobs.start(Shell("sleep 60"))
    until(lambda: jobs.get(job.id).pid is not None)
    taken = disk / "taken"
    fill(taken)
    keeper = supervisor_pid(JobPaths(jobs.home, job.id))
    assert keeper
    os.kill(keeper, 9)

    lost = jobs.wait(job.id, timeout=10)
    assert lost.end is not None and lost.end.cause == "lost"
    taken.unlink()
    (notice,) = Outbox(jobs.home).take()
    assert notice.task_id == job.id


@pytest.mark.req("O-09")
def test_a_quota_is_told_apart_from_a_full_disk(jobs: Jobs, disk: Path) -> None:
    job = jobs.start(Shell(f"echo up; until [ -e {disk}/jobs/go ]; do sleep 0.01; done; exit 7"))
    keeper = supervisor_pid(JobPaths(jobs.home, job.id))
    try:
        tracer = subprocess.Popen(
            ["strace", "-qq", "-o", "/dev/null", "-p", str(keeper), "-e", "inject=fallocate:error=EDQUOT"],
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError:
        pytest.skip("strace is not installed")
    try:
        traced = Path(f"/proc/{keeper}/status")
        until(lambda: "TracerPid:\t0\n" not in traced.read_text(encoding="ascii"), what="strace is there")
        (disk / "jobs" / "go").touch()
        assert ended(jobs, job)[1:] == (7, "EDQUOT: Disk quota exceeded")
    finally:
        tracer.kill()
        tracer.communicate()
