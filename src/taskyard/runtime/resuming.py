"""
A job whose work goes on elsewhere, without its keeper: whoever looks at it gives it another.

Its record says what a keeper must know (`resumes`), but no environment: that is taken from whoever looks. Where
variables are missing there that it cannot do without, it stays as it is, and is shown as disconnected.
"""

from __future__ import annotations

import os

from taskyard.clock import now_ms
from taskyard.errors import Busy, StorageError
from taskyard.runtime import liveness
from taskyard.shapes import as_list, as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.runtime.folder import JobFolder

#: Of a request, what the record keeps; the first ones only matter until it has begun.
_UNTIL_BEGUN = ("slots", "starts_per_minute", "after", "after_any")
_MEANS = (
    *_UNTIL_BEGUN, "timeout", "output_cap", "grace", "stdin", "retry_delay", "event_segments", "on_parent_exit",
    "starter",
)  # fmt: skip

#: Seconds that another who looks may take to make a keeper; a busy machine takes a while.
_PATIENCE = 10.0


def with_means(request: Mapping[str, object], needs_env: Sequence[str]) -> dict[str, object]:
    """A request whose record says how the job is kept again; no value of a variable is among it."""
    means = {name: request[name] for name in _MEANS} | {"env": list(needs_env)}
    record = as_object(request["record"]) or {}
    return {**request, "record": {**record, "resumes": means}, "resumes": True}


def goes_on(folder: JobFolder, record: Mapping[str, object]) -> bool:
    """Whether the work of a job without a keeper goes on elsewhere, and nobody has decided its end."""
    from taskyard.runtime.ending import decided

    return "resumes" in record and not os.path.lexists(folder.end) and decided(folder) is None


def take_up(folder: JobFolder, record: Mapping[str, object]) -> str:
    """See that the job has a keeper; "" if so, else why that cannot be from here. Of many who try, one makes it."""
    means = as_object(record.get("resumes")) or {}
    missing = [str(name) for name in as_list(means.get("env")) or [] if not os.environ.get(str(name))]
    if missing:
        return f"nobody follows it: ${missing[0]} is not set here"
    from taskyard.disk.kernel_lock import RangeLock

    try:
        with RangeLock(f"{folder.path}/resuming.lock") as lock:
            lock.take(0, timeout=_PATIENCE, what=f"job {folder.id}")
            if liveness.keeper_of(folder) is None:
                from taskyard.runtime.starting import start_alone

                start_alone(_request(folder, record, means))
    except (StorageError, Busy) as error:
        return f"nobody follows it: {error}"
    return ""


def unfollowed(record: Mapping[str, object], why: str) -> dict[str, object]:
    """The facts of a job that nobody can follow from here."""
    return {"disconnected": {"since": record.get("startTime") or now_ms(), "why": why}}


def _request(folder: JobFolder, record: Mapping[str, object], means: Mapping[str, object]) -> dict[str, object]:
    from taskyard.runtime.requests import plan

    has_begun = not record.get("waitsFor")
    kept = {name: means[name] for name in _MEANS if name in means and not (has_begun and name in _UNTIL_BEGUN)}
    task = record.get("task")
    return {
        "id": folder.id,
        "home": folder.home,
        "plan": plan(
            folder.home, None, folder.id, argv=(), cwd="/", task=task if isinstance(task, str) else None
        ),  # where it was started may be gone by now
        "record": {},
        "parent": liveness.kept_here() or os.environ.get("TASKYARD_JOB") or None,
        "arguments": {},
        **kept,
        "resumes": True,
        "again": True,
    }
