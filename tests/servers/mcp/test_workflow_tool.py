"""Workflows through the tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.mcp_server import Model, talk

TWO = {"name": "Two", "steps": [{"id": "one", "run": "echo $WHO"}, {"id": "two", "run": "true", "needs": ["one"]}]}


@pytest.mark.req("T-03", "K-05")
def test_a_workflow_answers_with_how_each_step_went() -> None:
    async def body(model: Model) -> None:
        said = await model.call("Workflow", definition=TWO, env={"WHO": "ada"})
        assert [(step["id"], step["status"]) for step in said.data["steps"]] == [
            ("one", "completed"),
            ("two", "completed"),
        ]
        one, two = said.text.splitlines()
        assert one.startswith("one [completed] (b") and two.startswith("two [completed] (b")
        assert said.data["run"] == said.data["task_id"]
        step = await model.call("TaskOutput", task_id=said.data["steps"][0]["job"])
        assert step.data["output"] == "ada\n"

    talk(body)


@pytest.mark.req("K-05", "T-04")
def test_a_run_that_failed_is_gone_on_with_and_what_is_finished_does_not_run_again(tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    first = {"id": "a", "run": f"echo x >> {tmp_path}/a"}
    second = {"id": "b", "needs": ["a"], "run": f"test -e {tmp_path}/go"}
    file.write_text(json.dumps({"name": "Flow", "steps": [first, second]}), encoding="utf-8")

    async def body(model: Model) -> None:
        failed = await model.refused("Workflow", path=str(file))
        assert "b [failed]" in failed.text
        assert f'Workflow {{"resume_from": "{failed.data["run"]}"}} goes on with it.' in failed.text
        (tmp_path / "go").touch()
        nothing = await model.refused("Workflow", resume_from=failed.data["run"])
        assert nothing.code == "conflict"
        again = await model.call("Workflow", resume_from=failed.data["run"], failed=True)
        assert again.data["status"] == "completed"
        assert (tmp_path / "a").read_text(encoding="utf-8") == "x\n"

    talk(body)


@pytest.mark.req("T-03", "T-04", "B-11")
def test_a_workflow_in_the_background_answers_at_once_and_can_be_stopped() -> None:
    long = {"name": "Long", "steps": [{"id": "one", "run": "sleep 60"}]}

    async def body(model: Model) -> None:
        said = await model.call("Workflow", definition=long, run_in_background=True)
        assert said.text.startswith(f"Workflow running in background with ID: {said.data['task_id']}. ")
        assert (await model.call("TaskStop", task_id=said.data["task_id"])).data["outcome"] == "stopped"
        waited = await model.call("Workflow", definition=long)
        assert waited.text.startswith("It takes longer: the workflow goes on in the background with ID: ")
        await model.call("TaskStop", task_id=waited.data["task_id"])

    talk(body, patience=0.3)


@pytest.mark.req("T-04")
def test_what_is_no_workflow_is_refused_and_nothing_is_started() -> None:
    async def body(model: Model) -> None:
        assert (await model.refused("Workflow")).code == "usage"
        assert (await model.refused("Workflow", path="x.yaml", definition=TWO)).code == "usage"
        assert (await model.refused("Workflow", path="no-such.yaml")).code == "not_found"
        assert (await model.refused("Workflow", definition={"steps": [{"id": "x"}]})).code == "bad_workflow"
        assert (await model.refused("Workflow", resume_from="wxxxxxxxx")).code == "job_not_found"
        assert (await model.call("ListJobs", all=True)).text == "No jobs found"

    talk(body)
