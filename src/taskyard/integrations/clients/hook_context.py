"""What a Claude Code hook adds to its model's context: job notices and open tasks. Pure.

Claude Code reads one JSON object from a hook and shows hookSpecificOutput.additionalContext to its model, which
at Stop continues because of it. With decision "block" at Stop the model reads the reason twice (version
2.1.325).
"""

from __future__ import annotations

STOP = "Stop"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", STOP)

#: Claude Code moves hook output of more than 10,000 characters into a file; with its frame, this stays below.
MAX_CHARACTERS = 8_000

#: Tools after which the model is idle and can take waiting notices.
_WAIT_TOOLS = ("Sleep",)

#: Session sources with a new context: what the model knew of the list is gone or shortened.
_NEW_CONTEXT = ("compact", "resume")


def can_deliver(event: str, payload: dict[str, object]) -> bool:
    """Return whether output of this hook reaches the agent whose notices they are.

    Inside a sub-agent it would not. A model that continues because of a Stop hook is not kept from stopping
    again.
    """
    if event not in EVENTS or payload.get("agent_id"):
        return False
    return event != STOP or payload.get("stop_hook_active") is not True


def is_mid_turn(event: str, payload: dict[str, object]) -> bool:
    """Return whether queued user messages may still follow in this turn: notices of priority `later` wait.

    The client shows hooks no queue, so this is an assumption: after a tool call some may wait, at a prompt and
    at the end of a turn none do.
    """
    return event == "PostToolUse" and payload.get("tool_name") not in _WAIT_TOOLS


def wants_tasks(event: str, payload: dict[str, object]) -> bool:
    """Return whether the model should get the open tasks."""
    return event == "SessionStart" and payload.get("source") in _NEW_CONTEXT and not payload.get("agent_id")


def reply(event: str, text: str) -> dict[str, object]:
    """Return `text` in the form that `event` requires."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
