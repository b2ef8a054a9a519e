"""
Who hears of a job: whoever started it; if gone, the next in line; in the end the person.

A starter is known by name, so nobody who comes back under it misses anything. Gone is one whom the kernel knows
to be dead, and whose name nobody living has:

    started inside a job      that job has ended          its own starter is next in line
    started by an instance    its lock is free            the person is next (`instance` in the job's record)
    neither                   cannot be known             it keeps waiting; `--all` shows it

The person is never gone, and what is for people stays theirs.
"""

from __future__ import annotations

from taskyard import instances
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.notice import PERSON
from taskyard.runtime.recipients import PEOPLE, box_name, recipient_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

#: Jobs inside jobs beyond this are a circle that somebody wrote by hand.
_DEEPEST = 64


def living(home: str) -> frozenset[str]:
    """Everyone who lives, as names of boxes."""
    return frozenset(box_name(record.name) for record in instances.living(home))


def heir(home: str, job_id: str, meant_for: str, alive: Container[str]) -> str:
    """Who is to hear of a job now that its notice lies in the box of `meant_for`; `alive` are those that live.

    All of them are names of boxes.
    """
    record = read(JobFolder(home, job_id).record)
    if record is None:
        return meant_for
    for _ in range(_DEEPEST):
        starter = recipient_of(record)
        if starter in (PERSON, PEOPLE) or starter in alive:
            return starter
        parent = record.get("parent")
        if not is_job_id(parent):
            return PERSON if _is_dead(home, record.get("instance")) else starter
        folder = JobFolder(home, parent)
        if keeper_of(folder) is not None:
            return starter
        record = read(folder.record)
        if record is None:
            break  # removed long ago, and whose it was with it
    return PERSON


def _is_dead(home: str, instance: object) -> bool:
    return isinstance(instance, str) and bool(instance) and instances.instance_alive(home, instance) is False
