"""What a model starts while it works on a task is counted to that task."""

from __future__ import annotations

import os

import pytest

from support.mcp_server import Model, talk
from taskyard.jobs.jobs import Jobs


@pytest.mark.req("U-05", "T-03")
def test_jobs_are_for_the_task_that_their_starter_has_in_progress() -> None:
    jobs = Jobs(os.environ["TASKYARD_HOME"])

    async def task_of(model: Model) -> str | None:
        return jobs.get((await model.call("Bash", command="true")).data["task_id"]).task

    async def body(model: Model) -> None:
        for subject in ("A", "B"):
            await model.call("TaskCreate", subject=subject)
        assert await task_of(model) is None
        await model.call("TaskClaim")
        assert await task_of(model) == "demo/1"
        begun = await model.call("Bash", command="true", run_in_background=True)
        assert jobs.get(begun.data["task_id"]).task == "demo/1"
        flow = await model.call("Workflow", definition={"name": "W", "steps": [{"id": "s", "run": "true"}]})
        assert jobs.get(flow.data["steps"][0]["job"]).task == "demo/1"
        await model.call("TaskUpdate", taskId="2", status="in_progress")
        assert await task_of(model) == "demo/2"
        await model.call("TaskUpdate", taskId="1", subject="Another name")
        await model.call("TaskUpdate", taskId="2", status="completed")
        assert await task_of(model) in (None, "demo/1")

    talk(body, agent="ada")
