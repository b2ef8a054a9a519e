"""
An end is written once, whoever races to write it.

    1. notice            the decision: how it ended, and the news of it, in one file
    2. events/           it is told to the stream of events
    3. end.json          linked from it, exclusively; then the JobEnded hooks are started, if there are any
    4. outbox/…/new/     the notice is renamed there: its source exists once, so whoever comes second finds nothing
    5. jobs/.living/     the job has no name there any more: nobody need look whether something is left to do

Whoever writes an end holds `keeper.lock`: the keeper for its life, or, after its death, one who found the job
without an end. A death between two steps is made good by the next look: from the notice on everything is decided.
The event comes before the end, since with the end in place anyone may file the notice away, and the decision with it.
"""

from __future__ import annotations

import errno
import json
import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.maildir import Box
from taskyard.message_ids import is_id
from taskyard.plain_file import open_plain
from taskyard.runtime import telling
from taskyard.runtime.folder import JobFolder, forget_living, outbox
from taskyard.runtime.job_hooks import tell_hooks
from taskyard.runtime.recipients import is_box_name
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def decide(
    folder: JobFolder, end: Mapping[str, object], news: Mapping[str, object] | None, *, hooks: object = ()
) -> None:
    """Write how the job ended, and bring the news to its recipient; no news, no notice.

    `hooks` are the files that may name JobEnded hooks.
    The caller holds the job's lock, and saw that nothing was decided before: that would stand (`carry_out`).
    """
    ended = json.dumps(end)
    decision = _written(
        f'{{"end": {ended}, "news": {json.dumps(news)}}}'.encode(), folder.reserved_notice, folder.notice
    )
    try:
        os.rename(decision, folder.notice)
    except OSError as error:
        raise files.storage_error(folder.notice, error) from error
    telling.ended(folder, {"end": end, "news": news}, is_new=True)
    _link(folder, ended.encode())
    _tell_all(folder, news, hooks)


def carry_out(folder: JobFolder, *, hooks: object = ()) -> bool:
    """Do what is left to do of a decided end; False if none was. The caller holds the job's lock."""
    decision = decided(folder)
    if decision is None:
        forget_living(folder)
        return False
    if not _is_end(folder.end):
        telling.ended(folder, decision, is_new=False)
        _link(folder, json.dumps(decision["end"]).encode())
    _tell_all(folder, as_object(decision.get("news")), hooks)
    return True


def _tell_all(folder: JobFolder, news: Mapping[str, object] | None, hooks: object) -> None:
    """Start the hooks, send the notice, and be done with the job."""
    tell_hooks(folder, hooks)
    files.remove(folder.elsewhere)
    if news is None:
        files.remove(folder.notice)
    else:
        Box(folder.home, outbox(folder.home, str(news["recipient"]))).adopt(folder.notice, str(news["id"]))
    forget_living(folder)


def decided(folder: JobFolder) -> dict[str, object] | None:
    """What was decided and is not carried out; None if nothing was, or nothing that was ours to say."""
    found = read_ours(folder.notice)
    if found is None or not isinstance((as_object(found.get("end")) or {}).get("cause"), str):
        return None
    news = found.get("news")
    return found if news is None or _is_news(folder, as_object(news) or {}) else None


def _is_news(folder: JobFolder, news: Mapping[str, object]) -> bool:
    """Whether news are of this job, and say nothing that would lead out of an outbox."""
    recipient, notice_id = news.get("recipient"), news.get("id")
    if not isinstance(recipient, str) or not isinstance(notice_id, str):
        return False
    return is_box_name(recipient) and is_id(notice_id) and news.get("taskId") == folder.id


def _is_end(path: str) -> bool:
    return isinstance((read_ours(path) or {}).get("cause"), str)


def _link(folder: JobFolder, end: bytes) -> None:
    temporary = _written(end, folder.reserved_end, folder.end)
    try:
        os.link(temporary, folder.end)
    except FileExistsError:
        if not _is_end(folder.end):  # it says nothing: it is kept, since somebody may know what it is
            os.rename(folder.end, f"{folder.end}.{os.urandom(4).hex()}.bad")
            os.link(temporary, folder.end)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or os.path.lexists(folder.end):
            raise files.storage_error(folder.end, error) from error
        # A second name takes an inode on some file systems. The caller holds the job's lock: nobody else writes an end.
        try:
            os.rename(temporary, folder.end)
        except OSError as refused:
            raise files.storage_error(folder.end, refused) from refused
        return
    os.unlink(temporary)


def note(folder: JobFolder, end: Mapping[str, object]) -> None:
    """Write how the job ended into the file that was made for it, before anything else can fail.

    Raises:
        StorageError: the disk refused.
    """
    _fill(folder.reserved_end, json.dumps(end).encode())


def noted(folder: JobFolder) -> dict[str, object] | None:
    """How the job ended by the word of a supervisor that did not get to decide it; None: there is none."""
    found = read_ours(folder.reserved_end)
    return found if found is not None and isinstance(found.get("cause"), str) else None


def _written(data: bytes, reserved: str, target: str) -> str:
    """The path of a file with `data` that is to become `target`: the one that was reserved, if it is there."""
    if _fill(reserved, data):
        return reserved
    temporary = f"{target}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, data)
    return temporary


def _fill(path: str, data: bytes) -> bool:
    """Write `data` into a file of ours that has no other name; False if there is no such file."""
    try:
        fd = open_plain(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if found.st_nlink != 1 or found.st_uid != os.geteuid():
            return False
        os.ftruncate(fd, 0)
        files.write_all(fd, data)
    except OSError as error:
        raise files.storage_error(path, error) from error
    finally:
        os.close(fd)
    return True


def read(path: str) -> dict[str, object] | None:
    """The object in a file of ours; None if there is none that can be read."""
    try:
        data = files.read(path)
        return None if data is None else as_object(json.loads(data))
    except (Damaged, ValueError, RecursionError):
        return None


def read_ours(path: str) -> dict[str, object] | None:
    """As `read`; also None where something else is in its place, such as a link: nobody of ours put it there."""
    try:
        return read(path)
    except StorageError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
        return None
