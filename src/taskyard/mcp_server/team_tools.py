"""Teams through the tools: TeamCreate, and teammates by Agent with `team_name`."""

from __future__ import annotations

import asyncio
from typing import Any

from taskyard.app import Yard
from taskyard.errors import UsageError
from taskyard.kinds.teammate import Teammate
from taskyard.mcp_server import agent_arguments, arguments, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.listing import job_facts
from taskyard.runtime.background import check_background
from taskyard.tasklist.model import Task

#: Characters of a task's subject that are taken from a prompt.
_LONGEST_SUBJECT = 100

#: What a teammate does not take.
_NOT_FOR_TEAMMATES = ("remote", "remote_task_type", "isolation", "timeout", "max_tokens", "max_cost")


async def _create(call: Call, given: arguments.TeamCreate) -> Answer:
    def act(yard: Yard) -> str:
        return yard.teams.create(given.team_name, lead=call.caller.name).name

    team = await call.caller.on_list(act)
    await asyncio.to_thread(call.caller.lead, team)
    name = call.caller.tasks_yard.tasks.name
    text = (
        f"Team {team} created; you lead it as {call.caller.name}. Its task list is {name}: TaskCreate, TaskList and the"
        " others work on it from now on. Agent with name and team_name adds a teammate."
    )
    return Answer(text, {"team_name": team, "lead": call.caller.name, "list": name})


async def spawn(call: Call, given: agent_arguments.Agent) -> Answer:
    """Add a teammate to a team, with a task of its own for the prompt."""
    team, name = given.team_name or "", given.name
    if name is None:
        raise UsageError("A teammate needs a name: give name with team_name.")
    if odd := [field for field in _NOT_FOR_TEAMMATES if getattr(given, field) is not None]:
        raise UsageError(f"{odd[0]} is not for teammates: leave it out, or team_name.")
    check_background()

    def act(yard: Yard) -> Task:
        other = yard if team == yard.tasks.name else yard.beside(team)
        yard.teams.get(team)
        subject = given.description or given.prompt.strip().splitlines()[0][:_LONGEST_SUBJECT]
        return other.tasks.create(subject, description=given.prompt, owner=name)

    spec = Teammate(
        name,
        team,
        engine=given.engine or "",
        model=given.model,
        cwd=call.caller.folder,
        is_inside=False,
        until="stopped",
        tasks_dir=call.caller.yard.tasks_dir,
        tool_use_id=call.tool_use_id,
    )
    spec.wanted()  # refuses what cannot be, before there is a task for it
    task = await call.caller.on_list(act)
    job = await call.caller.jobs.start(spec)
    text = (
        f"Teammate {spec.identity} started with ID: {job.id}. Its prompt is task #{task.id}, and it takes free tasks"
        f" of the list after that. SendMessage to {name} tells it something, ReadMail shows its mail, TaskStop ends it."
    )
    return Answer(text, job_facts(job) | {"name": name})


TEAM_TOOLS: tuple[Spec[Any], ...] = (
    Spec("TeamCreate", words.TEAM_CREATE, arguments.TeamCreate, _create, schemas.TEAM, title="Create a team"),
)
