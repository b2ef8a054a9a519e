"""Ending a process that is known by number and start time, with proof; nobody else is ever signalled."""

from __future__ import annotations

import os
import select
import signal

from taskyard.disk.processes import process_alive, stat_fields
from taskyard.runtime.ending import read
from taskyard.runtime.waiting import keeper_pidfd
from taskyard.shapes import as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder

#: Seconds a process that was killed may take to be gone: the kernel's work, not its own.
_KILLED = 5.0


def end_process(pid: int, start: int, *, patience: float = 0.0, grace: float = 3.0) -> bool:
    """Have the very process with this number and start time end; True if it is gone.

    It has `patience` seconds to go by itself, then it is asked, and after `grace` seconds made to. One that somebody
    has stopped is let go on first.

    This process and those it was started by are left alone.
    """
    if not pid or not start or pid in _above():
        return False
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        if not process_alive(pid, start):
            return True  # the number is another's by now, or nobody's
        for number, seconds in ((signal.SIGCONT, patience), (signal.SIGTERM, grace), (signal.SIGKILL, _KILLED)):
            signal.pidfd_send_signal(fd, number)
            if select.select([fd], [], [], seconds)[0]:
                return True
        return False
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(fd)


def wake(folder: JobFolder) -> None:
    """Let the keeper of a job and its command go on, should somebody have stopped them: then both can end well."""
    if (fd := keeper_pidfd(folder)) is not None:
        _continue(fd)
    pid, start = _command(folder)
    if pid and process_alive(pid, start):
        try:
            _continue(os.pidfd_open(pid))
        except OSError:
            pass  # it ended meanwhile


def _continue(fd: int) -> None:
    try:
        signal.pidfd_send_signal(fd, signal.SIGCONT)
    except OSError:
        pass  # it ended meanwhile
    finally:
        os.close(fd)


def end_command(folder: JobFolder, *, grace: float = 3.0) -> bool:
    """End the command of a job itself, by what its record says; True if it is gone.

    A keeper never signals a program that has jobs inside it: it asks, and waits for them. One that is stuck is left.
    """
    pid, start = _command(folder)
    return not pid or end_process(pid, start, grace=grace)


def _command(folder: JobFolder) -> tuple[int, int]:
    record = read(folder.record) or {}
    return as_number(record.get("pid")), as_number(record.get("pidStart"))


def _above() -> set[int]:
    """Ourselves, and whoever started us, up to the first."""
    found = {os.getpid()}
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        fields = stat_fields(str(pid))
        pid = int(fields[1]) if fields is not None else 0
    return found
