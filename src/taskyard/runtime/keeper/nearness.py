"""
Where a keeper runs while output comes so fast that a moment's absence would pass the cap.

A processor that nobody uses may take a tenth of a second to be woken, where machines share one: a host gives it away,
and the writer on the next processor goes on. So a keeper in a hurry moves to the writer's own processor. If that one is
taken away the writer stands still as well, and while it is there, we are let in between two of the writer's turns
(`kernel.ask_for_short_turns`).
"""

from __future__ import annotations

import os

from taskyard.disk.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: How many of a job's processes are asked; whoever writes this fast leaves room for few others.
_MOST = 32

#: Where `stat` tells of time used, for the process and for the kernel on its behalf, and of the processor.
_USED, _USED_BY_KERNEL, _PROCESSOR = 11, 12, 36


class Nearness:
    """Whether a keeper is beside its writer; at first it is where the kernel puts it."""

    def __init__(self) -> None:
        self._anywhere: set[int] | None = None  # where we may be, as long as we are beside somebody

    def seek(self) -> None:
        """Move to the processor of whoever of our job uses the most."""
        processor = _busiest()
        if processor is None:
            return
        if self._anywhere is None:
            self._anywhere = os.sched_getaffinity(0)
        if processor in self._anywhere:
            os.sched_setaffinity(0, {processor})

    def leave(self) -> None:
        """Be anywhere again, as those are whom we start."""
        if self._anywhere is not None:
            os.sched_setaffinity(0, self._anywhere)
            self._anywhere = None


def _busiest() -> int | None:
    """The processor of the one that runs and used the most time; None if nobody runs."""
    most, processor = -1, None
    for fields in _running():
        used = int(fields[_USED]) + int(fields[_USED_BY_KERNEL])
        if used > most:
            most, processor = used, int(fields[_PROCESSOR])
    return processor


def _running() -> Iterator[list[str]]:
    """Those below us that use a processor. Children of a process's further threads are passed over: it is a hint."""
    waiting = [str(os.getpid())]
    for _ in range(_MOST):
        if not waiting:
            return
        pid = waiting.pop(0)
        waiting += _children(pid)
        fields = stat_fields(pid)
        if fields is not None and fields[0] == "R" and pid != str(os.getpid()):
            yield fields


def _children(pid: str) -> list[str]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return (file.read(4096) or b"").decode("ascii").split()
    except OSError:
        return []  # gone, or a kernel that does not tell
