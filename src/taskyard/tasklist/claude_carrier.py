"""
Between Claude Code's inboxes on this machine and mail that lies in a database.

What Claude Code sends is moved into a box in our home, as without a database (`claude_mail`), and carried on from
there: stored in the database under the same id, then filed as read here. Whoever is killed in between is finished by
the next, and the same id is stored once.
"""

from __future__ import annotations

from taskyard import maildir, message_ids
from taskyard.disk import files
from taskyard.maildir import Box, mail_folder
from taskyard.names import folder_name
from taskyard.tasklist import claude_members
from taskyard.tasklist.claude_mail import ClaudeMail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.errors import Damaged

#: Seconds in which a message is carried; of whoever takes longer, the next believes that it died.
_CARRYING = 60.0


class ClaudeCarrier(ClaudeMail):
    """One team's; a team that Claude Code does not have here costs a look at one file."""

    def __init__(self, home: str, claude: str, team: str) -> None:
        super().__init__(claude, team)
        self._home = home

    @property
    def is_here(self) -> bool:
        """Whether a Claude Code on this machine has a team of this name."""
        return claude_members.has(self.claude, self.team)

    @property
    def inboxes(self) -> str:
        """The folder in which what it sends shows."""
        return f"{self.folder}/inboxes"

    def brought(self, agent: str, damaged: list[Damaged]) -> Iterator[tuple[str, str]]:
        """Id and body of each message that waits for `agent` in its inbox; it is gone there when the next is asked for.

        What cannot be read is noted in `damaged`.
        """
        if not self.is_here:
            return
        box = Box(self._home, f"{mail_folder(self._home, self.team)}/{folder_name('an agent', agent)}")
        box.check()
        damaged += self.fetch(agent, box, self._new_id)
        box.return_from_the_dead()
        names = box.waiting()
        holder = maildir.hold_for(_CARRYING) if names else ""
        for name in names:
            if box.take(name, holder) and (body := box.read(name, holder)) is not None:
                yield maildir.id_of(name), body.decode("utf-8", "replace")
                box.acknowledge(maildir.id_of(name), holder)

    def _new_id(self, sender: str) -> str:
        folder = mail_folder(self._home, self.team)
        for path in (self._home, f"{self._home}/mail", folder, f"{folder}/.sent"):
            files.make_private_folder(path)
        return message_ids.next_id(f"{folder}/.sent", sender)
