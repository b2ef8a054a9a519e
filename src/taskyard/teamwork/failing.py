"""A task that could not be done: back to the pool with the reason, and set aside when that happens too often. Pure."""

from __future__ import annotations

from taskyard.shapes import as_number, as_object
from taskyard.tasklist import rules
from taskyard.tasklist.model import Decision, Facts, Task, TaskStatus

#: Who completes what no agent may.
PERSON = "me"

#: Of a reason, what a task keeps, in characters: whoever tries next reads it.
LONGEST_REASON = 2_000


def failures(task: Task) -> int:
    """How often it failed in a row."""
    return as_number((as_object(task.extra.get("failed")) or {}).get("count"))


def handed_to_person(facts: Facts, caller: rules.Caller, *, reason: str, cwd: str) -> Decision:
    """Keep a task in progress whose work is finished, but that only a person can let be completed."""
    back = rules.release(facts, caller).task
    waits = {"reason": reason[:LONGEST_REASON], "by": caller.agent or "", "cwd": cwd}
    ours: dict[str, object] = {**back.extra, "awaiting": waits}
    kept = back._replace(status=TaskStatus.IN_PROGRESS, owner=PERSON, metadata={**back.metadata, "taskyard": ours})
    return Decision(kept, None)


def returned(facts: Facts, caller: rules.Caller, *, reason: str, most: int) -> Decision:
    """Put a task that its holder could not do back into the pool; the failure that makes it `most` sets it aside."""
    back = rules.release(facts, caller).task
    before = failures(back)
    count = before + 1 if before < most else 1  # it was set aside, and somebody wants it tried again
    ours: dict[str, object] = {
        **back.extra,
        "failed": {"count": count, "reason": reason[:LONGEST_REASON], "by": caller.agent or ""},
    }
    if count >= most:
        ours["held"] = True
    return Decision(back._replace(metadata={**back.metadata, "taskyard": ours}), None)
