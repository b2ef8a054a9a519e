"""
What to do next after a refusal, for a model: by tools, where people have commands.

The sentence of fact is the same everywhere, only the advice differs. What is not named here says the same to all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from taskyard import errors
from taskyard.errors import TaskyardError

_ANOTHER = "take another: TaskClaim without a taskId"


def said(error: TaskyardError) -> str:
    """A refusal in words that a model can act on."""
    advise = _ADVICE.get(type(error))
    if advise is None:
        return str(error)
    return f"{error.fact} {advise(error)}".rstrip()


def call(tool: str, **fields: object) -> str:
    """A call as a model writes it."""
    return f"{tool} {json.dumps(fields, ensure_ascii=False)}"


def _reopen(task_id: str, what: str) -> str:
    return f"{call('TaskUpdate', taskId=task_id, status='pending')} {what}."


def _claimed(error: errors.AlreadyClaimed) -> str:
    if error.instance is not None:
        return f"That is another session under your name: {_ANOTHER}."
    return f"Ask {error.owner!r} (SendMessage), or {_ANOTHER}."


def _transition(error: errors.BadTransition) -> str:
    return _reopen(error.task_id, "opens it first") if error.was == "completed" else ""


def _busy(error: errors.AgentBusy) -> str:
    back = call("TaskUpdate", taskId=error.tasks[0], status="pending", owner="")
    return f"Complete that first, or give it back: {back}."


def _lost(error: errors.LeaseLost) -> str:
    return f"{call('TaskGet', taskId=error.task_id)} shows how it stands; {_ANOTHER}."


def _untrusted(error: errors.Untrusted) -> str:
    return f"Only a person can trust it, with `{error.how}`: ask for that."


def _no_task(error: errors.TaskNotFound) -> str:
    if error.restorable:
        return f"It was removed. A person can bring it back with `taskyard task restore {error.task_id}`."
    return f"{_near(error.nearest, '#')}TaskList shows those there are."


def _no_job(error: errors.JobNotFound) -> str:
    return f"{_near(error.nearest)}{call('ListJobs', all=True)} shows those there are."


def _nobody(error: errors.RecipientNotFound) -> str:
    if error.recipient == "*":
        return "Nobody else is here yet: do it yourself, or leave it on the list (TaskCreate)."
    return f"{_near(error.nearest)}TaskList shows who works here; * sends it to everyone else."


def _nothing_free(error: errors.NothingFree) -> str:
    if not error.open:
        return "If there is more to do, add it with TaskCreate; else the work is done."
    return "TaskList shows who has what and what waits for what: look again when something of it is completed."


def _no_input(error: errors.NoInput) -> str:
    if error.why == "takes no input":
        return "Only a command that was started with stdin takes any: stop it, and run it in Bash with stdin."
    return f"See what it does: {call('TaskOutput', task_id=error.job_id, block=False)}."


def _near(names: Sequence[str], sign: str = "") -> str:
    return f"Nearest: {', '.join(f'{sign}{name}' for name in names)}. " if names else ""


#: By the class itself: an heir says something else.
_ADVICE: dict[type[TaskyardError], Callable[[Any], str]] = {
    errors.AlreadyClaimed: _claimed,
    errors.AlreadyResolved: lambda error: _reopen(error.task_id, "opens it again"),
    errors.BadTransition: _transition,
    errors.AgentBusy: _busy,
    errors.LeaseLost: _lost,
    errors.Untrusted: _untrusted,
    errors.TaskNotFound: _no_task,
    errors.JobNotFound: _no_job,
    errors.RecipientNotFound: _nobody,
    errors.NothingFree: _nothing_free,
    errors.NoInput: _no_input,
    errors.JobEnded: lambda error: (
        f"Use {error.continued_as}." if error.continued_as else "If it is needed again, start it again."
    ),
    errors.BackgroundDisabled: lambda _: "Run it in the foreground: without run_in_background.",
    errors.Damaged: lambda _: "A person can run `taskyard doctor`, which explains what can be done.",
    errors.ListNotFound: lambda error: _near(error.nearest),
}
