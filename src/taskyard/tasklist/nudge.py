"""A word to the agent that has just completed everything: let somebody else check it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Task

#: One or two tasks are quickly looked over; from three on an independent look pays.
FEWEST_TASKS = 3


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
        f"All {len(real)} tasks are completed and none of them was a verification. Before you report the work as "
        f"done, start an agent of type {verifier!r} to check it independently: the verdict is the verifier's to "
        "give, not yours."
    )
