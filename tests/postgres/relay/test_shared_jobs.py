"""Jobs of another machine: listed, awaited, stopped, paused, typed into and read as those of one's own."""

from __future__ import annotations

import asyncio

import pytest

from support.hosts import Machine, Machines
from support.jobs import kill_keeper
from support.wait import until
from taskyard.errors import HostAway, JobEnded, JobNotFound, NoInput
from taskyard.jobs.async_jobs import AsyncJobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus

pytestmark = pytest.mark.req("X-01", "B-07")


def test_a_job_of_another_machine_is_seen_and_awaited(forge: Machine, desk: Machine) -> None:
    job = forge.jobs("ada").start(Shell("echo hello; exit 3", name="a short one"))
    there = desk.jobs()
    until(lambda: there.list(ended=True))

    seen = there.wait(job.id, timeout=10)

    assert (seen.host_name, seen.is_on_other_host, seen.agent_id) == ("forge", True, "ada")
    assert seen.status is JobStatus.FAILED
    assert seen.end is not None and seen.end.exit_code == 3
    assert there.read(job.id).text == b"hello\n"


def test_a_job_of_another_machine_is_stopped_with_proof(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60 & sleep 60"))
    there = desk.jobs("bob")
    until(lambda: there.list())

    (stopped,) = there.stop(job.id)

    assert (stopped.outcome, stopped.job.status) == ("stopped", JobStatus.KILLED)
    assert stopped.job.end is not None
    assert (stopped.job.end.proof, stopped.job.end.by) == ("proved", "bob")
    assert there.stop(job.id)[0].outcome == "already_ended"
    assert there.list() == []


def test_an_id_that_no_machine_knows_is_not_found(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("true"))
    there = desk.jobs()
    until(lambda: there.list(ended=True))
    wrong = job.id[:-1] + ("0" if job.id[-1] != "0" else "1")

    with pytest.raises(JobNotFound) as caught:
        there.get(wrong)

    assert job.id in caught.value.nearest


def test_a_job_of_another_machine_is_paused_and_goes_on(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())

    assert (there.pause(job.id), there.pause(job.id)) == (True, False)
    until(lambda: there.get(job.id).is_paused)
    assert (there.resume(job.id), there.resume(job.id)) == (True, False)
    until(lambda: not there.get(job.id).is_paused)


def test_a_job_of_another_machine_is_answered_and_its_output_read_in_parts(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("read name; echo hello $name; read rest", stdin=True))
    there = desk.jobs()
    until(lambda: there.list())

    assert there.answer(job.id, "ada\n").is_on_other_host
    until(lambda: there.read(job.id).text == b"hello ada\n")
    part = there.read(job.id, 6, most=3)
    assert (part.text, part.offset, part.next_offset) == (b"ada", 6, 9)
    assert there.send(job.id, "", close=True)
    assert there.wait(job.id, timeout=10).is_final


def test_what_a_job_elsewhere_refuses_is_refused_here_in_the_same_words(forge: Machine, desk: Machine) -> None:
    here = forge.jobs()
    job = here.start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())

    with pytest.raises(NoInput) as caught:
        there.answer(job.id, "y\n")
    with pytest.raises(NoInput) as expected:
        here.answer(job.id, "y\n")
    assert (str(caught.value), caught.value.facts()) == (str(expected.value), expected.value.facts())
    assert there.send(job.id, "y\n") is False
    there.stop(job.id, grace=0)
    with pytest.raises(JobEnded):
        there.pause(job.id)


def test_an_output_that_is_read_as_a_model_does_needs_no_notice_on_any_machine(forge: Machine, desk: Machine) -> None:
    job = forge.jobs("ada").start(Shell("echo done"))
    there = desk.jobs("ada")
    until(lambda: desk.outbox("ada").waiting())

    found = there.output(job.id, timeout=10)

    assert (found.output, len(found.delivered)) == ("done\n", 1)
    assert desk.outbox("ada").waiting() == forge.outbox("ada").waiting() == []
    own = forge.jobs("ada").start(Shell("echo more"))
    assert len(forge.jobs("ada").output(own.id, timeout=10).delivered) == 1
    until(lambda: [one.is_final for one in desk.jobs().list(ended=True) if one.id == own.id] == [True])
    assert desk.outbox("ada").waiting() == forge.outbox("ada").waiting() == []


def test_of_a_machine_that_fell_silent_jobs_are_disconnected_and_nothing_is_asked(machines: Machines) -> None:
    forge, desk = machines("forge", silence=1.0), machines("desk", silence=1.0)
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: [one.is_disconnected for one in there.list()] == [False])
    forge.kill_relay()
    until(lambda: there.get(job.id).is_disconnected)

    assert there.get(job.id).status is JobStatus.RUNNING
    with pytest.raises(HostAway) as caught:
        there.stop(job.id)
    assert (caught.value.host, caught.value.job_id, caught.value.retryable) == ("forge", job.id, True)

    forge.jobs().list()  # any look over there brings its relay back
    until(lambda: not there.get(job.id).is_disconnected)
    assert there.stop(job.id, grace=0)[0].outcome == "stopped"


def test_a_job_whose_keeper_was_killed_is_lost_everywhere(forge: Machine, desk: Machine) -> None:
    here = forge.jobs()
    job = here.start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())

    kill_keeper(here, job)

    end = there.wait(job.id, timeout=10).end
    assert end is not None and end.cause == "lost"


async def _awaited(machine: Machine, job_id: str) -> tuple[bool, str]:
    jobs = AsyncJobs(machine.jobs())
    before = await jobs.wait(job_id, timeout=0.05)
    (stopped,) = await jobs.stop(job_id, grace=0)
    return before.is_final, (await jobs.wait(job_id)).status.value + stopped.outcome


def test_a_program_with_an_event_loop_awaits_and_stops_jobs_elsewhere(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    there = desk.jobs()
    until(lambda: there.list())

    assert asyncio.run(_awaited(desk, job.id)) == (False, "killedstopped")
