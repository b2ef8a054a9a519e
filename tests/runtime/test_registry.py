"""The jobs that a program has in mind."""

from __future__ import annotations

import pytest

from taskyard import Shell
from taskyard.runtime import waiting
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.model import End, Job, JobStatus
from taskyard.runtime.registry import GRACE, Known, Registry

RUNNING = Job("b00000001", "local_bash", JobStatus.RUNNING, "tests", start_time=1000)
ENDED = RUNNING._replace(status=JobStatus.COMPLETED, end_time=2000, end=End("exited", 0, at=2000))
TOLD = ENDED._replace(notified=True)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Heard(list[tuple[Known, bool]]):
    def __call__(self, known: Known, gone: bool) -> None:
        self.append((known, gone))


def registry(*jobs: Job) -> tuple[Registry, Heard, Clock]:
    clock, heard = Clock(), Heard()
    found = Registry(clock)
    for job in jobs:
        found.register(job)
    found.listen(heard)
    return found, heard, clock


@pytest.mark.req("B-04")
def test_an_update_that_returns_the_same_object_changes_nothing_and_nobody_is_told() -> None:
    known, heard, _ = registry(RUNNING)
    before = known.get(RUNNING.id)

    assert known.update(RUNNING.id, lambda now: now) is before
    known.see(RUNNING)

    assert heard == []
    assert known.get(RUNNING.id) is before


@pytest.mark.req("B-04")
def test_an_update_of_an_unknown_id_does_nothing() -> None:
    known, heard, _ = registry()

    assert known.update("b00000009", lambda now: now._replace(output_offset=7)) is None
    known.see(RUNNING)

    assert (len(known), heard) == (0, [])


@pytest.mark.req("B-04")
def test_what_changes_is_replaced_and_told_once() -> None:
    known, heard, _ = registry(RUNNING)
    before = known.get(RUNNING.id)

    after = known.update(RUNNING.id, lambda now: now._replace(output_offset=7))

    assert heard == [(after, False)]
    assert before is not None and before.output_offset == 0, "a record that somebody holds was changed"


@pytest.mark.req("B-04")
@pytest.mark.parametrize("late", [{"error": "late"}, {"result": "late"}, {"progress": 3}])
def test_news_after_the_end_changes_nothing_of_how_it_ended(late: dict[str, object]) -> None:
    known, _, _ = registry(RUNNING)
    known.retain(RUNNING.id)
    known.see(ENDED)

    known.update(RUNNING.id, lambda now: now._replace(job=RUNNING._replace(facts=late)))

    found = known.get(RUNNING.id)
    assert found is not None and found.job == ENDED


@pytest.mark.req("B-04")
def test_what_a_slow_read_found_does_not_bring_an_ended_job_back() -> None:
    known, _, _ = registry(RUNNING)
    known.retain(RUNNING.id)
    slow = RUNNING
    known.see(ENDED)

    known.see(slow)

    found = known.get(RUNNING.id)
    assert found is not None and found.job.status is JobStatus.COMPLETED


@pytest.mark.req("B-05")
def test_notified_is_a_one_way_latch() -> None:
    known, _, _ = registry(TOLD)
    known.retain(TOLD.id)

    known.see(ENDED)

    found = known.get(TOLD.id)
    assert found is not None and found.job.notified


@pytest.mark.req("B-04")
def test_a_job_that_is_registered_again_keeps_its_viewers_its_start_and_what_waits_for_it() -> None:
    known, _, _ = registry(RUNNING)
    known.retain(RUNNING.id)
    known.update(RUNNING.id, lambda now: now._replace(messages=("hello",), pending=("next",), output_offset=9))

    assert known.register(RUNNING._replace(start_time=5000, attempt=2)) is False

    found = known.get(RUNNING.id)
    assert found is not None
    assert (found.viewers, found.messages, found.pending, found.output_offset) == (1, ("hello",), ("next",), 9)
    assert (found.job.start_time, found.job.attempt) == (1000, 2)


@pytest.mark.req("B-06")
def test_a_job_that_ended_and_was_told_leaves_at_once_if_nobody_ever_looked() -> None:
    known, heard, _ = registry(RUNNING)

    known.see(ENDED)
    assert len(known) == 1, "it left before anybody was told"
    known.see(TOLD)

    assert len(known) == 0
    assert [gone for _, gone in heard] == [False, False, True]


@pytest.mark.req("B-06")
def test_one_that_somebody_looks_at_stays_and_half_a_minute_longer() -> None:
    known, _, clock = registry(RUNNING)
    known.retain(RUNNING.id)
    known.retain(RUNNING.id)
    known.see(TOLD)
    clock.now += 1000
    known.let_go(RUNNING.id)
    assert len(list(known)) == 1, "one of two viewers turned away"
    known.let_go(RUNNING.id)

    clock.now += GRACE - 0.1
    assert len(list(known)) == 1
    clock.now += 0.2
    assert list(known) == []


@pytest.mark.req("B-06")
def test_one_that_is_looked_at_again_within_the_grace_stays() -> None:
    known, _, clock = registry(RUNNING)
    known.retain(RUNNING.id)
    known.see(TOLD)
    known.let_go(RUNNING.id)

    known.retain(RUNNING.id)
    clock.now += 10 * GRACE

    assert len(list(known)) == 1


@pytest.mark.req("B-06")
def test_a_running_job_never_leaves() -> None:
    known, _, clock = registry(RUNNING)
    clock.now += 1e9

    assert len(list(known)) == 1


@pytest.mark.req("B-04")
def test_whoever_stopped_listening_hears_nothing() -> None:
    known, _, _ = registry(RUNNING)
    heard = Heard()
    known.listen(heard)()

    known.see(ENDED)

    assert heard == []


@pytest.mark.req("B-04", "B-06")
def test_a_program_has_in_mind_what_it_started_until_it_ended_and_was_told(jobs: Jobs) -> None:
    heard = Heard()
    jobs.known.listen(heard)

    job = jobs.start(Shell(["cat"], stdin=True))
    assert [known.job.id for known in jobs.known] == [job.id]
    jobs.send(job.id, "", close=True)
    jobs.wait(job.id, timeout=20)

    assert list(jobs.known) == []
    assert [(known.job.status.value, gone) for known, gone in heard][-2:] == [("completed", False), ("completed", True)]


@pytest.mark.req("B-06")
def test_what_nobody_asks_about_again_does_not_gather_in_memory(jobs: Jobs) -> None:
    started = [jobs.start(Shell(["true"])) for _ in range(80)]
    waiting.wait_all(jobs.home, [job.id for job in started], 60)

    for _ in range(80):
        jobs.start(Shell(["true"]))

    assert len(jobs.known) < 130
