"""Who can get mail in a team: nobody else does, so that no message waits for a name that was misspelt."""

from __future__ import annotations

from taskyard import instances, maildir
from taskyard.errors import RecipientNotFound
from taskyard.maildir import Box, mail_folder
from taskyard.names import folder_name, nearest
from taskyard.tasklist import team_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.claude_teams import ClaudeTeam


def known(home: str, team: str, claude: ClaudeTeam | None) -> list[str]:
    """Members, ours and Claude Code's, every living instance, and whoever has an open box."""
    folder = mail_folder(home, team)
    ours = team_record.read(home, team)
    names = {member.name for member in ours.members} if ours else set[str]()
    names.update(member.name for member in (claude.members if claude else ()))
    names.update(record.name for record in instances.living(home))
    names.update(name for name in maildir.boxes(folder) if Box(home, f"{folder}/{name}").is_open)
    return sorted(names)


def check(recipient: str, names: Sequence[str], *, team: str) -> None:
    """Refuse a recipient that is none of `names`.

    Raises:
        RecipientNotFound: names the nearest.
    """
    if not is_among(recipient, names):
        raise RecipientNotFound(recipient, team=team, nearest=nearest(recipient, names))


def is_among(recipient: str, names: Sequence[str]) -> bool:
    """Whether `recipient` is one of `names`, by the folder its name becomes."""
    folder = folder_name("an agent", recipient)
    return any(folder_name("an agent", name) == folder for name in names)
