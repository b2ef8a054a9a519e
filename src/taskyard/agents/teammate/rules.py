"""Pure rules of a teammate: failed tasks, idle state, plan approval, colours and prompts.

A failed task returns to the pool with the reason, and is quarantined when that happens too often.
"""

from __future__ import annotations

import os
from collections import Counter

from taskyard.agents.mail import MESSAGE
from taskyard.agents.turn import FAILURE_INSTRUCTION
from taskyard.core.system import iso
from taskyard.core.values import PERSON, NamedTuple, as_number, as_object, as_text
from taskyard.errors import BadValue
from taskyard.tasks import rules
from taskyard.tasks.model import Decision, Facts, Task, TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.agents.mail import Message
    from taskyard.agents.teams import Team


#: Maximum characters of a failure reason stored with a task, for the next attempt.
LONGEST_REASON = 2_000


def failure_count(task: Task) -> int:
    """Return how often a task failed in a row."""
    return as_number((as_object(task.extra.get("failed")) or {}).get("count"))


def hand_to_person(facts: Facts, caller: rules.Caller, *, reason: str, cwd: str) -> Decision:
    """Keep a finished task in progress until the user lets it be completed."""
    back = rules.release(facts, caller).task
    waits = {"reason": reason[:LONGEST_REASON], "by": caller.agent or "", "cwd": cwd}
    ours: dict[str, object] = {**back.extra, "awaiting": waits}
    kept = back._replace(status=TaskStatus.IN_PROGRESS, owner=PERSON, metadata={**back.metadata, "taskyard": ours})
    return Decision(kept, None)


def return_failed(facts: Facts, caller: rules.Caller, *, reason: str, most: int) -> Decision:
    """Return a failed task to the pool; its `most`th failure in a row quarantines it."""
    back = rules.release(facts, caller).task
    before = failure_count(back)
    count = before + 1 if before < most else 1  # it was quarantined and then released for another attempt
    ours: dict[str, object] = {
        **back.extra,
        "failed": {"count": count, "reason": reason[:LONGEST_REASON], "by": caller.agent or ""},
    }
    if count >= most:
        ours["held"] = True
    return Decision(back._replace(metadata={**back.metadata, "taskyard": ours}), None)


#: Maximum characters of the last answer in an idle notification.
_LONGEST_RESULT = 500


class IdleState(NamedTuple):
    """The idle state last reported; None at first."""

    told: bool | None = None

    def is_news(self, *, idle: bool) -> bool:
        """Return whether to report: only changes are reported."""
        return self.told is not idle

    def after(self, *, idle: bool) -> IdleState:
        """Return the state after reporting."""
        return IdleState(idle)


def idle_notification(name: str, *, at: int, result: str) -> dict[str, object]:
    """Return the data of the lead's idle notification, in Claude Code's format."""
    said = {"result": result[:_LONGEST_RESULT]} if result else {}
    return {"from": name, "timestamp": iso(at), "idleReason": "available", **said}


#: Plans per task before it is released: a lead that rejects all must not block it forever.
MOST_PLANS = 5

#: Maximum characters of a plan mailed to the lead.
LONGEST_PLAN = 100_000

PLAN_REQUEST, PLAN_RESPONSE = "plan_approval_request", "plan_approval_response"


#: Words by which a person approves.
APPROVALS = ("approve", "approved", "yes", "ok")


class PlanVerdict(NamedTuple):
    """A lead's verdict on a plan."""

    approved: bool
    feedback: str = ""


def new_request_id() -> str:
    """Return a unique id for a plan approval request."""
    return f"plan-{os.urandom(8).hex()}"


def plan_request(name: str, plan: str, *, request_id: str, task_id: str, at: int) -> dict[str, object]:
    """Return the data of a plan approval request to the lead."""
    return {
        "from": name,
        "timestamp": iso(at),
        "planContent": plan[:LONGEST_PLAN],
        "requestId": request_id,
        "taskId": task_id,
    }


def parse_verdict(message: Message, request_id: str) -> PlanVerdict | None:
    """Return the verdict in a message on the plan in question; None if it has none.

    A lead that is a person may answer in plain words: "approved" is a yes, anything else is feedback.
    """
    if message.type == PLAN_RESPONSE:
        asked = message.data.get("requestId")
        if asked not in (None, "", request_id):
            return None  # about an earlier plan
        said = as_text(message.data.get("feedback")) or message.text
        return PlanVerdict(message.data.get("approved") is True, said)
    if message.type == MESSAGE:
        return parse_verdict_text(message.text)
    return None


def parse_verdict_text(text: str) -> PlanVerdict:
    """Return the verdict in plain text."""
    return PlanVerdict(text.strip().rstrip(".!").lower() in APPROVALS, text)


#: Colours in assignment order; terminals and browsers have all of them.
PALETTE = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")


def check_colour(colour: str | None) -> str | None:
    """Return `colour` if it is known.

    Raises:
        BadValue: it is not.
    """
    if colour is not None and colour not in PALETTE:
        raise BadValue("colour", colour, f"one of {', '.join(PALETTE)}")
    return colour


def next_colour(taken: Iterable[str | None]) -> str:
    """Return the colour for the next member: the first of those least used."""
    count = Counter(taken)
    return min(PALETTE, key=lambda colour: count[colour])


def assign_colour(team: Team, name: str) -> Team:
    """Return the team with a colour for this member, if it has none."""
    there = team.member(name)
    if there is None or there.colour is not None:
        return team
    chosen = next_colour(member.colour for member in team.members)
    return team._replace(
        members=tuple(m._replace(colour=chosen) if m is there else m for m in team.members),
    )


def introduction(name: str, team: str, list_name: str, standing: str) -> str:
    """Return the introduction: name, team, list and the standing instructions."""
    who = f"You are {name}, a teammate in team {team}. You share the task list {list_name!r} with the others."
    return f"{who}\n\n{standing.strip()}" if standing.strip() else who


def task_prompt(task: Task, plan: str = "") -> str:
    """Return the prompt to do one task."""
    agreed = f"\n\nThe plan that was approved:\n{plan}" if plan else ""
    return (
        f"{_describe_task(task)}{agreed}\n\n"
        f"It is claimed for you and in progress. Do it, and only it. Your final answer is your report: say what you"
        f" did. The task counts as completed when your turn ends. {FAILURE_INSTRUCTION}"
        " Others on the team can be reached with `taskyard mail send NAME TEXT`."
    )


def plan_prompt(task: Task, feedback: str = "") -> str:
    """Return the prompt to plan one task, without changing anything yet."""
    again = f"\n\nYour last plan was not approved. The lead says:\n{feedback}" if feedback else ""
    return (
        f"{_describe_task(task)}{again}\n\n"
        "Do not begin yet and change nothing. Your final answer is your plan for it, which the lead approves or not."
    )


def restart_prompt(task: Task | None, prompt: str) -> str:
    """Return the prompt for a new conversation after the one about the task was lost."""
    if task is None or prompt.startswith(about := _describe_task(task)):
        return prompt
    return f"{about}\n\nYou worked on it before; that conversation is lost.\n\n{prompt}"


def refusal_prompt(task: Task, why: str) -> str:
    """Return the prompt to continue after completion was refused."""
    again = f"See to it, then end with your report. {FAILURE_INSTRUCTION}"
    return f"Task #{task.id} is not completed: it was refused.\n\n{why}\n\n{again}"


def permission_prompt(task: Task, refused: Sequence[str], answer: str) -> str:
    """Return the prompt to continue after a person answered about refused tools."""
    return (
        f"In task #{task.id} you were not permitted to use: {', '.join(refused)}. A person was asked, and answers:"
        f"\n\n{answer}\n\nContinue the task, and end with your report. {FAILURE_INSTRUCTION}"
    )


def permission_question(task: Task, refused: Sequence[str], report: str) -> str:
    """Return the question to the user about a turn in which tools were refused."""
    said = f" It reports: {' '.join(report.split())[:500]}" if report.strip() else ""
    return (
        f"Task #{task.id} ({task.subject}) is not done: permission was refused for {', '.join(refused)}.{said}"
        " To permit it, set `agent_permissions` (ask, edit, work or all) in Taskyard's config.toml and answer `retry`;"
        " or answer what to do instead; or `done` to accept its work as it is; or `fail` to set the task aside."
    )


def message_prompt(sender: str | None, text: str) -> str:
    """Return the prompt to handle a message."""
    return f"A message from {sender}:\n\n{text}" if sender else text


def hook_prompt(text: str) -> str:
    """Return the prompt to continue after a hook prevented idling."""
    return f"You are not done yet:\n\n{text}"


def _describe_task(task: Task) -> str:
    lines = [f"Task #{task.id}: {task.subject}"]
    if task.description and task.description != task.subject:
        lines += ["", task.description]
    failed = as_object(task.extra.get("failed"))
    if failed is not None and (reason := as_text(failed.get("reason"))):
        lines += ["", f"An earlier attempt failed: {reason}"]
    return "\n".join(lines)
