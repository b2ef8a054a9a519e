"""
Every place Taskyard keeps things, and which list is meant.

    $TASKYARD_HOME                 our own state (0700): mail, teams, instances, trust
    <tasks_dir>/<list>/            a list: N.json, .lock, .highwatermark, shared with Claude Code
    <tasks_dir>/<list>/.taskyard/  ours beside them: lock, log, leases
"""

from __future__ import annotations

import os
import zlib
from contextvars import ContextVar

from taskyard.errors import BadName
from taskyard.names import folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The team of the in-process teammate this code runs for, and of the team this process leads.
teammate_team: ContextVar[str | None] = ContextVar("teammate_team", default=None)
leader_team: ContextVar[str | None] = ContextVar("leader_team", default=None)


def home(env: Mapping[str, str] | None = None) -> str:
    """`$TASKYARD_HOME`, or the XDG state folder's `taskyard`."""
    env = os.environ if env is None else env
    if chosen := env.get("TASKYARD_HOME"):
        return os.path.abspath(os.path.expanduser(chosen))
    state = env.get("XDG_STATE_HOME") or os.path.join(_user_home(env), ".local", "state")
    return os.path.join(state, "taskyard")


def claude_folder(env: Mapping[str, str] | None = None) -> str:
    """Claude Code's configuration folder."""
    env = os.environ if env is None else env
    return os.path.abspath(env.get("CLAUDE_CONFIG_DIR") or os.path.join(_user_home(env), ".claude"))


def tasks_dir(env: Mapping[str, str] | None = None) -> str:
    """The folder of lists: `$TASKYARD_TASKS_DIR`, else Claude Code's."""
    env = os.environ if env is None else env
    if chosen := env.get("TASKYARD_TASKS_DIR"):
        return os.path.abspath(os.path.expanduser(chosen))
    return os.path.join(claude_folder(env), "tasks")


def list_name(chosen: str | None = None, *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> str:
    """Which list is meant, as a folder name.

    In this order: the argument, `TASKYARD_LIST`, `CLAUDE_CODE_TASK_LIST_ID`, the in-process
    teammate's team, `CLAUDE_CODE_TEAM_NAME`, the team this process leads, then the project.
    `TASKYARD_LIST_SCOPE=session` puts the session's own list in the project's place.
    """
    env = os.environ if env is None else env
    name = (
        chosen
        or env.get("TASKYARD_LIST")
        or env.get("CLAUDE_CODE_TASK_LIST_ID")
        or teammate_team.get()
        or env.get("CLAUDE_CODE_TEAM_NAME")
        or leader_team.get()
    )
    if chosen == "":
        raise BadName("a list", chosen, "it is empty")
    if name is None and env.get("TASKYARD_LIST_SCOPE") == "session":
        name = _session(env)
    return folder_name("a list", name if name is not None else project_list(cwd or os.getcwd()))


def project_list(folder: str) -> str:
    """`<folder>-<8 hex>`: one list per project, the same from every worktree and session."""
    root, shared = project_root(folder)
    name = "".join(char if char.isprintable() else "-" for char in os.path.basename(root)[:100])
    return f"{name or 'root'}-{zlib.crc32(os.fsencode(shared)):08x}"


def project_root(folder: str) -> tuple[str, str]:
    """The project around `folder`, and the git folder all its worktrees share (outside git: itself)."""
    folder = os.path.realpath(folder)
    here = folder
    while True:
        git = os.path.join(here, ".git")
        if os.path.isdir(git):
            return here, git
        if os.path.isfile(git):
            shared = _common_dir(here, git)
            return (os.path.dirname(shared) if os.path.basename(shared) == ".git" else here), shared
        parent = os.path.dirname(here)
        if parent == here:
            return folder, folder
        here = parent


def _common_dir(root: str, git_file: str) -> str:
    """The shared git folder a worktree's `.git` file leads to."""
    try:
        with open(git_file, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(4096)
        if not text.startswith("gitdir:"):
            return git_file
        git_dir = os.path.join(root, text[len("gitdir:") :].strip())
        try:
            with open(os.path.join(git_dir, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
                git_dir = os.path.join(git_dir, file.read(4096).strip())
        except OSError:
            pass  # a submodule: its git folder is its own
        return os.path.realpath(git_dir)
    except OSError:
        return git_file


def _session(env: Mapping[str, str]) -> str:
    session = env.get("TASKYARD_SESSION") or env.get("CLAUDE_CODE_SESSION_ID")
    if not session:
        raise BadName("a session's list", "", "set TASKYARD_SESSION to the session's id")
    return session


def _user_home(env: Mapping[str, str]) -> str:
    return env.get("HOME") or os.path.expanduser("~")
