"""A model founds a team, adds a teammate and gets its work done by it."""

from __future__ import annotations

import shlex
import sys

import anyio
import pytest

import taskyard
from support.mcp_server import Model, talk
from support.wait import until

#: A teammate's program: it does its task by saying what it was asked.
SAYS = f'{shlex.quote(sys.executable)} -c "import sys; print(sys.argv[1][-40:])" {{prompt}}'


@pytest.mark.req("M-01", "K-04", "L-14")
def test_a_model_creates_a_team_and_a_teammate_completes_the_task_of_its_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", SAYS)

    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="On the list of before")
        made = await model.call("TeamCreate", team_name="parsers")
        assert made.data == {"team_name": "parsers", "lead": "ada", "list": "parsers"}
        assert (await model.call("TaskList")).text == "No tasks found"

        said = await model.call("Agent", prompt="Port the lexer.", name="bob", team_name="parsers")
        job_id = said.data["task_id"]
        assert said.data["task_type"] == "in_process_teammate"
        assert f"Teammate bob@parsers started with ID: {job_id}" in said.text

        def is_done() -> bool:
            with taskyard.open(list="parsers") as yard:
                return any(task.is_done for task in yard.tasks.list() if task.subject == "Port the lexer.")

        await anyio.to_thread.run_sync(lambda: until(is_done, timeout=30))
        with taskyard.open(list="parsers") as yard:
            team = yard.teams.get("parsers")
            assert (team.lead, sorted(member.name for member in team.members)) == ("ada", ["ada", "bob"])
        assert (await model.call("TaskStop", task_id=job_id)).data["outcome"] == "stopped"

    talk(body, agent="ada")


@pytest.mark.req("M-01")
def test_a_teammate_needs_a_name_and_a_team_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", SAYS)

    async def body(model: Model) -> None:
        nameless = await model.refused("Agent", prompt="x", team_name="parsers")
        assert "needs a name" in nameless.text
        assert (await model.refused("Agent", prompt="x", name="bob", team_name="nobody")).code == "team_not_found"
        await model.call("TeamCreate", team_name="parsers")
        assert (await model.refused("TeamCreate", team_name="parsers")).code == "already_exists"

    talk(body, agent="ada")
