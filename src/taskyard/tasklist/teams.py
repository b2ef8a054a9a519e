"""
Teams: who works together, and who of them is alive.

Role
    Founds and dissolves teams, lets members in and out, and says of each whether it is alive,
    idle, stalled or dead. Teams of a Claude Code beside us are listed with ours.

Not here
    How to tell the living from the dead (`liveness.py`); how tasks go back to the pool: whoever
    opened the teams says (`give_back`).
"""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.disk.processes import this_host
from taskyard.errors import AlreadyExists, BadValue, Damaged, TeamHasLivingMembers, TeamNotFound
from taskyard.names import check_name, folder_name, nearest
from taskyard.tasklist import claude_members, claude_teams, team_record
from taskyard.tasklist.liveness import Seen, liveness
from taskyard.tasklist.team_files import TeamFiles
from taskyard.tasklist.team_names import made_up
from taskyard.tasklist.team_record import KINDS, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from taskyard.instances import Instance
    from taskyard.tasklist.team_book import TeamBook


class Teams:
    """All teams of this user."""

    def __init__(
        self,
        home: str,
        *,
        settings: Settings | None = None,
        claude_folder: str | None = None,
        give_back: Callable[[str, str], tuple[str, ...]] | None = None,
        me: Instance | None = None,
        book: TeamBook | None = None,
    ) -> None:
        """Nothing is made or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            settings: How long a member may be quiet.
            claude_folder: Claude Code's folder, if not the usual one.
            give_back: `give_back(team, member)` puts the unfinished tasks of one who left back into the pool,
                and names them.
            me: The living instance that asks: whoever joins under its name lives as long as it does.
            book: Where the records are, if not in files below `home`.
        """
        self.home = home
        self._me = me
        self._book: TeamBook = book if book is not None else TeamFiles(home)
        self._give_back = give_back
        self.settings = settings or Settings()
        self.claude = claude_folder if claude_folder is not None else paths.claude_folder()
        self.damaged: list[Damaged] = []  #: what the last listing could not read
        self.released: tuple[str, ...] = ()  #: the tasks that whoever left last gave back

    def create(self, name: str | None = None, *, lead: str | None = None, instance: Instance | None = None) -> Team:
        """Found a team; without a name it gets one made up. A lead is its first member.

        Raises:
            AlreadyExists: there is a team of that name.
        """
        if lead is not None:
            check_name("an agent", lead)
        chosen = check_name("a team", name) if name is not None else self._free_name()
        first = () if lead is None else (self._new_member(lead, None, instance=instance),)

        def found(was: Team | None) -> Team:
            if was is not None or claude_teams.read(self.claude, chosen) is not None:
                raise AlreadyExists("a team", chosen, hint=f"`taskyard team show {chosen}` shows it.")
            return Team(chosen, lead, first, now_ms())

        team = _there(self._book.change(chosen, found))
        for member in first:
            self._book.open_box(chosen, member.name)
        return team

    def join(
        self,
        team: str,
        name: str,
        *,
        kind: str | None = None,
        instance: Instance | None = None,
        pid: int = 0,
        start: int = 0,
        colour: str | None = None,
    ) -> Member:
        """Let `name` into a team, ours or Claude Code's; in ours, a dead member of that name makes room.

        Without a `kind` it is "process" if there is one to look at, and else "external".

        Raises:
            TeamNotFound: there is no such team.
            AlreadyExists: a member of that name may still live.
        """
        check_name("an agent", name)
        if kind is not None and kind not in KINDS:
            raise BadValue("The kind of a member", kind, f"one of {', '.join(KINDS)}")
        if self._is_claudes(team):
            member = claude_members.join(self.claude, team, name, pid=pid, colour=colour)
            self._book.open_box(team, name)
            return member
        member = self._new_member(name, kind, instance=instance, pid=pid, start=start, colour=colour)

        def joined(was: Team | None) -> Team:
            found = self._existing(team, was)
            there = found.member(name)
            if there is not None and not self._makes_room(there, member):
                hint = (
                    f"It may still live: take another name, or `taskyard team leave {found.name} {there.name}` first."
                )
                raise AlreadyExists(f"a member of team {found.name!r}", there.name, hint=hint)
            return found._replace(members=(*(m for m in found.members if m != there), member))

        self._book.change(team, joined)
        self._book.open_box(team, name)
        return member

    def leave(self, team: str, name: str) -> Member:
        """Take `name` out of a team: its unfinished tasks go back to the pool, it gets no more mail there,
        and what it has stays readable.

        Raises:
            TeamNotFound, NotFound: there is no such team, or no such member.
            Conflict: it is a member that Claude Code runs.
        """
        gone: list[Member] = []
        if self._is_claudes(team):
            gone.append(claude_members.leave(self.claude, team, name))

        def left(was: Team | None) -> Team:
            found = self._existing(team, was)
            gone.append(_present(found, name))
            return found._replace(members=tuple(m for m in found.members if m not in gone))

        if not gone:
            self._book.change(team, left)
        self._book.close_box(team, name)
        self._release(team, gone[-1:])
        return gone[-1]

    def progress(self, team: str, name: str, *, state: str = "working") -> Member:
        """Note that `name` got on with its work, or has none left (`state="idle"`)."""
        if state not in ("working", "idle"):
            raise BadValue("The state of a member", state, "working or idle")

        def noted(was: Team | None) -> Team:
            found = self._existing(team, was)
            there = _present(found, name)
            now = there._replace(last_progress=now_ms(), state=state)
            return found._replace(members=tuple(now if m == there else m for m in found.members))

        return _present(_there(self._book.change(team, noted)), name)

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace the record of a team of ours by what `rule`, a pure function, makes of it; None: there is none."""
        return self._book.change(team, rule)

    def remove(self, team: str, *, force: bool = False) -> Team:
        """Dissolve a team of ours and answer what it was; its mail is kept apart, unfinished tasks go back to the pool.

        Raises:
            TeamNotFound: there is no such team of ours.
            TeamHasLivingMembers: someone other than its lead may still live; `force` overrides.
            Damaged: its record cannot be read; `force` puts it aside.
        """
        removed: list[Team] = []

        def dissolved(was: Team | None) -> None:
            found = self._existing(team, was)
            others = [m for m in found.members if m.name != found.lead]
            living = tuple(seen.member.name for seen in self._seen(others) if seen.liveness != "dead")
            if living and not force:
                raise TeamHasLivingMembers(found.name, living)
            removed.append(found)

        try:
            self._book.change(team, dissolved)
        except Damaged:
            if not force:
                raise
            self._book.set_aside(team)
            removed.append(Team(team))
        self._book.put_mail_away(team)
        self._release(team, removed[-1].members)
        return removed[-1]

    def get(self, team: str) -> Team:
        """The team of this name, ours or Claude Code's.

        Raises:
            TeamNotFound: there is none; names those that look like it.
        """
        if found := self._book.read(team):
            return found
        if theirs := claude_teams.read(self.claude, team):
            return claude_members.as_team(theirs)
        raise TeamNotFound(team, nearest=nearest(team, [known.name for known in self.list()]))

    def list(self) -> tuple[Team, ...]:
        """Every team, ours first; `damaged` then names the files that could not be read."""
        ours, damaged = self._book.listing()
        theirs, theirs_damaged = claude_teams.listing(self.claude)
        self.damaged = [*damaged, *theirs_damaged]
        names = {folder_name("a team", team.name) for team in ours}
        return (
            *ours,
            *(claude_members.as_team(team) for team in theirs if folder_name("a team", team.name) not in names),
        )

    def members(self, team: str) -> tuple[Seen, ...]:
        """Who is in a team, each with what is known about it now: by the kernel, or by what was heard of it."""
        return self._seen(self.get(team).members)

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when a team may have changed whose record shows in no folder."""
        return self._book.heard(wake)

    def _is_claudes(self, team: str) -> bool:
        """Whether a team is Claude Code's alone."""
        return claude_members.has(self.claude, team) and not self._book.has(team)

    def _existing(self, team: str, found: Team | None) -> Team:
        """`found`, the record of a team of ours.

        Raises:
            Conflict: the team is Claude Code's.
            TeamNotFound: there is none; names those that look like it.
        """
        if found is not None:
            return found
        if claude_members.has(self.claude, team):
            raise claude_members.refuse(team, "change or dissolve it")
        raise TeamNotFound(team, nearest=nearest(team, [known.name for known in self.list()]))

    def _new_member(
        self,
        name: str,
        kind: str | None,
        *,
        instance: Instance | None = None,
        pid: int = 0,
        start: int = 0,
        colour: str | None = None,
    ) -> Member:
        now = now_ms()
        if instance is None and not pid and self._me is not None and self._me.name == name:
            instance = self._me
        if instance is not None:
            self._book.believe(instance)
            pid, start = instance.record.pid, instance.record.start
        host = this_host() if pid and start else ""
        kind = kind or ("process" if pid else "external")
        return Member(name, now, kind, pid, start, host, instance.id if instance else "", now, "idle", colour)

    def _release(self, team: str, members: Iterable[Member]) -> None:
        if self._give_back is not None:
            self.released = tuple(task for member in members for task in self._give_back(team, member.name))

    def _seen(self, members: Sequence[Member]) -> tuple[Seen, ...]:
        after = self.settings.stalled_after
        living = self._book.alive(members)
        return tuple(Seen(m, liveness(m, alive, stalled_after=after)) for m, alive in zip(members, living))

    def _makes_room(self, there: Member, newcomer: Member) -> bool:
        same = bool(there.instance) and there.instance == newcomer.instance
        return same or self._book.alive([there]) == [False]

    def _free_name(self) -> str:
        taken = set(self._book.names())
        while (name := made_up()) in taken or os.path.lexists(claude_teams.team_folder(self.claude, name)):
            pass
        return name


def _there(team: Team | None) -> Team:
    if team is None:
        raise AssertionError("a rule that must answer a team answered none")
    return team


def _present(team: Team, name: str) -> Member:
    if (member := team.member(name)) is None:
        raise team_record.no_member(team.name, name, [m.name for m in team.members])
    return member
