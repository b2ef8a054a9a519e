"""
A team on disk: `$TASKYARD_HOME/teams/<team>.json`, who leads it and who is in it.

Changes are made under one kernel lock and replace the file whole; readers take no lock.
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Damaged, NotFound
from taskyard.names import folder_name, nearest
from taskyard.shapes import as_list, as_name, as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

KINDS = ("process", "in-process", "tmux", "external")

#: A change takes a millisecond; whoever holds the lock longer is stopped.
LOCK_TIMEOUT = 10.0


class Member(NamedTuple):
    """One member of a team, and how to tell whether it lives."""

    name: str
    joined_at: int = 0  #: epoch ms
    kind: str = "process"  #: "process", "in-process", "tmux" or "external"
    pid: int = 0
    start: int = 0  #: start time of `pid`, in clock ticks since boot
    host: str = ""  #: the machine and boot `pid` belongs to
    instance: str = ""  #: the instance whose lock says that it lives
    last_progress: int = 0  #: epoch ms
    state: str = "idle"  #: "working" or "idle"
    colour: str | None = None


class Team(NamedTuple):
    """A team: its lead, its members, and a list of tasks of the same name."""

    name: str
    lead: str | None = None
    members: tuple[Member, ...] = ()
    created_at: int = 0
    source: str = "taskyard"  #: "taskyard", or "claude" for a team of Claude Code's

    def member(self, name: str) -> Member | None:
        """The member of this name, by the folder its name becomes."""
        folder = folder_name("an agent", name)
        return next((m for m in self.members if folder_name("an agent", m.name) == folder), None)


def path_of(home: str, team: str) -> str:
    """The file of a team."""
    return f"{home}/teams/{folder_name('a team', team)}.json"


def read(home: str, team: str) -> Team | None:
    """The team of this name; None if there is none.

    Raises:
        Damaged: its file cannot be read.
    """
    path = path_of(home, team)
    data = files.read(path)
    return None if data is None else decoded(path, data)


def listing(home: str) -> tuple[list[Team], list[Damaged]]:
    """Every team of ours by name, and what could not be read."""
    teams: list[Team] = []
    damaged: list[Damaged] = []
    for name in names(home):
        try:
            if team := read(home, name):
                teams.append(team)
        except Damaged as error:
            damaged.append(error)
    return teams, damaged


def names(home: str) -> list[str]:
    """The folder names of all teams of ours."""
    try:
        found = os.listdir(f"{home}/teams")
    except FileNotFoundError:
        return []
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json") and not name.startswith("."))


def change(home: str, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
    """Replace a team by what `rule` makes of it, None for either meaning that there is none."""
    files.make_private_folder(home)
    files.make_private_folder(f"{home}/teams")
    path = path_of(home, team)
    with RangeLock(f"{home}/teams/.lock") as lock:
        lock.take(0, timeout=LOCK_TIMEOUT, what="the list of teams")
        was = read(home, team)
        now = rule(was)
        if now is None and was is not None:
            os.unlink(path)
        elif now is not None and now != was:
            files.replace(path, encoded(now))
    return now


def set_aside(home: str, team: str) -> str:
    """Take a record that cannot be read out of the way, and keep it; where it is."""
    path = path_of(home, team)
    kept = f"{path}.damaged-{now_ms()}"
    with RangeLock(f"{home}/teams/.lock") as lock:
        lock.take(0, timeout=LOCK_TIMEOUT, what="the list of teams")
        os.rename(path, kept)
    return kept


def no_member(team: str, name: str, known: list[str]) -> NotFound:
    """The error for a member that a team does not have: with the names that look like it."""
    near = nearest(name, known)
    hint = f"Nearest: {', '.join(near)}." if near else f"`taskyard team show {team}` names those there are."
    return NotFound(f"No member {name!r} in team {team!r}. {hint}")


_MEMBER_KEYS = {"joined_at": "joinedAt", "last_progress": "lastProgress"}


def encoded(team: Team) -> bytes:
    """A team as JSON."""
    members = [
        {
            _MEMBER_KEYS.get(field, field): value
            for field, value in member._asdict().items()
            if value not in ("", 0, None)
        }
        for member in team.members
    ]
    record = {"name": team.name, "lead": team.lead, "members": members, "createdAt": team.created_at}
    return json.dumps(record, indent=2).encode("ascii")


def decoded(path: str, data: bytes) -> Team:
    """The team in what stands at `path`.

    Raises:
        Damaged: there is none.
    """
    try:
        record = as_object(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is no JSON ({error})") from error
    if record is None or not as_name(record.get("name")) or as_list(record.get("members")) is None:
        raise Damaged(path, "it is no team")
    members = (_member(as_object(entry) or {}) for entry in as_list(record["members"]) or ())
    return Team(
        name=as_name(record["name"]),
        lead=as_name(record.get("lead")) or None,
        members=tuple(member for member in members if member.name),
        created_at=as_number(record.get("createdAt")),
    )


def _member(entry: dict[str, Any]) -> Member:
    kind, state = as_text(entry.get("kind")), as_text(entry.get("state"))
    return Member(
        name=as_name(entry.get("name")),
        joined_at=as_number(entry.get("joinedAt")),
        kind=kind if kind in KINDS else "external",
        pid=as_number(entry.get("pid")),
        start=as_number(entry.get("start")),
        host=as_text(entry.get("host")),
        instance=as_text(entry.get("instance")),
        last_progress=as_number(entry.get("lastProgress")),
        state=state if state in ("working", "idle") else "idle",
        colour=as_text(entry.get("colour")) or None,
    )
