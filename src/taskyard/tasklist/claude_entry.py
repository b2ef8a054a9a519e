"""
A message as an entry of a Claude Code inbox, both ways.

Free text is the entry's text. The protocol's messages are a JSON string in it, with a `type` and
the fields below; a JSON text of any other type is free text to us.
"""

from __future__ import annotations

import json

from taskyard.clock import iso, now_ms
from taskyard.shapes import as_name, as_object, as_text
from taskyard.tasklist.message import MESSAGE, TYPES, Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The fields of the protocol's messages, in Claude Code's order.
_FIELDS = {
    "task_assignment": ("taskId", "subject", "description", "assignedBy", "timestamp"),
    "idle_notification": ("from", "timestamp", "idleReason", "result"),
    "shutdown_request": ("requestId", "from", "reason", "timestamp"),
    "shutdown_approved": ("requestId", "from", "timestamp", "paneId", "backendType"),
    "plan_approval_request": ("from", "timestamp", "planFilePath", "planContent", "requestId"),
    "plan_approval_response": ("requestId", "approved", "feedback", "timestamp"),
}


def to_entry(message: Message) -> dict[str, Any]:
    """`message` as an entry of an inbox."""
    entry: dict[str, Any] = {"from": message.sender, "text": to_text(message)}
    if message.summary is not None:
        entry["summary"] = message.summary
    return entry | {
        "timestamp": iso(message.sent_at),
        "msgV": 1,
        "msg_id": message.id,
        "type": "message",
        "read": False,
    }


def to_text(message: Message) -> str:
    """What Claude Code reads as the text: a protocol message is a JSON string."""
    if message.type == MESSAGE:
        return message.text
    known: dict[str, object] = {"from": message.sender, "timestamp": iso(message.sent_at)}
    if message.text:
        known["reason" if message.type == "shutdown_request" else "text"] = message.text
    known.update(message.data)
    fields = {field: known[field] for field in _FIELDS[message.type] if field in known}
    rest = {field: value for field, value in message.data.items() if field not in fields and field != "type"}
    return json.dumps({"type": message.type} | fields | rest, ensure_ascii=False, separators=(",", ":"))


def from_entry(entry: dict[str, Any], *, message_id: str, recipient: str, team: str) -> Message | None:
    """The message in an entry of an inbox; None if it is none."""
    sender, text = as_name(entry.get("from")), entry.get("text")
    if not sender or not isinstance(text, str):
        return None
    kind, data = from_text(text)
    return Message(
        id=message_id,
        sender=sender,
        recipient=recipient,
        team=team,
        type=kind,
        text=text if kind == MESSAGE else as_text(data.get("reason")),
        summary=as_text(entry.get("summary")) or None,
        data=data,
        sent_at=_epoch_ms(as_text(entry.get("timestamp"))),
    )


def from_text(text: str) -> tuple[str, dict[str, Any]]:
    """Type and fields of a text: those of a protocol message, or a plain message without any."""
    if text.startswith("{"):
        try:
            found = as_object(json.loads(text)) or {}
        except (ValueError, RecursionError):
            return MESSAGE, {}
        kind = found.pop("type", None)
        if kind in TYPES and kind != MESSAGE:
            return str(kind), found
    return MESSAGE, {}


def _epoch_ms(timestamp: str) -> int:
    """An ISO timestamp as epoch ms; now, if it is none."""
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return now_ms()
