"""
An end is written once, whoever races to write it.

    1. notice            the decision: how it ended, and the news of it, in one file
    2. events/           it is told to the stream of events
    3. end.json          linked from it, exclusively; then the JobEnded hooks are started, if there are any
    4. outbox/…/new/     the notice is renamed there: its source exists once, so whoever comes second finds nothing

Whoever writes an end holds `keeper.lock`: the keeper for its life, or, after its death, one who found the job
without an end. A death between two steps is made good by the next look: from the notice on everything is decided.
The event comes before the end, since with the end in place anyone may file the notice away, and the decision with it.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.errors import Damaged
from taskyard.maildir import Box
from taskyard.runtime import telling
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
    What was decided before, by somebody who died over it, stands. The caller holds the job's lock.
    """
    is_new = read(folder.end) is None and read(folder.notice) is None
    if is_new:
        data = json.dumps({"end": end, "news": news}).encode()
        files.replace(folder.notice, data)
    carry_out(folder, hooks=hooks, is_new=is_new)


def carry_out(folder: JobFolder, *, hooks: object = (), is_new: bool = False) -> None:
    """Do what is left to do of a decided end; `is_new`: all of it. The caller holds the job's lock."""
    decided = read(folder.notice)
    if decided is None:
        return
    if not os.path.lexists(folder.end):
        telling.ended(folder, decided, is_new=is_new)
        _link(folder, decided)
    tell_hooks(folder, hooks)
    news = as_object(decided.get("news"))
    if news is None:
        files.remove(folder.notice)
        return
    box = Box(folder.home, outbox(folder.home, str(news.get("recipient") or "me")))
    box.open()
    try:
        os.rename(folder.notice, f"{box.path}/new/{news['id']}")
    except FileNotFoundError:
        pass  # somebody was quicker


def _link(folder: JobFolder, decided: Mapping[str, object]) -> None:
    temporary = f"{folder.end}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, json.dumps(decided.get("end")).encode())
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
