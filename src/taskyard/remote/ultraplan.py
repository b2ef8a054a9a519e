"""
Where an ultraplan stands, by what its session says and how it is. Pure.

    needs_input    it asked something
    plan_ready     its plan is there, and waits to be approved
    ""             it works
"""

from __future__ import annotations

from taskyard.remote.backend import RemoteState
from taskyard.remote.messages import message_in, used
from taskyard.shapes import as_text

NEEDS_INPUT, PLAN_READY = "needs_input", "plan_ready"

#: Tools by which an agent stops to ask, and the phase that each begins.
_ASKING = {"ExitPlanMode": PLAN_READY, "AskUserQuestion": NEEDS_INPUT}


def phase_after(phase: str, lines: list[str]) -> str:
    """The phase once these lines were said, where it was `phase` before; whatever it is answered ends one."""
    for line in lines:
        message = message_in(line)
        if message is None:
            continue
        if message.get("type") == "user":
            phase = ""
        for tool, _ in used(message):
            phase = _ASKING.get(tool, phase)
    return phase


def phase_shown(phase: str, state: RemoteState) -> str:
    """What to show: a session that waits for an answer does so whatever it said."""
    return phase or (NEEDS_INPUT if state is RemoteState.NEEDS_INPUT else "")


def plan_in(lines: list[str]) -> str:
    """The last plan that was shown; "" if there is none."""
    plan = ""
    for line in lines:
        for tool, given in used(message_in(line) or {}):
            if tool == "ExitPlanMode":
                plan = as_text(given.get("plan")) or plan
    return plan.strip()
