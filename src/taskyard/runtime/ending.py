"""
An end is written once, whoever races to write it.

    1. notice            the decision: how it ended, and the news of it, in one file
    2. end.json          linked from it, exclusively; then the JobEnded hooks are started, if there are any
    3. outbox/…/new/     the notice is renamed there: its source exists once, so whoever comes second finds nothing

Whoever writes an end holds `keeper.lock`: the keeper for its life, or, after its death, one who found the job
without an end. A death between two steps is made good by the next look: from the notice on everything is decided.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.errors import Damaged
from taskyard.maildir import Box
from taskyard.runtime.folder import JobFolder, outbox
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
    The caller holds the job's lock, and saw that nothing was decided before: that would stand (`carry_out`).
    """
    ended = json.dumps(end)
    files.replace(folder.notice, f'{{"end": {ended}, "news": {json.dumps(news)}}}'.encode())
    _carry_out(folder, ended, news, hooks)


def carry_out(folder: JobFolder, *, hooks: object = ()) -> bool:
    """Do what is left to do of a decided end; False if none is. The caller holds the job's lock."""
    decided = read(folder.notice)
    if decided is None:
        return False
    _carry_out(folder, json.dumps(decided.get("end")), as_object(decided.get("news")), hooks)
    return True


def _carry_out(folder: JobFolder, end: str, news: Mapping[str, object] | None, hooks: object) -> None:
    _link(folder, end.encode())
    tell_hooks(folder, hooks)
    if news is None:
        files.remove(folder.notice)
        return
    box = Box(folder.home, outbox(folder.home, str(news.get("recipient") or "me")))
    box.adopt(folder.notice, str(news["id"]))  # unless somebody was quicker


def _link(folder: JobFolder, end: bytes) -> None:
    temporary = f"{folder.end}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, end)
    try:
        os.link(temporary, folder.end)
    except FileExistsError:
        pass  # somebody was quicker, with the same words
    finally:
        os.unlink(temporary)


def read(path: str) -> dict[str, object] | None:
    """The object in a file of ours; None if there is none that can be read."""
    try:
        data = files.read(path)
        return None if data is None else as_object(json.loads(data))
    except (Damaged, ValueError, RecursionError):
        return None
