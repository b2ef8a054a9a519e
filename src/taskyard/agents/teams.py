"""Create and dissolve teams, add and remove members, and report whether each member is alive.

Our teams are in `$TASKYARD_HOME/teams/<team>.json` (`FileTeamStore`) or in PostgreSQL, behind `TeamStore`: changes of a
file are made under one kernel lock and replace it atomically, readers take no lock. Claude Code's teams
(`<claude>/teams/<team>/config.json`) are listed with ours. The only change we write there is adding and removing a
member of ours, under the lock that Claude Code takes too (`config.json.lock`). Tasks are returned to the pool by the
caller's `give_back`.

Liveness, as of the moment of asking:

    alive       it runs and makes progress
    idle        it runs and has nothing to do
    stalled     it runs, works, and showed no progress for `stalled_after` seconds
    dead        its instance lock is free, or no process has its PID and start time
    unknown     nothing was recorded to tell by, or it is on another host

For a member on another host only a database can tell: it is dead after `holder_silence` without a heartbeat.
"""

from __future__ import annotations

import json
import os
from typing import Protocol

from taskyard import config as config_module
from taskyard.config import Settings
from taskyard.core import files
from taskyard.core.system import now_ms, process_alive, this_host
from taskyard.core.values import (
    NamedTuple,
    as_list,
    as_name,
    as_number,
    as_object,
    as_text,
    check_name,
    folder_name,
    nearest,
)
from taskyard.errors import (
    AlreadyExists,
    BadName,
    BadValue,
    Busy,
    Conflict,
    Damaged,
    NotFound,
    StorageError,
    TeamHasLivingMembers,
    TeamNotFound,
    UsageError,
)
from taskyard.storage import process_registry
from taskyard.storage.locks import FolderLock, RangeLock, is_network_fs
from taskyard.storage.maildir import Maildir, mail_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from taskyard.storage.process_registry import Instance


KINDS = ("process", "in-process", "tmux", "external")

#: Timeout in seconds; a change takes a millisecond, so a longer holder is suspended.
LOCK_TIMEOUT = 10.0


class Member(NamedTuple):
    """One member of a team, and how to check whether it is alive."""

    name: str
    joined_at: int = 0  #: epoch ms
    kind: str = "process"  #: "process", "in-process", "tmux" or "external"
    pid: int = 0
    start: int = 0  #: start time of `pid`, in clock ticks since boot
    host: str = ""  #: the machine and boot `pid` belongs to
    instance: str = ""  #: the instance whose lock shows that it is alive
    last_progress: int = 0  #: epoch ms
    state: str = "idle"  #: "working" or "idle"
    colour: str | None = None


class Team(NamedTuple):
    """A team: its lead, its members, and a task list of the same name."""

    name: str
    lead: str | None = None
    members: tuple[Member, ...] = ()
    created_at: int = 0
    source: str = "taskyard"  #: "taskyard", or "claude" for a team of Claude Code's

    def member(self, name: str) -> Member | None:
        """Return the member of this name, compared by folder name."""
        folder = folder_name("an agent", name)
        return next((m for m in self.members if folder_name("an agent", m.name) == folder), None)


def path_of(home: str, team: str) -> str:
    """Return the file of a team."""
    return f"{home}/teams/{folder_name('a team', team)}.json"


def read(home: str, team: str) -> Team | None:
    """Return the team of this name; None if there is none.

    Raises:
        Damaged: its file cannot be read.
    """
    path = path_of(home, team)
    data = files.read(path)
    return None if data is None else decode_team(path, data)


def listing(home: str) -> tuple[list[Team], list[Damaged]]:
    """Return every team of ours by name, and what could not be read."""
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
    """Return the folder names of all teams of ours."""
    try:
        found = os.listdir(f"{home}/teams")
    except FileNotFoundError:
        return []
    return sorted(name.removesuffix(".json") for name in found if name.endswith(".json") and not name.startswith("."))


def change(home: str, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
    """Replace a team by the result of `rule`; None means no team, before or after."""
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
            files.replace(path, encode_team(now))
    return now


def quarantine(home: str, team: str) -> str:
    """Move an unreadable record away, keep it, and return its new path."""
    path = path_of(home, team)
    kept = f"{path}.damaged-{now_ms()}"
    with RangeLock(f"{home}/teams/.lock") as lock:
        lock.take(0, timeout=LOCK_TIMEOUT, what="the list of teams")
        os.rename(path, kept)
    return kept


def member_not_found(team: str, name: str, known: list[str]) -> NotFound:
    """Return the error for an unknown member, with similar names."""
    near = nearest(name, known)
    hint = f"Nearest: {', '.join(near)}." if near else f"`taskyard team show {team}` names those there are."
    return NotFound(f"No member {name!r} in team {team!r}. {hint}")


_MEMBER_KEYS = {"joined_at": "joinedAt", "last_progress": "lastProgress"}


def encode_team(team: Team) -> bytes:
    """Encode a team as JSON."""
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


def decode_team(path: str, data: bytes) -> Team:
    """Decode the team in `data`, read from `path`.

    Raises:
        Damaged: it is not a team.
    """
    try:
        record = as_object(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is not JSON ({error})") from error
    if record is None or not as_name(record.get("name")) or as_list(record.get("members")) is None:
        raise Damaged(path, "it is not a team")
    members = (_parse_member(as_object(entry) or {}) for entry in as_list(record["members"]) or ())
    return Team(
        name=as_name(record["name"]),
        lead=as_name(record.get("lead")) or None,
        members=tuple(member for member in members if member.name),
        created_at=as_number(record.get("createdAt")),
    )


def _parse_member(entry: dict[str, Any]) -> Member:
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


#: Value of `tmuxPaneId` of a member that reads its mail through Taskyard.
OUR_PANE = "taskyard"

#: Seconds; longer than the 10 s after which an abandoned lock may be taken over.
CLAUDE_LOCK_TIMEOUT = 15.0


class ClaudeMember(NamedTuple):
    """A member in the team's file."""

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
    def is_external(self) -> bool:
        """Whether a program other than Claude Code runs it."""
        return self.is_ours or self.agent_type == "external"


class ClaudeTeam(NamedTuple):
    """A team in its file."""

    name: str
    lead: str
    members: tuple[ClaudeMember, ...]
    created_at: int = 0
    lead_pid: int = 0
    lead_start: int = 0
    pid_space: str = ""

    def member(self, name: str) -> ClaudeMember | None:
        """Return the member of this name, compared by folder name."""
        folder = folder_name("an agent", name)
        return next((m for m in self.members if folder_name("an agent", m.name) == folder), None)


class TeamLock:
    """A lock on one file of a team, against every Taskyard and Claude Code process."""

    __slots__ = ("_folder", "_kernel")

    def __init__(self, team_folder: str, target: str, *, timeout: float = CLAUDE_LOCK_TIMEOUT) -> None:
        files.make_folder(f"{team_folder}/.taskyard", mode=0o700)
        self._kernel = RangeLock(f"{team_folder}/.taskyard/lock")
        try:
            self._kernel.take(0, timeout=timeout, what=target)
            self._folder = FolderLock(target, timeout=timeout, what=target, guarded=not is_network_fs(team_folder))
        except BaseException:
            self._kernel.close()
            raise

    def write(self, path: str, data: bytes) -> None:
        """Replace the content of the locked file, unless the lock was lost meanwhile.

        Raises:
            Busy: this process was suspended for so long that another took the lock over.
        """
        if not self._folder.is_ours():
            raise Busy(path, "another program that took our lock for abandoned", CLAUDE_LOCK_TIMEOUT)
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
    """Return the folder of a Claude Code team."""
    return f"{claude}/teams/{folder_name('a team', team)}"


def config_file(claude: str, team: str) -> str:
    """Return the file that lists the members of a team."""
    return f"{team_folder(claude, team)}/config.json"


def read_claude_team(claude: str, team: str) -> ClaudeTeam | None:
    """Return the team of this name; None if Claude Code has none.

    Raises:
        Damaged: its file cannot be read.
    """
    path = config_file(claude, team)
    config = _read_config(path)
    return None if config is None else _team(config, os.path.basename(os.path.dirname(path)))


def list_claude_teams(claude: str) -> tuple[list[ClaudeTeam], list[Damaged]]:
    """Return every team of Claude Code's, and what could not be read."""
    teams: list[ClaudeTeam] = []
    damaged: list[Damaged] = []
    for name in claude_team_names(claude):
        try:
            if team := read_claude_team(claude, name):
                teams.append(team)
        except Damaged as error:
            damaged.append(error)
    return teams, damaged


def claude_team_names(claude: str) -> list[str]:
    """Return the folder names of all teams of Claude Code's."""
    try:
        found = sorted(os.listdir(f"{claude}/teams"))
    except OSError:
        return []
    return [name for name in found if _is_team(name)]


def _is_team(name: str) -> bool:
    try:
        return folder_name("a team", name) == name
    except BadName:
        return False  # another program's file, whose name is invalid for a team


def add_member(claude: str, team: str, name: str, *, colour: str | None = None, cwd: str | None = None) -> ClaudeMember:
    """Add `name` to a team of Claude Code's: its members can write to it, and it reads through Taskyard.

    Raises:
        TeamNotFound: Claude Code has no such team.
        AlreadyExists: there is a member of that name that is not ours.
        Damaged: the team's file cannot be read; it is left as it is.
    """
    check_name("an agent", name)
    folder, path = team_folder(claude, team), config_file(claude, team)
    if files.read(path) is None:
        raise TeamNotFound(team)
    with TeamLock(folder, path) as lock:
        config = _read_config(path)
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


def remove_member(claude: str, team: str, name: str) -> bool:
    """Remove `name` from a team of Claude Code's; False if no member of ours has that name."""
    folder, path = team_folder(claude, team), config_file(claude, team)
    if files.read(path) is None:
        return False
    with TeamLock(folder, path) as lock:
        config = _read_config(path)
        there = _team(config, team).member(name) if config else None
        if config is None or there is None or not there.is_ours:
            return False
        config["members"] = [entry for entry in config["members"] if _member(entry) != there]
        lock.write(path, as_json(config))
    return True


def as_json(value: object) -> bytes:
    """Encode as Claude Code does: two spaces, raw UTF-8, no final newline."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which must be escaped
        return json.dumps(value, indent=2).encode("ascii")


def _read_config(path: str) -> dict[str, Any] | None:
    """Return the object in a team's file, with its list of members.

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
        raise Damaged(path, f"it is not JSON ({error})") from error
    if config is None or as_list(config.get("members")) is None:
        raise Damaged(path, "it is not a team: it has no list of members")
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
    """Return the member in one entry; without a name if it is invalid."""
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


def team_exists(claude: str, team: str) -> bool:
    """Return whether Claude Code has a team of this name, readable or not."""
    return os.path.lexists(config_file(claude, team))


def claude_only_error(team: str, what: str) -> Conflict:
    """Return the error for an operation that only Claude Code may do on its own team."""
    return Conflict(
        f"Team {team!r} is Claude Code's: only Claude Code can {what}."
        f" `taskyard team leave {team} AGENT` takes an agent of yours out of it."
    )


def join(claude: str, team: str, name: str, *, pid: int, colour: str | None) -> Member:
    """Make `name` a member of a team of Claude Code's.

    Raises:
        UsageError: a PID was given, which that team's file cannot record.
        AlreadyExists: there is a member of that name that is not ours.
    """
    if pid:
        raise UsageError(f"Team {team!r} is Claude Code's, which records no process of a member: leave out the pid.")
    return _external_member(add_member(claude, team, name, colour=colour))


def leave(claude: str, team: str, name: str) -> Member:
    """Remove an agent of ours from a team of Claude Code's.

    Raises:
        NotFound: there is no member of that name.
        Conflict: the member is Claude Code's own, or another program's.
    """
    found = read_claude_team(claude, team)
    there = found.member(name) if found else None
    if there is not None and not there.is_ours:
        whose = "another program controls it" if there.is_external else "Claude Code runs it"
        raise Conflict(
            f"{there.name!r} in team {team!r} is not a Taskyard agent: {whose}, and only that program can remove it."
        )
    if there is None or not remove_member(claude, team, name):
        raise member_not_found(team, name, [member.name for member in found.members] if found else [])
    return _external_member(there)


def to_team(team: ClaudeTeam) -> Team:
    """Convert a team of Claude Code's to our record."""
    return Team(team.name, team.lead, tuple(_to_member(team, m) for m in team.members), team.created_at, "claude")


def _to_member(team: ClaudeTeam, member: ClaudeMember) -> Member:
    """Convert a member of Claude Code's; one inside its process is alive as long as that process."""
    if member.is_external:
        return _external_member(member)
    kind = member.backend if member.backend in KINDS else "external"
    inside = kind == "in-process" and team.pid_space == _pid_space()
    pid, start = (team.lead_pid, team.lead_start) if inside else (0, 0)
    return Member(member.name, member.joined_at, kind, pid, start, colour=member.colour)


def _external_member(member: ClaudeMember) -> Member:
    return Member(member.name, member.joined_at, "external", colour=member.colour)


def _pid_space() -> str:
    """Return Claude Code's name of our PID namespace: `<host>#pid:[<inode>]`."""
    try:
        return f"{os.uname().nodename}#{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class TeamStore(Protocol):
    """Storage of all teams with their mailboxes and liveness."""

    def read(self, team: str) -> Team | None:
        """Return the team of this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        ...

    def has(self, team: str) -> bool:
        """Return whether there is a team of this name, readable or not."""
        ...

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Return every team by name, and what could not be read."""
        ...

    def names(self) -> list[str]:
        """Return the folder names of all teams."""
        ...

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by the result of `rule`; None means no team, before or after.

        The rule may be called several times; the record it last decided on is unchanged when the result is
        written.
        """
        ...

    def quarantine(self, team: str) -> None:
        """Move an unreadable record away, and keep it."""
        ...

    def open_box(self, team: str, agent: str) -> None:
        """Open the mailbox of `agent` in a team."""
        ...

    def close_box(self, team: str, agent: str) -> None:
        """Close the mailbox of `agent` in a team; its messages stay readable."""
        ...

    def archive_mail(self, team: str) -> None:
        """Move a dissolved team's mail where a new team of that name does not find it."""
        ...

    def keep_alive(self, instance: Instance) -> None:
        """Publish to all readers of this store that an instance of this process is alive, while it is."""
        ...

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Return whether each member is alive; None where that is unknown."""
        ...

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe `wake`, called from any thread, to changes of teams whose record is not in a folder."""
        ...


class FileTeamStore:
    """Teams of one user in files."""

    def __init__(self, home: str) -> None:
        self._home = home

    def read(self, team: str) -> Team | None:
        """Return the team of this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        return read(self._home, team)

    def has(self, team: str) -> bool:
        """Return whether there is a team of this name, readable or not."""
        return os.path.lexists(path_of(self._home, team))

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Return every team by name, and what could not be read."""
        return listing(self._home)

    def names(self) -> list[str]:
        """Return the folder names of all teams."""
        return names(self._home)

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by the result of `rule`; None means no team, before or after."""
        return change(self._home, team, rule)

    def quarantine(self, team: str) -> None:
        """Move an unreadable record away, and keep it."""
        quarantine(self._home, team)

    def open_box(self, team: str, agent: str) -> None:
        """Open the mailbox of `agent` in a team."""
        self._box(team, agent).open()

    def close_box(self, team: str, agent: str) -> None:
        """Close the mailbox of `agent` in a team; its messages stay readable."""
        self._box(team, agent).close()

    def archive_mail(self, team: str) -> None:
        """Move a dissolved team's mail where a new team of that name does not find it."""
        files.make_private_folder(f"{self._home}/mail/.dissolved")
        kept = f"{self._home}/mail/.dissolved/{folder_name('a team', team)}.{now_ms()}.{os.urandom(3).hex()}"
        try:
            os.rename(mail_folder(self._home, team), kept)
        except FileNotFoundError:
            pass  # the team never had mail

    def keep_alive(self, instance: Instance) -> None:
        """Do nothing: the kernel's locks show every live instance."""

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Return whether each member is alive; None where that is unknown."""
        return [_is_member_alive(self._home, member) for member in members]

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe to nothing: all records are in one folder."""
        from contextlib import nullcontext

        return nullcontext()

    def _box(self, team: str, name: str) -> Maildir:
        for folder in (self._home, f"{self._home}/mail", mail_folder(self._home, team)):
            files.make_private_folder(folder)
        return Maildir(self._home, f"{mail_folder(self._home, team)}/{folder_name('an agent', name)}")


def _is_member_alive(home: str, member: Member) -> bool | None:
    if member.instance:
        return process_registry.is_instance_alive(home, member.instance)
    if not member.pid or not member.start:
        return None
    here = this_host()
    if member.host and member.host != here:
        return False if member.host.partition("/")[0] == here.partition("/")[0] else None
    return process_alive(member.pid, member.start)


_ADJECTIVES = (
    "amber bold brave bright calm clever cosy daring eager early fair fleet gentle glad golden happy keen kind "
    "lively lucky merry mighty nimble noble patient plucky proud quick quiet rapid ready rosy sharp silver sly "
    "smart snug steady sunny swift tidy vivid warm wise witty young zesty"
)
_VERBS = (
    "baking bouncing building carving chasing climbing dancing digging diving drawing dreaming drifting fishing "
    "floating flying gliding hiking hopping humming juggling jumping knitting leaping marching painting playing "
    "racing reading riding roaming rowing running sailing singing skating sketching soaring spinning surfing "
    "swimming tapping trading walking wandering weaving whistling writing"
)
_ANIMALS = (
    "badger bear beaver bison crane crow deer dolphin eagle falcon ferret finch fox gecko goose hare hawk hedgehog "
    "heron ibex jackdaw jay koala lark lemur lion llama lynx marten mole moose newt osprey otter owl panda pelican "
    "puffin rabbit raven robin salmon seal sparrow squirrel stork swan tiger toad walrus weasel wolf wren yak zebra"
)


def random_team_name() -> str:
    """Return a random name, adjective-verb-animal; some hundred thousand are possible."""
    return "-".join(_random_word(words) for words in (_ADJECTIVES, _VERBS, _ANIMALS))


def _random_word(text: str) -> str:
    words = text.split()
    return words[int.from_bytes(os.urandom(4)) % len(words)]


class MemberStatus(NamedTuple):
    """A member and its liveness."""

    member: Member
    liveness: str  #: "alive", "idle", "stalled", "dead" or "unknown"


def liveness(member: Member, alive: bool | None, *, stalled_after: float) -> str:
    """Return the liveness of `member`, given whether it is alive; None: unknown from here."""
    if alive is None:
        return "unknown"
    if not alive:
        return "dead"
    if member.state == "idle":
        return "idle"
    quiet = now_ms() - max(member.last_progress, member.joined_at)
    return "stalled" if quiet > stalled_after * 1000 else "alive"


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
        book: TeamStore | None = None,
    ) -> None:
        """Prepare; nothing is created or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            settings: How long a member may be quiet.
            claude_folder: Claude Code's folder, if not the usual one.
            give_back: `give_back(team, member)` returns the unfinished tasks of a member that left to the pool,
                and returns their ids.
            me: The calling live instance: a member that joins under its name is alive as long as it is.
            book: The store, if not files below `home`.
        """
        self.home = home
        self._me = me
        self._book: TeamStore = book if book is not None else FileTeamStore(home)
        self._give_back = give_back
        self.settings = settings or Settings()
        self.claude = claude_folder if claude_folder is not None else config_module.claude_folder()
        self.damaged: list[Damaged] = []  #: what the last listing could not read
        self.released: tuple[str, ...] = ()  #: tasks released by the last member that left

    def create(self, name: str | None = None, *, lead: str | None = None, instance: Instance | None = None) -> Team:
        """Create a team; without a name it gets a random one. A lead is its first member.

        Raises:
            AlreadyExists: there is a team of that name.
        """
        if lead is not None:
            check_name("an agent", lead)
        chosen = check_name("a team", name) if name is not None else self._free_name()
        first = () if lead is None else (self._new_member(lead, None, instance=instance),)

        def found(was: Team | None) -> Team:
            if was is not None or read_claude_team(self.claude, chosen) is not None:
                raise AlreadyExists("a team", chosen, hint=f"`taskyard team show {chosen}` shows it.")
            return Team(chosen, lead, first, now_ms())

        team = _require_team(self._book.change(chosen, found))
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
        """Add `name` to a team, ours or Claude Code's; in ours, a dead member of that name is replaced.

        Without a `kind` it is "process" if there is a PID, and else "external".

        Raises:
            TeamNotFound: there is no such team.
            AlreadyExists: a member of that name may still be alive.
        """
        check_name("an agent", name)
        if kind is not None and kind not in KINDS:
            raise BadValue("The kind of a member", kind, f"one of {', '.join(KINDS)}")
        if self._belongs_to_claude(team):
            member = join(self.claude, team, name, pid=pid, colour=colour)
            self._book.open_box(team, name)
            return member
        member = self._new_member(name, kind, instance=instance, pid=pid, start=start, colour=colour)

        def joined(was: Team | None) -> Team:
            found = self._existing(team, was)
            there = found.member(name)
            if there is not None and not self._is_replaceable(there, member):
                hint = f"It may still run: use another name, or `taskyard team leave {found.name} {there.name}` first."
                raise AlreadyExists(f"a member of team {found.name!r}", there.name, hint=hint)
            return found._replace(members=(*(m for m in found.members if m != there), member))

        self._book.change(team, joined)
        self._book.open_box(team, name)
        return member

    def leave(self, team: str, name: str) -> Member:
        """Remove `name` from a team: its unfinished tasks return to the pool and its mailbox closes.

        Its messages stay readable.

        Raises:
            TeamNotFound, NotFound: there is no such team, or no such member.
            Conflict: it is a member that Claude Code runs.
        """
        gone: list[Member] = []
        if self._belongs_to_claude(team):
            gone.append(leave(self.claude, team, name))

        def left(was: Team | None) -> Team:
            found = self._existing(team, was)
            gone.append(_require_member(found, name))
            return found._replace(members=tuple(m for m in found.members if m not in gone))

        if not gone:
            self._book.change(team, left)
        self._book.close_box(team, name)
        self._release(team, gone[-1:])
        return gone[-1]

    def progress(self, team: str, name: str, *, state: str = "working") -> Member:
        """Record that `name` made progress, or is idle (`state="idle"`)."""
        if state not in ("working", "idle"):
            raise BadValue("The state of a member", state, "working or idle")

        def noted(was: Team | None) -> Team:
            found = self._existing(team, was)
            there = _require_member(found, name)
            now = there._replace(last_progress=now_ms(), state=state)
            return found._replace(members=tuple(now if m == there else m for m in found.members))

        return _require_member(_require_team(self._book.change(team, noted)), name)

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace the record of a team of ours by the result of `rule`, a pure function; None: there is none."""
        return self._book.change(team, rule)

    def remove(self, team: str, *, force: bool = False) -> Team:
        """Dissolve a team of ours and return its last state.

        Its mail is archived, and unfinished tasks return to the pool.

        Raises:
            TeamNotFound: there is no such team of ours.
            TeamHasLivingMembers: a member other than its lead may still be alive; `force` overrides.
            Damaged: its record cannot be read; `force` quarantines it.
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
            self._book.quarantine(team)
            removed.append(Team(team))
        self._book.archive_mail(team)
        self._release(team, removed[-1].members)
        return removed[-1]

    def find(self, team: str) -> Team | None:
        """Return the team of this name, ours or Claude Code's; None if there is none."""
        if found := self._book.read(team):
            return found
        theirs = read_claude_team(self.claude, team)
        return to_team(theirs) if theirs else None

    def get(self, team: str) -> Team:
        """Return the team of this name, ours or Claude Code's.

        Raises:
            TeamNotFound: there is none; names similar ones.
        """
        if found := self.find(team):
            return found
        raise TeamNotFound(team, nearest=nearest(team, [known.name for known in self.list()]))

    def list(self) -> tuple[Team, ...]:
        """Return every team, ours first; `damaged` then names the files that could not be read."""
        ours, damaged = self._book.listing()
        theirs, theirs_damaged = list_claude_teams(self.claude)
        self.damaged = [*damaged, *theirs_damaged]
        names = {folder_name("a team", team.name) for team in ours}
        return (
            *ours,
            *(to_team(team) for team in theirs if folder_name("a team", team.name) not in names),
        )

    def members(self, team: str) -> tuple[MemberStatus, ...]:
        """Return the members of a team, each with its current liveness."""
        return self._seen(self.get(team).members)

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Subscribe `wake`, called from any thread, to changes of teams whose record is not in a folder."""
        return self._book.heard(wake)

    def _belongs_to_claude(self, team: str) -> bool:
        """Return whether a team is Claude Code's alone."""
        return team_exists(self.claude, team) and not self._book.has(team)

    def _existing(self, team: str, found: Team | None) -> Team:
        """Return `found`, the record of a team of ours.

        Raises:
            Conflict: the team is Claude Code's.
            TeamNotFound: there is none; names similar ones.
        """
        if found is not None:
            return found
        if team_exists(self.claude, team):
            raise claude_only_error(team, "change or dissolve it")
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
            self._book.keep_alive(instance)
            pid, start = instance.record.pid, instance.record.start
        host = this_host() if pid and start else ""
        kind = kind or ("process" if pid else "external")
        return Member(name, now, kind, pid, start, host, instance.id if instance else "", now, "idle", colour)

    def _release(self, team: str, members: Iterable[Member]) -> None:
        if self._give_back is not None:
            self.released = tuple(task for member in members for task in self._give_back(team, member.name))

    def _seen(self, members: Sequence[Member]) -> tuple[MemberStatus, ...]:
        after = self.settings.stalled_after
        living = self._book.alive(members)
        return tuple(MemberStatus(m, liveness(m, alive, stalled_after=after)) for m, alive in zip(members, living))

    def _is_replaceable(self, there: Member, new_member: Member) -> bool:
        same = bool(there.instance) and there.instance == new_member.instance
        return same or self._book.alive([there]) == [False]

    def _free_name(self) -> str:
        taken = set(self._book.names())
        while (name := random_team_name()) in taken or os.path.lexists(team_folder(self.claude, name)):
            pass
        return name


def _require_team(team: Team | None) -> Team:
    if team is None:
        raise AssertionError("a rule that must answer a team answered none")
    return team


def _require_member(team: Team, name: str) -> Member:
    if (member := team.member(name)) is None:
        raise member_not_found(team.name, name, [m.name for m in team.members])
    return member
