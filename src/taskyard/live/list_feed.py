"""One list, kept up to date: its tasks, when they were done, and who is in its team."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

from taskyard.clock import now_ms
from taskyard.disk.watch import watcher
from taskyard.errors import Damaged, NotFound, StoreAway, TaskyardError
from taskyard.lists.alarm import Alarm
from taskyard.tasklist.model import Listing
from taskyard.view.ordering import JUST_DONE_MS
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.app import Yard
    from taskyard.disk.watch import Followed
    from taskyard.tasklist.liveness import Seen
    from taskyard.tasklist.model import Change


class ListFeed:
    """One list; used by one thread."""

    def __init__(self, yard: Yard, bell: threading.Event) -> None:
        """`bell` rings when there is something to look at."""
        self.yard = yard
        self.tasks = Listing()
        self.done_at: dict[str, int] = {}
        self.members: Sequence[Seen] = ()
        self.problem = ""  #: why the list cannot be read, if it cannot
        self.is_away = False  #: because the place it is in is out of reach
        self._position: int | None = None
        self._team = watcher().follow(f"{yard.home}/teams", news=bell)
        self._hearing = ExitStack()  # what comes from a database shows in no folder
        self._hearing.enter_context(yard.teams.heard(self._team.ring))
        self._folder: Followed | None = None
        self._bell = bell
        self._told = threading.Event()
        self._alarm: Alarm | None = None
        if yard.lists.folder is not None:
            self._folder = watcher().follow(os.path.join(yard.lists.folder, yard.tasks.name), news=bell)
        else:
            self._alarm = Alarm(yard.tasks.store.wait, self._ring)

    def _ring(self) -> None:
        self._told.set()
        self._bell.set()

    @property
    def followed(self) -> Iterable[Followed]:
        """Everything whose changes ring the bell."""
        return (self._team, self._folder) if self._folder is not None else (self._team,)

    @property
    def is_unfinished(self) -> bool:
        """Whether something is still to be done."""
        return any(not task.is_done for task in self.tasks)

    def look(self, *, by_itself: bool = False) -> bool:
        """Bring everything up to date; whether anything changed. `by_itself`: no event said so."""
        is_first = self._position is None
        has_news = self._has_news()
        if self._team.told() != set() or by_itself or is_first:
            members = self._read_members()
            team_changed, self.members = members != self.members, members
        else:
            team_changed = False
        if not has_news and not by_itself and not is_first:
            return team_changed
        return self._read() or team_changed or is_first

    def _has_news(self) -> bool:
        if self._folder is not None:
            return self._folder.changed() != set()
        if not self._told.is_set():
            return False
        self._told.clear()  # before the look: what is told from here on is looked at once more
        return True

    @property
    def has_news(self) -> bool:
        """Whether something happened since the last look."""
        is_told = self._folder is None and self._told.is_set()
        return is_told or any(followed.has_news for followed in self.followed)

    def _read(self) -> bool:
        before, was_wrong = self.tasks, self.problem
        self.is_away = False
        try:
            began = self.yard.tasks.store.position() if self._position is None else None
            self.tasks = self.yard.tasks.list()
            if began is not None:
                self._read_past()
                self._position = began
            self._read_log()
            self.problem = ""
        except StoreAway as error:
            self.is_away = True
            self.problem = safe(str(self.yard.lists.away or error))
        except (TaskyardError, OSError) as error:
            self.problem = safe(str(error))
        return self.tasks is not before or self.problem != was_wrong

    def _read_past(self) -> None:
        """Learn when tasks were done that were done a moment ago: of the others, no place depends on it."""
        recent = now_ms() - JUST_DONE_MS
        for task in self.tasks:
            if task.is_done and (task.updated_at or 0) > recent:
                self._note(self.yard.tasks.log(task.id))

    def _read_log(self) -> None:
        """Learn from the log when tasks were done since: their files only say when they last changed."""
        news = self.yard.tasks.log(since=self._position or 0)
        self._note(news)
        if news:
            self._position = news[-1].id + 1

    def _note(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.aborted:
                continue
            for task_id, task in change.tasks.items():
                if task is None or not task.is_done:
                    self.done_at.pop(task_id, None)
                else:
                    self.done_at.setdefault(task_id, change.at)

    def _read_members(self) -> Sequence[Seen]:
        try:
            return tuple(self.yard.teams.members(self.yard.tasks.name))
        except StoreAway:
            return self.members
        except (NotFound, Damaged, OSError, TaskyardError):
            return ()  # it has no team, or none that can be read: `taskyard team` says why

    def close(self) -> None:
        """Follow it no longer."""
        self._hearing.close()
        if self._alarm is not None:
            self._alarm.close()
        for followed in self.followed:
            followed.close()
