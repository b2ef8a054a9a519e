"""
The one stream of events of all jobs, as files: `<home>/events/<first position>.jsonl`.

An event is an entry of a `Journal`: one line of JSON, appended in one write, and without a lock, so that nobody who is
stopped can keep a job from starting or ending. Its id is where its line begins: the position its segment begins with,
plus the offset in it. Ids grow for ever; any of them says where to go on reading.

Writing is for keepers, too: it costs a look for the last segment, an open, a write and a close.
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.journal import SEGMENT_SIZE as _LARGEST
from taskyard.disk.journal import Journal, append_once, parsed
from taskyard.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Whoever finds its event beyond this many bytes begins the next segment.
SEGMENT_SIZE = _LARGEST


def journal_of(home: str) -> Journal:
    """The stream, as a log on disk."""
    return Journal(f"{home}/events", segment_size=SEGMENT_SIZE)


def append(home: str, message: Mapping[str, object], *, keep: int | None = None) -> int:
    """Add an event; its id. Of the segments there are, the newest `keep` stay; None: all.

    Raises:
        StorageError: the disk refused; what it took of the event is no event.
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
        _prune(journal_of(home), keep)
    return place + 1


def _prune(journal: Journal, keep: int) -> None:
    """Remove the oldest segments; the last one always stays."""
    for base in journal.segments()[: -max(keep, 1)]:
        try:
            os.unlink(journal.path(base))
        except OSError:
            pass  # somebody else did; or the next who starts a job will


def holds(home: str, subtype: str, task_id: str, *, since: int = 0) -> bool:
    """Whether there is an event of this kind about a job, after the id `since`."""
    mark = f'"subtype": "{subtype}", "task_id": "{task_id}"'.encode()  # as `json.dumps` writes it
    lines = (line for line in _lines(journal_of(home), since) if line is not None and mark in line)
    return any((parsed(line) or {}).get("task_id") == task_id for line in lines)


def _lines(journal: Journal, since: int) -> Iterator[bytes | None]:
    for base in journal.segments():
        if journal.following(base) > since:
            try:
                yield from (line for _, line in journal.lines(base, max(since - base, 0)))
            except FileNotFoundError:
                continue  # no longer kept
