"""
The attempts at a job whose work goes on elsewhere: its process only follows that, and is started again when killed.

A stop is the process's to carry out, and to confirm: where nobody confirmed it, nothing is proved. A wish to stop
stands in the record before anybody is signalled, so that it is carried out also after a death in the middle of it.
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.deadlines import deadline, since
from taskyard.runtime.ending import read
from taskyard.runtime.facts import CONFIRMED, UNCONFIRMED, is_done, judged
from taskyard.runtime.keeper.idle import Rest
from taskyard.runtime.keeper.loop import Loop
from taskyard.runtime.model import End, JobStatus
from taskyard.runtime.output_file import gap_in
from taskyard.shapes import as_number, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request
    from taskyard.runtime.keeper.wires import Wires

#: How a process ends that somebody asked to by SIGTERM, who was not its keeper.
_ASKED_TO_END = 128 + 15

#: The record's key for when it began (`deadlines`).
_BEGAN = "began"

#: Seconds that its process has for a stop, however little patience there is, and to end when those are over.
_LEAST, _LAST = 3.0, 1.0

#: A time limit that is over, in seconds.
_AT_ONCE = 0.001


def attempts(born: Born, request: Request, wires: Wires) -> End:
    """Have it followed to its end, however often its process is killed on the way."""
    deaths = 0
    while True:
        if is_done(born.folder):  # by the word of a process that did not live to end
            end = End("exited", 0, proof="best_effort", at=now_ms(), size=os.fstat(born.output).st_size)
            return _whole(born, judged(born.folder, end))
        if (wish := as_object(born.record.get("stopping"))) is not None:
            return _whole(born, _stopped(born, request, wires, wish))
        before = os.fstat(born.output).st_size
        end = Loop(born, _left(born, request), wires, base=_kept_from(born)).run()
        if end.status is JobStatus.KILLED and _is_answered(born.folder):
            return _whole(born, _confirmed(born.folder, end))
        if is_done(born.folder):
            return _whole(born, judged(born.folder, end._replace(cause="exited", exit_code=end.exit_code or 0)))
        if "stopping" in born.record:
            continue  # its process did not live to hear of the wish, or to carry it out
        if not _is_cut_short(end):
            return _whole(born, judged(born.folder, end))
        deaths = 1 if os.fstat(born.output).st_size > before else deaths + 1  # one that got on was well
        rest = Rest(request, deaths + 1)
        while not rest.is_over:
            wires.sleep(rest.until, rest)
        if rest.stopped_by is not None:
            born.change(stopping={"cause": "stopped", "by": rest.stopped_by})


def _is_cut_short(end: End) -> bool:
    """Whether somebody else ended its process, which has not said how the work went."""
    return end.cause in ("signal", "oom") or end.exit_code == _ASKED_TO_END


def _is_answered(folder: JobFolder) -> bool:
    known = read(folder.facts) or {}
    return CONFIRMED in known or UNCONFIRMED in known


def _stopped(born: Born, request: Request, wires: Wires, wish: dict[str, object]) -> End:
    """Start its process for a last time: it sees the wish, and ends what runs elsewhere."""
    grace = wish.get("grace")
    limit = max(float(grace), _LEAST) if isinstance(grace, (int, float)) else request.grace
    last = request._replace(timeout=limit, grace=_LAST)
    end = Loop(born, last, wires, base=_kept_from(born)).run()
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
    spent = since(as_text(born.record.get(_BEGAN)))
    return end if spent is None else end._replace(duration_ms=round(max(spent, 0.0) * 1000))


def _left(born: Born, request: Request) -> Request:
    """The request with what is left of its time limit."""
    spent = since(as_text(born.record.get(_BEGAN)))
    if spent is None:
        born.record[_BEGAN] = deadline(0)  # written with what the record says next
    if spent is None or request.timeout is None:
        return request
    return request._replace(timeout=max(request.timeout - spent, _AT_ONCE))


def _kept_from(born: Born) -> int:
    """Where the newest output begins that an attempt before this one did not free."""
    size = os.fstat(born.output).st_size
    return gap_in(born.output, head=as_number(born.record.get("outputHead")), size=size)[1]
