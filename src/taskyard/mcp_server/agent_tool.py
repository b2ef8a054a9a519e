"""The tool of agents: Agent."""

from __future__ import annotations

from typing import Any

from taskyard.errors import UsageError
from taskyard.kinds.agent import Agent
from taskyard.kinds.remote_agent import RemoteAgent
from taskyard.mcp_server import agent_arguments, foreground, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call, Spec
from taskyard.mcp_server.for_task import for_task
from taskyard.mcp_server.listing import job_facts
from taskyard.mcp_server.results import agent_data
from taskyard.mcp_server.team_tools import spawn
from taskyard.mcp_server.told import when_it_ends
from taskyard.runtime.background import check_background
from taskyard.runtime.model import Job


async def _agent(call: Call, given: agent_arguments.Agent) -> Answer:
    if given.team_name is not None:
        return await spawn(call, given)
    spec = _remote(call, given) if given.remote is not None else _local(call, given)
    if isinstance(given, agent_arguments.BackgroundAgent) and given.run_in_background:
        check_background()
        return _works(call, await call.caller.jobs.start(for_task(call, spec)))
    return await foreground.run(call, spec, lambda job: _works(call, job, waited=True))


def _local(call: Call, given: agent_arguments.Agent) -> Agent:
    if given.remote_task_type is not None:
        raise UsageError("remote_task_type is for an agent elsewhere: give remote, or leave it out.")
    return Agent(
        given.prompt,
        engine=given.engine or "",
        agent_type=given.subagent_type,
        name=given.name,
        description=given.description or None,
        model=given.model,
        timeout=None if given.timeout is None else given.timeout / 1000,
        cwd=call.caller.folder,
        worktree=given.isolation == "worktree",
        max_tokens=given.max_tokens,
        max_cost=given.max_cost,
        tool_use_id=call.tool_use_id,
    )


#: What is about an agent that works here.
_HERE = ("engine", "model", "isolation", "max_tokens", "max_cost")


def _remote(call: Call, given: agent_arguments.Agent) -> RemoteAgent:
    if odd := [name for name in _HERE if getattr(given, name) is not None]:
        raise UsageError(f"{odd[0]} is about an agent that works here: leave it out, or remote.")
    return RemoteAgent(
        given.prompt,
        given.remote or "",
        remote_task_type=given.remote_task_type or "remote-agent",
        name=given.name,
        description=given.description or None,
        timeout=None if given.timeout is None else given.timeout / 1000,
        tool_use_id=call.tool_use_id,
    )


def _works(call: Call, job: Job, *, waited: bool = False) -> Answer:
    """What is answered while it works: its id, how to reach it, and how its end is told."""
    first = "It takes longer: the agent goes on in the background" if waited else "Agent running in background"
    name = job.facts.get("name") or job.id
    written = "what it says" if job.type == "remote_agent" else "its transcript"
    text = (
        f"{first} with ID: {job.id}. Do not do its work meanwhile. SendMessage to {name} tells it something;"
        f" {written} is being written to: {job.output_file}. {when_it_ends(call, 'Its answer')}"
    )
    if job.waits_for:
        text += f" It waits for {job.waits_for}."
    if job.needs_input:
        text += f" It asks: {job.facts.get('question')} SendInput answers it."
    return Answer(text, job_facts(job) | agent_data(job))


def agent_tools(*, in_foreground: bool) -> tuple[Spec[Any], ...]:
    """The tool; `in_foreground`: nothing may run in the background, and it cannot be asked for that."""
    takes = agent_arguments.Agent if in_foreground else agent_arguments.BackgroundAgent
    about = words.AGENT_IN_FOREGROUND if in_foreground else words.AGENT
    return (Spec("Agent", about, takes, _agent, schemas.AGENT, destroys=True, title="Have an agent do something"),)
