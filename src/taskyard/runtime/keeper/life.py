"""The whole life of a keeper: wait for its turn, run the command (again, if it may), and write down how it ended."""

from __future__ import annotations

import os
import time

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.plain_file import create_plain
from taskyard.runtime import ending, news, sinks, telling
from taskyard.runtime.keeper.growth import SECTOR
from taskyard.runtime.keeper.idle import Rest
from taskyard.runtime.keeper.kernel import FULL, has_plenty, punch, why_full
from taskyard.runtime.keeper.ladder import sweep
from taskyard.runtime.keeper.loop import Loop
from taskyard.runtime.keeper.others import Others
from taskyard.runtime.keeper.queue import Queue
from taskyard.runtime.keeper.wires import Wires
from taskyard.runtime.model import End, JobStatus
from taskyard.runtime.output_file import gap_in
from taskyard.runtime.records import end_to_json
from taskyard.shapes import as_number
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request


_BLOCK = 4096

#: How much of the oldest output is given up for the words on how the job ended, in bytes; a second time and more.
_GIVEN_UP = 65536

#: Seconds between tries to write the end on a disk where others take every block that becomes free; None: no more.
_PAUSES = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0, None)

#: Attempts whose ends a record tells of.
_REMEMBERED = 20


def live(born: Born, request: Request, *, settings: str) -> None:
    """Keep one job to its end, whatever happens on the way.

    `settings` names the file in which sinks may be set up, where nothing else can (`sinks.settings_file`).
    """
    queue = Queue(born, request)
    try:
        end = _lived(born, request, queue)
    except Exception as error:  # the truth about our own failure, too, and nobody left behind
        others = Others(born.folder)
        survivors, proof = sweep(others.keepers)
        end = End("error", error=f"its keeper failed: {error}", survivors=tuple(survivors), kept=tuple(others.kept()))
        end = end._replace(proof=proof, at=now_ms(), size=os.fstat(born.output).st_size)
    told = finish(born, end)
    queue.close()
    born.hang_up()  # those who wait need nothing of what follows, and our own end takes longer than all of this
    tell_sinks(born, told, settings=settings)


def _lived(born: Born, request: Request, queue: Queue) -> End:
    wires = Wires(born, request, lambda tail: _tell_stall(born, tail))
    if not queue.try_now():
        while not queue.is_over:
            wires.sleep(queue.until, queue)
    if queue.stopped_by is not None:
        return _never_ran("stopped", by=queue.stopped_by)
    if queue.refused:
        return _never_ran("error", error=queue.refused)
    end = _attempts(born, request, wires)
    wires.let_go()
    return end._replace(output_lost=wires.lost or end.output_lost)


def _never_ran(cause: str, *, by: str = "", error: str = "") -> End:
    return End(cause, by=by, error=error, proof="proved", at=now_ms(), duration_ms=0)


def _tell_stall(born: Born, tail: str) -> None:
    """Say that the job seems to wait for an answer: to whoever started it, and to those who follow its progress."""
    news.tell_stall(born.folder, born.record, tail)
    telling.progress(born.folder, born.record, needs_input=True)


def _attempts(born: Born, request: Request, wires: Wires) -> End:
    if request.resumes:
        from taskyard.runtime.keeper.following import attempts

        return attempts(born, request, wires)
    attempt = 1
    while True:
        end = Loop(born, request, wires).run()
        if request.arguments is not None:
            from taskyard.runtime.facts import judged

            end = judged(born.folder, end)
        if end.status is not JobStatus.FAILED or attempt > request.retries:
            return end
        attempt += 1
        _note_attempt(born, request, end, attempt)
        rest = Rest(request, attempt)
        while not rest.is_over:
            wires.sleep(rest.until, rest)
        if rest.stopped_by is not None:
            return end._replace(cause="stopped", by=rest.stopped_by, at=now_ms())


def _note_attempt(born: Born, request: Request, end: End, attempt: int) -> None:
    """Write down how an attempt ended, and that another comes."""
    earlier = born.record.get("earlier")
    known = cast("list[object]", earlier) if isinstance(earlier, list) else []
    born.change(
        attempt=attempt,
        earlier=[*known, end_to_json(end)][-_REMEMBERED:],
        takesInput=request.stdin or request.pty,
        leftRunning=False,
    )


def finish(born: Born, end: End) -> dict[str, object] | None:
    """Tidy the output, then write the end and send the news of it, which are returned; None if nobody is told."""
    if end.base:
        end = _compacted(born, end)
    elif end.proof == "proved":
        _trim(born.output)
    if not end.output_lost and (why := _why_full(born, end)):
        end = end._replace(output_lost=why)
    told: dict[str, object] | None = None
    is_decided = False
    try:
        born.check_place()
        ending.note(born.folder, end_to_json(end))  # stands if nothing else can be written, or we are killed now
    except StorageError:
        pass  # it is tried again below
    for pause in _PAUSES:
        try:
            born.check_place()
            told = told or news.of_end(born.folder, born.record, end)
            hooks = born.record.get("hooks")
            if not (is_decided and ending.carry_out(born.folder, hooks=hooks)):
                ending.decide(born.folder, end_to_json(end), told, hooks=hooks)
            break
        except StorageError as error:
            if not is_full(error) or pause is None:
                raise
            time.sleep(pause)  # somebody may have been quicker to take the room we gave back
            is_decided = True  # perhaps: what was written stands
            end = end._replace(output_lost=end.output_lost or error.why)
            _make_room(born)
    born.give_room()
    return told


def tell_sinks(born: Born, told: dict[str, object] | None, *, settings: str = "") -> None:
    """Have the news told in every other way that is set up; `settings` as for `live`."""
    if told is not None and sinks.may_be_set_up(settings):
        sinks.start_sinks(born.folder.home, told, terminal=sinks.terminal_of(born.record))


def is_full(error: StorageError) -> bool:
    """Whether there was no room, for anybody or for this user."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL


def _trim(output: int) -> None:
    """Give back what the command reserved behind the end of its output. Nothing writes to it any more."""
    found = os.fstat(output)
    if found.st_blocks * 512 > found.st_size + _GIVEN_UP:
        os.ftruncate(output, found.st_size)


def _make_room(born: Born) -> None:
    """Take what was kept for this, or give up some of our own output: there must be room to say how the job ended."""
    size = os.fstat(born.output).st_size
    if not born.give_room() and size:
        start, stop = gap_in(born.output, head=as_number(born.record.get("outputHead")), size=size)
        begin = stop if start < stop < size else 0
        punch(born.output, begin, min(size - begin, _GIVEN_UP) // _BLOCK * _BLOCK or _BLOCK)


def _why_full(born: Born, end: End) -> str:
    """Why a write to the output fails now, if one does: the command's own may have failed alike."""
    size = os.fstat(born.output).st_size
    if (size % SECTOR or not size) and has_plenty(born.output):
        return ""  # nothing was printed, or the last of it fitted
    why = why_full(born.output, size)
    if end.proof == "proved":  # nobody writes any more, and an output keeps no more than it holds
        os.ftruncate(born.output, size)
    return why


def _compacted(born: Born, end: End) -> End:
    """Replace an output of which blocks were freed by one that says so in words, between what was kept."""
    head = as_number(born.record.get("outputHead"))
    header = f"[{end.base - head:,} bytes were left out here: the output was larger than its cap]\n".encode()
    if head and os.pread(born.output, 1, head - 1) != b"\n":
        header = b"\n" + header
    temporary = f"{born.printed}.{os.getpid()}.tmp"
    try:
        fd = create_plain(temporary)
        try:
            _copy(born.output, fd, 0, head)
            files.write_all(fd, header)
            _copy(born.output, fd, end.base, end.size)
        finally:
            os.close(fd)
        os.rename(temporary, born.printed)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        return end  # it stays as it is, with a hole in it
    return end._replace(header=len(header), head=head)


def _copy(source: int, target: int, offset: int, stop: int) -> None:
    while offset < stop and (copied := os.sendfile(target, source, offset, stop - offset)):
        offset += copied
