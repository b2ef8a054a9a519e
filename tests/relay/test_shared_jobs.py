"""Jobs of another machine: listed, awaited, stopped, paused, typed into and read as those of one's own."""

from __future__ import annotations

import pytest

from support.hosts import Machine
from support.wait import until
from taskyard.errors import JobNotFound
from taskyard.kinds.shell import Shell
from taskyard.runtime.model import JobStatus

pytestmark = pytest.mark.req("X-01", "B-07")


def test_a_job_of_another_machine_is_seen_and_awaited(forge: Machine, desk: Machine) -> None:
    job = forge.jobs("ada").start(Shell("echo hello; exit 3", name="a short one"))
    there = desk.jobs()
    until(lambda: there.list(ended=True))

    seen = there.wait(job.id, timeout=10)

    assert (seen.host_name, seen.is_far, seen.agent_id) == ("forge", True, "ada")
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
