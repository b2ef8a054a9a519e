"""The MCP tools of teams and mail: TeamCreate, SendMessage, ReadMail, and Agent with `team_name`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from taskyard.agents.mail import Message
from taskyard.agents.teammate.kind import Teammate
from taskyard.errors import JobNotFound, RecipientNotFound, UsageError
from taskyard.jobs.agent_reports import encode_message
from taskyard.jobs.environment import check_background
from taskyard.jobs.model import Job, is_job_id
from taskyard.servers.mcp import tool_definitions, tool_texts
from taskyard.servers.mcp.answers import LONGEST_TEXT, ToolAnswer, job_data, limit_data, truncate
from taskyard.servers.mcp.calls import ToolCall, ToolSpec
from taskyard.tasks.model import Task
from taskyard.yard import Yard

#: Most characters of a prompt that become a task's subject.
_LONGEST_SUBJECT = 100

#: Agent arguments that teammates do not accept.
_NOT_FOR_TEAMMATES = ("remote", "remote_task_type", "isolation", "timeout", "max_tokens", "max_cost")


async def _create(call: ToolCall, given: tool_definitions.TeamCreate) -> ToolAnswer:
    def act(yard: Yard) -> str:
        return yard.teams.create(given.team_name, lead=call.caller.name).name

    team = await call.caller.on_list(act)
    await asyncio.to_thread(call.caller.lead, team)
    name = call.caller.tasks_yard.tasks.name
    text = (
        f"Team {team} created; you lead it as {call.caller.name}. Its task list is {name}: TaskCreate, TaskList and the"
        " others work on it from now on. Agent with name and team_name adds a teammate."
    )
    return ToolAnswer(text, {"team_name": team, "lead": call.caller.name, "list": name})


async def spawn_teammate(call: ToolCall, given: tool_definitions.Agent) -> ToolAnswer:
    """Add a teammate to a team, with its prompt as a task."""
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
    spec.wanted()  # raises if invalid, before a task is created for it
    task = await call.caller.on_list(act)
    job = await call.caller.jobs.start(spec)
    text = (
        f"Teammate {spec.identity} started with ID: {job.id}. Its prompt is task #{task.id}, and it takes free tasks"
        f" of the list after that. SendMessage to {name} tells it something, ReadMail shows its mail, TaskStop ends it."
    )
    return ToolAnswer(text, job_data(job) | {"name": name})


TEAM_TOOLS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        "TeamCreate",
        tool_texts.TEAM_CREATE,
        tool_definitions.TeamCreate,
        _create,
        tool_definitions.TEAM,
        title="Create a team",
    ),
)


#: Kinds of jobs that accept messages while they work.
AGENT_TYPES = ("local_agent", "remote_agent")

EVERYONE = "*"


async def _send(call: ToolCall, given: tool_definitions.SendMessage) -> ToolAnswer:
    job = await asyncio.to_thread(_find_agent_job, call, given.to)
    if job is not None:
        await call.caller.jobs.answer(job.id, encode_message(call.caller.name, given.message))
        return ToolAnswer(f"Message sent to {given.to}.", {"sent": [given.to], "ids": [job.id]})

    def act(yard: Yard) -> ToolAnswer:
        me = call.caller.name
        others = [name for name in yard.mail.known() if name != me] if given.to == EVERYONE else [given.to]
        if not others:
            raise RecipientNotFound(given.to, team=yard.mail.team)
        ids = [yard.mail.send(me, name, given.message, summary=given.summary).id for name in others]
        return ToolAnswer(f"Message sent to {', '.join(others)}.", {"sent": others, "ids": ids})

    return await call.caller.on_list(act)


def _find_agent_job(call: ToolCall, to: str) -> Job | None:
    """Return the running agent that is meant: by its job id, or by name if the caller started it."""
    jobs = call.caller.yard.jobs
    if is_job_id(to):
        try:
            job = jobs.get(to)
            return job if job.type in AGENT_TYPES else None
        except JobNotFound:
            pass  # a name may look like an id
    mine = [job for job in jobs.list() if job.type in AGENT_TYPES and job.agent_id == call.caller.yard.agent]
    return next((job for job in reversed(mine) if job.facts.get("name") == to), None)


async def _read(call: ToolCall, given: tool_definitions.ReadMail) -> ToolAnswer:
    def act(yard: Yard) -> tuple[list[Message], int]:
        me = call.caller.name
        waiting = yard.mail.peek(me, limit=given.limit)
        taken = yard.mail.take(me, limit=_fitting_count(waiting), hold=call.caller.hold) if waiting else []
        return taken, yard.mail.unread_count(me)

    taken, left = await call.caller.on_list(act)
    call.caller.mark_mail_sent(message.id for message in taken)  # acknowledged with the caller's next request
    lines = [f"From {message.sender} ({message.type}): {truncate(message.text)}" for message in taken]
    if left:
        lines.append(f"… +{left} more: ReadMail again.")
    return ToolAnswer(
        "\n\n".join(lines) or "No mail", {"messages": [_message_json(message) for message in taken], "left": left}
    )


def _message_json(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "from": message.sender,
        "type": message.type,
        "text": truncate(message.text),
        "summary": message.summary,
        "data": limit_data(message.data),
        "sent_at": message.sent_at,
        "redelivered": message.redelivered,
    }


def _fitting_count(waiting: Sequence[Message]) -> int:
    """Return how many messages fit into one answer; always at least one, which is truncated if long."""
    room, count = LONGEST_TEXT, 0
    for message in waiting:
        room -= len(message.text) + 200
        if room < 0 and count:
            break
        count += 1
    return count


MAIL_TOOLS: tuple[ToolSpec[Any], ...] = (
    ToolSpec(
        "SendMessage",
        tool_texts.SEND_MESSAGE,
        tool_definitions.SendMessage,
        _send,
        tool_definitions.SENT,
        title="Send a message",
    ),
    ToolSpec(
        "ReadMail", tool_texts.READ_MAIL, tool_definitions.ReadMail, _read, tool_definitions.MAIL, title="Read messages"
    ),
)
