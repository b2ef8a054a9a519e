"""What keeps a task in progress from getting on: its worker's job waits for a rate limit, or for an answer. Pure."""

from __future__ import annotations

from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.runtime.model import Job


def task_waits(jobs: Iterable[Job], list_name: str) -> Mapping[str, str]:
    """For each task of the list whose job waits, what for: `rate-limited by anthropic until 04:50`."""
    found: dict[str, str] = {}
    for job in jobs:
        if job.is_final:
            continue
        if (limit := job.rate_limited) is not None:
            about = as_text((as_object(job.facts.get("rateLimited")) or {}).get("task")) or job.task or ""
            note = limit.words()
        elif job.needs_input:
            about, note = as_text(job.facts.get("askedFor")) or job.task or "", f"waits for an answer: {job.id}"
        else:
            continue
        owner, _, task_id = about.rpartition("/")
        if owner == list_name and task_id:
            found[task_id] = note
    return found
