"""
One dream at a time, and when the last one was done.

The kernel's lock on the file keeps others out, and is free again however its holder dies. The file's mtime is when the
last dream was done: whoever begins one sets it to now, and puts it back if nothing comes of it. What it was before
stands in the claim, so that the next look can put it back for one that was killed.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock, is_held
from taskyard.dreaming.gate import RUNNING
from taskyard.errors import DreamHeld
from taskyard.runtime.ending import read
from taskyard.runtime.ids import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.dreaming.side import Side


def hold(side: Side) -> RangeLock:
    """Keep everybody else out, for as long as the lock is not closed.

    Raises:
        DreamHeld: somebody is at it.
    """
    lock = RangeLock(side.lock)
    try:
        if not lock.try_take(0):
            raise _held(side)
    except BaseException:
        lock.close()
        raise
    return lock


def is_running(side: Side) -> bool:
    """Whether somebody is at it, by the kernel's word."""
    return side.is_there() and is_held(side.lock)


def refuse_beside(side: Side) -> None:
    """Refuse while somebody is at it: two never work on one memory, forced or not.

    Raises:
        DreamHeld: names the job that is at it.
    """
    if is_running(side):
        raise _held(side)


def _held(side: Side) -> DreamHeld:
    job = (read_claim(side) or {}).get("job")
    named = f" ({job})" if is_job_id(job) else ""  # a claim is written a moment after the lock is taken
    return DreamHeld([RUNNING], f"a dream is at work on {side.memory}{named}")


def last_done(side: Side) -> int:
    """When the last dream was done, in epoch nanoseconds; 0 for never."""
    try:
        return max(0, os.lstat(side.lock).st_mtime_ns)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise files.storage_error(side.lock, error) from error


def last_true(side: Side) -> int:
    """The same, also while a dream is at work, or died over it and nobody has put its time back."""
    prior = (read_claim(side) or {}).get("prior")
    return prior if isinstance(prior, int) else last_done(side)


def claim(side: Side, job: str, now: int) -> dict[str, object]:
    """Begin: write down what the time was, then set it to `now`. Under the lock."""
    made: dict[str, object] = {"job": job, "prior": last_done(side), "at": now}
    write_claim(side, made)
    _set(side, now)
    return made


def read_claim(side: Side) -> dict[str, object] | None:
    """Who is at work, or was and did not say how it ended."""
    return read(side.claim)


def write_claim(side: Side, made: Mapping[str, object]) -> None:
    """Put a claim in place of the one before."""
    files.replace(side.claim, json.dumps(made).encode())


def rewind(side: Side, made: Mapping[str, object]) -> None:
    """Put the time back to what it was before the claim: nothing came of it."""
    prior = made.get("prior")
    _set(side, prior if isinstance(prior, int) and prior >= 0 else 0)


def end_claim(side: Side) -> None:
    """Nobody is at work any more."""
    files.remove(side.claim)


def _set(side: Side, when: int) -> None:
    try:
        os.utime(side.lock, ns=(when, when), follow_symlinks=False)
    except (OSError, OverflowError) as error:
        known = error if isinstance(error, OSError) else OSError(0, str(error))
        raise files.storage_error(side.lock, known) from error
