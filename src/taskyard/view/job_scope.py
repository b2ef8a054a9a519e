"""Which jobs a view shows: this project's that nobody dismissed, unless more is asked for."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.runtime.model import Job


class Scope(NamedTuple):
    """What a view is asked for."""

    project: str = ""  #: only jobs started in this project; "": of every project
    dismissed: bool = False  #: also ended jobs that a person dismissed

    def of(self, jobs: Iterable[Job]) -> Scoped:
        """The jobs in scope, with those started inside them, and how many of other projects are left out.

        A job of another machine is always in scope: a project has another path, and so another name, there.
        """
        seen = [job for job in jobs if self.dismissed or not job.is_dismissed]
        if not self.project:
            return Scoped(seen, 0)
        ours = {job.id for job in seen if job.project in ("", self.project) or job.is_far}
        size = -1
        while size != len(ours):
            size = len(ours)
            ours |= {job.id for job in seen if job.parent in ours}
        return Scoped([job for job in seen if job.id in ours], len(seen) - len(ours))


class Scoped(NamedTuple):
    """Jobs that a view shows."""

    jobs: Sequence[Job]
    elsewhere: int  #: how many of other projects are left out
