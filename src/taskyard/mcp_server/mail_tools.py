"""The tools of the team's mail: SendMessage, ReadMail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from taskyard.app import Yard
from taskyard.errors import JobNotFound, RecipientNotFound
from taskyard.kinds.agent_messages import as_line
from taskyard.mcp_server import arguments, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.bounds import LONGEST_TEXT, bounded, shortened
from taskyard.mcp_server.calls import Call, Spec
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.model import Job
from taskyard.tasklist.message import Message

#: The kinds of jobs that listen while they work.
AGENTS = ("local_agent", "remote_agent")

EVERYONE = "*"


async def _send(call: Call, given: arguments.SendMessage) -> Answer:
    job = await asyncio.to_thread(_working, call, given.to)
    if job is not None:
        await call.caller.jobs.answer(job.id, as_line(call.caller.name, given.message))
        return Answer(f"Message sent to {given.to}.", {"sent": [given.to], "ids": [job.id]})

    def act(yard: Yard) -> Answer:
        me = call.caller.name
        others = [name for name in yard.mail.known() if name != me] if given.to == EVERYONE else [given.to]
        if not others:
            raise RecipientNotFound(given.to, team=yard.mail.team)
        ids = [yard.mail.send(me, name, given.message, summary=given.summary).id for name in others]
        return Answer(f"Message sent to {', '.join(others)}.", {"sent": others, "ids": ids})

    return await call.caller.on_list(act)


def _working(call: Call, to: str) -> Job | None:
    """The agent at work that is meant: by the id of its job, or by its name where the caller started it."""
    jobs = call.caller.yard.jobs
    if is_job_id(to):
        try:
            job = jobs.get(to)
            return job if job.type in AGENTS else None
        except JobNotFound:
            pass  # a name may look like an id
    mine = [job for job in jobs.list() if job.type in AGENTS and job.agent_id == call.caller.yard.agent]
    return next((job for job in reversed(mine) if job.facts.get("name") == to), None)


async def _read(call: Call, given: arguments.ReadMail) -> Answer:
    def act(yard: Yard) -> tuple[list[Message], int]:
        me = call.caller.name
        waiting = yard.mail.peek(me, limit=given.limit)
        taken = yard.mail.take(me, limit=_fitting(waiting), hold=call.caller.hold) if waiting else []
        return taken, yard.mail.unread_count(me)

    taken, left = await call.caller.on_list(act)
    call.caller.gave_mail(message.id for message in taken)  # read when the caller asks for the next thing
    lines = [f"From {message.sender} ({message.type}): {shortened(message.text)}" for message in taken]
    if left:
        lines.append(f"… +{left} more: ReadMail again.")
    return Answer("\n\n".join(lines) or "No mail", {"messages": [_row(message) for message in taken], "left": left})


def _row(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "from": message.sender,
        "type": message.type,
        "text": shortened(message.text),
        "summary": message.summary,
        "data": bounded(message.data),
        "sent_at": message.sent_at,
        "redelivered": message.redelivered,
    }


def _fitting(waiting: Sequence[Message]) -> int:
    """How many of those that wait fit into one answer; always one, which is cut if it is long."""
    room, count = LONGEST_TEXT, 0
    for message in waiting:
        room -= len(message.text) + 200
        if room < 0 and count:
            break
        count += 1
    return count


MAIL_TOOLS: tuple[Spec[Any], ...] = (
    Spec(
        "SendMessage",
        words.SEND_MESSAGE,
        arguments.SendMessage,
        _send,
        schemas.SENT,
        title="Send a message",
    ),
    Spec("ReadMail", words.READ_MAIL, arguments.ReadMail, _read, schemas.MAIL, title="Read messages"),
)
