"""
An output as it grows, until its job is over.

Nothing is polled: the kernel tells of every write, of `end.json`, and of a keeper's death, which leaves no file behind.
Whether it is over is asked before what is there is read, so the last bytes are never missed.
"""

from __future__ import annotations

import os
import select
import threading
import time

from taskyard.disk.follow import follow
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.output import CHUNK, Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.disk.watch import Followed
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.output import Part

#: How often to look, in seconds, where the kernel cannot tell of the keeper's death.
_BLIND_LOOK = 1.0

#: One sleep of those who wait for as long as it takes, in seconds.
_LONG = 3600.0

_LOCK = "keeper.lock"


def follow_output(
    output: Output, offset: int = 0, *, timeout: float | None = None, most: int = CHUNK, debounce: float = 0.01
) -> Iterator[Part]:
    """Each new part of an output, from `offset` on, until its job ended or `timeout` seconds have passed.

    A job whose keeper died without a word counts as ended. Bursts gather for `debounce` seconds.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with follow(output.folder.path) as followed, _Keeper(output.folder, followed) as keeper:
        while True:
            followed.changed()
            is_over = keeper.is_gone() or os.path.lexists(output.folder.end)
            while (part := output.read(offset, most)).next_offset != offset or part.restarted:
                offset = part.next_offset
                yield part
                if _reached_the_end(part, most) or _is_past(deadline):
                    break
            left = _LONG if deadline is None else deadline - time.monotonic()
            if is_over or left <= 0:
                return
            _sleep(followed, keeper, left, debounce)


def _sleep(followed: Followed, keeper: _Keeper, seconds: float, debounce: float) -> None:
    """Until something happened to the job. Asking who keeps it opens its lock: that alone is no news."""
    until = time.monotonic() + min(seconds, keeper.look_after)
    while (left := until - time.monotonic()) > 0 and followed.wait(left, debounce=debounce):
        if followed.changed() != {_LOCK} or keeper.is_dead:
            return


def _reached_the_end(part: Part, most: int) -> bool:
    """Whether nothing was left to read; what comes next is told by the kernel, and gathers meanwhile."""
    return len(part.text) < most and not part.omitted and not part.restarted


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


class _Keeper:
    """A job's keeper; its death wakes who follows the job."""

    def __init__(self, folder: JobFolder, followed: Followed) -> None:
        self._folder = folder
        self._followed = followed
        self._pidfd = self._cancel = -1
        self._thread: threading.Thread | None = None
        self.is_dead = False

    @property
    def look_after(self) -> float:
        """Seconds after which to ask again, unasked."""
        return _BLIND_LOOK if self._thread is None or self.is_dead else _LONG

    def is_gone(self) -> bool:
        """Whether nobody keeps the job any more; somebody may be closing a dead keeper's books."""
        return self.look_after == _BLIND_LOOK and keeper_of(self._folder) is None

    def __enter__(self) -> _Keeper:
        pid = keeper_of(self._folder)
        if pid:
            try:
                self._pidfd = os.pidfd_open(pid)
            except OSError:
                return self  # gone, or a sandbox forbids it: we look now and then
            self._cancel = os.eventfd(0, os.EFD_CLOEXEC)
            if keeper_of(self._folder) == pid:  # else the number may be a stranger's by now
                self._thread = threading.Thread(target=self._await_death, name="taskyard-keeper", daemon=True)
                self._thread.start()
        return self

    def _await_death(self) -> None:
        poll = select.poll()
        for fd in (self._pidfd, self._cancel):
            poll.register(fd, select.POLLIN)
        if any(fd == self._pidfd for fd, _ in poll.poll()):
            self.is_dead = True
            self._followed.wake()

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            os.eventfd_write(self._cancel, 1)
            self._thread.join()
        for fd in (self._pidfd, self._cancel):
            if fd >= 0:
                os.close(fd)
