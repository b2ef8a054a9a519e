"""Teams in files of this machine: records (`team_record`), boxes (`maildir`), and the kernel's word on who lives."""

from __future__ import annotations

import os

from taskyard import instances
from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.processes import process_alive, this_host
from taskyard.maildir import Box, mail_folder
from taskyard.names import folder_name
from taskyard.tasklist import team_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from taskyard.errors import Damaged
    from taskyard.instances import Instance
    from taskyard.tasklist.team_record import Member, Team


class TeamFiles:
    """Every team of one user."""

    def __init__(self, home: str) -> None:
        self._home = home

    def read(self, team: str) -> Team | None:
        """The team of this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        return team_record.read(self._home, team)

    def has(self, team: str) -> bool:
        """Whether there is a team of this name, readable or not."""
        return os.path.lexists(team_record.path_of(self._home, team))

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Every team by name, and what could not be read."""
        return team_record.listing(self._home)

    def names(self) -> list[str]:
        """The folder names of all teams."""
        return team_record.names(self._home)

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by what `rule` makes of it, None for either meaning that there is none."""
        return team_record.change(self._home, team, rule)

    def set_aside(self, team: str) -> None:
        """Take a record that cannot be read out of the way, and keep it."""
        team_record.set_aside(self._home, team)

    def open_box(self, team: str, agent: str) -> None:
        """Have `agent` get mail in a team."""
        self._box(team, agent).open()

    def close_box(self, team: str, agent: str) -> None:
        """Have `agent` get no more mail in a team; what it has stays readable."""
        self._box(team, agent).close()

    def put_mail_away(self, team: str) -> None:
        """Keep a dissolved team's mail where a new team of that name does not find it."""
        files.make_private_folder(f"{self._home}/mail/.dissolved")
        kept = f"{self._home}/mail/.dissolved/{folder_name('a team', team)}.{now_ms()}.{os.urandom(3).hex()}"
        try:
            os.rename(mail_folder(self._home, team), kept)
        except FileNotFoundError:
            pass  # nobody ever wrote

    def believe(self, instance: Instance) -> None:
        """Nothing is noted: the kernel knows of every instance."""

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Whether each member lives; None where nobody can tell."""
        return [_alive(self._home, member) for member in members]

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Nothing is called: all records show in one folder."""
        from contextlib import nullcontext

        return nullcontext()

    def _box(self, team: str, name: str) -> Box:
        for folder in (self._home, f"{self._home}/mail", mail_folder(self._home, team)):
            files.make_private_folder(folder)
        return Box(self._home, f"{mail_folder(self._home, team)}/{folder_name('an agent', name)}")


def _alive(home: str, member: Member) -> bool | None:
    if member.instance:
        return instances.instance_alive(home, member.instance)
    if not member.pid or not member.start:
        return None
    here = this_host()
    if member.host and member.host != here:
        return False if member.host.partition("/")[0] == here.partition("/")[0] else None
    return process_alive(member.pid, member.start)
