"""Several processes at once on one job: clear answers, nothing lost, one end, one notice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.racing import Racer, answered, race
from support.scale import scale
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.notices import Outbox

MANY = 8


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    found = Jobs(str(tmp_path / "home"))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def started(jobs: Jobs, command: str, *, stdin: bool = False) -> str:
    """A job that is up."""
    job = jobs.start(Shell(f"echo up; {command}", stdin=stdin, grace=0.1))
    until(lambda: os.path.getsize(job.output_file))
    return job.id


def one_notice(jobs: Jobs, job_id: str) -> None:
    """There is one, and it is of this job's end."""
    (notice,) = Outbox(jobs.home).take()
    assert (notice.task_id, notice.status) == (job_id, "killed")
    Outbox(jobs.home).ack([notice.id])


@pytest.mark.req("B-09", "B-05")
def test_all_who_stop_one_job_are_told_that_it_is_stopped(jobs: Jobs, tmp_path: Path) -> None:
    for number in range(scale(20, least=3)):
        job_id = started(jobs, "trap '' TERM; sleep 60 & wait; wait")

        def work(racer: Racer, job_id: str = job_id) -> None:
            own = Jobs(jobs.home)
            racer.start()
            racer.do("stop", (racer.name,), lambda: own.stop(job_id)[0].outcome)

        answers = Counter(event.result for event in race(MANY, work, tmp_path / f"race-{number}"))

        assert answers["stopped"] >= 1
        assert answers["stopped"] + answers["already_ended"] == MANY
        one_notice(jobs, job_id)


@pytest.mark.req("B-14", "B-09")
def test_pausing_resuming_and_stopping_at_once_ends_it_once_with_answers_for_all(jobs: Jobs, tmp_path: Path) -> None:
    for number in range(scale(20, least=3)):
        job_id = started(jobs, "sleep 60")

        def work(racer: Racer, job_id: str = job_id) -> None:
            own = Jobs(jobs.home)
            racer.start()
            for _ in range(3):
                racer.do("pause", (), own.pause, job_id)
                racer.do("resume", (), own.resume, job_id)
            racer.do("stop", (), lambda: own.stop(job_id)[0].outcome)

        history = race(4, work, tmp_path / f"race-{number}")

        steered = {event.result for op in ("pause", "resume") for event in answered(history, op)}
        assert steered <= {True, False, "job_ended"}
        assert {event.result for event in answered(history, "stop")} <= {"stopped", "already_ended"}
        assert jobs.get(job_id).end is not None
        one_notice(jobs, job_id)


@pytest.mark.req("O-08", "B-07")
def test_all_who_answer_at_once_are_heard_whole_each_answer_once(jobs: Jobs, tmp_path: Path) -> None:
    job_id = started(jobs, "head -n 24", stdin=True)

    def work(racer: Racer) -> None:
        own = Jobs(jobs.home)
        racer.start()
        for number in range(3):
            racer.do("send", (), own.send, job_id, f"{racer.name}-{number}-{'é' * 900}\n")

    history = race(MANY, work, tmp_path / "race")

    assert Counter(event.result for event in history) == {True: 3 * MANY}
    printed = Path(jobs.wait(job_id, timeout=10).output_file).read_text(encoding="utf-8").splitlines()[1:]
    assert sorted(printed) == sorted(f"racer-{one}-{number}-{'é' * 900}" for one in range(MANY) for number in range(3))


@pytest.mark.req("O-08")
def test_of_two_answers_to_one_question_one_is_read_and_the_late_are_told_that_it_is_over(
    jobs: Jobs, tmp_path: Path
) -> None:
    job_id = started(jobs, 'read -r x; echo "got $x"', stdin=True)

    def work(racer: Racer) -> None:
        own = Jobs(jobs.home)
        racer.start()
        racer.do("send", (), own.send, job_id, f"{racer.name}\n")

    history = race(MANY, work, tmp_path / "race")

    assert {event.result for event in history} <= {True, False, "job_ended"}
    printed = Path(jobs.wait(job_id, timeout=10).output_file).read_text(encoding="utf-8").splitlines()
    assert len(printed) == 2 and printed[1].startswith("got racer-")


@pytest.mark.req("B-05")
def test_a_notice_that_many_acknowledge_at_once_is_acknowledged_once(jobs: Jobs, tmp_path: Path) -> None:
    for number in range(scale(20, least=3)):
        job_id = jobs.start(Shell("true")).id
        jobs.wait(job_id, timeout=10)
        until(lambda: Outbox(jobs.home).waiting())
        with Outbox(jobs.home) as outbox:
            (notice,) = outbox.take(hold=60)

        def work(racer: Racer, notice_id: str = notice.id) -> None:
            own = Outbox(jobs.home)
            racer.start()
            racer.do("ack", (), lambda: len(own.ack([notice_id])))

        answers = Counter(event.result for event in race(MANY, work, tmp_path / f"race-{number}"))

        assert answers == {1: 1, 0: MANY - 1}
        assert (Outbox(jobs.home).state(notice.id), Outbox(jobs.home).waiting()) == ("read", [])
