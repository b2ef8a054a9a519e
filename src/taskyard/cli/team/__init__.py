"""`taskyard team …`: teams of agents at work. One table; each verb lives in a file by its subject."""

from __future__ import annotations

from taskyard.cli.command import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = "taskyard.cli.team"

ROWS: Mapping[str, Row] = {
    "up": Row(f"{_HERE}.up:UP", "Have a team of agents work a list until all is done"),
    "create": Row(f"{_HERE}.records:CREATE", "Found a team"),
    "list": Row(f"{_HERE}.records:LIST", "All teams, ours and Claude Code's"),
    "show": Row(f"{_HERE}.show:SHOW", "Who is in a team, who lives, and what each does"),
    "join": Row(f"{_HERE}.members:JOIN", "Let an agent into a team, or be one of its members here"),
    "leave": Row(f"{_HERE}.members:LEAVE", "Take an agent out; its unfinished tasks go back to the pool"),
    "progress": Row(f"{_HERE}.members:PROGRESS", "Say that an agent gets on with its work, or has none left"),
    "approve": Row(f"{_HERE}.plans:APPROVE", "Let a member go on with the plan it asked about"),
    "reject": Row(f"{_HERE}.plans:REJECT", "Send a member back to its plan, with the reason"),
    "remove": Row(f"{_HERE}.removal:REMOVE", "Dissolve a team; everyone's unfinished tasks go back to the pool"),
}
