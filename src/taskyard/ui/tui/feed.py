"""The part of `taskyard.ui.live.LiveView` that the terminal view uses, and loading of details."""

from __future__ import annotations

from typing import Protocol

from taskyard.core.values import NamedTuple
from taskyard.errors import TaskyardError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.job_text import total_usage
from taskyard.jobs.query import task_jobs
from taskyard.ui.details import DetailData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tasks.model import Change
    from taskyard.ui.snapshot import Snapshot
    from taskyard.yard import Yard


class Feed(Protocol):
    """One list and the jobs, kept up to date."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        ...

    @property
    def yard(self) -> Yard:
        """The yard to use for acts."""
        ...

    def listen(self, listener: Callable[[Snapshot], None], /) -> Callable[[], None]:
        """Call `listener` with each new snapshot; return a function that unsubscribes."""
        ...

    def see(self, job_id: str, /) -> None:
        """Mark a job's end as seen by the user."""
        ...

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        ...

    def show_all_projects(self, everywhere: bool, /) -> None:
        """Show jobs of every project, or only of this one."""
        ...

    def history(self, task_id: str, /) -> Sequence[Change]:
        """Return the changes of a task."""
        ...

    def close(self) -> None:
        """Stop watching the list."""
        ...


class DetailTarget(NamedTuple):
    """The task or job shown in detail."""

    kind: str  #: "task" or "job"
    id: str


def load_detail(feed: Feed, subject: DetailTarget, now: int) -> DetailData:
    """Load the details that are not in a snapshot. Reads files: call it outside the drawing thread."""
    yard = feed.yard
    if subject.kind == "job":
        cwd = (read_json(JobPaths(yard.home, subject.id).record) or {}).get("cwd")
        return DetailData(cwd=cwd if isinstance(cwd, str) else "")
    try:
        task = yard.tasks.get(subject.id)
        history = feed.history(subject.id)
    except TaskyardError:
        return DetailData()  # it is gone, or unreadable, which the header shows
    return DetailData(task, history, total_usage(task_jobs(yard.home, f"{yard.tasks.name}/{subject.id}"), now))
