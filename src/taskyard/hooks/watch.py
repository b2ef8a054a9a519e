"""The hooks in force, asked for at every change of a task: looked for again only when something happened."""

from __future__ import annotations

import os

from taskyard.hooks.book import load, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.disk.watch import Followed, Watcher
    from taskyard.hooks.book import HookBook
    from taskyard.hooks.check import HookProblem


#: The hooks of the projects this process works for, by where they may stand.
_shared: dict[tuple[str, ...], HookWatch] = {}

#: One process works for few projects; more only means looking again.
_MOST = 16


def hooks_of(project: str | None) -> HookWatch:
    """The hooks in force for a project, shared by everyone in this process who works for it."""
    key = tuple(places(project))
    found = _shared.get(key)
    if found is None:
        while len(_shared) >= _MOST:
            _shared.pop(next(iter(_shared))).close()
        found = _shared[key] = HookWatch(project)
    return found


class HookWatch:
    """One project's hooks.

    With none configured, which is the common case, the kernel is asked once whether anything
    happened in the folders where settings would appear. Settings that exist are looked at each
    time: they may be links, whose targets change elsewhere.
    """

    def __init__(self, project: str | None) -> None:
        self._project = project
        self._book: HookBook | None = None
        self._feeds: list[Followed] = []
        self._watcher: Watcher | None = None
        self._pid = os.getpid()

    def book(self, report: Callable[[HookProblem], None]) -> HookBook:
        """The hooks as they are now; `report` is told what is wrong in their files, once."""
        if self._feeds and self._book is not None and self._watcher is not None and self._pid == os.getpid():
            self._watcher.drain()
            for feed in self._feeds:
                if feed.has_news:
                    break
            else:
                return self._book
        elif self._book is not None:
            self._follow()  # a process that asks twice will ask often
        for feed in self._feeds:
            feed.changed()
        self._book = load(self._project, report=report)
        if any(os.path.lexists(path) for path in places(self._project)):
            self._let_go()
        return self._book

    def _follow(self) -> None:
        from taskyard.disk.watch import watcher

        self._let_go()
        self._pid, self._watcher = os.getpid(), watcher()
        folders = {os.path.dirname(path) for path in places(self._project)}
        feeds = [self._watcher.follow(folder) for folder in sorted(folders)]
        if all(feed.at is not None for feed in feeds):
            self._feeds = feeds

    def close(self) -> None:
        """Follow nothing any more."""
        self._let_go()

    def _let_go(self) -> None:
        if self._pid == os.getpid():
            for feed in self._feeds:
                feed.close()
        self._feeds = []
