"""Whoever started a job: how its keeper hears of that one's end."""

from __future__ import annotations

import os

from taskyard.disk.processes import process_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def end_of(starter: Sequence[int] | None) -> int | None:
    """Something to poll for the end of the very process that started us; one that is gone already is at its end."""
    if starter is None:
        return None
    pid, start = starter
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        fd = -1
    if fd >= 0 and process_start(pid) == start:
        return fd
    ended, theirs = os.pipe2(os.O_CLOEXEC)
    os.close(theirs)  # a pipe without a writer polls as a process that ended does
    if fd >= 0:
        os.close(fd)
    return ended
