"""A model on one machine, about jobs on another: the same tools, the same words, and notices that ride along."""

from __future__ import annotations

import pytest

from support.hosts import Machine
from support.mcp_server import Model, talk
from support.wait import until
from taskyard.jobs.kinds.shell import Shell


@pytest.mark.req("X-01", "T-02", "T-03")
def test_a_model_lists_reads_and_stops_jobs_of_another_machine(forge: Machine, desk: Machine) -> None:
    job = forge.jobs("claude").start(Shell("echo hello; sleep 60", name="a far one"))
    until(lambda: desk.run("ps", "-q").lines == [job.id])

    async def body(model: Model) -> None:
        listed = await model.call("ListJobs")
        assert [(row["task_id"], row["host"]) for row in listed.data["jobs"]] == [(job.id, "forge")]
        looked = await model.call("TaskOutput", task_id=job.id, block=False)
        assert (looked.data["status"], looked.data["output"]) == ("running", "hello\n")
        waited = await model.call("TaskOutput", task_id=job.id, timeout=100)
        assert waited.data["retrieval_status"] == "timeout"
        refused = await model.refused("SendInput", task_id=job.id, text="y")
        assert refused.code == "no_input"
        stopped = await model.call("TaskStop", task_id=job.id)
        assert stopped.data["outcome"] == "stopped"
        over = await model.call("TaskOutput", task_id=job.id)
        assert (over.data["status"], over.data["retrieval_status"]) == ("killed", "success")

    talk(body)


@pytest.mark.req("X-01", "N-07")
def test_a_notice_of_a_job_elsewhere_rides_on_the_next_answer(forge: Machine, desk: Machine) -> None:
    desk.run("ps")  # be on that machine

    async def body(model: Model) -> None:
        await model.call("TaskList")
        job = forge.jobs("claude").start(Shell("exit 3"))
        until(lambda: desk.outbox("claude").waiting())
        desk.run("ps")
        said = await model.call("TaskList")
        assert [notice["task_id"] for notice in said.notices] == [job.id]
        assert (await model.call("TaskList")).notices == []

    talk(body, agent="claude")
    assert desk.outbox("claude").waiting() == []
