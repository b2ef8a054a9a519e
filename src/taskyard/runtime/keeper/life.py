"""The whole life of a keeper: wait for its turn, run the command (again, if it may), and write down how it ended."""

from __future__ import annotations

import errno
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.runtime import ending, news, sinks
from taskyard.runtime.keeper.kernel import punch, reserve
from taskyard.runtime.keeper.loop import Loop
from taskyard.runtime.keeper.queue import Queue
from taskyard.runtime.keeper.wires import Wires
from taskyard.runtime.model import End, JobStatus
from taskyard.runtime.records import end_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.keeper.birth import Born
    from taskyard.runtime.keeper.request import Request


def live(born: Born, request: Request, *, settings: str) -> None:
    """Keep one job to its end. `settings`: as for `finish`."""
    wires = Wires(born, request, lambda tail: news.tell_stall(born.folder, born.record, tail))
    queue = Queue(born, request)
    finish(born, _life(born, request, wires, queue), settings=settings)
    queue.close()
    born.hang_up()  # before our own end, which takes longer than all of this


def _life(born: Born, request: Request, wires: Wires, queue: Queue) -> End:
    if not queue.try_now():
        while not queue.is_over:
            wires.sleep(queue.until, queue)
    if queue.stopped_by is not None:
        return End("stopped", by=queue.stopped_by, at=now_ms())
    end = _attempts(born, request, wires)
    wires.drain()
    return end._replace(output_lost=wires.lost) if wires.lost else end


def _attempts(born: Born, request: Request, wires: Wires) -> End:
    attempt = 1
    while True:
        end = Loop(born, request, wires).run()
        if request.arguments is not None:
            from taskyard.runtime.facts import judged

            end = judged(born.folder, end)
        if end.status is not JobStatus.FAILED or attempt > request.retries:
            return end
        attempt += 1
        born.change(attempt=attempt)


def finish(born: Born, end: End, *, settings: str = "") -> None:
    """Tidy the output, then write the end and send the news of it.

    `settings` names the file in which sinks may be set up, where nothing else can (`sinks.settings_file`).
    """
    if end.base:
        end = _compacted(born, end)
    trouble = _disk_trouble(born.output)
    if trouble and not end.output_lost:
        end = end._replace(output_lost=trouble)
    told = news.of_end(born.folder, born.record, end)
    facts = end_to_json(end)
    hooks = born.record.get("hooks")
    try:
        ending.decide(born.folder, facts, told, hooks=hooks)
    except StorageError as error:
        if not _make_room(born):
            raise
        if not ending.carry_out(born.folder, hooks=hooks):
            ending.decide(born.folder, {**facts, "outputLost": error.why}, told, hooks=hooks)
    if told is not None and sinks.may_be_set_up(settings):
        sinks.start_sinks(born.folder.home, told)


def _make_room(born: Born) -> bool:
    """Give back some blocks of our own output, so that there is room to say how the job ended."""
    size = os.fstat(born.output).st_size
    return size > 0 and punch(born.output, 0, min(size, 65536) // 4096 * 4096 or 4096)


def _disk_trouble(output: int) -> str:
    """Why a write to the output fails now, if one does: the command's own writes will have failed alike."""
    size = os.fstat(output).st_size
    try:
        reserve(output, size, 4096)
        punch(output, size, 8192)  # given back: an output keeps no more than it holds
    except OSError as error:
        return (error.strerror or str(error)) if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return ""


def _compacted(born: Born, end: End) -> End:
    """Replace an output whose head was freed by one that says so in words, then goes on with what was kept."""
    header = f"[{end.base:,} bytes were left out here: the output was larger than its cap]\n".encode()
    temporary = f"{born.folder.output}.{os.getpid()}.tmp"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            files.write_all(fd, header)
            offset = end.base
            while offset < end.size:
                offset += os.sendfile(fd, born.output, offset, end.size - offset)
        finally:
            os.close(fd)
        os.rename(temporary, born.folder.output)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        return end  # it stays as it is, with a hole for a head
    return end._replace(header=len(header))
