"""
Which memory folder is meant.

    claude            Claude Code's for this project: its setting `autoMemoryDirectory`, else below its own folder
    taskyard          `$TASKYARD_HOME/memory/<project>`
    a path            that folder; `{project}` in it stands for the project's name

Without a word on it, by argument or the setting `memory_dir`: Claude Code's if it has one for this project, else ours.
"""

from __future__ import annotations

import json
import os
import re

from taskyard import paths
from taskyard.disk import files
from taskyard.errors import BadValue, TaskyardError
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CLAUDE, OURS = "claude", "taskyard"

#: Claude Code cuts longer names, and adds a hash of its own.
_LONGEST_FOLDER = 200


def folder(chosen: str, *, cwd: str, home: str, env: Mapping[str, str]) -> str:
    """The real path of the memory folder; it need not exist yet.

    Raises:
        BadValue: the folder cannot be one: it holds a home, a project or our own state.
    """
    claude = claude_memory(cwd, env)
    if chosen == CLAUDE or (not chosen and os.path.isdir(claude)):
        place = claude
    elif chosen in ("", OURS):
        place = os.path.join(home, "memory", paths.project_list(cwd))
    else:
        place = os.path.join(cwd, os.path.expanduser(chosen.replace("{project}", paths.project_list(cwd))))
    place = os.path.realpath(place)
    _check(place, cwd=cwd, home=home, env=env)
    return place


def claude_memory(cwd: str, env: Mapping[str, str]) -> str:
    """Where Claude Code keeps what it remembers of this project; all worktrees share it."""
    base = paths.claude_folder(env)
    try:
        settings = as_object(json.loads(files.read(os.path.join(base, "settings.json")) or b"{}")) or {}
    except (ValueError, RecursionError, TaskyardError):
        settings = {}  # not ours to repair: Claude Code takes its default then
    if configured := as_text(settings.get("autoMemoryDirectory")):
        return os.path.abspath(os.path.expanduser(configured))
    return os.path.join(claude_project(paths.project(cwd).root, env), "memory")


def claude_project(folder: str, env: Mapping[str, str]) -> str:
    """The folder in which Claude Code keeps the sessions that were held in `folder`."""
    projects = os.path.join(paths.claude_folder(env), "projects")
    name = re.sub(r"[^a-zA-Z0-9]", "-", os.path.realpath(folder))
    if len(name) <= _LONGEST_FOLDER:
        return os.path.join(projects, name)
    start = name[:_LONGEST_FOLDER] + "-"
    try:
        found = sorted(each for each in os.listdir(projects) if each.startswith(start))
    except OSError:
        found = []
    return os.path.join(projects, found[0] if found else name[:_LONGEST_FOLDER])


def _check(place: str, *, cwd: str, home: str, env: Mapping[str, str]) -> None:
    """Refuse a folder that is more than a memory: all of it would be copied, and put in another's place."""
    precious = (cwd, paths.project(cwd).root, home, paths.claude_folder(env), paths.user_home(env))
    for other in map(os.path.realpath, precious):
        if other == place or other.startswith(place.rstrip("/") + "/"):
            raise BadValue("The memory folder", place, f"a folder of its own; {other} is in it")
    if os.path.lexists(place) and not os.path.isdir(place):
        raise BadValue("The memory folder", place, "a folder")
    if os.path.isdir(place) and os.stat(place).st_uid != os.geteuid():
        raise BadValue("The memory folder", place, "one that belongs to you")
