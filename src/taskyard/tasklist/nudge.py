"""Advice after everything is completed: have the work verified. One text for the agent, one for a person."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Task

#: One or two tasks are quickly looked over; from three on an independent look pays.
FEWEST_TASKS = 3


#: Where the instructions to the agent begin.
_INSTRUCTIONS = " Before you report the work as done, "


def note_for_person(note: str) -> str:
    """A note that came with a completed task as a person reads it: a fact and a command, no instructions to a model."""
    fact, found, _ = note.partition(_INSTRUCTIONS)
    return f"{fact} To have the work checked, start an agent: `taskyard agent PROMPT`." if found else note


def verification_nudge(tasks: Iterable[Task], *, verifier: str) -> str | None:
    """What to tell the main agent when `tasks` are all done and none of them was a verification.

    The caller knows whether the agent that completed the last one is the main agent, and whether nudges are on.
    """
    real = [task for task in tasks if not task.is_internal]
    if len(real) < FEWEST_TASKS or not all(task.is_done for task in real):
        return None
    if any("verif" in task.subject.lower() for task in real):
        return None
    return (
        f"All {len(real)} tasks are completed and none of them was a verification.{_INSTRUCTIONS}"
        f"start an agent of type {verifier!r} to check it independently: the verdict is the verifier's to "
        "give, not yours."
    )
