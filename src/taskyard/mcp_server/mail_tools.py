"""The tools of the team's mail: SendMessage, ReadMail."""

from __future__ import annotations

from typing import Any

from taskyard.app import Yard
from taskyard.errors import RecipientNotFound
from taskyard.mcp_server import arguments, schemas, words
from taskyard.mcp_server.answers import Answer
from taskyard.mcp_server.calls import Call, Spec

EVERYONE = "*"


async def _send(call: Call, given: arguments.SendMessage) -> Answer:
    def act(yard: Yard) -> Answer:
        me = call.caller.name
        others = [name for name in yard.mail.known() if name != me] if given.to == EVERYONE else [given.to]
        if not others:
            raise RecipientNotFound(given.to, team=yard.mail.team)
        ids = [yard.mail.send(me, name, given.message, summary=given.summary).id for name in others]
        return Answer(f"Message sent to {', '.join(others)}.", {"sent": others, "ids": ids})

    return await call.caller.on_list(act)


async def _read(call: Call, given: arguments.ReadMail) -> Answer:
    def act(yard: Yard) -> Answer:
        me = call.caller.name
        taken = yard.mail.take(me, limit=given.limit, hold=call.caller.hold)
        yard.mail.ack(me, [message.id for message in taken])
        left = yard.mail.unread_count(me)
        data = [
            {
                "id": message.id,
                "from": message.sender,
                "type": message.type,
                "text": message.text,
                "summary": message.summary,
                "data": dict(message.data),
                "sent_at": message.sent_at,
            }
            for message in taken
        ]
        lines = [f"From {message.sender} ({message.type}): {message.text}" for message in taken]
        if left:
            lines.append(f"… +{left} more: ReadMail again.")
        return Answer("\n\n".join(lines) or "No mail", {"messages": data, "left": left})

    return await call.caller.on_list(act)


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
