"""Where the view gets what it shows and what it acts on: the little that is used of a `taskyard.live` view."""

from __future__ import annotations

from typing import Protocol

from taskyard.errors import TaskyardError
from taskyard.runtime.ending import read
from taskyard.runtime.families import of_task
from taskyard.runtime.folder import JobFolder
from taskyard.typed import NamedTuple
from taskyard.view.details import Known
from taskyard.view.figures import together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.app import Yard
    from taskyard.tasklist.model import Change
    from taskyard.view.snapshot import Snapshot


class Feed(Protocol):
    """One list and the jobs, kept in view."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest."""
        ...

    @property
    def yard(self) -> Yard:
        """For acts."""
        ...

    def listen(self, listener: Callable[[Snapshot], None], /) -> Callable[[], None]:
        """Have each new snapshot told."""
        ...

    def see(self, job_id: str, /) -> None:
        """Somebody looked at a job's end."""
        ...

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        ...

    def show_everywhere(self, everywhere: bool, /) -> None:
        """Show jobs of every project, or of this one."""
        ...

    def history(self, task_id: str, /) -> Sequence[Change]:
        """What happened to a task."""
        ...

    def close(self) -> None:
        """Watch it no longer."""
        ...


class Subject(NamedTuple):
    """What is shown in detail."""

    kind: str  #: "task" or "job"
    id: str


def known_of(feed: Feed, subject: Subject, now: int) -> Known:
    """What a snapshot does not say. It reads files: for threads beside the one that draws."""
    yard = feed.yard
    if subject.kind == "job":
        cwd = (read(JobFolder(yard.home, subject.id).record) or {}).get("cwd")
        return Known(cwd=cwd if isinstance(cwd, str) else "")
    try:
        task = yard.tasks.get(subject.id)
        history = feed.history(subject.id)
    except TaskyardError:
        return Known()  # it is gone, or cannot be read, which the header says
    return Known(task, history, together(of_task(yard.home, f"{yard.tasks.name}/{subject.id}"), now))
