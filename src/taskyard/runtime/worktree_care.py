"""Worktrees whose jobs are over: settled all at once by a person, or by and by where the job was killed and did not."""

from __future__ import annotations

import time

from taskyard.errors import JobNotFound, TaskyardError
from taskyard.runtime.looking import look
from taskyard.runtime.worktrees import Settled, is_kept, place, recorded, settle


def settle_all(home: str, *, dry_run: bool = False) -> list[Settled]:
    """Settle those whose jobs are over, however they ended; what came of each."""
    found: list[Settled] = []
    for job in recorded(home):
        try:
            if not _is_over(home, job):
                continue
        except TaskyardError as error:
            found.append(Settled(job, *place(home, job), str(error)))
            continue
        if (settled := settle(home, job, dry_run=dry_run)) is not None:
            found.append(settled)
    return found


def settle_abandoned(home: str, *, seconds: float) -> None:
    """Settle those that nobody has looked at since their jobs are over. None is begun after `seconds`.

    What cannot be settled now is left for the next time: `taskyard gc` says what is wrong with it.
    """
    until = time.monotonic() + seconds
    for job in recorded(home):
        if time.monotonic() >= until:
            return
        try:
            if not is_kept(home, job) and _is_over(home, job):
                settle(home, job, timeout=0.0)
        except TaskyardError:
            continue


def _is_over(home: str, job: str) -> bool:
    try:
        return look(home, job).is_final
    except JobNotFound:
        return True  # a person removed all that was known of it
