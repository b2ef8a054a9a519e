"""What came of a wish: the keeper writes it into the job's record, and the kernel tells when that changes."""

from __future__ import annotations

import time

from taskyard.disk.follow import follow
from taskyard.errors import Busy, JobEnded
from taskyard.runtime import ending
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import look
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder


def answer_to(folder: JobFolder, token: str, timeout: float) -> bool:
    """Whether the wish with this token was granted.

    Raises:
        JobEnded: the job was over before its keeper heard of it.
        Busy: the keeper lives and did not answer in time.
    """
    deadline = time.monotonic() + timeout
    feed = follow(folder.path)
    try:
        while True:
            is_kept = keeper_of(folder) is not None  # asked first: a keeper answers before it ends
            answers = as_object((ending.read(folder.record) or {}).get("answers")) or {}
            if token in answers:
                return bool(answers[token])
            left = deadline - time.monotonic()
            if not is_kept:
                job = look(folder.home, folder.id)
                if not job.is_final:  # its work goes on elsewhere, and a new keeper has not heard of the wish
                    raise Busy(f"job {folder.id}", "its keeper, which was killed just now", timeout)
                raise JobEnded(folder.id, job.status.value)
            if left <= 0:
                raise Busy(f"job {folder.id}", "its keeper, which does not answer", timeout)
            feed.wait(left)
            feed.changed()
    finally:
        feed.close()
