"""Following the session of an agent elsewhere again, as another job: the one before is over, the session may not be."""

from __future__ import annotations

from taskyard.errors import Conflict
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.looking import look
from taskyard.shapes import as_object, as_text


def earlier(home: str, job_id: str, prompt: str) -> dict[str, object]:
    """The fields of an agent elsewhere that goes on with `job_id`.

    Raises:
        JobNotFound: there is no such job.
        Conflict: it is none of these, or not over, or never had a session.
    """
    job = look(home, job_id)
    if job.type != "remote_agent":
        raise Conflict(f"{job.id} is no agent elsewhere: it is a {job.type}.")
    if not job.is_final:
        raise Conflict(f"{job.id} is followed already: `taskyard send {job.id} TEXT` tells it something.")
    session, remote = as_text(job.facts.get("sessionId")), as_text(job.facts.get("remote"))
    if not session or not remote:
        raise Conflict(f"{job.id} never had a session, or that is no longer known.")
    arguments = as_object((read(JobFolder(home, job.id).arguments) or {}).get("arguments")) or {}
    metadata = as_object(job.facts.get("remoteTaskMetadata")) or {}
    return {
        "prompt": prompt,
        "remote": remote,
        "remote_task_type": as_text(job.facts.get("remoteTaskType")),
        "metadata": {key: value for key, value in metadata.items() if isinstance(value, str)},
        "session": session,
        "resumes": job.id,
        "name": as_text(job.facts.get("name")) or None,
        "checker": as_text(arguments.get("checker")),
    }
