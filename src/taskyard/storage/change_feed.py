"""Lazy access to the inotify watcher, whose import is too expensive for short commands."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.storage.inotify import Subscription


def subscribe(folder: str) -> Subscription:
    """Subscribe to changes in `folder` with the watcher of this process."""
    from taskyard.storage.inotify import watcher

    return watcher().follow(folder)


def wake_subscribers(folder: str) -> None:
    """Wake the subscribers of `folder` in this process, if the watcher is loaded."""
    watch = sys.modules.get("taskyard.storage.inotify")
    if watch is not None:
        watch.watcher().signal(folder)
