"""
The attempts at a job whose work goes on elsewhere: its process only follows that, and is started again when killed.

A stop is the process's to carry out, and to confirm: where nobody confirmed it, nothing is proved. A wish to stop
stands in the record before anybody is signalled, so that it is carried out also after a death in the middle of it.
"""

from __future__ import annotations

import errno
import os

from taskyard.clock import now_ms
from taskyard.runtime.ending import read
from taskyard.runtime.facts import CONFIRMED, UNCONFIRMED, is_done, judged
from taskyard.runtime.keeper.idle import Rest
from taskyard.runtime.keeper.loop import Loop
from taskyard.runtime.model import End, JobStatus
from taskyard.shapes import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request
    from taskyard.runtime.keeper.wires import Wires

#: How a process ends that somebody asked to by SIGTERM, who was not its keeper.
_ASKED_TO_END = 128 + 15

#: The record's key for a wish to stop that is being carried out.
STOPPING = "stopping"


def attempts(born: Born, request: Request, wires: Wires) -> End:
    """Have it followed to its end, however often its process is killed on the way."""
    deaths = 0
    while True:
        if (wish := as_object(born.record.get(STOPPING))) is not None:
            return _whole(born, _stopped(born, request, wires, wish))
        if is_done(born.folder):  # by the word of a process that did not live to end
            end = End("exited", 0, proof="best_effort", at=now_ms(), size=os.fstat(born.output).st_size)
            return _whole(born, judged(born.folder, end))
        before = os.fstat(born.output).st_size
        end = Loop(born, _left(born, request), wires, base=_kept_from(born.output)).run()
        if end.status is JobStatus.KILLED:
            return _whole(born, _confirmed(born.folder, end))
        if not is_done(born.folder) and not _is_cut_short(end):
            return _whole(born, judged(born.folder, end))
        if is_done(born.folder):
            return _whole(born, judged(born.folder, end._replace(cause="exited", exit_code=end.exit_code or 0)))
        deaths = 1 if os.fstat(born.output).st_size > before else deaths + 1  # one that got on was well
        rest = Rest(request, deaths + 1)
        while not rest.is_over:
            wires.sleep(rest.until, rest)
        if rest.stopped_by is not None:
            born.change(**{STOPPING: {"cause": "stopped", "by": rest.stopped_by}})


def _is_cut_short(end: End) -> bool:
    """Whether somebody else ended its process, which has not said how the work went."""
    return end.cause in ("signal", "oom") or end.exit_code == _ASKED_TO_END


def _stopped(born: Born, request: Request, wires: Wires, wish: dict[str, object]) -> End:
    """Start its process for a last time: it sees the wish, and ends what runs elsewhere."""
    end = Loop(born, request._replace(timeout=request.grace), wires, base=_kept_from(born.output)).run()
    return _confirmed(born.folder, end._replace(cause=as_text(wish.get("cause")), by=as_text(wish.get("by"))))


def _confirmed(folder: JobFolder, end: End) -> End:
    """A stop with what its process says of it."""
    known = read(folder.facts) or {}
    if known.get(CONFIRMED) is True:
        return end
    why = as_text(known.get(UNCONFIRMED)) or "nobody confirmed that its work elsewhere has ended"
    return end._replace(proof="best_effort", error=why)


def _whole(born: Born, end: End) -> End:
    """An end that tells of all attempts together."""
    began = born.record.get("startTime")
    return end._replace(duration_ms=end.at - began) if type(began) is int else end


def _left(born: Born, request: Request) -> Request:
    """The request with what is left of its time limit."""
    began = born.record.get("startTime")
    if request.timeout is None or type(began) is not int or not born.record.get("pid"):
        return request
    return request._replace(timeout=max(request.timeout - (now_ms() - began) / 1000, 0.001))


def _kept_from(output: int) -> int:
    """Where the output begins that an attempt before this one did not free."""
    try:
        return os.lseek(output, 0, os.SEEK_DATA)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EINVAL):
            return 0  # it is empty, or nobody can tell
        raise
