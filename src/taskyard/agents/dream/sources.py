"""Sources of past session transcripts for dreams, and the location of the memory folder.

Other packages add a source by an entry point of the group `taskyard.transcripts`, whose value is a class as
in `TranscriptSource`; the setting `dream_sources` names those that are read. Built in are Claude Code's
sessions (`<its folder>/projects/<project>/<session>.jsonl`) and the transcripts of agent jobs in this
project. Transcripts are JSON lines, read within bounds and never through a link.

The memory folder:

    claude            Claude Code's for this project: its setting `autoMemoryDirectory`, else below its own folder
    taskyard          `$TASKYARD_HOME/memory/<project>`
    a path            that folder; `{project}` in it stands for the project's name

Without an argument or the setting `memory_dir`: Claude Code's if it has one for this project, else ours.
"""

from __future__ import annotations

import json
import os
import re
import stat

from taskyard import config
from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.values import NamedTuple, as_list, as_object, as_text, cast
from taskyard.errors import BadValue, TaskyardError
from taskyard.jobs.exit_record import read_own_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Protocol


#: Built-in sources and their classes.
BUILTIN: Mapping[str, str] = {
    "claude": "taskyard.agents.dream.sources:ClaudeSessions",
    "taskyard": "taskyard.agents.dream.sources:AgentJobs",
}

_GROUP = "taskyard.transcripts"


def find(name: str) -> TranscriptSource:
    """Return the source of a name.

    Raises:
        BadValue: there is none here.
    """
    places = known_sources()
    if name not in places:
        raise BadValue("The source of transcripts", name, f"one of {', '.join(sorted(places))}")
    from importlib import import_module

    module, _, attribute = places[name].partition(":")
    return cast("TranscriptSource", getattr(import_module(module), attribute)())


def known_sources() -> dict[str, str]:
    """Return every available source with its class path; built-in sources cannot be overridden."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)


CLAUDE, OURS = "claude", "taskyard"

#: Claude Code truncates longer names, and adds a hash of its own.
_LONGEST_FOLDER = 200


def memory_folder(chosen: str, *, cwd: str, home: str, env: Mapping[str, str]) -> str:
    """Return the real path of the memory folder; it need not exist yet.

    Raises:
        BadValue: the folder cannot be one: it contains a home, a project or our own state.
    """
    claude = claude_memory(cwd, env)
    if chosen == CLAUDE or (not chosen and os.path.isdir(claude)):
        place = claude
    elif chosen in ("", OURS):
        place = os.path.join(home, "memory", config.project_list(cwd))
    else:
        place = os.path.join(cwd, os.path.expanduser(chosen.replace("{project}", config.project_list(cwd))))
    place = os.path.realpath(place)
    _check(place, cwd=cwd, home=home, env=env)
    return place


def claude_memory(cwd: str, env: Mapping[str, str]) -> str:
    """Return where Claude Code keeps its memory of this project; all worktrees share it."""
    base = config.claude_folder(env)
    try:
        settings = as_object(json.loads(files.read(os.path.join(base, "settings.json")) or b"{}")) or {}
    except (ValueError, RecursionError, TaskyardError):
        settings = {}  # not ours to repair: Claude Code uses its default then
    if configured := as_text(settings.get("autoMemoryDirectory")):
        return os.path.abspath(os.path.expanduser(configured))
    return os.path.join(claude_project(config.project(cwd).root, env), "memory")


def claude_project(folder: str, env: Mapping[str, str]) -> str:
    """Return the folder in which Claude Code keeps the sessions of `folder`."""
    projects = os.path.join(config.claude_folder(env), "projects")
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
    """Refuse a folder that is more than a memory: all of it would be copied and swapped."""
    precious = (cwd, config.project(cwd).root, home, config.claude_folder(env), config.user_home(env))
    for other in map(os.path.realpath, precious):
        if other == place or other.startswith(place.rstrip("/") + "/"):
            raise BadValue("The memory folder", place, f"a folder of its own; {other} is in it")
    if os.path.lexists(place) and not os.path.isdir(place):
        raise BadValue("The memory folder", place, "a folder")
    if os.path.isdir(place) and os.stat(place).st_uid != os.geteuid():
        raise BadValue("The memory folder", place, "one that belongs to you")


if TYPE_CHECKING:

    class TranscriptSource(Protocol):
        """A store of sessions."""

        def sessions(self, project: Project) -> Iterable[Session]:
            """Yield the sessions of a project, in any order. Unreadable ones are left out; nothing is raised."""
            ...

        def read(self, session: Session, most: int) -> SessionText:
            """Return the text of a session, at most `most` characters, the end rather than the start."""
            ...


class Project(NamedTuple):
    """The project whose sessions are read."""

    folder: str  #: the working folder, a real path
    root: str  #: its root; the same from all its worktrees
    home: str  #: `$TASKYARD_HOME`
    env: Mapping[str, str]


class Session(NamedTuple):
    """One past conversation."""

    id: str
    path: str
    changed: float  #: epoch seconds of its last change
    size: int = 0


class SessionText(NamedTuple):
    """The text of a session."""

    text: str
    skipped: int = 0  #: lines that could not be read
    is_cut: bool = False  #: there is more


#: Maximum bytes read, from the end of a transcript; longer lines are skipped.
MOST_READ = 16_000_000
LONGEST_LINE = 1_000_000

#: Maximum files examined in one folder.
MOST_FILES = 20_000


def list_sessions(folder: str) -> Iterator[Session]:
    """Yield the transcripts directly in a folder; links, also the folder itself, are skipped."""
    try:
        if os.path.islink(folder):
            return
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_FILES:
                    return
                if entry.name.endswith(".jsonl") and (found := session_at(entry.path)) is not None:
                    yield found
    except OSError:
        return  # missing, or not readable for us


def session_at(path: str) -> Session | None:
    """Return the session in a file, if it is a regular, non-empty one."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(seen.st_mode) or not seen.st_size:
        return None
    name = os.path.basename(path).removesuffix(".jsonl")
    return Session(name, path, seen.st_mtime, seen.st_size)


def read_transcript(path: str, most: int, said: Callable[[Mapping[str, object]], str]) -> SessionText:
    """Return the text of a transcript, formatted by `said` per line, the last `most` characters of it."""
    data, is_cut = _read_tail(path)
    parts: list[str] = []
    skipped = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        message = _parse_line(line)
        if message is None:
            skipped += 1
        elif text := said(message).strip():
            parts.append(text)
    text = "\n\n".join(parts)
    return SessionText(text[-most:], skipped, is_cut or len(text) > most)


def format_message(message: Mapping[str, object]) -> str:
    """Format a line in Claude Code's format: role and text; tools by name."""
    who = message.get("type")
    if who not in ("user", "assistant") or message.get("isMeta") is True or message.get("isSidechain") is True:
        return ""
    inner = as_object(message.get("message")) or {}
    content = inner.get("content")
    blocks = [content] if isinstance(content, str) else as_list(content) or []
    words = "\n".join(filter(None, map(_format_block, blocks)))
    return f"{str(who).upper()}: {words}" if words.strip() else ""


def _format_block(raw: object) -> str:
    if isinstance(raw, str):
        return raw
    block = as_object(raw) or {}
    if block.get("type") == "text":
        return as_text(block.get("text"))
    return f"[{as_text(block.get('name'))[:100] or 'tool'}]" if block.get("type") == "tool_use" else ""


def _read_tail(path: str) -> tuple[bytes, bool]:
    try:
        fd = open_plain(path)
    except OSError:
        return b"", False
    try:
        start = max(0, os.fstat(fd).st_size - MOST_READ)
        parts, at = list[bytes](), start
        while at < start + MOST_READ and (chunk := os.pread(fd, min(1 << 20, start + MOST_READ - at), at)):
            parts.append(chunk)
            at += len(chunk)
    except OSError:
        return b"", False
    finally:
        os.close(fd)
    data = b"".join(parts)
    return (data.partition(b"\n")[2] if start else data), start > 0


def _parse_line(line: bytes) -> dict[str, object] | None:
    if len(line) > LONGEST_LINE:
        return None
    try:
        return as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None


#: Transcripts of sub-agents are beside the sessions that started them, and are no sessions.
_SUB_AGENT = "agent-"


class ClaudeSessions:
    """Claude Code's sessions of the project's root and working folder, except the current one."""

    def sessions(self, project: Project) -> Iterator[Session]:
        """Yield all sessions of the project."""
        under_way = project.env.get("CLAUDE_CODE_SESSION_ID")
        folders = dict.fromkeys(claude_project(place, project.env) for place in (project.root, project.folder))
        for folder in folders:
            for found in list_sessions(folder):
                if not found.id.startswith(_SUB_AGENT) and found.id != under_way:
                    yield found

    def read(self, session: Session, most: int) -> SessionText:
        """Return the text of user and model."""
        return read_transcript(session.path, most, format_message)


#: First characters of job ids: agents, teammates, main sessions. Dreams are excluded: one would remember
#: itself.
_ID_PREFIXES = "ast"

_ROLES = {"prompt": "USER", "user": "USER", "answer": "USER", "assistant": "ASSISTANT", "question": "ASSISTANT"}


class AgentJobs:
    """Agents that ran as jobs, with a transcript each."""

    def sessions(self, project: Project) -> Iterator[Session]:
        """Yield those that worked anywhere in the project."""
        try:
            names = os.listdir(f"{project.home}/jobs")
        except OSError:
            return
        here: dict[str, bool] = {}
        for name in names:
            if not is_job_id(name) or name[0] not in _ID_PREFIXES:
                continue
            folder = JobPaths(project.home, name)
            found = None if os.path.islink(folder.path) else session_at(folder.transcript)
            if found is None:
                continue
            cwd = as_text((read_own_json(folder.record) or {}).get("cwd"))
            if cwd not in here:
                here[cwd] = bool(cwd) and config.project(cwd).root == project.root
            if here[cwd]:
                yield found._replace(id=name)

    def read(self, session: Session, most: int) -> SessionText:
        """Return its prompts and answers."""
        return read_transcript(session.path, most, _format_line)


def _format_line(line: Mapping[str, object]) -> str:
    text, who = as_text(line.get("text")), _ROLES.get(as_text(line.get("type")))
    if text and who:
        return f"{who}: {text}"
    if line.get("type") == "tool_use":
        return f"ASSISTANT: [{as_text(line.get('name'))[:100] or 'tool'}]"
    return format_message(line)
