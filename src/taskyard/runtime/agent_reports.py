"""
How far the agents are that somebody started, for whoever started them: what is new since the last report, once.

What was reported last stands beside the job (`<job>/reported.json`), so that it is told once whoever asks; views find
it on the record as `lastReportedToolCount` and `lastReportedTokenCount`.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.disk import files
from taskyard.errors import JobNotFound, StorageError, TaskyardError
from taskyard.harmless import safe
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder, living_folder
from taskyard.runtime.ids import is_job_id
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from taskyard.runtime.model import Job

#: Seconds between two reports on one agent: what it does is no news at every call.
EVERY = 10.0

#: Reports at once.
MOST = 5

#: Letters of agents' ids.
_LETTERS = ("a", "s")


def message(job: Job, reported: Mapping[str, object]) -> str | None:
    """What is new of an agent that works; None if nothing is. Pure."""
    progress = as_object(job.facts.get("progress")) or {}
    tools = _count(progress.get("toolUseCount")) - _count(reported.get("lastReportedToolCount"))
    tokens = _count(progress.get("tokenCount")) - _count(reported.get("lastReportedTokenCount"))
    parts = [f"{tools} new {'tool' if tools == 1 else 'tools'} used"] if tools > 0 else []
    parts += [f"{tokens} new tokens"] if tokens > 0 else []
    if not parts:
        return None
    summary = job.facts.get("summary")
    at_it = f" It says of itself: {_plain(summary)}" if isinstance(summary, str) and summary else ""
    return (
        f"Agent {job.id} progress: {', '.join(parts)}. The agent is still running.{at_it} You usually do not need to"
        f" read {job.output_file} unless you need specific details right away. You will receive a notification when the"
        " agent is done."
    )


def reports(home: str, agent: str | None, *, but: Container[str] = (), every: float = EVERY) -> list[str]:
    """What is new of those agents in the background that `agent` started; it counts as told.

    Of the jobs in `but` it hears another way.
    """
    from taskyard.runtime.looking import look

    found: list[str] = []
    for job_id in _living(home):
        folder = JobFolder(home, job_id)
        if len(found) == MOST or job_id in but or _age(folder) < every:
            continue
        try:
            job = look(home, job_id)
            is_theirs = job.type == "local_agent" and job.agent_id == agent and job.is_backgrounded
            if job.is_final or not is_theirs:
                continue
            text = message(job, read(_path(folder)) or {})
            if text is not None:
                _note(folder, job)
                found.append(text)
        except (JobNotFound, StorageError, TaskyardError):
            continue  # it is over by now, or cannot be read: its end will be told
    return found


def _living(home: str) -> list[str]:
    try:
        names = os.listdir(living_folder(home))
    except OSError:
        return []
    return sorted(name for name in names if name.startswith(_LETTERS) and is_job_id(name))


def _note(folder: JobFolder, job: Job) -> None:
    progress = as_object(job.facts.get("progress")) or {}
    told = {
        "lastReportedToolCount": _count(progress.get("toolUseCount")),
        "lastReportedTokenCount": _count(progress.get("tokenCount")),
    }
    files.replace(_path(folder), json.dumps(told).encode())


def reported(folder: JobFolder) -> dict[str, object]:
    """What was reported last, as the record shows it."""
    known = read(_path(folder)) or {}
    return {name: _count(known[name]) for name in ("lastReportedToolCount", "lastReportedTokenCount") if name in known}


def _age(folder: JobFolder) -> float:
    """Seconds since the last report."""
    try:
        return abs(time.time() - os.lstat(_path(folder)).st_mtime)
    except OSError:
        return float("inf")


def _path(folder: JobFolder) -> str:
    return f"{folder.path}/reported.json"


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _plain(text: str) -> str:
    return safe(text)[:300].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
