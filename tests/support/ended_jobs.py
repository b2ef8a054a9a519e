"""Jobs that have ended, written down as their keepers would, and the notices of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.runtime import ending, news, seal
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import new_id
from taskyard.runtime.model import End
from taskyard.runtime.notice import Notice, from_news
from taskyard.runtime.records import end_to_json


def job_folder(home: str, **record: object) -> JobFolder:
    """The folder of a job with nobody to keep it."""
    folder = JobFolder(home, new_id("b"))
    files.make_private_folder(folder.path)
    body = {"id": folder.id, "type": "local_bash", "description": "Fail it", **record}
    files.create(folder.record, json.dumps(body).encode())
    return folder


def end_job(home: str, recipient: str = "me", *, exit_code: int = 0, at: int | None = None, **record: object) -> str:
    """End a job of `recipient`; its id."""
    folder = job_folder(home, recipient=recipient, **record)
    finish(folder, End("exited", exit_code, proof="proved", at=now_ms() if at is None else at))
    return folder.id


def finish(folder: JobFolder, end: End) -> None:
    """Write an end and send the notice of it."""
    record = json.loads(Path(folder.record).read_bytes())
    ending.decide(folder, end_to_json(end), news.of_end(folder, record, end))


def finish_halfway(folder: JobFolder, end: End) -> None:
    """Write an end, and be stopped before the notice is sent."""
    record = json.loads(Path(folder.record).read_bytes())
    body = {"end": end_to_json(end), "news": news.of_end(folder, record, end)}
    files.create(folder.end, json.dumps(body["end"]).encode())
    files.create(folder.notice, json.dumps(body).encode())


def stall_job(home: str, recipient: str = "me", *, tail: str = "Overwrite? (y/n) ", **record: object) -> str:
    """Let a job seem to wait for an answer; its id."""
    folder = job_folder(home, recipient=recipient, **record)
    news.tell_stall(folder, {"recipient": recipient, "description": "Ask", **record}, tail)
    return folder.id


def notice(home: str, **fields: object) -> Notice:
    """A signed notice that was sent to nobody."""
    from taskyard.message_ids import lone_id

    job_id = new_id("b")
    known: dict[str, object] = {
        "id": lone_id(job_id),
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
    found = from_news(seal.signed(home, {**known, **fields}))
    assert found is not None
    return found
