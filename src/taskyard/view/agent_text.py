"""What an agent is at, in a line: for lists, where a command shows what it printed last. Pure."""

from __future__ import annotations

from taskyard.shapes import as_object
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import Job

#: What a tool was given says most by one of these, the first that is there.
_TELLING = ("description", "command", "file_path", "path", "file", "pattern", "query", "url", "prompt")

_LONGEST = 300


def agent_line(job: Job) -> str | None:
    """What it asks, its summary, or what it did last; of one that is over, its answer. None if it is no agent."""
    if job.type != "local_agent":
        return None
    facts = job.facts
    if job.is_final:
        said = facts.get("result")
    else:
        said = facts.get("question") or facts.get("summary") or last_activity(facts.get("progress"))
    line = said if isinstance(said, str) else ""
    return safe(" ".join(line.split()))[:_LONGEST]


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
