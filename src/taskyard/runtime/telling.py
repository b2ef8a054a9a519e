"""
What the stream of events is told of a job: that it began, gets on, has ended. Each beginning and each end once.

Nothing here can hinder a job: what the disk refuses is not told.

A beginning is told by the keeper, right after the job can be seen; whoever finds that a keeper was killed in
between tells it in its place. An end is told after it is decided (`ending`) and before `end.json`: whoever finds a
decision without an end cannot know whether it was told, and looks before telling it. Both are done under the
job's lock, so no two do it at once.
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.errors import StorageError
from taskyard.runtime import event_stream, news
from taskyard.runtime.recipients import PEOPLE
from taskyard.runtime.records import end_from_json
from taskyard.runtime.sdk_messages import ended_message, message
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.folder import JobFolder

#: Whose session it is where no agent is named.
PERSON = "me"

#: The key in a job's record under which it says where in the stream its beginning is.
POSITION = "events"


def started(folder: JobFolder, record: Mapping[str, object], *, keep: int | None = None) -> int | None:
    """Tell that a job began, for its keeper; the event's id, None if the disk refused.

    Of the stream's segments the newest `keep` stay.
    """
    facts = {"description": record.get("description"), "task_type": record.get("type")}
    return _tell(folder, _about(folder, record, "task_started", **facts), keep)


def surely_started(folder: JobFolder, record: Mapping[str, object]) -> None:
    """Tell that a job began unless its keeper did, for those who find that one dead."""
    if _position(record) is None and not _holds(folder, "task_started", 0):
        started(folder, record)


def progress(
    folder: JobFolder,
    record: Mapping[str, object],
    *,
    usage: Mapping[str, int] | None = None,
    last_tool_name: str | None = None,
    keep: int | None = None,
    **more: object,
) -> int | None:
    """Tell that a job gets on, for the kinds; the event's id, None if the disk refused.

    Args:
        folder: The job.
        record: What its record says.
        usage: `total_tokens`, `tool_uses` and `duration_ms`, those that are known.
        last_tool_name: The tool it used last.
        keep: Of the stream's segments the newest so many stay.
        more: What its kind has to say besides; names of ours cannot be given another meaning.
    """
    began = record.get("startTime")
    known = {"total_tokens": 0, "tool_uses": 0, "duration_ms": now_ms() - began if isinstance(began, int) else 0}
    facts: dict[str, object] = {**more, "description": record.get("description"), "usage": {**known, **(usage or {})}}
    if last_tool_name is not None:
        facts["last_tool_name"] = last_tool_name
    return _tell(folder, _about(folder, record, "task_progress", **facts), keep)


def ended(folder: JobFolder, decided: Mapping[str, object], *, is_new: bool) -> None:
    """Tell how a job ended, before its end is written; in the words and under the id of its notice, if it has one.

    `is_new`: it was decided just now, so that nobody can have told it. Otherwise the stream is asked first.
    """
    words = as_object(decided.get("news"))
    record: Mapping[str, object] = {} if is_new and words is not None else _record(folder)
    if not is_new and _holds(folder, "task_notification", _position(record) or 0):
        return
    if words is None:
        end = end_from_json(as_object(decided.get("end")) or {})
        words = None if end is None else news.words_of_end(folder, record, end)
    if words is not None:
        _tell(folder, ended_message(words))


def _record(folder: JobFolder) -> Mapping[str, object]:
    from taskyard.runtime.ending import read

    return read(folder.record) or {}


def _about(folder: JobFolder, record: Mapping[str, object], subtype: str, **facts: object) -> dict[str, object]:
    tool_use_id = record.get("toolUseId")
    return message(
        subtype,
        folder.id,
        tool_use_id if isinstance(tool_use_id, str) else None,
        uuid=_uuid(),
        session_id=_session(record),
        **facts,
    )


def _session(record: Mapping[str, object]) -> str:
    recipient = str(record.get("recipient") or PERSON)
    return PERSON if recipient == PEOPLE else recipient


def _uuid() -> str:
    """A name for an event; it takes a keeper less memory than an id that sorts."""
    chance = os.urandom(16).hex()
    return f"{chance[:8]}-{chance[8:12]}-4{chance[13:16]}-a{chance[17:20]}-{chance[20:]}"


def _tell(folder: JobFolder, event: Mapping[str, object], keep: int | None = None) -> int | None:
    try:
        return event_stream.append(folder.home, event, keep=keep)
    except (StorageError, OSError):
        return None


def _holds(folder: JobFolder, subtype: str, since: int) -> bool:
    try:
        return event_stream.holds(folder.home, subtype, folder.id, since=since)
    except (StorageError, OSError):
        return True  # who cannot look must not tell it twice


def _position(record: Mapping[str, object]) -> int | None:
    position = record.get(POSITION)
    return position if type(position) is int else None
