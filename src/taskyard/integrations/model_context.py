"""Text for a model's context in any agent loop: periodic reminders of tasks, and guidance once.

Messages are the dicts of the Anthropic or the OpenAI API. All functions are pure: conversation in, conversation
out. What the reminder adds is marked `"isMeta": True`, on its text block and, where it stands alone, on its
message, so that a transcript can show it as such. The APIs do not know this key: send `for_api(messages)`.

Nothing here is hidden from the user, and no text asks the model to hide anything.
"""

from __future__ import annotations

import os

from taskyard.core.values import NamedTuple, as_list, as_object
from taskyard.tasks.model import TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from taskyard.tasks.model import Task

    Message = Mapping[str, object]

#: Upper limits, whatever the configuration: reminders cost tokens at every later turn.
MOST_TASKS = 20
MOST_CHARACTERS = 2_000
MOST_REMINDERS = 5

META = "isMeta"

_MAX_SUBJECT = 120
_OPENING = "<system-reminder>\nAn automatic note from Taskyard, not from the user: the task tools have not been used"
_CLOSING = "\n</system-reminder>"
#: Using one of these counts as keeping a list.
TASK_TOOLS = frozenset(["TaskCreate", "TaskUpdate"])
_YES = frozenset(["1", "true", "yes", "on"])


class ReminderConfig(NamedTuple):
    """When to remind, and how long the reminder may be."""

    enabled: bool = True
    turns_since_use: int = 10  #: assistant turns without TaskCreate or TaskUpdate
    turns_between: int = 10  #: assistant turns since the last reminder
    most_tasks: int = MOST_TASKS
    most_characters: int = MOST_CHARACTERS  #: of the whole reminder, tags included
    most_reminders: int = MOST_REMINDERS  #: in one conversation


def reminder_config(env: Mapping[str, str] | None = None) -> ReminderConfig:
    """Return the defaults; disabled by `TASKYARD_REMINDERS=0` (or no, off, false)."""
    said = (os.environ if env is None else env).get("TASKYARD_REMINDERS", "").strip().lower()
    return ReminderConfig(enabled=not said or said in _YES)


def reminder(
    messages: Sequence[Message],
    tasks: Iterable[Task],
    config: ReminderConfig = ReminderConfig(),  # noqa: B008  (immutable)
    *,
    tools: Iterable[object] | None = None,
) -> list[Message]:
    """Return the conversation to send next: `messages`, with a reminder of `tasks` appended if one is due.

    Call it before each request. The input is never changed; without a reminder the result equals it. `tools`
    are the names or definitions the model has; without TaskUpdate, or with SendUserMessage, no reminder is
    added.
    """
    conversation = list(messages)
    if not _is_due(conversation, config, tools):
        return conversation
    text = reminder_text(tasks, config)
    return _append_reminder(conversation, text) if text else conversation


def for_api(messages: Sequence[Message]) -> list[Message]:
    """Return `messages` without the marks that no API knows."""
    return [_strip_meta(message) for message in messages]


def _is_due(messages: Sequence[Message], config: ReminderConfig, tools: Iterable[object] | None) -> bool:
    if not config.enabled or not _has_task_tools(tools) or not messages or _awaits_results(messages[-1]):
        return False
    since_use = since_reminder = reminders = 0
    used = False
    for message in reversed(messages):
        if _is_turn(message):
            used = used or not TASK_TOOLS.isdisjoint(_tools_used(message))
            since_use += not used
            since_reminder += not reminders
        elif _is_reminder(message):
            reminders += 1
    most = min(config.most_reminders, MOST_REMINDERS)
    return since_use >= config.turns_since_use and since_reminder >= config.turns_between and reminders < most


def _has_task_tools(tools: Iterable[object] | None) -> bool:
    if tools is None:
        return True
    names = _tool_names(tools)
    return "TaskUpdate" in names and "SendUserMessage" not in names


def _tool_names(tools: Iterable[object]) -> frozenset[str]:
    """Return names from names or definitions of either API; an MCP client's prefix is removed."""
    names: list[object] = []
    for tool in tools:
        definition = as_object(tool)
        if definition is None:
            names.append(tool)
        else:
            inner = as_object(definition.get("function")) or {}
            names.append(definition.get("name") or inner.get("name"))
    return frozenset(name.rsplit("__", 1)[-1] for name in names if isinstance(name, str))


def _is_turn(message: Message) -> bool:
    """Return whether the assistant wrote or acted; a message of thinking alone is part of the next."""
    if message.get("role") != "assistant":
        return False
    kinds = {block.get("type") for block in _blocks(message)}
    return not kinds or not kinds <= {"thinking", "redacted_thinking"}


def _tools_used(message: Message) -> frozenset[str]:
    uses: list[object] = [block for block in _blocks(message) if block.get("type") == "tool_use"]
    uses += as_list(message.get("tool_calls")) or []
    uses.append(message.get("function_call") or {})
    return _tool_names(uses)


def _awaits_results(last: Message) -> bool:
    """Return whether tool results must follow: the APIs refuse a message between a call and its result."""
    return last.get("role") == "assistant" and bool(_tools_used(last))


def _is_reminder(message: Message) -> bool:
    if message.get("role") != "user":
        return False
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [block.get("text") for block in _blocks(message)]
    return any(isinstance(text, str) and _OPENING in text for text in texts)


def _blocks(message: Message) -> Iterator[dict[str, object]]:
    for block in as_list(message.get("content")) or []:
        if (found := as_object(block)) is not None:
            yield found


def reminder_text(tasks: Iterable[Task], config: ReminderConfig) -> str:
    """Return the reminder alone, within its limits; empty if not even its frame fits."""
    shown = [task for task in tasks if not task.is_internal]
    frame = (
        f"{_OPENING} for a while. If they help with the work at hand, bring the list up to date: start a task "
        "before working on it, complete it when it is done, create what is missing. If they do not, go on. "
    )
    frame += "The list as it is now:" if shown else "The list is empty."
    room = min(config.most_characters, MOST_CHARACTERS) - len(frame) - len(_CLOSING)
    if room < 0:
        return ""
    return frame + _task_lines(shown, room, min(config.most_tasks, MOST_TASKS)) + _CLOSING


def _task_lines(tasks: Sequence[Task], room: int, most: int) -> str:
    """Return as many tasks as fit, open ones before completed ones, in the order of the list."""
    chosen: dict[str, str] = {}
    room -= len(f"\n… and {len(tasks)} more")
    for task in sorted(tasks, key=lambda task: _urgency(task.status)):
        line = f"\n#{task.id}. [{task.status.value}] {_escape_subject(task.subject)}"
        if len(chosen) >= most or len(line) > room:
            break
        room -= len(line)
        chosen[task.id] = line
    text = "".join(chosen[task.id] for task in tasks if task.id in chosen)
    left = len(tasks) - len(chosen)
    return f"{text}\n… and {left} more" if left and room >= 0 else text


def _urgency(status: TaskStatus) -> int:
    return (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.COMPLETED).index(status)


def _escape_subject(subject: str) -> str:
    """Return `subject` on one line, unable to close our tag or to open one."""
    plain = " ".join("".join(char if char.isprintable() else " " for char in subject).split())
    clipped = plain if len(plain) <= _MAX_SUBJECT else plain[: _MAX_SUBJECT - 1] + "…"
    return clipped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _append_reminder(messages: list[Message], text: str) -> list[Message]:
    """Append the reminder to the last user message, or as its own message after any other."""
    note: object = {"type": "text", "text": text, META: True}
    last = messages[-1]
    content = last.get("content")
    own = [{"type": "text", "text": content}] if isinstance(content, str) and content else as_list(content)
    if last.get("role") != "user" or own is None:
        return [*messages, {"role": "user", "content": [note], META: True}]
    return [*messages[:-1], {**last, "content": [*own, note]}]


def _strip_meta(message: Message) -> Message:
    plain = {key: value for key, value in message.items() if key != META}
    content = as_list(plain.get("content"))
    if content is not None:
        plain["content"] = [_strip_meta(block) if (block := as_object(raw)) is not None else raw for raw in content]
    return plain


def guidance(
    tools: Iterable[object] | None = None,
    *,
    interactive: bool = True,
    team: bool = False,
    env: Mapping[str, str] | None = None,
) -> str:
    """Return when and how to use the task tools, for an agent's instructions; empty where disabled.

    Enabled for interactive work. Headless it needs `TASKYARD_ENABLE_TASKS=1` or `CLAUDE_CODE_ENABLE_TASKS=1`.
    Only the text depends on it: the tools exist either way. Without TaskCreate among `tools` it is empty.
    """
    env = os.environ if env is None else env
    asked = any(env.get(f"{name}_ENABLE_TASKS", "").lower() in _YES for name in ("TASKYARD", "CLAUDE_CODE"))
    if not (interactive or asked) or (tools is not None and "TaskCreate" not in _tool_names(tools)):
        return ""
    return _GUIDANCE + _TEAM_GUIDANCE if team else _GUIDANCE


_GUIDANCE = """\
# Tasks

Keep a task list with TaskCreate and TaskUpdate when the work
- takes more than three steps,
- is several requests at once, or
- is not trivial: it needs a plan, or touches several places.

Do without one when the work takes three steps or fewer, or when the user only wants to talk or to know something.

- Set a task to in_progress before you start on it.
- Set it to completed as soon as it is done, not in a batch at the end.
- Completed means truly done: no failing tests, no open errors, nothing left out. Otherwise leave it in_progress \
and create a task for what stands in the way.
"""

_TEAM_GUIDANCE = """\

You work in a team on one list:
- Take tasks in the order of their ids, lowest first, unless they are blocked or somebody owns them.
- Call TaskList after each task you complete: others have moved on, and tasks may have become ready.
- Write descriptions another agent can act on without asking you: what, where, and how to tell that it is done.
"""
