"""
Keepers that die without a word, heard of at once: whoever follows events holds a descriptor of each living keeper.

The kernel makes it readable when that process ends. A look at the job then finds its end, or closes its books, which
is an event as any end is.
"""

from __future__ import annotations

import os
import select
import threading

from taskyard.errors import TaskyardError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.looking import everything, look
from taskyard.runtime.waiting import watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.model import Job
    from taskyard.runtime.waiting import Watched


class Deaths:
    """A thread asleep on the keepers of jobs that run; `with` ends it."""

    def __init__(self, home: str, job: str | None = None) -> None:
        """Watch every job that lives, or one alone; nothing is done before `with`."""
        self._home = home
        self._job = job
        self._new: list[str] = []
        self._jobs: dict[int, tuple[str, Watched]] = {}  #: by descriptor of what tells of its end
        self._poll = select.poll()

    def watch(self, job_id: str) -> None:
        """Watch one more, which has begun since."""
        self._new.append(job_id)
        try:
            os.write(self._tell, b"\0")
        except BlockingIOError:
            pass  # it has enough to wake up for

    def __enter__(self) -> Deaths:
        self._wake, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._sleep, name="taskyard-deaths", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._tell)  # which is what ends the thread

    def _sleep(self) -> None:
        self._poll.register(self._wake, select.POLLIN)
        try:
            for job_id in self._living():
                self._watch(job_id)
            while self._is_going_on():
                pass
        finally:
            os.close(self._wake)
            for _, watched in self._jobs.values():
                watched.close()

    def _living(self) -> list[str]:
        try:
            return [self._job] if self._job is not None else [job.id for job in everything(self._home)]
        except (TaskyardError, OSError):
            return []

    def _is_going_on(self) -> bool:
        """Sleep until somebody died, or there is one more to watch; False at the end."""
        for fd, what in self._poll.poll():
            if fd != self._wake:
                self._poll.unregister(fd)
                job_id, watched = self._jobs.pop(fd)
                watched.close()
                self._watch(job_id)  # over now; or its work goes on elsewhere, under another keeper
            elif not what & select.POLLIN:
                return False  # nobody can ask for more
            else:
                os.read(self._wake, 4096)
                while self._new:
                    self._watch(self._new.pop())
        return True

    def _watch(self, job_id: str) -> None:
        job = self._look(job_id)
        if job is None or job.is_final:
            return
        watched = watch(JobFolder(self._home, job_id))
        if watched is None:
            self._look(job_id)  # nobody keeps it any more
        else:
            self._jobs[watched.fileno()] = job_id, watched
            self._poll.register(watched, select.POLLIN)

    def _look(self, job_id: str) -> Job | None:
        try:
            return look(self._home, job_id)
        except (TaskyardError, OSError):
            return None  # gone by now, or we may not write: somebody else may
