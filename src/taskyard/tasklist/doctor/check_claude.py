"""Checks of Claude Code's teams and inboxes, which mail goes through; they are its own, and not repaired here."""

from __future__ import annotations

import os

from taskyard.errors import Damaged
from taskyard.tasklist import claude_mail, claude_teams
from taskyard.tasklist.doctor.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.tasklist.claude_teams import ClaudeTeam

_THEIRS = "it is Claude Code's, and Taskyard writes nothing that it cannot read"


def check_claude(claude: str) -> Iterator[Finding]:
    """Records and inboxes of Claude Code's teams that cannot be read."""
    for name in claude_teams.names(claude):
        team = None
        try:
            team = claude_teams.read(claude, name)
        except Damaged as error:
            why = f"Who is in team {name!r} cannot be read: {error.why}. Only members of ours get mail there."
            fix = f"{_THEIRS}: mend it by hand, or end the team in Claude Code and remove its folder"
            yield Finding("damaged-claude-team", error.file, why, fix)
        yield from _check_inboxes(f"{claude_teams.team_folder(claude, name)}/inboxes", team)


def _check_inboxes(folder: str, team: ClaudeTeam | None) -> Iterator[Finding]:
    try:
        files = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return  # nobody wrote here yet
    for file in files:
        agent = file.removesuffix(".json")
        member = team.member(agent) if team is not None else None
        is_theirs = team is None or (member is not None and not member.is_outside)
        for error in claude_mail.damage(f"{folder}/{file}", entries=not is_theirs):
            why = f"Mail of {agent!r} in it cannot be read: {error.why}. It is left as it is."
            fix = f"{_THEIRS}: mend it by hand, or move it away while Claude Code does not run; a new one is begun"
            yield Finding("damaged-claude-inbox", error.file, why, fix)
