"""
Teams in a database: one row each, and who of their members is believed to live, wherever that is.

A change is decided on what was read, and refused by the server if somebody else was quicker; then it is decided again.
"""

from __future__ import annotations

import uuid

from taskyard.clock import elapsed
from taskyard.disk.processes import process_alive, this_host
from taskyard.errors import Busy, Damaged
from taskyard.heart import SILENCE, heart
from taskyard.names import folder_name
from taskyard.tasklist import team_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from taskyard.database.pool import Database
    from taskyard.instances import Instance
    from taskyard.tasklist.team_record import Member, Team

#: Seconds for which others may each be quicker with a change of the same team: it takes them milliseconds.
_PATIENCE = 10.0


class TeamRows:
    """Every team of a database."""

    def __init__(self, database: Database, *, silence: float = SILENCE) -> None:
        self._database = database
        self._silence = silence

    def read(self, team: str) -> Team | None:
        """The team of this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        return self._seen(team)[1]

    def _seen(self, team: str) -> tuple[int, Team | None]:
        """A team with the version it is of; 0 if there is none."""
        rows = self._database.ask("SELECT version, body FROM team WHERE key = %s", [folder_name("a team", team)])
        if not rows:
            return 0, None
        return rows[0][0], team_record.decoded(self._where(team), rows[0][1].encode())

    def has(self, team: str) -> bool:
        """Whether there is a team of this name, readable or not."""
        return folder_name("a team", team) in self.names()

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Every team by name, and what could not be read."""
        teams: list[Team] = []
        damaged: list[Damaged] = []
        for key, body in self._database.ask("SELECT key, body FROM team WHERE key !~ '/' ORDER BY key"):
            try:
                teams.append(team_record.decoded(self._where(key), body.encode()))
            except Damaged as error:
                damaged.append(error)
        return teams, damaged

    def names(self) -> list[str]:
        """The folder names of all teams."""
        return [row[0] for row in self._database.ask("SELECT key FROM team WHERE key !~ '/' ORDER BY key")]

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by what `rule` makes of it, None for either meaning that there is none."""
        began = elapsed()
        while (waited := elapsed() - began) < _PATIENCE:
            version, was = self._seen(team)
            now = rule(was)
            if now == was or self._replaced(team, version, now):
                return now
        raise Busy(self._where(team), "others, who change it again and again", waited)

    def _replaced(self, team: str, version: int, now: Team | None) -> bool:
        body = None if now is None else team_record.encoded(now).decode("ascii")
        values = [folder_name("a team", team), version, body, str(uuid.uuid4())]
        return bool(self._database.ask("SELECT change_team(%s, %s, %s, %s)", values)[0][0])

    def set_aside(self, team: str) -> None:
        """Take a record that cannot be read out of the way, and keep it."""
        key = folder_name("a team", team)
        aside = f".damaged/{key}/{uuid.uuid4().hex}"
        self._database.ask("UPDATE team SET key = %s WHERE key = %s", [aside, key])

    def open_box(self, team: str, agent: str) -> None:
        """Have `agent` get mail in a team."""
        values = [folder_name("a team", team), folder_name("an agent", agent), agent]
        self._database.ask("SELECT open_box(%s, %s, %s)", values)

    def close_box(self, team: str, agent: str) -> None:
        """Have `agent` get no more mail in a team; what it has stays readable."""
        values = [folder_name("a team", team), folder_name("an agent", agent)]
        self._database.ask("UPDATE box SET is_open = false WHERE team = %s AND agent = %s", values)

    def put_mail_away(self, team: str) -> None:
        """Keep a dissolved team's mail where a new team of that name does not find it."""
        key = folder_name("a team", team)
        away = f".dissolved/{key}/{uuid.uuid4().hex}"
        self._database.ask("UPDATE box SET team = %s, is_open = false WHERE team = %s", [away, key])

    def known(self, team: str) -> list[str]:
        """Members, every living instance, and whoever has an open box."""
        found = self.read(team)
        rows = self._database.ask(
            "SELECT name FROM box WHERE team = %s AND is_open UNION"
            " SELECT l.name FROM living l JOIN instance i ON i.id = l.instance WHERE i.until >= clock_timestamp()",
            [folder_name("a team", team)],
        )
        return [*(row[0] for row in rows), *(member.name for member in (found.members if found else ()))]

    def believe(self, instance: Instance) -> None:
        """Have every machine know that an instance of this process lives, as long as it does."""
        if instance.is_ours:
            heart(self._database).keep(instance.id, silence=self._silence)

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Whether each member lives; None where nobody can tell."""
        wanted = [member.instance for member in members if member.instance]
        sql = "SELECT id, until >= clock_timestamp() FROM instance WHERE id = ANY(%s)"
        believed: dict[str, bool] = dict(self._database.ask(sql, [wanted])) if wanted else {}
        return [_alive(member, believed) for member in members]

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when a team may have changed."""
        return self._database.ear.sound("teams").rings(wake)

    def _where(self, team: str) -> str:
        return f"team {team!r} in {self._database.where}"


def _alive(member: Member, believed: dict[str, bool]) -> bool | None:
    """Whether a member lives: on this machine by the kernel's word, elsewhere by what is heard of it.

    `believed`: of every instance that has not left, whether it was heard of lately.
    """
    here = this_host()
    if member.instance and member.instance not in believed:
        return False  # it left, or nothing was heard of it for long
    if member.host == here and member.pid and member.start:
        return process_alive(member.pid, member.start)
    if member.host and member.host.partition("/")[0] == here.partition("/")[0] and member.host != here:
        return False  # before this machine was started again
    return believed[member.instance] if member.instance else None
