"""All boxes together: what was seen elsewhere is not told again."""

from __future__ import annotations

import os

import pytest

from support.ended_jobs import end_job, finish_halfway, job_folder, stall_job
from taskyard import config
from taskyard.jobs import exit_record
from taskyard.jobs import outbox as jobs_outbox
from taskyard.jobs.model import End
from taskyard.jobs.notices import Outbox

pytestmark = pytest.mark.req("N-07")


@pytest.fixture
def home() -> str:
    return config.home()


def states(home: str, job_id: str) -> list[str | None]:
    return [Outbox(home).state(notice.id) for notice in jobs_outbox.job_notices(home, job_id)]


def test_whoever_saw_the_end_elsewhere_is_not_told_of_it_again(home: str) -> None:
    other = end_job(home, "ada")
    job_id = end_job(home, "ada")

    assert len(jobs_outbox.mark_delivered(home, job_id)) == 1

    assert [notice.task_id for notice in Outbox(home, "ada").waiting()] == [other]
    assert (states(home, job_id), states(home, other)) == (["read"], ["stored"])
    assert jobs_outbox.mark_delivered(home, job_id) == ()


def test_a_notice_in_somebodys_hands_is_acknowledged_for_them(home: str) -> None:
    job_id = end_job(home, "ada")
    with Outbox(home, "ada") as outbox:
        (notice,) = outbox.take()
        assert jobs_outbox.mark_delivered(home, job_id) == (notice.id,)
        assert outbox.ack([notice.id]) == ()
    assert Outbox(home, "ada").waiting() == []


def test_a_question_of_a_job_whose_end_was_seen_is_not_told_either(home: str) -> None:
    job_id = stall_job(home, "ada")

    assert len(jobs_outbox.mark_delivered(home, job_id)) == 1
    assert Outbox(home, "ada").take() == []


@pytest.mark.req("B-05")
def test_an_end_seen_before_its_notice_was_sent_makes_no_notice_later(home: str) -> None:
    folder = job_folder(home, recipient="ada")
    finish_halfway(folder, End("exited", 0, at=1))

    assert len(jobs_outbox.mark_delivered(home, folder.id)) == 1
    exit_record.complete_end(folder)  # the keeper goes on

    assert Outbox(home, "ada").take() == []
    assert states(home, folder.id) == ["read"]
    assert not os.path.lexists(folder.notice)


def test_what_is_decided_but_not_written_as_an_end_is_left_to_its_keeper(home: str) -> None:
    folder = job_folder(home, recipient="ada")
    finish_halfway(folder, End("exited", 0, at=1))
    os.unlink(folder.end)

    assert jobs_outbox.mark_delivered(home, folder.id) == ()
    exit_record.complete_end(folder)
    assert len(Outbox(home, "ada").take()) == 1


@pytest.mark.parametrize("job_id", ["", "b", "../../../x", "b0000000\n", "B00000000"])
def test_an_id_that_no_job_can_have_finds_nothing(home: str, job_id: str) -> None:
    end_job(home)

    assert jobs_outbox.mark_delivered(home, job_id) == ()
    assert len(Outbox(home).waiting()) == 1


def test_a_notice_is_found_by_its_id_wherever_it_is(home: str) -> None:
    job_id = end_job(home, "ada")
    with Outbox(home, "ada") as outbox:
        (notice,) = outbox.waiting()
        for act in (lambda: None, outbox.take, lambda: outbox.ack([notice.id])):
            act()
            found = jobs_outbox.find_notice(home, notice.id)
            assert found is not None and found.task_id == job_id
    assert jobs_outbox.find_notice(home, "0643a11c-8712-8e4f-a5d3-f19c20b7e441") is None
    assert jobs_outbox.find_notice(home, "../x") is None
