"""Progress reports of agents for their starter, one-line activity for lists, and messages to agents.

A report has what is new since the last one. The reported counts are stored beside the job
(`<job>/reported.json`), so that each is reported once, whichever process asks; the record shows them as
`lastReportedToolCount` and `lastReportedTokenCount`.

A message to a working agent is one line of its job's input, whatever its text and sender:

    {"type": "message", "from": "ada", "text": "…"}

What a user types (`taskyard send JOB TEXT`) is a message too, one per line, without a sender.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.core import files as storage_files
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_list, as_number, as_object, as_text
from taskyard.errors import JobNotFound, StorageError, TaskyardError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.model import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from taskyard.jobs.model import Job


#: Seconds between two reports on one agent.
REPORT_INTERVAL = 10.0

#: Most reports at once.
MAX_REPORTS = 5

#: First characters of agents' ids.
_AGENT_PREFIXES = ("a", "s")


def format_report(job: Job, reported: Mapping[str, object]) -> str | None:
    """Return what is new of a working agent; None if nothing is."""
    progress = as_object(job.facts.get("progress")) or {}
    tools = _count(progress.get("toolUseCount")) - _count(reported.get("lastReportedToolCount"))
    tokens = _count(progress.get("tokenCount")) - _count(reported.get("lastReportedTokenCount"))
    parts = [f"{tools} new {'tool' if tools == 1 else 'tools'} used"] if tools > 0 else []
    parts += [f"{tokens} new tokens"] if tokens > 0 else []
    if not parts:
        return None
    summary = job.facts.get("summary")
    at_it = f" It says of itself: {_escape_xml(summary)}" if isinstance(summary, str) and summary else ""
    return (
        f"Agent {job.id} progress: {', '.join(parts)}. The agent is still running.{at_it} You usually do not need to"
        f" read {job.output_file} unless you need specific details right away. You will receive a notification when the"
        " agent is done."
    )


def take_reports(
    home: str, agent: str | None, *, exclude: Container[str] = (), every: float = REPORT_INTERVAL
) -> list[str]:
    """Return reports on background agents that `agent` started, and record them as reported.

    The jobs in `exclude` are left out: the caller follows them another way.
    """
    from taskyard.jobs.query import read_job

    found: list[str] = []
    for job_id in _running_agents(home):
        folder = JobPaths(home, job_id)
        if len(found) == MAX_REPORTS or job_id in exclude or _report_age(folder) < every:
            continue
        try:
            job = read_job(home, job_id)
            is_theirs = job.type == "local_agent" and job.agent_id == agent and job.is_backgrounded
            if job.is_final or not is_theirs:
                continue
            text = format_report(job, read_json(_reported_path(folder)) or {})
            if text is not None:
                _save_reported(folder, job)
                found.append(text)
        except (JobNotFound, StorageError, TaskyardError):
            continue  # it has ended, or cannot be read: a notice will report its end
    return found


def _running_agents(home: str) -> list[str]:
    try:
        names = os.listdir(live_folder(home))
    except OSError:
        return []
    return sorted(name for name in names if name.startswith(_AGENT_PREFIXES) and is_job_id(name))


def _save_reported(folder: JobPaths, job: Job) -> None:
    progress = as_object(job.facts.get("progress")) or {}
    told = {
        "lastReportedToolCount": _count(progress.get("toolUseCount")),
        "lastReportedTokenCount": _count(progress.get("tokenCount")),
    }
    storage_files.replace(_reported_path(folder), json.dumps(told).encode())


def load_reported(folder: JobPaths) -> dict[str, object]:
    """Return the counts reported last, as the record shows them."""
    known = read_json(_reported_path(folder)) or {}
    return {name: _count(known[name]) for name in ("lastReportedToolCount", "lastReportedTokenCount") if name in known}


def _report_age(folder: JobPaths) -> float:
    """Return the seconds since the last report."""
    try:
        return abs(time.time() - os.lstat(_reported_path(folder)).st_mtime)
    except OSError:
        return float("inf")


def _reported_path(folder: JobPaths) -> str:
    return f"{folder.path}/reported.json"


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _escape_xml(text: str) -> str:
    return escape_control(text)[:300].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


#: Tool inputs that describe a call best; the first one present is shown.
_KEY_INPUTS = ("description", "command", "file_path", "path", "file", "pattern", "query", "url", "prompt")

_MAX_LINE = 300

#: Most characters shown of one transcript entry.
_MAX_ENTRY = 2_000


def agent_line(job: Job) -> str | None:
    """Return its question, summary or last activity; of an ended one, its answer. None: its output shows it."""
    at = _ACTIVITY.get(job.type)
    if at is None:
        return None
    facts = job.facts
    if job.is_final:
        line = as_text(facts.get("result")) or as_text(facts.get("note"))  # a failure is stated by its end
    else:
        limit = job.rate_limited
        line = limit.words() if limit is not None else as_text(facts.get("question")) or at(facts)
    return escape_control(" ".join(line.split()))[:_MAX_LINE]


def _agent_activity(facts: Mapping[str, object]) -> str:
    return as_text(facts.get("summary")) or last_activity(facts.get("progress"))


def _teammate_activity(facts: Mapping[str, object]) -> str:
    if facts.get("awaitsApproval") is True:
        return "waits for approval of its plan"
    if facts.get("isIdle") is True:
        return "idle"
    for raw in reversed(as_list(facts.get("messages")) or []):
        entry = as_object(raw) or {}
        if entry.get("type") == "tool_use" and (used := last_activity(facts.get("progress"))):
            return used
        if words := format_entry(entry):
            return words
    return last_activity(facts.get("progress"))


def _dream_activity(facts: Mapping[str, object]) -> str:
    count = as_number(facts.get("touchedCount"))
    files = f", {count} {'file' if count == 1 else 'files'} so far" if count else ""
    stage, phase = as_text(facts.get("stage")), as_text(facts.get("phase"))
    return f"{stage}: {phase}{files}" if stage else phase


#: Kinds whose output is a transcript for programs, each with the function for its activity.
_ACTIVITY = {"local_agent": _agent_activity, "in_process_teammate": _teammate_activity, "dream": _dream_activity}


def format_entry(entry: Mapping[str, object]) -> str:
    """Return a transcript entry for people, with its line breaks; empty if it has nothing to show."""
    kind, text = as_text(entry.get("type")), escape_control(as_text(entry.get("text"))[:_MAX_ENTRY], lines=True).strip()
    if kind == "assistant":
        return text
    if kind == "tool_use":
        return f"[{escape_control(as_text(entry.get('name')))}]"
    if kind == "question":
        return f"? {text}"
    if kind in ("prompt", "user"):
        return f"> {text.splitlines()[0]}" if text else ""
    return ""


def last_activity(progress: object) -> str:
    """Return the tool it used last, with its main input."""
    return format_tool_use((as_object(progress) or {}).get("lastActivity"))


def format_tool_use(raw: object) -> str:
    """Return one tool use, in words: `Edit src/a.py`."""
    used = as_object(raw) or {}
    name = used.get("toolName")
    if not isinstance(name, str):
        return ""
    given: Mapping[str, object] = as_object(used.get("input")) or {}
    about = next((value for key in _KEY_INPUTS if isinstance(value := given.get(key), str) and value.strip()), "")
    return f"{name} {' '.join(about.split())[:100]}".strip()


_TYPE = "message"


class AgentMessage(NamedTuple):
    """A message to a working agent."""

    text: str
    sender: str = ""

    def __str__(self) -> str:
        return f"Message from {self.sender}: {self.text}" if self.sender else self.text


def encode_message(sender: str, text: str) -> str:
    """Encode a message as a line of input."""
    return json.dumps({"type": _TYPE, "from": sender, "text": text}) + "\n"


def parse_message(line: str) -> AgentMessage:
    """Return the message in a line; a line in another format is the text itself."""
    if line.startswith('{"type": "message"'):
        try:
            found = as_object(json.loads(line))
        except (ValueError, RecursionError):
            found = None
        match found or {}:
            case {"type": "message", "from": str(sender), "text": str(text), **more} if not more:
                return AgentMessage(text, sender)
            case _:
                pass
    return AgentMessage(line)
