"""What a teammate's engine is told: pure text."""

from __future__ import annotations

from taskyard.shapes import as_object, as_text
from taskyard.turn import HOW_TO_FAIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.model import Task


def introduction(name: str, team: str, list_name: str, standing: str) -> str:
    """Who it is, where it works, and what always holds."""
    who = f"You are {name}, a teammate in team {team}. You share the task list {list_name!r} with the others."
    return f"{who}\n\n{standing.strip()}" if standing.strip() else who


def for_task(task: Task, plan: str = "") -> str:
    """To do one task."""
    agreed = f"\n\nThe plan that was approved:\n{plan}" if plan else ""
    return (
        f"{_about(task)}{agreed}\n\n"
        f"It is claimed for you and in progress. Do it, and only it. Your final answer is your report: say what you"
        f" did. The task counts as completed when your turn ends. {HOW_TO_FAIL}"
        " Others on the team can be reached with `taskyard mail send NAME TEXT`."
    )


def for_plan(task: Task, feedback: str = "") -> str:
    """To plan one task, and do nothing yet."""
    again = f"\n\nYour last plan was not approved. The lead says:\n{feedback}" if feedback else ""
    return (
        f"{_about(task)}{again}\n\n"
        "Do not begin yet and change nothing. Your final answer is your plan for it, which the lead approves or not."
    )


def afresh(task: Task | None, prompt: str) -> str:
    """The prompt for a new conversation, where the one about the task is lost."""
    if task is None or prompt.startswith(about := _about(task)):
        return prompt
    return f"{about}\n\nYou worked on it before; that conversation is lost.\n\n{prompt}"


def refused(task: Task, why: str) -> str:
    """To go on, since what was done does not count as done."""
    again = f"See to it, then end with your report. {HOW_TO_FAIL}"
    return f"Task #{task.id} is not completed: it was refused.\n\n{why}\n\n{again}"


def permitted(task: Task, refused: Sequence[str], answer: str) -> str:
    """To go on after a person answered about tools that were refused."""
    return (
        f"In task #{task.id} you were not permitted to use: {', '.join(refused)}. A person was asked, and answers:"
        f"\n\n{answer}\n\nContinue the task, and end with your report. {HOW_TO_FAIL}"
    )


def question(task: Task, refused: Sequence[str], report: str) -> str:
    """What a person is asked about a turn in which tools were refused."""
    said = f" It reports: {' '.join(report.split())[:500]}" if report.strip() else ""
    return (
        f"Task #{task.id} ({task.subject}) is not done: permission was refused for {', '.join(refused)}.{said}"
        " To permit it, set `agent_permissions` (ask, edit, work or all) in Taskyard's config.toml and answer `retry`;"
        " or answer what to do instead; or `done` to accept its work as it is; or `fail` to set the task aside."
    )


def from_somebody(sender: str | None, text: str) -> str:
    """To deal with a message."""
    return f"A message from {sender}:\n\n{text}" if sender else text


def from_hook(text: str) -> str:
    """To go on, since a hook did not let it idle."""
    return f"You are not done yet:\n\n{text}"


def _about(task: Task) -> str:
    lines = [f"Task #{task.id}: {task.subject}"]
    if task.description and task.description != task.subject:
        lines += ["", task.description]
    failed = as_object(task.extra.get("failed"))
    if failed is not None and (reason := as_text(failed.get("reason"))):
        lines += ["", f"An earlier attempt failed: {reason}"]
    return "\n".join(lines)
