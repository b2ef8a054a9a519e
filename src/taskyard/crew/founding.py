"""A team with its lead and its plan, for as long as it is led; afterwards it is dissolved, and its list stays."""

from __future__ import annotations

import os
from contextlib import contextmanager

from taskyard.crew import leads
from taskyard.errors import AlreadyExists, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from taskyard.app import Yard
    from taskyard.crew.plan_file import Plan

#: Who leads, where nobody says.
LEAD = "lead"


@contextmanager
def founded(team: str, plan: Plan | None, *, agent: str | None, report: Callable[[str], None]) -> Generator[Yard]:
    """Found `team`, led from this process, with the tasks of a plan on its list; at the end it is dissolved.

    One of that name in which nobody lives any more is taken over.

    Raises:
        AlreadyExists, TeamHasLivingMembers: somebody lives in a team of that name.
        HookRefused: a hook said no to a task of the plan; those before it stay on the list.
    """
    from taskyard.app import open as open_yard

    name = agent or os.environ.get("TASKYARD_AGENT") or LEAD
    with open_yard(list=team, agent=name, is_main=True, report=report) as yard:
        _make_room(yard, team)
        yard.teams.create(team, lead=yard.agent)
        try:
            leads.note(yard.home, team)
            if plan is not None:
                yard.tasks.add_all(plan.tasks)
            yield yard
        finally:
            _dissolve(yard, team)
            leads.forget(yard.home, team)


def _make_room(yard: Yard, team: str) -> None:
    """Dissolve a team of that name whose lead and members are dead: those that `team up` left when it was killed."""
    try:
        found = yard.teams.get(team)
    except NotFound:
        return
    living = {seen.member.name: seen.liveness for seen in yard.teams.members(team)}
    if found.source != "taskyard" or found.lead is None or living.get(found.lead) != "dead":
        hint = f"`taskyard team show {team}` shows it; `taskyard team join {team} --engine …` adds a member at work."
        if found.source == "taskyard":
            hint += f" `taskyard team remove {team}` dissolves it, and its list stays."
        raise AlreadyExists("a team", team, hint=hint)
    yard.teams.remove(team)


def _dissolve(yard: Yard, team: str) -> None:
    try:
        yard.teams.remove(team, force=True)
    except NotFound:
        pass  # somebody was quicker
