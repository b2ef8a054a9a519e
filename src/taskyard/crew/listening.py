"""What wakes a lead: its list, its mail, its team, and whatever its members say or however they end."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from taskyard.disk.watch import watcher
from taskyard.places import folder_of, list_heard
from taskyard.runtime.deaths import Deaths
from taskyard.runtime.folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from taskyard.app import Yard
    from taskyard.disk.watch import Followed

#: Of a member's folder, what a lead wants to know: what it says of itself, and its end. Its transcript grows always.
_TELLING = frozenset({"facts.json", "end.json"})

#: Seconds in which a burst gathers.
_BURST = 0.01


class Ears:
    """A lead's; `with` closes them."""

    def __init__(self, yard: Yard) -> None:
        """Listen from now on: what happened before, nobody tells."""
        self._home = yard.home
        self._bell = watcher().follow(os.path.join(folder_of(yard.tasks_dir), yard.tasks.name))
        others = (*yard.mail.watched_folders(yard.agent or ""), f"{yard.home}/teams")
        self._places = [self._bell, *(watcher().follow(path, wake=self._bell) for path in others)]
        self._members: dict[str, Followed] = {}
        self._deaths = Deaths(yard.home)
        self._hearing = ExitStack()  # what comes from a database shows in no folder
        self._hearing.enter_context(list_heard(yard.settings, yard.tasks.name, self._bell.ring))
        self._hearing.enter_context(yard.mail.heard(yard.agent or "", self._bell.ring))
        self._hearing.enter_context(yard.teams.heard(self._bell.ring))

    def wait(self, seconds: float, jobs: Collection[str]) -> None:
        """Sleep until there may be news, also of those members' jobs, at most so long."""
        if self._has_new(jobs):
            return  # what it said before, nobody tells
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self._bell.wait(left, debounce=_BURST):
            if self._is_news():
                return

    def __enter__(self) -> Self:
        self._deaths.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._deaths.__exit__()
        self._hearing.close()
        for each in (*self._members.values(), *self._places):
            each.close()

    def _has_new(self, jobs: Collection[str]) -> bool:
        """Listen to those jobs and no others; whether there are some that were not listened to."""
        for job_id in self._members.keys() - set(jobs):
            self._members.pop(job_id).close()
        fresh = set(jobs) - self._members.keys()
        for job_id in fresh:
            self._members[job_id] = watcher().follow(JobFolder(self._home, job_id).path, wake=self._bell)
            self._deaths.watch(job_id)
        return bool(fresh)

    def _is_news(self) -> bool:
        places = [place.changed() for place in self._places]
        members = [member.changed() for member in self._members.values()]
        return any(names is None or names for names in places) or any(
            names is None or not _TELLING.isdisjoint(names) for names in members
        )
