"""Which job continues the work of an agent that has ended: `facts.resumes` of a later job names the earlier one."""

from __future__ import annotations

from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.looking import kept_names
from taskyard.shapes import as_number, as_object

#: What the ids of jobs begin with that can be resumed: agents here, main conversations, agents elsewhere.
_LETTERS = ("a", "s", "r")


def newest(home: str, job_id: str) -> str | None:
    """The last job in the chain that resumes `job_id`; None if nothing does. Reads the record of every agent."""
    if not job_id.startswith(_LETTERS):
        return None
    after: dict[str, tuple[float, str]] = {}
    for name in kept_names(home):
        record = read(JobFolder(home, name).record) if name.startswith(_LETTERS) else None
        earlier = (as_object((record or {}).get("facts")) or {}).get("resumes")
        if isinstance(earlier, str):
            at = as_number((record or {}).get("startTime")) or 0
            after[earlier] = max(after.get(earlier, (0, "")), (at, name))
    found, seen = job_id, {job_id}
    while (following := after.get(found)) is not None and following[1] not in seen:
        found = following[1]
        seen.add(found)
    return found if found != job_id else None
