"""
An output as it grows, until its job is over.

Nothing is polled: the kernel tells of every write, of `end.json`, and of a keeper's death, since that closes its
`control` pipe. Whether it is over is asked before what is there is read, so the last bytes are never missed.
"""

from __future__ import annotations

import os
import time

from taskyard.disk.follow import follow
from taskyard.runtime import ending, resuming
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.output import CHUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.disk.watch import Followed
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.output import Output, Part

#: How often to look, in seconds, while somebody closes a dead keeper's books: that one may die too, unheard.
_BLIND_LOOK = 1.0

#: One sleep of those who wait for as long as it takes, in seconds.
_LONG = 3600.0


def follow_output(
    output: Output, offset: int = 0, *, timeout: float | None = None, most: int = CHUNK, debounce: float = 0.01
) -> Iterator[Part]:
    """Each new part of an output, from `offset` on, until its job ended or `timeout` seconds have passed.

    A job whose keeper died without a word counts as ended. Bursts gather for `debounce` seconds.
    """
    deadline = time.monotonic() + timeout if timeout is not None else None
    folder, keeper = output.folder, None
    with follow(folder.path) as followed:
        names = followed.changed()
        while True:
            if not names or "control" in names:
                keeper = keeper_of(folder)
                if keeper is None:
                    keeper = _taken_up(folder)
            is_over = keeper is None or os.path.lexists(folder.end)
            while (part := output.read(offset, most)).next_offset != offset or part.restarted:
                offset = part.next_offset
                yield part
                if _reached_the_end(part, most) or _left(deadline) <= 0:
                    break
            if is_over or _left(deadline) <= 0:
                return
            names = _news(followed, min(_left(deadline), _LONG if keeper else _BLIND_LOOK), debounce)


def _taken_up(folder: JobFolder) -> int | None:
    """The keeper that a job got by our look, where its work goes on elsewhere; None: it is over."""
    record = ending.read(folder.record) or {}
    if "resumes" not in record or not resuming.goes_on(folder, record):
        return None
    resuming.take_up(folder, record)
    return keeper_of(folder) or 0


def _news(followed: Followed, seconds: float, debounce: float) -> set[str] | None:
    """Sleep until something happened to the job; which files it was, none if time passed, None if it may be any.

    Asking who keeps a job opens its lock, and so does everyone who asks: that alone is no news.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and followed.wait(left, debounce=debounce):
        if (names := followed.changed()) != {"keeper.lock"}:
            return names
    return set()


def _reached_the_end(part: Part, most: int) -> bool:
    """Whether nothing was left to read; what comes next is told by the kernel, and gathers meanwhile."""
    return len(part.text) < most and not part.omitted and not part.restarted


def _left(deadline: float | None) -> float:
    return _LONG if deadline is None else deadline - time.monotonic()
