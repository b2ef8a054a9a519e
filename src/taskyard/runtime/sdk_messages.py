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
    told = {"description": job.description, "task_type": job.type}
    return message("task_started", job.id, job.tool_use_id, uuid=uuid, session_id=session_id, **told)


def task_progress(
    job: Job, *, uuid: str, session_id: str, usage: Mapping[str, int], last_tool_name: str | None = None
) -> dict[str, object]:
    """The message that a job gets on; `usage` has total_tokens, tool_uses and duration_ms."""
    last = {} if last_tool_name is None else {"last_tool_name": last_tool_name}
    described = {"description": job.description, "usage": dict(usage), **last}
    return message("task_progress", job.id, job.tool_use_id, uuid=uuid, session_id=session_id, **described)


def task_notification(notice: Notice, *, session_id: str) -> dict[str, object] | None:
    """The message that a job has ended; None for news of one that goes on, as every such message ends a job."""
    return None if notice.status is None else ended_message(notice.news, session_id=session_id)


def ended_message(news: Mapping[str, object], *, session_id: str | None = None) -> dict[str, object]:
    """The same from the words of a notice as they stand on disk; the session is its recipient's if not given."""
    status, tool_use_id, usage = str(news.get("status")), news.get("toolUseId"), as_object(news.get("usage"))
    return message(
        "task_notification",
        str(news.get("taskId")),
        tool_use_id if isinstance(tool_use_id, str) else None,
        uuid=str(news.get("id")),
        session_id=str(news.get("recipient")) if session_id is None else session_id,
        status=_STATUS.get(status, status),
        output_file=str(news.get("outputFile")),
        summary=str(news.get("summary")),
        **({} if usage is None else {"usage": usage}),
    )


def message(
    subtype: str, task_id: str, tool_use_id: str | None, *, uuid: str, session_id: str, **more: object
) -> dict[str, object]:
    """A system message about a job, as claude-agent-sdk reads it; nothing in `more` can pass for what it is."""
    head = {"type": "system", "subtype": subtype, "task_id": task_id}
    tool = {} if tool_use_id is None else {"tool_use_id": tool_use_id}
    return {**head, **tool, **more, **head, "uuid": uuid, "session_id": session_id}
