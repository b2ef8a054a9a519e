"""
Teams of a Claude Code that runs beside us: `<claude>/teams/<team>/config.json`.

We read them, and write to them in one way only: adding and removing a member of ours, as an
outside program may. Both programs then take the same lock: among Taskyards a kernel lock in the
team's folder, and under it the folder lock `config.json.lock` that Claude Code knows.
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.folder_lock import FolderLock
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.mounts import is_network
from taskyard.errors import AlreadyExists, BadName, Busy, Damaged, StorageError, TeamNotFound
from taskyard.names import check_name, folder_name
from taskyard.shapes import as_list, as_name, as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What stands in `tmuxPaneId` of a member that reads its mail through Taskyard.
OUR_PANE = "taskyard"

#: Longer than the 10 s after which an abandoned lock may be taken over.
LOCK_TIMEOUT = 15.0


class ClaudeMember(NamedTuple):
    """A member as the team's file has it."""

    name: str
    agent_type: str = ""
    pane: str = ""
    backend: str = ""
    colour: str | None = None
    joined_at: int = 0

    @property
    def is_ours(self) -> bool:
        """Whether it reads its mail through Taskyard."""
        return self.pane == OUR_PANE

    @property
    def is_outside(self) -> bool:
        """Whether some program other than Claude Code speaks for it."""
        return self.is_ours or self.agent_type == "external"


class ClaudeTeam(NamedTuple):
    """A team as its file has it."""

    name: str
    lead: str
    members: tuple[ClaudeMember, ...]
    created_at: int = 0
    lead_pid: int = 0
    lead_start: int = 0
    pid_space: str = ""

    def member(self, name: str) -> ClaudeMember | None:
        """The member of this name, by the folder its name becomes."""
        folder = folder_name("an agent", name)
        return next((m for m in self.members if folder_name("an agent", m.name) == folder), None)


class TeamLock:
    """Exclusion against every Taskyard and every Claude Code, for one file of a team."""

    __slots__ = ("_folder", "_kernel")

    def __init__(self, team_folder: str, target: str, *, timeout: float = LOCK_TIMEOUT) -> None:
        files.make_folder(f"{team_folder}/.taskyard", mode=0o700)
        self._kernel = RangeLock(f"{team_folder}/.taskyard/lock")
        try:
            self._kernel.take(0, timeout=timeout, what=target)
            self._folder = FolderLock(target, timeout=timeout, what=target, guarded=not is_network(team_folder))
        except BaseException:
            self._kernel.close()
            raise

    def write(self, path: str, data: bytes) -> None:
        """Put `data` in place of the locked file's, unless the lock was lost meanwhile.

        Raises:
            Busy: this process stood still for so long that another took the lock over.
        """
        if not self._folder.is_ours():
            raise Busy(path, "another program that took our lock for abandoned", LOCK_TIMEOUT)
        found = os.lstat(path)
        files.replace(path, data, mode=found.st_mode & 0o777)

    def __enter__(self) -> TeamLock:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._folder.release()
        finally:
            self._kernel.close()


def team_folder(claude: str, team: str) -> str:
    """Where Claude Code keeps a team."""
    return f"{claude}/teams/{folder_name('a team', team)}"


def config_file(claude: str, team: str) -> str:
    """The file that says who is in a team."""
    return f"{team_folder(claude, team)}/config.json"


def read(claude: str, team: str) -> ClaudeTeam | None:
    """The team of this name; None if Claude Code has none.

    Raises:
        Damaged: its file cannot be read.
    """
    path = config_file(claude, team)
    config = _config(path)
    return None if config is None else _team(config, os.path.basename(os.path.dirname(path)))


def listing(claude: str) -> tuple[list[ClaudeTeam], list[Damaged]]:
    """Every team of Claude Code's, and what could not be read."""
    teams: list[ClaudeTeam] = []
    damaged: list[Damaged] = []
    for name in names(claude):
        try:
            if team := read(claude, name):
                teams.append(team)
        except Damaged as error:
            damaged.append(error)
    return teams, damaged


def names(claude: str) -> list[str]:
    """The folder names of all teams of Claude Code's."""
    try:
        found = sorted(os.listdir(f"{claude}/teams"))
    except OSError:
        return []
    return [name for name in found if _is_team(name)]


def _is_team(name: str) -> bool:
    try:
        return folder_name("a team", name) == name
    except BadName:
        return False  # a file of somebody else's, with a name that no team can have


def join_claude_team(
    claude: str, team: str, name: str, *, colour: str | None = None, cwd: str | None = None
) -> ClaudeMember:
    """Add `name` to a team of Claude Code's: its members can write to it, and it reads through Taskyard.

    Raises:
        TeamNotFound: Claude Code has no such team.
        AlreadyExists: a member of that name is there that is not ours.
        Damaged: the team's file cannot be read; it is left as it is.
    """
    check_name("an agent", name)
    folder, path = team_folder(claude, team), config_file(claude, team)
    if files.read(path) is None:
        raise TeamNotFound(team)
    with TeamLock(folder, path) as lock:
        config = _config(path)
        if config is None:
            raise TeamNotFound(team)
        found = _team(config, os.path.basename(folder))
        if there := found.member(name):
            if not there.is_ours:
                hint = "It is not run by Taskyard: join under another name."
                raise AlreadyExists(f"a member of team {found.name!r}", there.name, hint=hint)
            return there
        entry = _entry(found.name, name, colour, cwd or os.getcwd())
        config["members"].append(entry)
        lock.write(path, as_json(config))
    return _member(entry)


def leave_claude_team(claude: str, team: str, name: str) -> bool:
    """Take `name` out of a team of Claude Code's again; False if no member of ours has that name."""
    folder, path = team_folder(claude, team), config_file(claude, team)
    if files.read(path) is None:
        return False
    with TeamLock(folder, path) as lock:
        config = _config(path)
        there = _team(config, team).member(name) if config else None
        if config is None or there is None or not there.is_ours:
            return False
        config["members"] = [entry for entry in config["members"] if _member(entry) != there]
        lock.write(path, as_json(config))
    return True


def as_json(value: object) -> bytes:
    """`value` as Claude Code writes it: two spaces, raw UTF-8, no final newline."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(value, indent=2).encode("ascii")


def _config(path: str) -> dict[str, Any] | None:
    """The object in a team's file, with its list of members.

    Raises:
        Damaged: it is anything else.
    """
    try:
        data = files.read(path)
    except StorageError as error:
        raise Damaged(path, error.why) from error
    if data is None:
        return None
    try:
        config = as_object(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is no JSON ({error})") from error
    if config is None or as_list(config.get("members")) is None:
        raise Damaged(path, "it is no team: it has no list of members")
    return config


def _team(config: dict[str, Any], folder: str) -> ClaudeTeam:
    process = as_object(config.get("leadProcess")) or {}
    members = (_member(entry) for entry in as_list(config.get("members")) or ())
    return ClaudeTeam(
        name=as_name(config.get("name")) or folder,
        lead=as_text(config.get("leadAgentId")).partition("@")[0] or "team-lead",
        members=tuple(member for member in members if member.name),
        created_at=as_number(config.get("createdAt")),
        lead_pid=as_number(process.get("pid")),
        lead_start=as_number(process.get("procStart")),
        pid_space=as_text(process.get("pidSpace")),
    )


def _member(value: object) -> ClaudeMember:
    """The member in one entry; without a name if it is none."""
    entry = as_object(value) or {}
    return ClaudeMember(
        name=as_name(entry.get("name")),
        agent_type=as_text(entry.get("agentType")),
        pane=as_text(entry.get("tmuxPaneId")),
        backend=as_text(entry.get("backendType")),
        colour=as_text(entry.get("color")) or None,
        joined_at=as_number(entry.get("joinedAt")),
    )


def _entry(team: str, name: str, colour: str | None, cwd: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"agentId": f"{name}@{team}", "name": name}
    if colour:
        entry["color"] = colour
    return entry | {
        "joinedAt": now_ms(),
        "tmuxPaneId": OUR_PANE,
        "subscriptions": [],
        "agentType": "external",
        "cwd": cwd,
        "backendType": "tmux",
        "isActive": True,
    }
