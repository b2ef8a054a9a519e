"""The door to the watcher for those who may never need it: importing it costs what a short command has not got."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.disk.watch import Followed


def follow(folder: str) -> Followed:
    """Follow what happens in `folder`, with the watcher of this process."""
    from taskyard.disk.watch import watcher

    return watcher().follow(folder)


def signal(folder: str) -> None:
    """Wake whoever follows `folder` in this process; nobody does where nobody watches yet."""
    watch = sys.modules.get("taskyard.disk.watch")
    if watch is not None:
        watch.watcher().signal(folder)
