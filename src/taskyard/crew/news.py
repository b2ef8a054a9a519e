"""What happens in a team, as sentences for whoever leads it. Pure: entries of the log, messages, jobs in; words out."""

from __future__ import annotations

from taskyard.shapes import as_object, as_text
from taskyard.tasklist.extras import requires_of
from taskyard.view.job_text import how_it_ended
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.model import Job
    from taskyard.tasklist.message import Message
    from taskyard.tasklist.model import Change, Task

#: How an act reads: `ada completes #3 Compile the sources`.
_VERBS = {
    "claim": "takes",
    "start": "starts",
    "complete": "completes",
    "release": "gives back",
    "reopen": "opens again",
    "create": "adds",
}

#: Characters of a text that are shown in one line of news.
_LONGEST = 300


def of_change(change: Change) -> str:
    """An entry of the list's log; empty if it is not worth a line."""
    if change.aborted:
        return ""
    tasks = [task for task in change.tasks.values() if task is not None and not task.is_internal]
    if not tasks:
        return ""
    named = ", ".join(f"#{task.id} {one_line(task.subject)}" for task in tasks)
    if change.act.cause == "lease_lost":
        aside = ", and is set aside" if any(task.is_held for task in tasks) else ""
        return f"{named} comes back to the pool{aside}: {one_line(change.act.by or 'its holder')} is gone"
    verb = _VERBS.get(change.act.cause)
    if verb is None:
        return ""
    if change.act.cause == "release" and change.act.note:
        return f"{named} comes back to the pool: {one_line(change.act.note)}"
    return f"{one_line(change.act.by or 'somebody')} {verb} {named}"


def of_message(message: Message) -> str:
    """A message to the lead."""
    sender = one_line(message.sender)
    if message.type == "idle_notification":
        why = as_text(message.data.get("idleReason"))
        return f"{sender} is idle{f' ({one_line(why)})' if why and why != 'available' else ''}"
    if message.type == "shutdown_approved":
        return f"{sender} shuts down"
    if message.type == "plan_approval_request":
        from shlex import quote

        plan = as_text(message.data.get("planContent")) or message.text
        who = f"{quote(one_line(message.team))} {quote(sender)}"
        return (
            f"{sender} wants a plan approved: {one_line(plan)}\n"
            f"        taskyard team approve {who}  or  taskyard team reject {who} 'WHY'"
        )
    return f"{sender} writes: {one_line(message.summary or message.text)}"


def of_question(name: str, job: Job) -> str:
    """A member that cannot go on without an answer, and how to give one."""
    question = both_ends(as_text(job.facts.get("question"))) or "it waits for input"
    return f"{one_line(name)} asks: {question}\n        taskyard send {job.id} 'ANSWER'"


def of_end(name: str, job: Job) -> str:
    """A member that is no more, though nobody asked it to go."""
    how = how_it_ended(job.end) if job.end is not None else "gone"
    error = job.end.error if job.end is not None else ""
    why = f": {one_line(error)}" if error and error not in how else ""
    return f"{one_line(name)} died ({how}){why}"


def of_stop(name: str, job: Job) -> str:
    """A member that stopped for a rate limit which is not to be waited for."""
    return f"{one_line(name)} stops: {one_line(job.end.error if job.end is not None else '')}"


def of_owner(task: Task, team: str) -> str:
    """A task that waits for somebody who is no member at work."""
    where = _list(team)
    return (
        f"waits for {one_line(task.owner or 'somebody')}: #{task.id} {one_line(task.subject)}\n"
        f"        taskyard task assign {task.id} AGENT {where}  or  taskyard task release {task.id} --force {where}"
    )


def why_open(task: Task, tasks: dict[str, Task], team: str) -> str:
    """Why nobody works on an unfinished task."""
    named = f"#{task.id} {one_line(task.subject)}"
    if task.is_held:
        failed = as_object(task.extra.get("failed")) or {}
        last = one_line(as_text(failed.get("reason")))
        why = f"it failed, last because: {last}" if last else "it lost its holders too often"
        return f"{named}: set aside, {why.rstrip('.')}. `taskyard task edit {task.id} --clear held {_list(team)}`"
    waits = [blocker for blocker in task.blocked_by if blocker in tasks and not tasks[blocker].is_done]
    if waits:
        return f"{named}: waits for {', '.join('#' + blocker for blocker in waits)}"
    if task.owner:
        return f"{named}: {one_line(task.owner)} has it"
    requires = requires_of(task)
    return f"{named}: requires {one_line(', '.join(requires))}" if requires else named


def _list(team: str) -> str:
    """Which list is meant: a person's own is another."""
    from shlex import quote

    return f"--list {quote(one_line(team))}"


def both_ends(text: str) -> str:
    """A question in one line: what it is about is at the beginning, the answers it offers are at the end."""
    line = safe(" ".join(text.split()))
    if len(line) <= 2 * _LONGEST:
        return line
    return f"{line[:_LONGEST]} … {line[-_LONGEST:]}"


def one_line(text: str) -> str:
    """A text from outside, harmless and short."""
    line = safe(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
