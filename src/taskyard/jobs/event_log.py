"""Write the event log of all jobs: `<home>/events/<first position>.jsonl`.

An event is an entry of a `Journal`: one line of JSON, appended in one write and without a lock, so that a
stopped process cannot keep a job from starting or ending. Its id is the position of its line: the segment's
first position plus the offset in it. Ids only grow; reading can continue from any of them.

Supervisors write too: an append costs a listing to find the last segment, an open, a write and a close. A
disk error never affects a job: the event is not logged then.

Each start and each end is logged once. The supervisor logs the start right after the job becomes visible; a
process that finds the supervisor killed in between logs it instead. The end is logged after it is decided
(`exit_record`) and before `end.json`: a process that finds a decision without an end searches the log
before it appends. Both happen under the job's lock, so no two processes do it at once.
"""

from __future__ import annotations

import json
import os

from taskyard.core import files
from taskyard.core.system import now_ms
from taskyard.core.values import PERSON, as_object
from taskyard.errors import StorageError
from taskyard.jobs import notice_payload
from taskyard.jobs.model import end_from_json, notification_message, system_message
from taskyard.jobs.notice_payload import PEOPLE
from taskyard.storage.journal import SEGMENT_SIZE as _LARGEST
from taskyard.storage.journal import Journal, append_once, parse_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.jobs.job_dir import JobPaths


#: Bytes after which the next event begins a new segment.
SEGMENT_SIZE = _LARGEST


def open_journal(home: str) -> Journal:
    """Return the event log as a journal on disk."""
    return Journal(f"{home}/events", segment_size=SEGMENT_SIZE)


def append(home: str, message: Mapping[str, object], *, keep: int | None = None) -> int:
    """Append an event and return its id. The newest `keep` segments stay; None: all.

    Raises:
        StorageError: a disk error; what was written of the event is no event.
    """
    data, folder = json.dumps({**message, "at": now_ms()}).encode(), f"{home}/events"
    try:
        place, count = append_once(folder, data, segment_size=SEGMENT_SIZE)
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        files.make_private_folder(folder)  # the first event ever
        place, count = append_once(folder, data, segment_size=SEGMENT_SIZE)
    if keep is not None and count > max(keep, 1):
        _prune(open_journal(home), keep)
    return place + 1


def _prune(journal: Journal, keep: int) -> None:
    """Remove the oldest segments; the last one always stays."""
    for base in journal.segments()[: -max(keep, 1)]:
        try:
            os.unlink(journal.path(base))
        except OSError:
            pass  # another process did; or the next start of a job will


def contains(home: str, subtype: str, task_id: str, *, since: int = 0) -> bool:
    """Return whether the log has an event of this subtype about a job, after the id `since`."""
    mark = f'"subtype": "{subtype}", "task_id": "{task_id}"'.encode()  # as `json.dumps` writes it
    lines = (line for line in _lines(open_journal(home), since) if line is not None and mark in line)
    return any((parse_entry(line) or {}).get("task_id") == task_id for line in lines)


def _lines(journal: Journal, since: int) -> Iterator[bytes | None]:
    for base in journal.segments():
        if journal.following(base) > since:
            try:
                yield from (line for _, line in journal.lines(base, max(since - base, 0)))
            except FileNotFoundError:
                continue  # no longer kept


#: Key in a job's record for the position of its start event.
POSITION_KEY = "events"


def log_started(folder: JobPaths, record: Mapping[str, object], *, keep: int | None = None) -> int | None:
    """Log the start of a job, for its supervisor; return the event's id, None on a disk error.

    The newest `keep` segments of the log stay.
    """
    facts = {"description": record.get("description"), "task_type": record.get("type")}
    return _try_append(folder, _job_event(folder, record, "task_started", **facts), keep)


def ensure_started_logged(folder: JobPaths, record: Mapping[str, object]) -> None:
    """Log the start of a job unless its supervisor did, for processes that find that one killed."""
    if _position(record) is None and not _is_logged(folder, "task_started", 0):
        log_started(folder, record)


def log_progress(
    folder: JobPaths,
    record: Mapping[str, object],
    *,
    usage: Mapping[str, int] | None = None,
    last_tool_name: str | None = None,
    keep: int | None = None,
    **more: object,
) -> int | None:
    """Log a job's progress, for job kinds; return the event's id, None on a disk error.

    Args:
        folder: The job.
        record: Its record.
        usage: `total_tokens`, `tool_uses` and `duration_ms`, those that are known.
        last_tool_name: The tool it used last.
        keep: Number of the log's newest segments to keep.
        more: Further fields of its kind; they cannot override ours.
    """
    began = record.get("startTime")
    known = {"total_tokens": 0, "tool_uses": 0, "duration_ms": now_ms() - began if isinstance(began, int) else 0}
    facts: dict[str, object] = {**more, "description": record.get("description"), "usage": {**known, **(usage or {})}}
    if last_tool_name is not None:
        facts["last_tool_name"] = last_tool_name
    return _try_append(folder, _job_event(folder, record, "task_progress", **facts), keep)


def log_ended(folder: JobPaths, decided: Mapping[str, object], *, is_new: bool) -> None:
    """Log how a job ended, before its end is written; with the text and id of its notice, if it has one.

    `is_new`: it was decided just now, so it cannot be logged yet. Otherwise the log is searched first.
    """
    words = as_object(decided.get("news"))
    record: Mapping[str, object] = {} if is_new and words is not None else _read_record(folder)
    if not is_new and _is_logged(folder, "task_notification", _position(record) or 0):
        return
    if words is None:
        end = end_from_json(as_object(decided.get("end")) or {})
        words = None if end is None else notice_payload.end_payload(folder, record, end)
    if words is not None:
        _try_append(folder, notification_message(words))


def _read_record(folder: JobPaths) -> Mapping[str, object]:
    from taskyard.jobs.exit_record import read_json

    return read_json(folder.record) or {}


def _job_event(folder: JobPaths, record: Mapping[str, object], subtype: str, **facts: object) -> dict[str, object]:
    tool_use_id = record.get("toolUseId")
    return system_message(
        subtype,
        folder.id,
        tool_use_id if isinstance(tool_use_id, str) else None,
        uuid=_uuid(),
        session_id=_session_id(record),
        **facts,
    )


def _session_id(record: Mapping[str, object]) -> str:
    recipient = str(record.get("recipient") or PERSON)
    return PERSON if recipient == PEOPLE else recipient


def _uuid() -> str:
    """Return a random UUID; it takes a supervisor less memory than a sortable id."""
    chance = os.urandom(16).hex()
    return f"{chance[:8]}-{chance[8:12]}-4{chance[13:16]}-a{chance[17:20]}-{chance[20:]}"


def _try_append(folder: JobPaths, event: Mapping[str, object], keep: int | None = None) -> int | None:
    try:
        return append(folder.home, event, keep=keep)
    except (StorageError, OSError):
        return None


def _is_logged(folder: JobPaths, subtype: str, since: int) -> bool:
    try:
        return contains(folder.home, subtype, folder.id, since=since)
    except (StorageError, OSError):
        return True  # unknown: do not log it twice


def _position(record: Mapping[str, object]) -> int | None:
    position = record.get(POSITION_KEY)
    return position if type(position) is int else None
