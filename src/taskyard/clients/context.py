"""
What a hook of Claude Code adds to its model's context: notices of jobs, and after a compaction the open tasks. Pure.

Claude Code reads one JSON object from a hook. What follows goes to the model:
    SessionStart, UserPromptSubmit, PostToolUse     hookSpecificOutput.additionalContext
    Stop                                            reason, with decision "block": the model goes on, and reads it
"""

from __future__ import annotations

from taskyard.tasklist.model import TaskStatus
from taskyard.view.model_text import listing
from taskyard.view.ordering import hidden_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from taskyard.tasklist.model import Task

STOP = "Stop"
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", STOP)

#: Claude Code puts more than 10,000 characters of a hook aside in a file; with the frame of the text this is below.
CHARACTERS = 8_000

#: As much of the list as a reminder may show.
MOST_TASKS = 20
MOST_CHARACTERS = 2_000

#: Its context is new to the model, and what it knew of the list is gone or shortened.
_ANEW = ("compact", "resume")

_RANK = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING)
_HEAD = "[Automatic note from Taskyard: the open tasks of the list {name}, as they are now.]"


def is_for_us(event: str, payload: dict[str, object]) -> bool:
    """Whether what is said now reaches the one whose notices they are.

    Inside a sub-agent it would not. And a model that goes on because of a Stop hook is not kept from stopping again.
    """
    if event not in EVENTS or payload.get("agent_id"):
        return False
    return event != STOP or payload.get("stop_hook_active") is not True


def wants_tasks(event: str, payload: dict[str, object]) -> bool:
    """Whether the model should be told what is on the list."""
    return event == "SessionStart" and payload.get("source") in _ANEW and not payload.get("agent_id")


def reply(event: str, text: str) -> dict[str, object]:
    """`text` in the form in which `event` takes it."""
    if event == STOP:
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def open_tasks(name: str, tasks: Sequence[Task], *, unreadable: Container[str] = ()) -> str:
    """The open tasks in the words of TaskList, within bounds, those in progress first; "" if there are none."""
    visible = [task for task in tasks if not task.is_internal]
    still_open = [task for task in visible if task.status in _RANK]
    if not still_open:
        return ""
    told = dict(zip((task.id for task in visible), listing(visible, unreadable=unreadable).split("\n")))
    head = _HEAD.format(name=name)
    room = MOST_CHARACTERS - len(head) - len(hidden_line(still_open)) - 1
    chosen: set[str] = set()
    for task in sorted(still_open, key=lambda task: _RANK.index(task.status)):
        line = _harmless(told[task.id])
        room -= len(line) + 1
        if room < 0 or len(chosen) == MOST_TASKS:
            break
        chosen.add(task.id)
        told[task.id] = line
    rest = hidden_line(task for task in still_open if task.id not in chosen)
    return "\n".join([head, *(told[task.id] for task in still_open if task.id in chosen), *([rest] if rest else [])])


def _harmless(line: str) -> str:
    """A line that can neither end a tag of the client nor begin one."""
    plain = "".join(char if char.isprintable() else " " for char in line)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
