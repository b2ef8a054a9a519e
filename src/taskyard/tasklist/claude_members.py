"""
Claude Code's teams in our words, and agents of ours in them.

An agent of ours joins such a team as an outside program does: it gets an entry in the team's file,
and reads its mail through Taskyard. Members that Claude Code runs are its own affair.
"""

from __future__ import annotations

import os

from taskyard.errors import Conflict, UsageError
from taskyard.tasklist import claude_teams, team_record
from taskyard.tasklist.team_record import KINDS, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.claude_teams import ClaudeMember, ClaudeTeam


def has(claude: str, team: str) -> bool:
    """Whether Claude Code has a team of this name, readable or not."""
    return os.path.lexists(claude_teams.config_file(claude, team))


def refuse(team: str, what: str) -> Conflict:
    """The error for what only Claude Code does with a team of its own."""
    return Conflict(
        f"Team {team!r} is Claude Code's: only Claude Code can {what}."
        f" `taskyard team leave {team} AGENT` takes an agent of yours out of it."
    )


def join(claude: str, team: str, name: str, *, pid: int, colour: str | None) -> Member:
    """Make `name` a member of a team of Claude Code's.

    Raises:
        UsageError: with a process, which that team's file has no place for.
        AlreadyExists: a member of that name is there that is not ours.
    """
    if pid:
        raise UsageError(f"Team {team!r} is Claude Code's, which records no process of a member: leave out the pid.")
    return _outside(claude_teams.join_claude_team(claude, team, name, colour=colour))


def leave(claude: str, team: str, name: str) -> Member:
    """Take an agent of ours out of a team of Claude Code's.

    Raises:
        NotFound: nobody of that name is in it.
        Conflict: the member is Claude Code's own, or another program's.
    """
    found = claude_teams.read(claude, team)
    there = found.member(name) if found else None
    if there is not None and not there.is_ours:
        whose = "another program speaks for it" if there.is_outside else "Claude Code runs it"
        raise Conflict(f"{there.name!r} in team {team!r} is no agent of ours: {whose}, and only that can take it out.")
    if there is None or not claude_teams.leave_claude_team(claude, team, name):
        raise team_record.no_member(team, name, [member.name for member in found.members] if found else [])
    return _outside(there)


def as_team(team: ClaudeTeam) -> Team:
    """A team of Claude Code's as one of ours would look."""
    return Team(team.name, team.lead, tuple(_as_member(team, m) for m in team.members), team.created_at, "claude")


def _as_member(team: ClaudeTeam, member: ClaudeMember) -> Member:
    """A member of Claude Code's; one inside its process lives as long as that does."""
    if member.is_outside:
        return _outside(member)
    kind = member.backend if member.backend in KINDS else "external"
    inside = kind == "in-process" and team.pid_space == _pid_space()
    pid, start = (team.lead_pid, team.lead_start) if inside else (0, 0)
    return Member(member.name, member.joined_at, kind, pid, start, colour=member.colour)


def _outside(member: ClaudeMember) -> Member:
    return Member(member.name, member.joined_at, "external", colour=member.colour)


def _pid_space() -> str:
    """How Claude Code says in which pid namespace a pid counts: `<host>#pid:[<inode>]`."""
    try:
        return f"{os.uname().nodename}#{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""
