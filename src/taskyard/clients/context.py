"""
What a hook of Claude Code adds to its model's context: notices of jobs, and after a compaction the open tasks. Pure.

Claude Code reads one JSON object from a hook and shows hookSpecificOutput.additionalContext to its model, which at Stop
goes on because of it. With decision "block" at Stop the model reads the reason twice (version 2.1.325).
"""

from __future__ import annotations

STOP = "Stop"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", STOP)

#: Claude Code puts more than 10,000 characters of a hook aside in a file; with the frame of the text this is below.
CHARACTERS = 8_000

#: The tools after which the model has nothing else to do than to hear what came meanwhile.
_WAITS = ("Sleep",)

#: Its context is new to the model, and what it knew of the list is gone or shortened.
_ANEW = ("compact", "resume")


def is_for_us(event: str, payload: dict[str, object]) -> bool:
    """Whether what is said now reaches the one whose notices they are.

    Inside a sub-agent it would not. And a model that goes on because of a Stop hook is not kept from stopping again.
    """
    if event not in EVENTS or payload.get("agent_id"):
        return False
    return event != STOP or payload.get("stop_hook_active") is not True


def is_mid_turn(event: str, payload: dict[str, object]) -> bool:
    """Whether messages that the user has queued may be yet to come in this turn: notices of priority `later` wait.

    The client shows hooks no queue, so this is an assumption: after a tool some may wait, at a prompt and at the end
    of a turn none do.
    """
    return event == "PostToolUse" and payload.get("tool_name") not in _WAITS


def wants_tasks(event: str, payload: dict[str, object]) -> bool:
    """Whether the model should be told what is on the list."""
    return event == "SessionStart" and payload.get("source") in _ANEW and not payload.get("agent_id")


def reply(event: str, text: str) -> dict[str, object]:
    """`text` in the form in which `event` takes it."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
