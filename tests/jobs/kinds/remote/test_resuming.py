"""Whatever is killed here, the session goes on: the same job follows it again, and nothing is said or told twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from support.disks import mounted
from support.fake_places import FakePlace, set_up
from support.jobs import kill_keeper
from support.python import run_python
from support.scale import scale
from support.wait import until
from taskyard import RemoteAgent, Shell
from taskyard.core.system import process_alive, process_start
from taskyard.jobs.events import Events
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job, JobStatus
from taskyard.jobs.notices import Outbox

LOOK = "import sys; from taskyard.jobs.jobs import Jobs; print(Jobs(sys.argv[1]).get(sys.argv[2]).status)"


def lines(job: Job) -> list[str]:
    return Path(job.output_file).read_text(encoding="utf-8").splitlines()


def numbers(most: int) -> list[str]:
    return [*map(str, range(1, most + 1))]


def events(jobs: Jobs, job_id: str) -> list[object]:
    return [event.data["subtype"] for event in Events(jobs.home) if event.task_id == job_id]


def started(jobs: Jobs, prompt: str, **more: object) -> Job:
    """An agent elsewhere that has said something."""
    job = jobs.start(RemoteAgent(prompt, "here", **more))  # type: ignore[arg-type]
    until(lambda: lines(job))
    return job


def fill(path: Path) -> None:
    """Take every block that is left on a disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(fd, b"x" * 4096):
            pass
    os.close(fd)


def kill_process(jobs: Jobs, job: Job) -> None:
    os.kill(jobs.get(job.id).pid or 0, signal.SIGKILL)


def assert_whole(jobs: Jobs, job: Job, most: int) -> None:
    done = jobs.wait(job.id, timeout=40)
    assert done.status is JobStatus.COMPLETED, done.end
    assert lines(done) == numbers(most)
    until(lambda: jobs.get(job.id).notified)  # the end is there before the notice, and a keeper may die in between
    told = Outbox(jobs.home, "ada").take()
    assert [(notice.task_id, notice.status) for notice in told] == [(job.id, "completed")]
    kinds = events(jobs, job.id)
    assert (kinds.count("task_started"), kinds.count("task_notification")) == (1, 1)
    assert not os.path.exists(JobPaths(jobs.home, job.id).elsewhere)


@pytest.mark.req("K-03", "B-05")
def test_a_process_that_is_killed_is_started_again_by_its_keeper(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 40 0.02")
    began, keeper = jobs.get(job.id).start_time, supervisor_pid(JobPaths(jobs.home, job.id))

    kill_process(jobs, job)

    assert_whole(jobs, job, 40)
    done = jobs.get(job.id)
    assert (done.start_time, done.attempt) == (began, 1)
    assert keeper is not None and done.end is not None and (done.end.duration_ms or 0) > 700


@pytest.mark.req("K-03", "B-07", "B-08")
def test_a_job_whose_keeper_is_killed_is_followed_again_by_the_next_look_of_anybody(
    jobs: Jobs, place: FakePlace
) -> None:
    job = started(jobs, "/count 40 0.02")

    kill_keeper(jobs, job)

    assert run_python(LOOK, jobs.home, job.id).strip() == "running"
    assert supervisor_pid(JobPaths(jobs.home, job.id))
    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03", "B-07")
def test_everything_is_killed_and_whoever_waits_has_it_followed_again(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 40 0.02")
    process = jobs.get(job.id).pid or 0

    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)

    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03", "B-08")
def test_after_a_restart_of_the_machine_it_is_followed_again(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 40 0.02")
    process = jobs.get(job.id).pid or 0
    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)
    record = Path(JobPaths(jobs.home, job.id).record)
    known = json.loads(record.read_text(encoding="utf-8"))
    record.write_text(json.dumps({**known, "host": "this-machine/another-boot", "pid": os.getpid()}), encoding="utf-8")

    assert [each.id for each in jobs.list()] == [job.id]

    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03", "B-14")
def test_a_process_that_its_keeper_left_behind_paused_is_ended_before_another_follows(
    jobs: Jobs, place: FakePlace
) -> None:
    job = started(jobs, "/count 40 0.02")
    process = jobs.get(job.id).pid or 0
    assert jobs.pause(job.id)
    kill_keeper(jobs, job)

    assert not jobs.get(job.id).is_paused
    assert not process_alive(process, process_start(process))
    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03", "B-05")
def test_of_many_who_look_at_once_one_gives_it_a_keeper(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 60 0.02")
    kill_keeper(jobs, job)

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: run_python(LOOK, jobs.home, job.id).strip(), range(8)))

    assert seen == ["running"] * 8
    assert_whole(jobs, job, 60)


@pytest.mark.req("K-03")
def test_one_that_dies_between_handing_over_and_writing_that_down_finds_the_same_session(
    jobs: Jobs, place: FakePlace
) -> None:
    job = started(jobs, "/count 40 0.02")
    session = jobs.get(job.id).facts["sessionId"]
    process = jobs.get(job.id).pid or 0
    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)
    sidecar, output = Path(JobPaths(jobs.home, job.id).elsewhere), Path(job.output_file)
    known = json.loads(sidecar.read_text(encoding="utf-8"))
    sidecar.write_text(json.dumps({**known, "sessionId": "", "cursor": "", "outputSize": 0}), encoding="utf-8")
    output.write_text("", encoding="utf-8")

    assert_whole(jobs, job, 40)
    assert jobs.get(job.id).facts["sessionId"] == session


@pytest.mark.req("K-03")
@pytest.mark.parametrize("behind", [0, 3, 7])
def test_one_that_dies_between_writing_and_remembering_writes_nothing_twice(
    jobs: Jobs, place: FakePlace, behind: int
) -> None:
    """The sidecar is put back to an earlier state: what came since stands in the output already."""
    job = started(jobs, "/count 40 0.02")
    until(lambda: len(lines(job)) > 9)
    process = jobs.get(job.id).pid or 0
    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)
    sidecar = Path(JobPaths(jobs.home, job.id).elsewhere)
    known = json.loads(sidecar.read_text(encoding="utf-8"))
    before = "".join(f"{number}\n" for number in range(1, behind + 1))
    sidecar.write_text(json.dumps({**known, "cursor": str(len(before)), "outputSize": len(before)}), encoding="utf-8")

    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03")
def test_what_a_power_cut_took_from_the_output_is_heard_again(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 40 0.02")
    until(lambda: len(lines(job)) > 9)
    process = jobs.get(job.id).pid or 0
    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)
    os.truncate(job.output_file, 7)

    assert_whole(jobs, job, 40)


@pytest.mark.req("K-03", "B-09")
def test_a_stop_whose_keeper_dies_over_it_is_carried_out_by_the_next(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "one\n/forever")
    process = jobs.get(job.id).pid or 0
    os.kill(process, signal.SIGSTOP)  # it hears of nothing
    asking = threading.Thread(target=lambda: jobs.stop(job.id))
    asking.start()
    record = Path(JobPaths(jobs.home, job.id).record)
    until(lambda: "stopping" in json.loads(record.read_text(encoding="utf-8")))
    os.kill(supervisor_pid(JobPaths(jobs.home, job.id)) or 0, signal.SIGKILL)

    done = jobs.wait(job.id, timeout=20)

    asking.join()
    assert (done.status, done.end and done.end.cause, done.end and done.end.proof) == (
        JobStatus.KILLED,
        "stopped",
        "proved",
    )


@pytest.mark.req("K-03", "B-12")
def test_one_that_waits_for_its_turn_goes_on_waiting_under_another_keeper(jobs: Jobs, place: FakePlace) -> None:
    first = jobs.start(Shell("sleep 60"))
    job = jobs.start(RemoteAgent("/count 3", "here"), after_any=[first.id])
    until(lambda: jobs.get(job.id).status is JobStatus.PENDING)
    kill_keeper(jobs, job)

    assert jobs.get(job.id).status is JobStatus.PENDING
    assert not os.path.exists(JobPaths(jobs.home, job.id).elsewhere)
    jobs.stop(first.id)

    assert jobs.wait(job.id, timeout=20).status is JobStatus.COMPLETED
    assert lines(job) == numbers(3)


@pytest.mark.req("K-03")
def test_a_job_that_comes_after_it_waits_for_it_also_without_its_keeper(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "/count 40 0.02")
    later = jobs.start(Shell("echo done"), after=[job.id])
    until(lambda: jobs.get(later.id).status is JobStatus.PENDING)

    kill_keeper(jobs, job)

    assert jobs.wait(later.id, timeout=20).status is JobStatus.COMPLETED
    assert jobs.get(job.id).status is JobStatus.COMPLETED


@pytest.mark.req("K-03")
def test_a_look_from_inside_another_job_gives_it_a_keeper_that_survives_that_job(jobs: Jobs, place: FakePlace) -> None:
    job = started(jobs, "one\n/ask More?")
    kill_keeper(jobs, job)

    looks = jobs.run(Shell([sys.executable, "-c", LOOK, jobs.home, job.id]), timeout=20)

    assert Path(looks.output_file).read_text(encoding="utf-8") == "running\n"
    assert looks.end is not None and (looks.end.exit_code, looks.end.leftovers, looks.end.survivors) == (0, 0, ())
    assert supervisor_pid(JobPaths(jobs.home, job.id))
    jobs.send(job.id, "no\n")
    assert jobs.wait(job.id, timeout=20).status is JobStatus.COMPLETED


@pytest.mark.req("K-03", "O-09")
def test_what_it_says_while_the_disk_is_full_is_written_once_there_is_room(place: FakePlace) -> None:
    with mounted("size=1m") as disk, closing(Jobs(str(disk / "home"), agent="ada")) as jobs:
        job = started(jobs, "one\n/wait 0.3\n/count 30 0.01")
        session = str(jobs.get(job.id).facts["sessionId"])
        big = disk / "big"
        fill(big)
        until(lambda: "30" in asyncio.run(place.backend().poll(session)).text, what="that it said all")
        big.unlink()

        done = jobs.wait(job.id, timeout=30)
        assert (done.status, lines(done)) == (JobStatus.COMPLETED, ["one", *numbers(30)])


@pytest.mark.req("K-03")
def test_who_has_not_its_token_cannot_follow_it_and_whoever_has_does(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = FakePlace(tmp_path / "locked", token="open-sesame")
    set_up(place, "here", token_env="PLACE_TOKEN")
    monkeypatch.setenv("PLACE_TOKEN", "open-sesame")
    job = started(jobs, "/count 40 0.02")
    process = jobs.get(job.id).pid or 0
    kill_keeper(jobs, job)
    os.kill(process, signal.SIGKILL)
    monkeypatch.delenv("PLACE_TOKEN")

    seen = jobs.get(job.id)
    assert (seen.status, seen.is_disconnected) == (JobStatus.RUNNING, True)
    assert "$PLACE_TOKEN is not set here" in str(seen.facts["disconnected"])
    assert jobs.wait(job.id, timeout=0.2).status is JobStatus.RUNNING

    monkeypatch.setenv("PLACE_TOKEN", "open-sesame")
    assert_whole(jobs, job, 40)
    place.kill()


@pytest.mark.req("K-03", "B-05")
def test_killed_at_random_moments_it_says_every_line_once_and_ends_once(jobs: Jobs, place: FakePlace) -> None:
    most = max(scale(2_000), 500)
    chance = random.Random(7)
    job = started(jobs, f"/count {most} 0.004")
    folder = JobPaths(jobs.home, job.id)
    over = threading.Event()
    kills = 0

    def look_now_and_then() -> None:
        while not over.wait(0.05):
            jobs.get(job.id)

    looking = threading.Thread(target=look_now_and_then)
    looking.start()
    try:
        while not jobs.get(job.id).is_final and kills < 200:
            over.wait(chance.uniform(0.01, 0.3))
            victims = [supervisor_pid(folder), jobs.get(job.id).pid]
            for pid in chance.sample(victims, chance.choice([1, 1, 2])):
                if pid and not jobs.get(job.id).is_final and _is_ours(pid, job.id):
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
    finally:
        over.set()
        looking.join()
    assert_whole(jobs, job, most)
    assert kills >= 5, "nothing was tried"


def _is_ours(pid: int, job_id: str) -> bool:
    """Whether a process is the job's keeper or follows its session: numbers are used again."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")
        born_with = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return job_id[:6] in name + born_with
