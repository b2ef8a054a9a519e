"""
An end is written once, whoever races to write it.

    1. notice            the decision: how it ended, and the news of it, in one file
    2. end.json          linked from it, exclusively; then the JobEnded hooks are started, if there are any
    3. outbox/…/new/     the notice is renamed there: its source exists once, so whoever comes second finds nothing
    4. jobs/.living/     the job has no name there any more: nobody need look whether something is left to do

Whoever writes an end holds `keeper.lock`: the keeper for its life, or, after its death, one who found the job
without an end. A death between two steps is made good by the next look: from the notice on everything is decided.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.errors import BadName, Damaged, StorageError
from taskyard.maildir import Box
from taskyard.message_ids import is_id
from taskyard.names import folder_name
from taskyard.runtime.folder import JobFolder, forget_living, outbox
from taskyard.runtime.job_hooks import tell_hooks
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def decide(
    folder: JobFolder, end: Mapping[str, object], news: Mapping[str, object] | None, *, hooks: object = ()
) -> None:
    """Write how the job ended, and bring the news to its recipient; no news, no notice.

    `hooks` are the files that may name JobEnded hooks.
    What was decided before, by somebody who died over it, stands. The caller holds the job's lock.
    """
    if not _is_end(folder.end) and decided(folder) is None:
        data = json.dumps({"end": end, "news": news}).encode()
        files.replace(folder.notice, data)
    carry_out(folder, hooks=hooks)


def carry_out(folder: JobFolder, *, hooks: object = ()) -> None:
    """Do what is left to do of a decided end. The caller holds the job's lock."""
    decision = decided(folder)
    if decision is not None:
        if not _is_end(folder.end):
            _link(folder, decision)
        tell_hooks(folder, hooks)
        _send(folder, decision)
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
    try:
        safe = folder_name("an agent", recipient) == recipient
    except BadName:
        return False
    return safe and is_id(notice_id) and news.get("taskId") == folder.id


def _send(folder: JobFolder, decision: Mapping[str, object]) -> None:
    news = as_object(decision.get("news"))
    if news is None:
        files.remove(folder.notice)
        return
    box = Box(folder.home, outbox(folder.home, str(news["recipient"])))
    box.open()
    try:
        os.rename(folder.notice, f"{box.path}/new/{news['id']}")
    except FileNotFoundError:
        pass  # somebody was quicker
    except OSError as error:
        raise files.storage_error(folder.notice, error) from error


def _is_end(path: str) -> bool:
    return isinstance((read_ours(path) or {}).get("cause"), str)


def _link(folder: JobFolder, decision: Mapping[str, object]) -> None:
    if os.path.lexists(folder.end):  # and says nothing: it is kept, since somebody may know what it is
        os.rename(folder.end, f"{folder.end}.{os.urandom(4).hex()}.bad")
    temporary = f"{folder.end}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, json.dumps(decision["end"]).encode())
    try:
        os.link(temporary, folder.end)
    except FileExistsError:
        pass  # somebody was quicker, with the same words
    except OSError as error:
        raise files.storage_error(folder.end, error) from error
    finally:
        os.unlink(temporary)


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
