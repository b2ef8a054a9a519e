"""What came of a wish: the keeper writes it into the job's record, and the kernel tells when that changes."""

from __future__ import annotations

import time

from taskyard.disk.follow import follow
from taskyard.errors import Busy
from taskyard.runtime import ending
from taskyard.runtime.liveness import keeper_of
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder


def answer_to(folder: JobFolder, token: str, timeout: float) -> bool:
    """Whether the wish with this token was granted.

    Raises:
        Busy: the keeper lives and did not answer in time.
    """
    deadline = time.monotonic() + timeout
    feed = follow(folder.path)
    try:
        while True:
            answers = as_object((ending.read(folder.record) or {}).get("answers")) or {}
            if token in answers:
                return bool(answers[token])
            left = deadline - time.monotonic()
            if keeper_of(folder) is None:
                return False
            if left <= 0:
                raise Busy(f"job {folder.id}", "its keeper, which does not answer", timeout)
            feed.wait(left)
            feed.changed()
    finally:
        feed.close()
