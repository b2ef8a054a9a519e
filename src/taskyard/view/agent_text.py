"""What an agent, a teammate or a dream is at, in a line: where lists show what a command printed last. Pure."""

from __future__ import annotations

from taskyard.shapes import as_list, as_number, as_object, as_text
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import Job

#: What a tool was given says most by one of these, the first that is there.
_TELLING = ("description", "command", "file_path", "path", "file", "pattern", "query", "url", "prompt")

_LONGEST = 300

#: Characters of one entry of a transcript that are shown.
_LONGEST_ENTRY = 2_000


def agent_line(job: Job) -> str | None:
    """What it asks, its summary or what it did last; of one that is over, its answer. None: its output says it."""
    at = _AT.get(job.type)
    if at is None:
        return None
    facts = job.facts
    if job.is_final:
        line = as_text(facts.get("result")) or as_text(facts.get("note"))  # why one failed, its end says
    else:
        limit = job.rate_limited
        line = limit.words() if limit is not None else as_text(facts.get("question")) or at(facts)
    return safe(" ".join(line.split()))[:_LONGEST]


def _agent(facts: Mapping[str, object]) -> str:
    return as_text(facts.get("summary")) or last_activity(facts.get("progress"))


def _teammate(facts: Mapping[str, object]) -> str:
    if facts.get("awaitsApproval") is True:
        return "waits for a word on its plan"
    if facts.get("isIdle") is True:
        return "idle"
    for raw in reversed(as_list(facts.get("messages")) or []):
        entry = as_object(raw) or {}
        if entry.get("type") == "tool_use" and (used := last_activity(facts.get("progress"))):
            return used
        if words := spoken(entry):
            return words
    return last_activity(facts.get("progress"))


def _dream(facts: Mapping[str, object]) -> str:
    count = as_number(facts.get("touchedCount"))
    files = f", {count} {'file' if count == 1 else 'files'} so far" if count else ""
    stage, phase = as_text(facts.get("stage")), as_text(facts.get("phase"))
    return f"{stage}: {phase}{files}" if stage else phase


#: The kinds whose output is a transcript for programs, each with what is to be said of one at work.
_AT = {"local_agent": _agent, "in_process_teammate": _teammate, "dream": _dream}


def spoken(entry: Mapping[str, object]) -> str:
    """An entry of a transcript, for people; empty if there is nothing to see in it. Its lines stay lines."""
    kind, text = as_text(entry.get("type")), safe(as_text(entry.get("text"))[:_LONGEST_ENTRY], lines=True).strip()
    if kind == "assistant":
        return text
    if kind == "tool_use":
        return f"[{safe(as_text(entry.get('name')))}]"
    if kind == "question":
        return f"? {text}"
    if kind in ("prompt", "user"):
        return f"> {text.splitlines()[0]}" if text else ""
    return ""


def last_activity(progress: object) -> str:
    """The tool it used last, with what that was about."""
    return activity((as_object(progress) or {}).get("lastActivity"))


def activity(raw: object) -> str:
    """One use of a tool, in words: `Edit src/a.py`."""
    used = as_object(raw) or {}
    name = used.get("toolName")
    if not isinstance(name, str):
        return ""
    given: Mapping[str, object] = as_object(used.get("input")) or {}
    about = next((value for key in _TELLING if isinstance(value := given.get(key), str) and value.strip()), "")
    return f"{name} {' '.join(about.split())[:100]}".strip()
