"""
Every place Taskyard keeps things, and which list is meant.

    $TASKYARD_HOME                 our own state (0700): mail, teams, instances, trust
    <tasks_dir>/<list>/            a list: N.json, .lock, .highwatermark, shared with Claude Code
    <tasks_dir>/<list>/.taskyard/  ours beside them: lock, log, leases
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from taskyard.errors import BadName, BadValue
from taskyard.names import folder_name
from taskyard.plain_file import read_plain
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The team of the in-process teammate this code runs for.
teammate_team: ContextVar[str | None] = ContextVar("teammate_team", default=None)

#: Variables whose relative values this process has warned about.
_warned: set[str] = set()


def user_home(env: Mapping[str, str] | None = None) -> str:
    """The user's home folder: `$HOME` if it is absolute, else the password database's entry."""
    home = _absolute("HOME", os.environ if env is None else env)
    if home is not None:
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise BadValue("HOME", "", "an absolute path: this user has no entry in the password database") from None


def env_folder(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """The folder that the variable `name` names, absolute; None if the variable is unset or ignored.

    A relative value would name a folder of whichever project is the current one, and make that project's
    settings the user's own. `XDG_*` variables are then ignored with a warning, as their specification says.

    Raises:
        BadValue: any other variable holds a relative path.
    """
    env = os.environ if env is None else env
    value = env.get(name)
    if not value:
        return None
    if name.startswith("XDG_"):
        return _absolute(name, env)
    if value == "~" or value.startswith("~/"):
        value = user_home(env) + value[1:]
    if not os.path.isabs(value):
        raise BadValue(name, value, "an absolute path")
    return os.path.normpath(value)


def _absolute(name: str, env: Mapping[str, str]) -> str | None:
    value = env.get(name)
    if not value or os.path.isabs(value):
        return value or None
    if name not in _warned:
        _warned.add(name)
        import sys

        sys.stderr.write(f"taskyard: ignoring {name}={value!r}: it is not an absolute path\n")
    return None


def home(env: Mapping[str, str] | None = None) -> str:
    """`$TASKYARD_HOME`, or the XDG state folder's `taskyard`."""
    if chosen := env_folder("TASKYARD_HOME", env):
        return chosen
    state = env_folder("XDG_STATE_HOME", env) or os.path.join(user_home(env), ".local", "state")
    return os.path.join(state, "taskyard")


def claude_folder(env: Mapping[str, str] | None = None) -> str:
    """Claude Code's configuration folder."""
    return env_folder("CLAUDE_CONFIG_DIR", env) or os.path.join(user_home(env), ".claude")


def tasks_dir(env: Mapping[str, str] | None = None) -> str:
    """The folder of lists: `$TASKYARD_TASKS_DIR`, else Claude Code's."""
    return env_folder("TASKYARD_TASKS_DIR", env) or os.path.join(claude_folder(env), "tasks")


def list_name(chosen: str | None = None, *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> str:
    """Which list is meant, as a folder name.

    In this order: the argument, `TASKYARD_LIST`, `CLAUDE_CODE_TASK_LIST_ID`, the in-process
    teammate's team, `CLAUDE_CODE_TEAM_NAME`, then the project. A client of the MCP server that created a team works on
    the team's list from then on (`mcp_server.callers`). `TASKYARD_LIST_SCOPE=session` puts the session's own list in
    the project's place.
    """
    env = os.environ if env is None else env
    name = (
        chosen
        or env.get("TASKYARD_LIST")
        or env.get("CLAUDE_CODE_TASK_LIST_ID")
        or teammate_team.get()
        or env.get("CLAUDE_CODE_TEAM_NAME")
    )
    if chosen == "":
        raise BadName("a list", chosen, "it is empty")
    if name is None and env.get("TASKYARD_LIST_SCOPE") == "session":
        name = _session(env)
    return folder_name("a list", name if name is not None else project_list(cwd or os.getcwd()))


class Project(NamedTuple):
    """The project around a folder."""

    root: str  #: its main checkout; what trust and hooks belong to
    shared: str  #: the git folder all its worktrees share; outside git, the folder itself
    checkout: str  #: the worktree around the folder; the root if it is in the main checkout


def project_list(folder: str) -> str:
    """`<folder>-<8 hex>`: one list per project, the same from every worktree and session."""
    import zlib

    root, shared, _ = project(folder)
    name = "".join(char if char.isprintable() else "-" for char in os.path.basename(root)[:100])
    return f"{name or 'root'}-{zlib.crc32(os.fsencode(shared)):08x}"


def current_project() -> str:
    """The name of the project that the working directory belongs to, as jobs record it."""
    return project_list(os.getcwd())


def project(folder: str) -> Project:
    """The project around `folder`.

    A `.git` file counts only if the repository it names has registered this folder as its worktree:
    anyone can write a file that names somebody else's repository. Without that, and in submodules,
    the folder is a project of its own. A `.git` folder counts only if it has a HEAD, as for git: Codex puts an empty
    one into every folder that its sandbox may write, while a command runs there.
    """
    folder = os.path.realpath(folder)
    here = folder
    while True:
        git = os.path.join(here, ".git")
        if os.path.lexists(f"{git}/HEAD"):
            return Project(here, git, here)
        if os.path.isfile(git):
            shared = _registered_in(git)
            if shared is None:
                return Project(here, git, here)
            return Project(os.path.dirname(shared) if os.path.basename(shared) == ".git" else here, shared, here)
        parent = os.path.dirname(here)
        if parent == here:
            return Project(folder, folder, folder)
        here = parent


def _registered_in(git_file: str) -> str | None:
    """The git folder that lists the folder of `git_file` as its worktree; None if none does.

    The registration is `<git folder>/worktrees/NAME/gitdir`. It is read from inside the repository it
    is for, so that a `commondir` elsewhere cannot claim to belong to it.
    """
    text = _short_text(git_file)
    if not text.startswith("gitdir:"):
        return None
    entry = os.path.realpath(os.path.join(os.path.dirname(git_file), text[len("gitdir:") :].strip()))
    common = _short_text(os.path.join(entry, "commondir"))
    back = _short_text(os.path.join(entry, "gitdir"))
    if not common or not back:
        return None
    shared = os.path.realpath(os.path.join(entry, common))
    if os.path.dirname(entry) != os.path.join(shared, "worktrees"):
        return None
    return shared if os.path.realpath(os.path.join(entry, back)) == git_file else None


def _short_text(path: str) -> str:
    """What a regular file of one path says; nothing if there is no such file."""
    try:
        return os.fsdecode(read_plain(path, most=8192, follow=True)).strip()
    except OSError:
        return ""


def _session(env: Mapping[str, str]) -> str:
    session = env.get("TASKYARD_SESSION") or env.get("CLAUDE_CODE_SESSION_ID")
    if not session:
        raise BadName("a session's list", "", "set TASKYARD_SESSION to the session's id")
    return session
