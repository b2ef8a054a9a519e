"""One list that somebody watches: its newest snapshot, and who is told of the next."""

from __future__ import annotations

import contextlib
import sys

from taskyard.clock import now_ms
from taskyard.view.memory import Memory
from taskyard.view.snapshot import Snapshot, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.app import Yard
    from taskyard.live.list_feed import ListFeed
    from taskyard.live.showing import Live
    from taskyard.tasklist.model import Change
    from taskyard.view.snapshot import Scene
    from taskyard.view.timeline import Timeline

    #: Gets each new snapshot, in the thread that made it.
    Listener = Callable[[Snapshot], None]


class View:
    """One list, kept in view."""

    def __init__(self, live: Live, name: str, feed: ListFeed) -> None:
        self.name = name
        self.feed = feed
        self.snapshot = Snapshot(name)  #: the newest
        self.is_stale = True  #: something else than its list or the jobs changed
        self.users = 0
        self._live = live
        self._memory = Memory()
        self._listeners: list[Listener] = []

    @property
    def yard(self) -> Yard:
        """For acts on this list."""
        return self.feed.yard

    def is_due(self) -> bool:
        """Whether time alone, or something beside the list, makes another snapshot."""
        return self.is_stale or (self.snapshot.until is not None and now_ms() >= self.snapshot.until)

    def show(self, scene: Scene, *, same_tasks: bool = False, same_jobs: bool = False) -> None:
        """Make a snapshot, and tell of it if it shows anything new."""
        self.is_stale = False
        before = self.snapshot
        self.snapshot = snapshot(scene, before, same_tasks=same_tasks, same_jobs=same_jobs, memory=self._memory)
        if self.snapshot._replace(until=before.until, done_since=before.done_since) == before:
            return
        for listener in list(self._listeners):
            self._tell(listener)

    def _tell(self, listener: Listener) -> None:
        try:
            listener(self.snapshot)
        except Exception as error:  # whoever cannot bear the news hears no more; the others do
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)
            sys.excepthook(type(error), error, error.__traceback__)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have each new snapshot told, in the thread that made it; what is returned ends that."""
        self._listeners.append(listener)

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def look(self) -> None:
        """Look again now."""
        self._live.ask()

    def see(self, job_id: str) -> None:
        """Say that somebody looked at a job's end: it is not told again."""
        self._live.see(job_id)

    @property
    def is_everywhere(self) -> bool:
        """Whether jobs of every project are shown."""
        return self._live.is_everywhere

    def show_everywhere(self, everywhere: bool) -> None:
        """Show jobs of every project, or of this one."""
        self._live.show_everywhere(everywhere)

    def history(self, task_id: str) -> Sequence[Change]:
        """What happened to one task, oldest first."""
        return self.yard.tasks.log(task_id)

    def timeline(self) -> Timeline:
        """Who did what when."""
        return self._live.timeline(self)

    def close(self) -> None:
        """Watch it no longer."""
        self._live.leave(self)
