"""Sleeping until a notice can be taken: the kernel tells of new ones, of keepers' deaths, and of the end of a hold."""

from __future__ import annotations

from taskyard import maildir
from taskyard.clock import elapsed
from taskyard.disk.watch import watcher
from taskyard.runtime import holding, outboxes
from taskyard.runtime.folder import living_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.disk.watch import Followed
    from taskyard.runtime.notices import Outbox

#: No file tells of a death: while there is something that a death would bring us, look this often, in seconds.
LOOK_EVERY = 1.0


class Waiting:
    """One who waits for what an outbox may hand out; `cancel` wakes it from another thread."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._home = watcher().follow(outbox.home)  # a hold comes and goes there
        self._followed: dict[str, Followed] = {}
        self._is_cancelled = False

    def wait(self, timeout: float) -> bool:
        """Whether a notice can be taken, now or within `timeout` seconds."""
        deadline = elapsed() + timeout
        while True:
            for followed in (self._home, *self._followed.values()):
                followed.changed()
            if self._is_cancelled:
                return False
            self._follow_all()  # after the news was emptied: a box that is made later wakes us again
            is_held = holding.is_on(self._outbox.home)
            if not is_held and self._outbox.waiting():
                return True
            left = deadline - elapsed()
            if left <= 0:
                return False
            self._home.wait(min(left, LOOK_EVERY) if not is_held and self._is_something_pending() else left)

    def cancel(self) -> None:
        """End the wait."""
        self._is_cancelled = True
        self._home.wake()

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        for followed in (self._home, *self._followed.values()):
            followed.close()

    def _follow_all(self) -> None:
        """Follow every box, also those that were made meanwhile, and the living: a keeper that dies is told there."""
        home = self._outbox.home
        boxes = [living_folder(home), outboxes.folder_of(home), *(f"{box.path}/new" for box in outboxes.boxes(home))]
        for path in boxes:
            if path not in self._followed:
                self._followed[path] = watcher().follow(path, wake=self._home)

    def _is_something_pending(self) -> bool:
        """Whether notices are in the hands, or in the box, of somebody who may die over them."""
        return any(
            box.count() or any(maildir.listed(f"{box.path}/taken/{holder}") for holder in box.holders())
            for box in outboxes.boxes(self._outbox.home)
        )
