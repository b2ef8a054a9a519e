"""
Holding a list, or some of its tasks, for one change.

Order, always: kernel locks by ascending id (the list is byte 0), then npm's folder locks in the
same order, where other programs may write. Blockers that a decision only reads are held shared,
so that it is still true when it is written.
"""

from __future__ import annotations

from taskyard.disk.folder_lock import FolderLock
from taskyard.names import LARGEST_ID
from taskyard.tasklist.starting_over import LockLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.disk.kernel_lock import RangeLock
    from taskyard.tasklist.list_folder import ListFolder


class Hold:
    """Locks on some tasks and perhaps the whole list; `with` gives them all back."""

    def __init__(
        self,
        folder: ListFolder,
        ids: Iterable[str] = (),
        *,
        reading: Iterable[str] = (),
        whole: bool = False,
        everything: bool = False,
        kernel: RangeLock | None,
        give_back: Callable[[RangeLock], None],
        foreign: bool = False,
        timeout: float,
    ) -> None:
        """Take them, each within `timeout` seconds.

        Args:
            folder: The list.
            ids: Tasks that will be written.
            reading: Tasks that must not change meanwhile.
            whole: Hold the list itself: ids are given out, dependencies change.
            everything: Hold the list and all its tasks, to look at them; not for writing task files.
            kernel: The list's lock file; None where kernel locks mean nothing (a network file system)
                and npm's lock on the whole list must do.
            give_back: Gets the lock file back, free again.
            foreign: Other programs write here too: take npm's locks as well.
            timeout: For each lock.

        Raises:
            Busy: one was not free in time.
        """
        self._kernel = kernel
        self._give_back = give_back
        self._folders: list[FolderLock] = []
        self._timeout = timeout
        writing = sorted({int(task_id) for task_id in ids}) if ids else []
        what = f"list {folder.name!r}"
        try:
            if kernel is not None:
                if everything:
                    kernel.take(0, timeout=timeout, what=what, length=LARGEST_ID + 1)
                else:
                    self._take_kernel(kernel, writing, reading, whole, timeout, what)
            guarded = kernel is not None
            if not guarded or (foreign and whole):
                self._take_folder(folder.npm_target, what, timeout, guarded=guarded)
            if foreign or not guarded:
                for number in writing:
                    target = folder.task(str(number))
                    self._take_folder(target, f"task #{number} of {what}", timeout, guarded=guarded)
        except BaseException:
            self.release()
            raise

    def _take_kernel(
        self, lock: RangeLock, writing: list[int], reading: Iterable[str], whole: bool, timeout: float, what: str
    ) -> None:
        if whole:
            lock.take(0, timeout=timeout, what=what)
        shared = {int(task_id) for task_id in reading}.difference(writing) if reading else ()
        for number in sorted({*writing, *shared}) if shared else writing:
            lock.take(number, timeout=timeout, what=f"task #{number} of {what}", shared=number in shared)

    def _take_folder(self, target: str, what: str, timeout: float, *, guarded: bool) -> None:
        self._folders.append(FolderLock(target, timeout=timeout, what=what, guarded=guarded))

    def narrow(self, task_id: str) -> None:
        """Give the list back and go on with one new task: nobody else has its id, and creates run side by side.

        Its file is not there yet, so npm has nothing to lock. Without kernel locks the list stays held.
        """
        if self._kernel is None:
            return
        self._give_back_folders()
        self._kernel.release(0)
        self._kernel.take(int(task_id), timeout=self._timeout, what=f"task #{task_id}")

    def check(self) -> None:
        """Make sure, right before a write, that the folder locks are still ours.

        Raises:
            LockLost: one is not: we were asleep for so long that it looked abandoned.
        """
        for lock in self._folders:
            if not lock.is_ours():
                raise LockLost

    def release(self) -> None:
        """Give everything back, in reverse order."""
        self._give_back_folders()
        kernel, self._kernel = self._kernel, None
        if kernel is None:
            return
        if kernel.is_spoiled:
            kernel.close()  # used again, it would lose what it holds to whoever gave up waiting for it
        else:
            kernel.release()
            self._give_back(kernel)

    def _give_back_folders(self) -> None:
        while self._folders:
            self._folders.pop().release()

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
