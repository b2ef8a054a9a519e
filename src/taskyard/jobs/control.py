"""Control a job from any process: stop it with proof, pause, resume, write to its input.

Requests go through the job's control pipe. The supervisor writes the result into the job's record, and
inotify reports that change.
"""

from __future__ import annotations

import os
import signal
import time

from taskyard.core.values import PERSON, NamedTuple, as_object, check_number
from taskyard.errors import BadText, Busy, JobEnded
from taskyard.jobs import exit_record
from taskyard.jobs.exit_record import read_own_json
from taskyard.jobs.job_dir import JobPaths, is_supervisor, supervisor_pid
from taskyard.jobs.model import Job
from taskyard.jobs.query import read_job
from taskyard.jobs.supervisor.child_jobs import encode_control, write_control
from taskyard.jobs.supervisor.io import MAX_MESSAGE, InputPipe
from taskyard.jobs.wait import supervisor_pidfd, wait, wait_all
from taskyard.storage.change_feed import subscribe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


#: Seconds that a stop may take beyond its grace: SIGKILL, scans, last writes.
_STOP_MARGIN = 8.0

#: Bytes of input that fit into one message, however JSON encodes them (6 for 1 at worst).
CHUNK_SIZE = 512

#: Bytes of a message around its text.
_OVERHEAD = 64

#: Most bytes of input at once; more belongs in a file.
MAX_INPUT = 1_000_000

#: Seconds that a command may leave its input unread before we give up, and seconds between retries.
_INPUT_TIMEOUT, _RETRY_INTERVAL = 5.0, 0.02

#: Seconds in which a supervisor starts its command, on a very busy machine.
_START_TIMEOUT = 5.0

#: Longest grace of a stop, in seconds: an hour.
_MAX_GRACE = 3600.0


class StopResult(NamedTuple):
    """Result of a stop."""

    job: Job
    outcome: str  #: stopped, partial, best_effort, already_ended; timeout if it has not ended yet; host_away

    @property
    def is_done(self) -> bool:
        """Whether nothing of it runs any more, as far as can be known."""
        return self.outcome in ("stopped", "already_ended", "best_effort")


def stop(home: str, job_ids: Sequence[str], *, by: str = "", grace: float | None = None) -> list[StopResult]:
    """Stop jobs, all at once, and return when they have ended."""
    before, patience = request_stop(home, job_ids, by=by, grace=grace)
    after = wait_all(home, [job.id for job in before], patience)
    return [stop_result(was, now) for was, now in zip(before, after, strict=True)]


def request_stop(home: str, job_ids: Sequence[str], *, by: str, grace: float | None) -> tuple[list[Job], float]:
    """Request a stop (without `by`: for the user); return the jobs as they were, and the seconds to wait for them."""
    check_number("grace", grace, least=0.0, most=_MAX_GRACE, unit="seconds")
    before = [read_job(home, job_id) for job_id in dict.fromkeys(job_ids)]
    wish = {"do": "stop", "by": by or PERSON, **({} if grace is None else {"grace": grace})}
    for job in before:
        if not job.is_final and not write_control(folder := JobPaths(home, job.id), wish):
            _signal_supervisor(folder)
    longest = max((job.grace for job in before), default=0.0) if grace is None else grace
    return before, longest + _STOP_MARGIN


def _signal_supervisor(folder: JobPaths) -> None:
    """Send SIGTERM, which a supervisor treats as a stop request, if its control pipe is gone.

    Only to the process that holds the job's lock, through its pidfd, and only if it has a supervisor's
    process name.
    """
    fd = supervisor_pidfd(folder)
    if fd is None:
        return  # it has exited
    try:
        if is_supervisor(supervisor_pid(folder) or 0, folder.id):
            signal.pidfd_send_signal(fd, signal.SIGTERM)
    except OSError:
        pass  # it exited meanwhile
    finally:
        os.close(fd)


def stop_result(before: Job, after: Job) -> StopResult:
    """Return the result of a stop, by the job before and after it."""
    if before.is_final:
        return StopResult(before, "already_ended")
    if after.end is None:
        return StopResult(after, "timeout")
    if after.end.proof != "proved":
        return StopResult(after, after.end.proof or "best_effort")
    ended_by_us = after.end.cause == "stopped" or (after.end.leftovers and after.end.by)
    return StopResult(after, "stopped" if ended_by_us else "already_ended")


def send_control(home: str, job_id: str, wish: dict[str, object], *, timeout: float = 5.0) -> bool:
    """Send a message to a job's supervisor; return whether it was carried out.

    Raises:
        JobNotFound: there is no such job.
        JobEnded: it has ended.
        Busy: the supervisor does not read or answer.
    """
    job = read_job(home, job_id)
    folder = JobPaths(home, job_id)
    token = os.urandom(6).hex()
    if job.is_final or not write_control(folder, {**wish, "token": token}):
        ended = wait(home, job_id, 1.0)
        if not ended.is_final:
            raise Busy(f"job {job_id}", "its supervisor, which does not read requests", 1.0)
        from taskyard.jobs.query import latest_resume

        raise JobEnded(ended.id, ended.status.value, latest_resume(home, ended.id))
    return wait_reply(folder, token, timeout)


def write_input(home: str, job_id: str, text: str) -> bool:
    """Write to a job's input as it reads; return False if it takes no input or has stopped reading.

    Raises:
        JobEnded: it has ended.
    """
    data = encode_input(text)
    if len(data) > CHUNK_SIZE:
        rest = _write_pipe(JobPaths(home, read_job(home, job_id).id), data)
        if not rest:
            return rest is not None
        data = rest
    for piece in split_input(data):
        deadline = time.monotonic() + _INPUT_TIMEOUT
        while not send_control(home, job_id, {"do": "answer", "text": piece}):
            if not read_job(home, job_id).takes_input or time.monotonic() > deadline:
                return False
            time.sleep(_RETRY_INTERVAL)  # its pipe is full, and nothing reports when it reads
    return True


def _write_pipe(folder: JobPaths, data: bytes) -> bytes | None:
    """Write input directly to the command; return the rest for its supervisor, None if it has stopped reading."""
    pipe = InputPipe(folder)
    _wait_for_command(folder)
    try:
        while (rest := pipe.offer(data)) is not None:
            if not rest:
                write_control(folder, {"do": "answer", "text": ""})  # resets the supervisor's stall timer
                return rest
            data = rest
            if not pipe.wait(_INPUT_TIMEOUT):
                return None
        return data
    finally:
        pipe.close()


def _wait_for_command(folder: JobPaths) -> None:
    """Wait a moment for the command of a job that was just started: its input pipe does not exist before."""
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline and supervisor_pid(folder):
        record = read_own_json(folder.record) or {}
        if record.get("pid") or record.get("waitsFor"):
            return
        time.sleep(_RETRY_INTERVAL)


def split_input(data: bytes) -> Iterator[str]:
    """Yield input in parts that fit into a message each; a split character is rejoined by the next part.

    Input that fits into one message is not split, so that concurrent writers do not interleave.
    """
    whole = data.decode("utf-8", "surrogateescape")
    if len(encode_control({"text": whole})) <= MAX_MESSAGE - _OVERHEAD:
        yield whole
        return
    for at in range(0, len(data), CHUNK_SIZE):
        yield data[at : at + CHUNK_SIZE].decode("utf-8", "surrogateescape")


def encode_input(text: str) -> bytes:
    """Encode input for a job; raise BadText if it is too large or no valid text."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadText("input", f"holds a lone surrogate (U+{ord(text[error.start]):04X})") from error
    if len(data) > MAX_INPUT:
        raise BadText(
            "input",
            f"has {len(data):,} bytes; at most {MAX_INPUT:,} are sent at once. Nothing was sent, and the job's input "
            "stays open: send it in parts, or give it to `taskyard run --stdin`",
        )
    return data


def wait_reply(folder: JobPaths, token: str, timeout: float) -> bool:
    """Return whether the request with this token was carried out.

    Raises:
        JobEnded: the job ended before its supervisor read the request.
        Busy: the supervisor is running and did not answer in time.
    """
    deadline = time.monotonic() + timeout
    feed = subscribe(folder.path)
    try:
        while True:
            is_kept = supervisor_pid(folder) is not None  # checked first: a supervisor answers before it exits
            answers = as_object((exit_record.read_json(folder.record) or {}).get("answers")) or {}
            if token in answers:
                return bool(answers[token])
            left = deadline - time.monotonic()
            if not is_kept:
                job = read_job(folder.home, folder.id)
                if not job.is_final:  # resumable: the new supervisor has not read the request
                    raise Busy(f"job {folder.id}", "its supervisor, which was just killed", timeout)
                raise JobEnded(folder.id, job.status.value)
            if left <= 0:
                raise Busy(f"job {folder.id}", "its supervisor, which does not respond", timeout)
            feed.wait(left)
            feed.changed()
    finally:
        feed.close()
