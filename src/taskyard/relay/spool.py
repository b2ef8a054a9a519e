"""
The outboxes of a home as a spool: what waits in them goes into the database, and is filed away here after that.

A notice goes under its own id, so whoever dies in between is repeated without harm. With it goes who is next in line,
should its receiver be gone: that is read from records that only this machine has.
"""

from __future__ import annotations

import json
import os

from taskyard import maildir
from taskyard.errors import Damaged, StorageError
from taskyard.maildir import AGAIN, Box
from taskyard.names import is_plain
from taskyard.runtime import outboxes
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.notice import NEXT, decoded
from taskyard.runtime.recipients import PEOPLE, recipient_of
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.runtime.notice import Notice

#: Notices sent at once.
_BATCH = 200

#: Seconds for filing one away; who dies over it gives it back, and it is sent again, which changes nothing.
_MOMENT = 5.0

#: Jobs inside jobs beyond this are a circle that somebody wrote by hand.
_DEEPEST = 64

_PUT = "SELECT put_notices(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"


class _Found(NamedTuple):
    box: Box
    name: str
    body: bytes
    notice: Notice


def is_empty(home: str) -> bool:
    """Whether nothing waits to be sent, nor is in hands that may give it back."""
    return not any(box.count() or _is_held(box) for box in outboxes.boxes(home))


def forward(host: Host, database: Database) -> int:
    """Send everything that waits; how many notices.

    Raises:
        StoreAway, SchemaMismatch, StorageError: the rest waits on.
    """
    count = 0
    batch: list[_Found] = []
    for found in _waiting(host.home):
        batch.append(found)
        if len(batch) == _BATCH:
            count += _sent(host, database, batch)
            batch = []
    return count + (_sent(host, database, batch) if batch else 0)


def put_as_read(host: Host, database: Database, notices: Sequence[Notice]) -> None:
    """Have notices that were read here before anybody sent them known as read."""
    rows = [(notice, notice.recipient, json.dumps({"end": None, "news": dict(notice.news)})) for notice in notices]
    if rows:
        _put(host, database, "read", rows)


def _waiting(home: str) -> Iterator[_Found]:
    for box in outboxes.boxes(home):
        box.check()
        box.return_from_the_dead()
        for name in box.waiting():
            try:
                data = box.read(name)
                if data is not None:
                    yield _Found(box, name, data, decoded(name, data, redelivered=name.endswith(AGAIN)))
            except (Damaged, StorageError):
                holder = maildir.hold_for(_MOMENT)
                if box.take(name, holder):
                    box.set_aside(name, holder)


def _sent(host: Host, database: Database, batch: Sequence[_Found]) -> int:
    rows = [(found.notice, os.path.basename(found.box.path), found.body.decode("utf-8", "replace")) for found in batch]
    _put(host, database, "stored", rows)
    for found in batch:
        holder = maildir.hold_for(_MOMENT)
        if found.box.take(found.name, holder):
            found.box.acknowledge(found.notice.id, holder)
    return len(batch)


def _put(host: Host, database: Database, state: str, rows: Sequence[tuple[Notice, str, str]]) -> None:
    notices = [notice for notice, _, _ in rows]
    database.ask(
        _PUT,
        [
            host.id,
            state,
            [notice.id for notice in notices],
            [notice.task_id for notice in notices],
            [recipient for _, recipient, _ in rows],
            [notice.priority == NEXT for notice in notices],
            [notice.at for notice in notices],
            [notice.redelivered for notice in notices],
            [body for _, _, body in rows],
            [json.dumps(line_of(host.home, notice.task_id)) for notice in notices],
        ],
    )


def line_of(home: str, job_id: str) -> list[dict[str, object]]:
    """Who hears of a job, one after the other: whoever started it, then whoever started the job around it, and so on.

    Where the record of a job around it is gone, the line ends: the person is next.
    """
    line: list[dict[str, object]] = []
    while len(line) < _DEEPEST and (record := read(JobFolder(home, job_id).record)) is not None:
        parent, instance = record.get("parent"), record.get("instance")
        around = parent if is_job_id(parent) else None
        named = instance if isinstance(instance, str) and instance and is_plain(instance) else None
        box = recipient_of(record)
        if box == PEOPLE:
            around = named = None  # nobody is next in line
        line.append({"box": box, "parent": around, "instance": named})
        if around is None:
            break
        job_id = around
    return line


def _is_held(box: Box) -> bool:
    return any(maildir.listed(f"{box.path}/taken/{holder}") for holder in box.holders())
