"""
The jobs that a program has in mind: what it started or looks at, for as long as that matters.

The truth is on disk, and stays there. This is what views hang on: one record per job, replaced and never changed, and
whoever listens is told of each replacement.

    update(id, fn)     `fn` gets the record as it is now; the same object back means that nothing changed
    register(job)      again under the same id: what viewers hold and what waits for the job stays
    retain, let_go     while somebody looks at a job it stays; half a minute longer, so that they can look again
    evict              what has ended, was told and is looked at by nobody leaves; also by itself with every change
"""

from __future__ import annotations

from _thread import allocate_lock

from taskyard.clock import elapsed
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.runtime.model import Job

    Updater = Callable[["Known"], "Known"]
    Listener = Callable[["Known", bool], None]

#: Seconds for which an ended job stays after the last viewer turned away.
GRACE = 30.0


class Known(NamedTuple):
    """One job as this program has it in mind."""

    job: Job
    output_offset: int = 0  #: up to where its output was read
    messages: tuple[object, ...] = ()  #: what viewers were shown of it
    pending: tuple[str, ...] = ()  #: what waits to be handed to it
    viewers: int = 0
    evict_after: float | None = None  #: by the clock that counts suspended time; None: nobody ever looked

    def may_leave(self, now: float) -> bool:
        """Whether nobody needs it any more."""
        is_settled = self.job.is_final and self.job.notified and not self.viewers
        return is_settled and (self.evict_after is None or now >= self.evict_after)


class Registry:
    """The jobs one program has in mind; safe to use from any thread."""

    def __init__(self, now: Callable[[], float] = elapsed) -> None:
        self._known: dict[str, Known] = {}
        self._listeners: dict[object, Listener] = {}
        self._now = now
        self._lock = allocate_lock()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Known]:
        """Those that are there, oldest first; what nobody needs leaves now."""
        self.evict()
        return iter(sorted(self._known.values(), key=lambda known: (known.job.start_time, known.job.id)))

    def get(self, job_id: str) -> Known | None:
        """What is known of a job; None if it is not in mind."""
        return self._known.get(job_id)

    def register(self, job: Job) -> bool:
        """Have a job in mind; False if it was already, and then only the job itself is replaced."""
        with self._lock:
            before = self._known.get(job.id)
            if before is None:
                after = Known(job)
            else:
                after = before._replace(job=job._replace(start_time=before.job.start_time), evict_after=None)
            self._known[job.id] = after
        self._tell(after, gone=False)
        return before is None

    def update(self, job_id: str, fn: Updater) -> Known | None:
        """Replace what is known by what `fn` makes of it, and tell; None, and nothing happens, for an unknown id.

        What has ended stays as it ended: of its job only `notified` can change, and only to true.
        """
        with self._lock:
            before = self._known.get(job_id)
            if before is None:
                return None
            after = fn(before)
            if after is before:
                return before
            if before.job.is_final:
                told = before.job.notified or after.job.notified
                after = after._replace(job=before.job._replace(notified=told))
            self._known[job_id] = after
        self._tell(after, gone=False)
        self._evict_one(job_id)
        return after

    def see(self, job: Job) -> None:
        """Take in what was just read of a job, if it is in mind; a slow read does not undo what came since."""
        self.update(job.id, lambda known: known if known.job == job else known._replace(job=job))

    def retain(self, job_id: str) -> bool:
        """Keep a job in mind while somebody looks at it; False if it is not."""
        return self.update(job_id, lambda known: known._replace(viewers=known.viewers + 1)) is not None

    def let_go(self, job_id: str) -> None:
        """Somebody looks at it no longer."""
        until = self._now() + GRACE
        self.update(
            job_id,
            lambda known: known._replace(viewers=known.viewers - 1, evict_after=until) if known.viewers else known,
        )

    def evict(self) -> None:
        """Let go of everything that nobody needs."""
        for job_id in list(self._known):
            self._evict_one(job_id)

    def _evict_one(self, job_id: str) -> None:
        with self._lock:
            known = self._known.get(job_id)
            if known is None or not known.may_leave(self._now()):
                return
            del self._known[job_id]
        self._tell(known, gone=True)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with each changed record, and whether it left; call what this returns to end that."""
        key = object()
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    def _tell(self, known: Known, *, gone: bool) -> None:
        for listener in list(self._listeners.values()):
            listener(known, gone)
