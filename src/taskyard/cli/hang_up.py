"""
A terminal that went away: writing to it fails, reading from it ends, and nobody is there to be told.

The kernel sends SIGHUP to the leader of its session alone, and later than the first write may fail. So whoever has to
do with a terminal asks here.
"""

from __future__ import annotations

import os
import select
import stat

#: As a shell reports a process that SIGHUP ended.
HUNG_UP = 129


def is_lost(fd: int) -> bool:
    """Whether a descriptor leads to a terminal that is gone."""
    poll = select.poll()
    poll.register(fd, 0)  # what is told unasked: errors, and that it hung up
    try:
        return stat.S_ISCHR(os.fstat(fd).st_mode) and any(what & select.POLLHUP for _, what in poll.poll(0))
    except OSError:
        return False  # it is closed


def mute_lost() -> bool:
    """Have what is still written to a terminal that is gone go nowhere; whether there was one."""
    lost = [fd for fd in (1, 2) if is_lost(fd)]
    if lost:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for fd in lost:
            os.dup2(nowhere, fd)
        os.close(nowhere)
    return bool(lost)
