"""
Every box of notices a user has, whoever they wait for.

    <home>/outbox/<recipient>/   new/  taken/<holder>/  cur/<shard>/     a `maildir.Box`

A notice's id tells which job it is of, as far as 32 bits can: one job's are found by name, and only those are read.
"""

from __future__ import annotations

import os

from taskyard import maildir, message_ids
from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.maildir import AGAIN, Box
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder, outbox
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.notice import Notice, decoded, from_news
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: A notice may move from box to hands while we look; whoever looks twice has seen it.
_LOOKS = 2

#: Seconds for filing a notice; if we die over it, it goes back to its box.
_MOMENT = 5.0


def folder_of(home: str) -> str:
    """Where the boxes are."""
    return f"{home}/outbox"


def names(home: str) -> list[str]:
    """Everyone who has a box, by its name."""
    return sorted(maildir.boxes(folder_of(home)))


def box_of(home: str, recipient: str) -> Box:
    """The box of `recipient` (the name of a box), whether it exists yet or not."""
    return Box(home, outbox(home, recipient))


def boxes(home: str) -> Iterator[Box]:
    """Every box there is."""
    return (box_of(home, name) for name in names(home))


def of_job(home: str, job_id: str) -> Iterator[Notice]:
    """Every notice of a job: waiting, in somebody's hands, or read."""
    key = _key(job_id)
    for box in boxes(home):
        for folder in (*_pending(box), *_read(box)):
            for name in maildir.listed(folder):
                notice = _of_job(f"{folder}/{name}", job_id) if _has_key(name, key) else None
                if notice is not None:
                    yield notice


def with_id(home: str, notice_id: str) -> Notice | None:
    """The notice with this id, wherever it is; None if none was ever issued (or it was read and removed)."""
    if not message_ids.is_id(notice_id):
        return None
    for _ in range(_LOOKS):
        for box in boxes(home):
            for folder in (*_pending(box), *_read(box)):
                for end in ("", AGAIN):
                    notice = _opened(f"{folder}/{notice_id}{end}")
                    if notice is not None and notice.id == notice_id:
                        return notice
    return None


def mark_delivered(home: str, job_id: str) -> tuple[str, ...]:
    """File what waits about an ended job as read, whoever's box it is in: its end was seen. Answers the ids.

    To be called by whoever showed the end to its receiver. A keeper between writing the end and sending the
    notice is not waited for: the notice is filed straight from the job's folder.
    """
    if not is_job_id(job_id):
        return ()
    holder = maildir.hold_for(_MOMENT)
    done = _file_unsent(JobFolder(home, job_id), holder)
    for _ in range(_LOOKS):
        for box in boxes(home):
            done += _file_pending(box, job_id, holder)
    return tuple(done)


def _file_unsent(folder: JobFolder, holder: str) -> list[str]:
    """File the notice that has not left its job's folder yet, if the end is written."""
    news = as_object((read(folder.notice) or {}).get("news"))
    notice = None if news is None else from_news(news)
    if notice is None or not os.path.lexists(folder.end):
        return []
    box = box_of(folder.home, notice.recipient)
    box.open()
    hands = f"{box.path}/taken/{holder}"
    files.make_private_folder(hands)
    try:
        os.rename(folder.notice, f"{hands}/{notice.id}")
    except FileNotFoundError:
        pass  # on its way to the box by now, where the caller looks next
    return [notice.id] if box.acknowledge(notice.id, holder) else []


def _file_pending(box: Box, job_id: str, holder: str) -> list[str]:
    """File what waits in a box, or is in somebody's hands, about a job."""
    key = _key(job_id)
    done: list[str] = []
    for folder in _pending(box):
        for name in maildir.listed(folder):
            if not _has_key(name, key) or _of_job(f"{folder}/{name}", job_id) is None:
                continue
            waits = folder == f"{box.path}/new"
            whose = holder if waits else os.path.basename(folder)
            if (not waits or box.take(name, holder)) and box.acknowledge(maildir.id_of(name), whose):
                done.append(maildir.id_of(name))
    return done


def _pending(box: Box) -> list[str]:
    return [f"{box.path}/new", *(f"{box.path}/taken/{holder}" for holder in box.holders())]


def _read(box: Box) -> list[str]:
    return [f"{box.path}/cur/{shard}" for shard in maildir.listed(f"{box.path}/cur")]


def _key(job_id: str) -> str:
    return message_ids.sender_of(message_ids.lone_id(job_id))


def _has_key(name: str, key: str) -> bool:
    return message_ids.is_id(maildir.id_of(name)) and message_ids.sender_of(name) == key


def _of_job(path: str, job_id: str) -> Notice | None:
    notice = _opened(path)
    return notice if notice is not None and notice.task_id == job_id else None


def _opened(path: str) -> Notice | None:
    try:
        data = files.read(path)
        return None if data is None else decoded(path, data, redelivered=path.endswith(AGAIN))
    except (Damaged, StorageError):
        return None  # whoever takes it sets it aside, and reports it
