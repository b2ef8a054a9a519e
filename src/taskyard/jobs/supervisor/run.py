"""Run a job from the start queue to its exit record, with retries.

A resumable job's work runs elsewhere; its local process only follows that work and is restarted when
killed. That process carries out a stop and confirms it; without a confirmation the end is not `proved`.
A stop request is written to the record before any process is signalled, so that it survives a crash in
between.
"""

from __future__ import annotations

import os
import time

from taskyard.core import files
from taskyard.core.files import create_plain
from taskyard.core.system import encode_deadline, now_ms, seconds_since
from taskyard.core.values import as_number, as_object, as_text, cast
from taskyard.errors import StorageError
from taskyard.jobs import event_log, exit_record, notice_payload, sinks
from taskyard.jobs.exit_record import STOP_CONFIRMED, STOP_ERROR, is_work_done, read_json, resolve_end
from taskyard.jobs.model import End, JobStatus, end_to_json
from taskyard.jobs.output import find_gap
from taskyard.jobs.supervisor.child_jobs import ChildJobs
from taskyard.jobs.supervisor.io import SupervisorIO
from taskyard.jobs.supervisor.kernel import DISK_FULL, full_reason, has_ample_space, punch_hole
from taskyard.jobs.supervisor.output_cap import SECTOR
from taskyard.jobs.supervisor.queue import RetryDelay, StartQueue
from taskyard.jobs.supervisor.supervise import CommandAttempt
from taskyard.jobs.supervisor.terminate import kill_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.jobs.job_dir import JobPaths
    from taskyard.jobs.supervisor.create import JobDir
    from taskyard.jobs.supervisor.request import JobRequest


_BLOCK = 4096

#: Bytes of the oldest output to free so that the exit record fits on a full disk; freed again on each retry.
_FREED_SIZE = 65536

#: Seconds between attempts to write the exit record on a full disk where others take freed blocks; None:
#: give up.
_WRITE_DELAYS = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0, None)

#: Number of earlier attempts whose ends are kept in the record.
_MAX_EARLIER = 20


def run_job(born: JobDir, request: JobRequest, *, settings: str) -> None:
    """Supervise one job until its exit record is written, whatever happens on the way.

    `settings` is the path of the settings file in which sinks may be configured (`sinks.settings_file`).
    """
    queue = StartQueue(born, request)
    try:
        end = _run_to_end(born, request, queue)
    except Exception as error:  # record our own failure as well, and leave no process behind
        others = ChildJobs(born.folder)
        survivors, proof = kill_all(others.supervisors)
        end = End(
            "error", error=f"its supervisor failed: {error}", survivors=tuple(survivors), kept=tuple(others.kept())
        )
        end = end._replace(proof=proof, at=now_ms(), size=os.fstat(born.output).st_size)
    told = finish_job(born, end)
    queue.close()
    born.hang_up()  # waiting clients need nothing of what follows, and our own exit takes longer
    notify_sinks(born, told, settings=settings)


def _run_to_end(born: JobDir, request: JobRequest, queue: StartQueue) -> End:
    io = SupervisorIO(born, request, lambda tail: _report_stall(born, tail))
    if not queue.try_now():
        while not queue.is_over:
            io.sleep(queue.until, queue)
    if queue.stopped_by is not None:
        return _never_ran("stopped", by=queue.stopped_by)
    if queue.refused:
        return _never_ran("error", error=queue.refused)
    end = _run_attempts(born, request, io)
    io.let_go()
    return end._replace(output_lost=io.lost or end.output_lost)


def _never_ran(cause: str, *, by: str = "", error: str = "") -> End:
    return End(cause, by=by, error=error, proof="proved", at=now_ms(), duration_ms=0)


def _report_stall(born: JobDir, tail: str) -> None:
    """Report that the job seems to wait for input: to its starter and to followers of its progress."""
    notice_payload.report_stall(born.folder, born.record, tail)
    event_log.log_progress(born.folder, born.record, needs_input=True)


def _run_attempts(born: JobDir, request: JobRequest, io: SupervisorIO) -> End:
    if request.resumes:
        return run_resumable(born, request, io)
    attempt = 1
    while True:
        end = CommandAttempt(born, request, io).run()
        if request.arguments is not None:
            from taskyard.jobs.exit_record import resolve_end

            end = resolve_end(born.folder, end)
        if end.status is not JobStatus.FAILED or attempt > request.retries:
            return end
        attempt += 1
        _note_attempt(born, request, end, attempt)
        rest = RetryDelay(request, attempt)
        while not rest.is_over:
            io.sleep(rest.until, rest)
        if rest.stopped_by is not None:
            return end._replace(cause="stopped", by=rest.stopped_by, at=now_ms())


def _note_attempt(born: JobDir, request: JobRequest, end: End, attempt: int) -> None:
    """Record how an attempt ended and that another follows."""
    earlier = born.record.get("earlier")
    known = cast("list[object]", earlier) if isinstance(earlier, list) else []
    born.change(
        attempt=attempt,
        earlier=[*known, end_to_json(end)][-_MAX_EARLIER:],
        takesInput=request.stdin or request.pty,
        leftRunning=False,
    )


def finish_job(born: JobDir, end: End) -> dict[str, object] | None:
    """Trim the output, write the exit record and the notice; return the notice, None if it needs none."""
    if end.base:
        end = _compact_output(born, end)
    elif end.proof == "proved":
        _trim(born.output)
    if not end.output_lost and (why := _full_reason(born, end)):
        end = end._replace(output_lost=why)
    told: dict[str, object] | None = None
    is_decided = False
    try:
        born.check_place()
        exit_record.write_draft(
            born.folder, end_to_json(end)
        )  # stands if nothing else can be written, or this process is killed now
    except StorageError:
        pass  # retried below
    for pause in _WRITE_DELAYS:
        try:
            born.check_place()
            told = told or notice_payload.end_notice(born.folder, born.record, end)
            hooks = born.record.get("hooks")
            if not (is_decided and exit_record.complete_end(born.folder, hooks=hooks)):
                exit_record.commit_end(born.folder, end_to_json(end), told, hooks=hooks)
            break
        except StorageError as error:
            if not is_disk_full(error) or pause is None:
                raise
            time.sleep(pause)  # another process may have taken the space we freed
            is_decided = True  # possibly: a decision that was written stands
            end = end._replace(output_lost=end.output_lost or error.why)
            _free_space(born)
    born.release_reserve()
    return told


def notify_sinks(born: JobDir, told: dict[str, object] | None, *, settings: str = "") -> None:
    """Send the notice to every configured sink; `settings` as for `run_job`."""
    if told is not None and sinks.may_have_sinks(settings):
        sinks.start_sinks(born.folder.home, told, terminal=sinks.terminal_of(born.record))


def is_disk_full(error: StorageError) -> bool:
    """Return whether the disk or the user's quota was full."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in DISK_FULL


def _trim(output: int) -> None:
    """Free the blocks the command reserved beyond the end of its output. No process writes to it any more."""
    found = os.fstat(output)
    if found.st_blocks * 512 > found.st_size + _FREED_SIZE:
        os.ftruncate(output, found.st_size)


def _free_space(born: JobDir) -> None:
    """Release the reserved space, or else free some of the job's own output, so that the exit record fits."""
    size = os.fstat(born.output).st_size
    if not born.release_reserve() and size:
        start, stop = find_gap(born.output, head=as_number(born.record.get("outputHead")), size=size)
        begin = stop if start < stop < size else 0
        punch_hole(born.output, begin, min(size - begin, _FREED_SIZE) // _BLOCK * _BLOCK or _BLOCK)


def _full_reason(born: JobDir, end: End) -> str:
    """Return why a write to the output fails now, "" if it succeeds: the command's own writes may have failed too."""
    size = os.fstat(born.output).st_size
    if (size % SECTOR or not size) and has_ample_space(born.output):
        return ""  # nothing was printed, or the last write fitted
    why = full_reason(born.output, size)
    if end.proof == "proved":  # no process writes any more; free the blocks beyond the end
        os.ftruncate(born.output, size)
    return why


def _compact_output(born: JobDir, end: End) -> End:
    """Replace an output with freed blocks by a copy that states the gap in words between the kept parts."""
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
        return end  # keep the file with its hole
    return end._replace(header=len(header), head=head)


def _copy(source: int, target: int, offset: int, stop: int) -> None:
    while offset < stop and (copied := os.sendfile(target, source, offset, stop - offset)):
        offset += copied


#: Exit code of a process that received SIGTERM from a process other than its supervisor.
_EXIT_SIGTERM = 128 + 15

#: Record key of the time when the job began (`encode_deadline`).
_BEGAN_KEY = "began"

#: Seconds its process has for a stop even if the requested grace is shorter, and to exit after that.
_MIN_STOP, _LAST_GRACE = 3.0, 1.0

#: An expired timeout, in seconds.
_EXPIRED = 0.001


def run_resumable(born: JobDir, request: JobRequest, io: SupervisorIO) -> End:
    """Follow the remote work until it ends, restarting the local process whenever it is killed."""
    deaths = 0
    while True:
        if is_work_done(born.folder):  # reported by a process that was killed before it exited
            end = End("exited", 0, proof="best_effort", at=now_ms(), size=os.fstat(born.output).st_size)
            return _with_total_time(born, resolve_end(born.folder, end))
        if (wish := as_object(born.record.get("stopping"))) is not None:
            return _with_total_time(born, _run_stop(born, request, io, wish))
        before = os.fstat(born.output).st_size
        end = CommandAttempt(born, _remaining_request(born, request), io, base=_output_base(born)).run()
        if end.status is JobStatus.KILLED and _has_stop_result(born.folder):
            return _with_total_time(born, _confirm_stop(born.folder, end))
        if is_work_done(born.folder):
            return _with_total_time(
                born, resolve_end(born.folder, end._replace(cause="exited", exit_code=end.exit_code or 0))
            )
        if "stopping" in born.record:
            continue  # its process was killed before it read or carried out the stop request
        if not _was_killed(end):
            return _with_total_time(born, resolve_end(born.folder, end))
        deaths = 1 if os.fstat(born.output).st_size > before else deaths + 1  # progress resets the backoff
        rest = RetryDelay(request, deaths + 1)
        while not rest.is_over:
            io.sleep(rest.until, rest)
        if rest.stopped_by is not None:
            born.change(stopping={"cause": "stopped", "by": rest.stopped_by})


def _was_killed(end: End) -> bool:
    """Return whether another process killed it before it reported a result."""
    return end.cause in ("signal", "oom") or end.exit_code == _EXIT_SIGTERM


def _has_stop_result(folder: JobPaths) -> bool:
    known = read_json(folder.facts) or {}
    return STOP_CONFIRMED in known or STOP_ERROR in known


def _run_stop(born: JobDir, request: JobRequest, io: SupervisorIO, wish: dict[str, object]) -> End:
    """Start its process one last time: it reads the stop request and ends what runs elsewhere."""
    grace = wish.get("grace")
    limit = max(float(grace), _MIN_STOP) if isinstance(grace, (int, float)) else request.grace
    last = request._replace(timeout=limit, grace=_LAST_GRACE)
    end = CommandAttempt(born, last, io, base=_output_base(born)).run()
    return _confirm_stop(born.folder, end._replace(cause=as_text(wish.get("cause")), by=as_text(wish.get("by"))))


def _confirm_stop(folder: JobPaths, end: End) -> End:
    """Return a stopped end with its process's confirmation, or its error."""
    known = read_json(folder.facts) or {}
    if known.get(STOP_CONFIRMED) is True:
        return end
    why = as_text(known.get(STOP_ERROR)) or "the remote did not confirm that its work has ended"
    return end._replace(proof="best_effort", error=why)


def _with_total_time(born: JobDir, end: End) -> End:
    """Return the end with the duration of all attempts together."""
    spent = seconds_since(as_text(born.record.get(_BEGAN_KEY)))
    return end if spent is None else end._replace(duration_ms=round(max(spent, 0.0) * 1000))


def _remaining_request(born: JobDir, request: JobRequest) -> JobRequest:
    """Return the request with the rest of its timeout."""
    spent = seconds_since(as_text(born.record.get(_BEGAN_KEY)))
    if spent is None:
        born.record[_BEGAN_KEY] = encode_deadline(0)  # written with the next change of the record
    if spent is None or request.timeout is None:
        return request
    return request._replace(timeout=max(request.timeout - spent, _EXPIRED))


def _output_base(born: JobDir) -> int:
    """Return the offset of the oldest output that earlier attempts did not free."""
    size = os.fstat(born.output).st_size
    return find_gap(born.output, head=as_number(born.record.get("outputHead")), size=size)[1]
