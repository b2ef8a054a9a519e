"""Notice outboxes of all recipients of a user, and the choice of who receives a job's notice.

    <home>/outbox/<recipient>/   new/  taken/<holder>/  cur/<shard>/     a `maildir.Maildir`

A notice's id contains a 32-bit checksum of its job's id: notices of one job are found by name, and only
those are read.

The recipient of a job's notice is its starter; if that is gone, the next in line; finally the user. A
starter is identified by name, so one that returns under its name misses nothing. It is gone if the kernel
reports its process gone and no running process has its name:

    started inside a job      that job has ended          its own starter is next in line
    started by an instance    its lock is free            the user is next (`instance` in the job's record)
    neither                   cannot be known             it keeps waiting; `--all` shows it

The user is never gone, and notices for people stay theirs.
"""

from __future__ import annotations

import os

from taskyard.core import files
from taskyard.core.values import PERSON, as_object
from taskyard.errors import Damaged, StorageError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, outbox_path, supervisor_pid
from taskyard.jobs.model import is_job_id
from taskyard.jobs.notice import Notice, decode_notice, from_payload
from taskyard.jobs.notice_payload import PEOPLE, box_name, recipient_of
from taskyard.storage import maildir, message_ids, process_registry
from taskyard.storage.maildir import REDELIVERED, Maildir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator


#: Scans for a notice: it may move from `new` to `taken` during one.
_SCANS = 2

#: Seconds of the lease for filing a notice; if this process is killed, the notice returns to its box.
_FILE_TIMEOUT = 5.0


def outbox_root(home: str) -> str:
    """Return the folder of all boxes."""
    return f"{home}/outbox"


def box_names(home: str) -> list[str]:
    """Return the names of all boxes."""
    return sorted(maildir.maildir_names(outbox_root(home)))


def box_of(home: str, recipient: str) -> Maildir:
    """Return the box of `recipient` (the name of a box), whether it exists yet or not."""
    return Maildir(home, outbox_path(home, recipient))


def boxes(home: str) -> Iterator[Maildir]:
    """Yield every box."""
    return (box_of(home, name) for name in box_names(home))


def job_notices(home: str, job_id: str) -> Iterator[Notice]:
    """Yield every notice of a job: waiting, taken, or read."""
    key = _sender_key(job_id)
    for box in boxes(home):
        for folder in (*_pending_folders(box), *_read_folders(box)):
            for name in maildir.list_dir(folder):
                notice = _read_job_notice(f"{folder}/{name}", job_id) if _has_key(name, key) else None
                if notice is not None:
                    yield notice


def find_notice(home: str, notice_id: str) -> Notice | None:
    """Return the notice with this id in any box; None if there is none, or it was read and removed."""
    if not message_ids.is_message_id(notice_id):
        return None
    for _ in range(_SCANS):
        for box in boxes(home):
            for folder in (*_pending_folders(box), *_read_folders(box)):
                for end in ("", REDELIVERED):
                    notice = _read_notice(f"{folder}/{notice_id}{end}")
                    if notice is not None and notice.id == notice_id:
                        return notice
    return None


def mark_delivered(home: str, job_id: str) -> tuple[str, ...]:
    """File all waiting notices of an ended job as read, in any box; return their ids.

    Called when the recipient was shown the job's end. A notice that the supervisor has not sent yet is
    filed directly from the job's folder.
    """
    if not is_job_id(job_id):
        return ()
    holder = maildir.timed_holder(_FILE_TIMEOUT)
    done = _file_unsent(JobPaths(home, job_id), holder)
    for _ in range(_SCANS):
        for box in boxes(home):
            done += _file_pending(box, job_id, holder)
    return tuple(done)


def _file_unsent(folder: JobPaths, holder: str) -> list[str]:
    """File the notice that is still in its job's folder, if the end is recorded."""
    news = as_object((read_json(folder.notice) or {}).get("news"))
    notice = None if news is None else from_payload(news)
    if notice is None or not os.path.lexists(folder.end):
        return []
    box = box_of(folder.home, notice.recipient)
    box.open()
    hands = f"{box.path}/taken/{holder}"
    files.make_private_folder(hands)
    try:
        os.rename(folder.notice, f"{hands}/{notice.id}")
    except FileNotFoundError:
        pass  # moved to the box meanwhile, where the caller looks next
    return [notice.id] if box.acknowledge(notice.id, holder) else []


def _file_pending(box: Maildir, job_id: str, holder: str) -> list[str]:
    """File the notices of a job that wait in a box or are taken."""
    key = _sender_key(job_id)
    done: list[str] = []
    for folder in _pending_folders(box):
        for name in maildir.list_dir(folder):
            if not _has_key(name, key) or _read_job_notice(f"{folder}/{name}", job_id) is None:
                continue
            waits = folder == f"{box.path}/new"
            whose = holder if waits else os.path.basename(folder)
            if (not waits or box.take(name, holder)) and box.acknowledge(maildir.message_id_of(name), whose):
                done.append(maildir.message_id_of(name))
    return done


def _pending_folders(box: Maildir) -> list[str]:
    return [f"{box.path}/new", *(f"{box.path}/taken/{holder}" for holder in box.holders())]


def _read_folders(box: Maildir) -> list[str]:
    return [f"{box.path}/cur/{shard}" for shard in maildir.list_dir(f"{box.path}/cur")]


def _sender_key(job_id: str) -> str:
    return message_ids.sender_of(message_ids.clock_id(job_id))


def _has_key(name: str, key: str) -> bool:
    return message_ids.is_message_id(maildir.message_id_of(name)) and message_ids.sender_of(name) == key


def _read_job_notice(path: str, job_id: str) -> Notice | None:
    notice = _read_notice(path)
    return notice if notice is not None and notice.task_id == job_id else None


def _read_notice(path: str) -> Notice | None:
    try:
        data = files.read(path)
        return None if data is None else decode_notice(path, data, redelivered=path.endswith(REDELIVERED))
    except (Damaged, StorageError):
        return None  # the process that takes it quarantines and reports it


#: Deepest nesting of jobs; more is a cycle made by hand.
_MAX_DEPTH = 64


def live_boxes(home: str) -> frozenset[str]:
    """Return the names of the boxes of all running instances."""
    return frozenset(box_name(record.name) for record in process_registry.live_instances(home))


def current_recipient(home: str, job_id: str, meant_for: str, alive: Container[str]) -> str:
    """Return the current recipient of a job's notice in the box of `meant_for`; `alive`: running recipients.

    All of them are names of boxes.
    """
    record = read_json(JobPaths(home, job_id).record)
    if record is None:
        return meant_for
    for _ in range(_MAX_DEPTH):
        starter = recipient_of(record)
        if starter in (PERSON, PEOPLE) or starter in alive:
            return starter
        parent = record.get("parent")
        if not is_job_id(parent):
            return PERSON if _is_instance_dead(home, record.get("instance")) else starter
        folder = JobPaths(home, parent)
        if supervisor_pid(folder) is not None:
            return starter
        record = read_json(folder.record)
        if record is None:
            break  # removed long ago, with the information about its starter
    return PERSON


def _is_instance_dead(home: str, instance: object) -> bool:
    return isinstance(instance, str) and bool(instance) and process_registry.is_instance_alive(home, instance) is False
