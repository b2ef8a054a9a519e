"""Steering a job from any process: stop it with proof, pause it, let it go on, type into it."""

from __future__ import annotations

import os
import signal
import time

from taskyard.errors import BadText, Busy, JobEnded
from taskyard.names import check_number
from taskyard.runtime.ending import read_ours
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.input_pipe import InputPipe
from taskyard.runtime.keeper.control import LONGEST
from taskyard.runtime.keeper.others import encoded, send
from taskyard.runtime.liveness import is_supervisor, keeper_of
from taskyard.runtime.looking import look
from taskyard.runtime.model import Job
from taskyard.runtime.telling import PERSON
from taskyard.runtime.waiting import keeper_pidfd, wait, wait_all
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: How much longer than its grace a stop may take: KILL, the sweep, the last writes.
_BEYOND = 8.0

#: Bytes of input that fit into one message to a keeper, however they are written in JSON (6 for 1 at worst).
PIECE = 512

#: What a message has around its text, in bytes.
_AROUND = 64

#: Bytes of input at once: more is a file, and its name is shorter.
MOST_INPUT = 1_000_000

#: How long a command may leave its input unread before we give up, and how often we try meanwhile, in seconds.
_PATIENCE, _TRY_EVERY = 5.0, 0.02

#: Seconds in which a supervisor starts its command, on a machine that is very busy.
_BEGINS = 5.0

#: An hour: whoever wants a job to end has no longer.
_LONGEST_GRACE = 3600.0


class Stopped(NamedTuple):
    """What came of a stop."""

    job: Job
    outcome: str  #: stopped, partial, best_effort, already_ended; timeout if it has not ended yet; host_away

    @property
    def is_done(self) -> bool:
        """Whether nothing of it runs any more, as far as can be known."""
        return self.outcome in ("stopped", "already_ended", "best_effort")


def stop(home: str, job_ids: Sequence[str], *, by: str = "", grace: float | None = None) -> list[Stopped]:
    """Stop jobs, all at once, and answer when they are over."""
    before, patience = asked_to_stop(home, job_ids, by=by, grace=grace)
    after = wait_all(home, [job.id for job in before], patience)
    return [outcome_of(was, now) for was, now in zip(before, after, strict=True)]


def asked_to_stop(home: str, job_ids: Sequence[str], *, by: str, grace: float | None) -> tuple[list[Job], float]:
    """Ask jobs to stop (without `by`: the person does); as they were before, and how long to wait for them."""
    check_number("grace", grace, least=0.0, most=_LONGEST_GRACE, unit="seconds")
    before = [look(home, job_id) for job_id in dict.fromkeys(job_ids)]
    wish = {"do": "stop", "by": by or PERSON, **({} if grace is None else {"grace": grace})}
    for job in before:
        if not job.is_final and not send(folder := JobFolder(home, job.id), wish):
            _signal(folder)
    longest = max((job.grace for job in before), default=0.0) if grace is None else grace
    return before, longest + _BEYOND


def _signal(folder: JobFolder) -> None:
    """Have a keeper stop its job where nothing leads into its pipe any more: it takes SIGTERM for the same wish.

    The very process that holds the job's lock, and only if it is called as a keeper of it is: nobody else.
    """
    fd = keeper_pidfd(folder)
    if fd is None:
        return  # it has ended
    try:
        if is_supervisor(keeper_of(folder) or 0, folder.id):
            signal.pidfd_send_signal(fd, signal.SIGTERM)
    except OSError:
        pass  # it ended meanwhile
    finally:
        os.close(fd)


def outcome_of(before: Job, after: Job) -> Stopped:
    """What came of it, by how a job was and how it is."""
    if before.is_final:
        return Stopped(before, "already_ended")
    if after.end is None:
        return Stopped(after, "timeout")
    if after.end.proof != "proved":
        return Stopped(after, after.end.proof or "best_effort")
    ended_by_us = after.end.cause == "stopped" or (after.end.leftovers and after.end.by)
    return Stopped(after, "stopped" if ended_by_us else "already_ended")


def tell(home: str, job_id: str, wish: dict[str, object], *, timeout: float = 5.0) -> bool:
    """Say something to a job's keeper and hear whether it was done.

    Raises:
        JobNotFound: there is no such job.
        JobEnded: it is over.
    """
    from taskyard.runtime.answers import answer_to

    job = look(home, job_id)
    folder = JobFolder(home, job_id)
    token = os.urandom(6).hex()
    if job.is_final or not send(folder, {**wish, "token": token}):
        ended = wait(home, job_id, 1.0)
        if not ended.is_final:
            raise Busy(f"job {job_id}", "its keeper, which does not listen", 1.0)
        from taskyard.runtime.continuation import newest

        raise JobEnded(ended.id, ended.status.value, newest(home, ended.id))
    return answer_to(folder, token, timeout)


def type_in(home: str, job_id: str, text: str) -> bool:
    """Type into a job, as it reads; False if it takes no input, or has stopped reading.

    Raises:
        JobEnded: it is over.
    """
    data = check_text(text)
    if len(data) > PIECE:
        rest = _poured(JobFolder(home, look(home, job_id).id), data)
        if not rest:
            return rest is not None
        data = rest
    for piece in pieces(data):
        deadline = time.monotonic() + _PATIENCE
        while not tell(home, job_id, {"do": "answer", "text": piece}):
            if not look(home, job_id).takes_input or time.monotonic() > deadline:
                return False
            time.sleep(_TRY_EVERY)  # its pipe is full, which only it can change, and nobody tells
    return True


def _poured(folder: JobFolder, data: bytes) -> bytes | None:
    """Hand input to the command itself; what must go through its keeper, or None if it has stopped reading."""
    pipe = InputPipe(folder)
    _wait_for_command(folder)
    try:
        while (rest := pipe.offer(data)) is not None:
            if not rest:
                send(folder, {"do": "answer", "text": ""})  # somebody cares for it, its keeper should know
                return rest
            data = rest
            if not pipe.wait(_PATIENCE):
                return None
        return data
    finally:
        pipe.close()


def _wait_for_command(folder: JobFolder) -> None:
    """Wait a moment for the command of a job that was just started: before that no pipe leads into it."""
    deadline = time.monotonic() + _BEGINS
    while time.monotonic() < deadline and keeper_of(folder):
        record = read_ours(folder.record) or {}
        if record.get("pid") or record.get("waitsFor"):
            return
        time.sleep(_TRY_EVERY)


def pieces(data: bytes) -> Iterator[str]:
    """Input in parts that fit into a message each; a character may be cut in two, and is whole again behind it.

    What fits into one is not cut: of two who type at once, neither comes in the middle of the other.
    """
    whole = data.decode("utf-8", "surrogateescape")
    if len(encoded({"text": whole})) <= LONGEST - _AROUND:
        yield whole
        return
    for at in range(0, len(data), PIECE):
        yield data[at : at + PIECE].decode("utf-8", "surrogateescape")


def check_text(text: str) -> bytes:
    """Input for a job as bytes, if it is not too much."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadText("input", f"holds a lone surrogate (U+{ord(text[error.start]):04X})") from error
    if len(data) > MOST_INPUT:
        raise BadText(
            "input",
            f"has {len(data):,} bytes; at most {MOST_INPUT:,} are sent at once. Nothing was sent, and the job's input "
            "stays open: send it in parts, or give it to `taskyard run --stdin`",
        )
    return data
