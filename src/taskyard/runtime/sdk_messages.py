"""
Jobs as the system messages that programs built on claude-agent-sdk read. Pure.

Its parser wants every key that is always here, and takes those that may be missing.
"""

from __future__ import annotations

from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import Job
    from taskyard.runtime.notice import Notice

#: What it calls the end of a job that was killed.
_STATUS = {"killed": "stopped"}


def task_started(job: Job, *, uuid: str, session_id: str) -> dict[str, object]:
    """The message that a job has begun, as claude-agent-sdk reads it."""
    return _message(
        "task_started", job.id, job.tool_use_id, uuid, session_id, description=job.description, task_type=job.type
    )


def task_progress(
    job: Job, *, uuid: str, session_id: str, usage: Mapping[str, int], last_tool_name: str | None = None
) -> dict[str, object]:
    """The message that a job gets on; `usage` has total_tokens, tool_uses and duration_ms."""
    last = {} if last_tool_name is None else {"last_tool_name": last_tool_name}
    described = {"description": job.description, "usage": dict(usage), **last}
    return _message("task_progress", job.id, job.tool_use_id, uuid, session_id, **described)


def task_notification(notice: Notice, *, session_id: str) -> dict[str, object] | None:
    """The message that a job has ended; None for news of one that goes on, as every such message ends a job."""
    if notice.status is None:
        return None
    usage = as_object(notice.news.get("usage"))
    ended = {
        "status": _STATUS.get(notice.status, notice.status),
        "output_file": notice.output_file,
        "summary": notice.summary,
        **({} if usage is None else {"usage": usage}),
    }
    return _message("task_notification", notice.task_id, notice.tool_use_id, notice.id, session_id, **ended)


def _message(
    subtype: str, task_id: str, tool_use_id: str | None, uuid: str, session_id: str, **more: object
) -> dict[str, object]:
    return {
        "type": "system",
        "subtype": subtype,
        "task_id": task_id,
        **({} if tool_use_id is None else {"tool_use_id": tool_use_id}),
        **more,
        "uuid": uuid,
        "session_id": session_id,
    }
