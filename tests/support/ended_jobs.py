"""Jobs that have ended, written down as their keepers would, and the notices of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from taskyard.core import files
from taskyard.core.system import now_ms
from taskyard.jobs import exit_record, notice_payload
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End, end_to_json, new_job_id
from taskyard.jobs.notice import Notice, from_payload


def job_folder(home: str, **record: object) -> JobPaths:
    """The folder of a job with nobody to keep it."""
    folder = JobPaths(home, new_job_id("b"))
    files.make_private_folder(folder.path)
    body = {"id": folder.id, "type": "local_bash", "description": "Fail it", **record}
    files.create(folder.record, json.dumps(body).encode())
    return folder


def end_job(home: str, recipient: str = "me", *, exit_code: int = 0, at: int | None = None, **record: object) -> str:
    """End a job of `recipient`; its id."""
    folder = job_folder(home, recipient=recipient, **record)
    finish(folder, End("exited", exit_code, proof="proved", at=now_ms() if at is None else at))
    return folder.id


def finish(folder: JobPaths, end: End) -> None:
    """Write an end and send the notice of it."""
    record = json.loads(Path(folder.record).read_bytes())
    exit_record.commit_end(folder, end_to_json(end), notice_payload.end_notice(folder, record, end))


def finish_halfway(folder: JobPaths, end: End) -> None:
    """Write an end, and be stopped before the notice is sent."""
    record = json.loads(Path(folder.record).read_bytes())
    body = {"end": end_to_json(end), "news": notice_payload.end_notice(folder, record, end)}
    files.create(folder.end, json.dumps(body["end"]).encode())
    files.create(folder.notice, json.dumps(body).encode())


def stall_job(home: str, recipient: str = "me", *, tail: str = "Overwrite? (y/n) ", **record: object) -> str:
    """Let a job seem to wait for an answer; its id."""
    folder = job_folder(home, recipient=recipient, **record)
    notice_payload.report_stall(folder, {"recipient": recipient, "description": "Ask", **record}, tail)
    return folder.id


def notice(home: str, **fields: object) -> Notice:
    """A signed notice that was sent to nobody."""
    from taskyard.storage.message_ids import clock_id

    job_id = new_job_id("b")
    known: dict[str, object] = {
        "id": clock_id(job_id),
        "recipient": "me",
        "priority": "later",
        "taskId": job_id,
        "toolUseId": None,
        "outputFile": f"{home}/jobs/{job_id}/output",
        "status": "completed",
        "summary": 'Background command "Fail it" completed (exit code 0)',
        "exitCode": 0,
        "at": now_ms(),
    }
    os.makedirs(home, mode=0o700, exist_ok=True)
    found = from_payload(notice_payload.sign(home, {**known, **fields}))
    assert found is not None
    return found
