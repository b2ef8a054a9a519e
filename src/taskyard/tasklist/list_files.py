"""
A list's folder, open for work: what every operation on it shares.

Takes locks, reads tasks under them (settling and logging first what others left), and starts an
operation over when another program got in between. Opened for writing at the first write, and
again if somebody removed the folder meanwhile.
"""

from __future__ import annotations

import os
from _thread import RLock

from taskyard.errors import Busy, Damaged, StorageError, TaskNotFound
from taskyard.names import LAST_WITH_ROOM
from taskyard.tasklist.ledger import look
from taskyard.tasklist.listing import ListReader
from taskyard.tasklist.starting_over import IdTaken, LockLost, Unsettled
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from taskyard.config import Settings
    from taskyard.disk.kernel_lock import RangeLock
    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.ledger import Row
    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.model import Lease, Task
    from taskyard.tasklist.reader import Seen
    from taskyard.tasklist.settle import Settler
    from taskyard.tasklist.writer import Writer

    T = TypeVar("T")

#: How often an operation starts over when others get in between; each time they made progress.
_TRIES = 50


class Opened(NamedTuple):
    """What only those who write need; loading it waits for the first of them."""

    place: tuple[int, int]  #: device and inode of the lock file: tells this folder from one that took its path
    writer: Writer
    settler: Settler
    take: type[Hold]
    lock: type[RangeLock]


class ListFiles:
    """One list's files, leases, log and ledger."""

    def __init__(
        self,
        folder: ListFolder,
        settings: Settings,
        *,
        foreign: bool,
        alive: Callable[[Lease], bool | None],
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.tasks = ListReader(folder, alive=alive, was_removed=self._was_removed)
        self.leases = self.tasks.leases
        self._foreign = foreign
        self._network = False
        self._opened: Opened | None = None
        self._spare: list[RangeLock] = []
        self._opening = RLock()
        self._last_id = 0
        self._is_counted = False  # whether ledger and older `tasks.json` were looked at for `_last_id`
        self._was_taken = False  # whether an id that looked free was not

    @property
    def writer(self) -> Writer:
        """What writes; opening it makes the folder, and settles what dead writers left."""
        return (self._opened or self._open()).writer

    @property
    def settler(self) -> Settler:
        """What brings log and files together."""
        return self._open().settler

    def writer_if_allowed(self) -> Writer | None:
        """The writer, or None where we may only read."""
        try:
            return self.writer
        except (StorageError, Busy):
            return None

    def known(self, ids: Iterable[str] | None = None) -> dict[str, Row] | None:
        """What the ledger knows of some tasks, or of all; None where we may only read and there is none.

        A mere look reads the file and opens nothing else: the log, its locks and all they need wait
        for the first who writes.
        """
        if self._opened is None and ids is None and (rows := look(self.folder.ledger)) is not None:
            return rows
        writer = self.writer_if_allowed()
        if writer is None:
            return None
        return dict(writer.ledger.rows()) if ids is None else {one: writer.ledger.row(one) for one in ids}

    def _was_removed(self, task_id: str) -> bool:
        """Whether a task that stands in the older `tasks.json` had a file of its own, or a life, that ended."""
        from taskyard.tasklist import past

        writer = self.writer_if_allowed()
        row = writer.ledger.row(task_id) if writer is not None else past.row(self.folder, task_id)
        return row.entry is not None and row.intent is None and not row.is_present

    def _open(self) -> Opened:
        opened = self._opened
        if opened is None:
            with self._opening:
                opened = self._opened or self._opened_now()
        return opened

    def _opened_now(self) -> Opened:
        from taskyard.disk.kernel_lock import RangeLock
        from taskyard.disk.mounts import is_network
        from taskyard.tasklist.hold import Hold
        from taskyard.tasklist.settle import Settler
        from taskyard.tasklist.writer import Writer

        self.folder.make()
        self._network = is_network(self.folder.path)
        writer = Writer(self.folder, self.leases, sync=self.settings.durability == "power")
        settler = Settler(writer, self.tasks.reader, self.leases, self.hold)
        lock = RangeLock(self.folder.lock)
        self._spare.append(lock)
        self._opened = opened = Opened(lock.place(), writer, settler, Hold, RangeLock)
        if not writer.ledger.highest() and writer.journal.end():
            settler.relearn()
        for task_id in settler.unsettled():
            settler.settle_if_free(task_id)
        return opened

    def close(self) -> None:
        """Let go of open files."""
        with self._opening:
            if self._opened is not None:
                self._opened.writer.close()
                self._opened = None
                self._last_id, self._is_counted = 0, False
            while (lock := self._spared()) is not None:
                lock.close()
            self.tasks.close()

    def hold(
        self,
        ids: Iterable[str] = (),
        *,
        reading: Iterable[str] = (),
        whole: bool = False,
        everything: bool = False,
        making: bool = False,
        timeout: float | None = None,
    ) -> Hold:
        """Take locks (see `Hold`), in the folder as it is now.

        `making`: these tasks' files are not there yet, so there is nothing for npm to lock. `timeout`: other than
        the setting's.
        """
        kernel = self._borrow()
        return self._open().take(
            self.folder,
            ids,
            reading=reading,
            whole=whole,
            everything=everything,
            kernel=kernel,
            give_back=self._spare.append,
            foreign=self._foreign and not making,
            timeout=self.settings.lock_timeout if timeout is None else timeout,
        )

    def _borrow(self) -> RangeLock | None:
        """The list's lock file, open; everything is opened anew if the folder is no longer the same."""
        for _ in range(3):
            opened = self._open()
            if self._network:
                return None
            if self._is_in_place(opened):
                lock = self._spared() or opened.lock(self.folder.lock)
                if lock.place() == opened.place:
                    return lock
                lock.close()
            self.close()  # the folder was removed, or moved away: opening makes it anew, or says why not
        raise StorageError(self.folder.path, "it is being removed again and again")

    def _is_in_place(self, opened: Opened) -> bool:
        """Whether the list's path still leads to the folder that is open."""
        try:
            found = os.lstat(self.folder.lock)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == opened.place

    def _spared(self) -> RangeLock | None:
        """A lock file left open by an earlier operation; a forked child cannot use those of its parent."""
        while True:
            try:
                lock = self._spare.pop()
            except IndexError:
                return None
            if lock.is_usable:
                return lock

    def seen(self, task_id: str, hold: Hold) -> tuple[Task, Seen | None]:
        """A task under `hold`, as it is now; what another program did to it is logged first, or put back.

        The second is its file; None if only the older `tasks.json` has it.

        Raises:
            TaskNotFound: there is none.
            Damaged: its file cannot be read.
        """
        opened = self._open()
        row = opened.writer.ledger.row(task_id)
        if row.intent is not None:
            raise Unsettled(task_id)
        found = opened.settler.note_external(task_id, self.tasks.reader.read(task_id), hold, row)
        if found is not None and found.damage is not None:
            raise Damaged(self.folder.task(task_id), found.damage)
        if found is not None and found.task is not None:
            return found.task, found
        if found is None and (older := self.tasks.older(task_id)) is not None:
            return older, None
        raise self.missing(task_id)

    def missing(self, task_id: str) -> TaskNotFound:
        """The error for a task that is not there: with near ids, or that it can be brought back."""
        if not self.folder.exists():
            return TaskNotFound(task_id, list_name=self.folder.name)
        from taskyard.tasklist import past

        gone = past.is_restorable(self, task_id)
        return TaskNotFound(task_id, list_name=self.folder.name, nearest=self.tasks.nearest(task_id), restorable=gone)

    def persist(self, attempt: Callable[[], T]) -> T:
        """Do `attempt`, and again from the start when something got in between."""
        for _ in range(_TRIES):
            try:
                return attempt()
            except Unsettled as found:
                self.settler.settle(found.task_id)
            except (LockLost, IdTaken):
                pass  # everything is read anew
        raise Busy(f"list {self.folder.name!r}", "another program that keeps writing", self.settings.lock_timeout)

    def next_id(self) -> str:
        """The id after the highest one ever given out, by everything there is. The caller holds the list."""
        while not self.is_fresh(found := self.likely_id()):
            pass  # the next one is looked for among the files
        return found

    def likely_id(self) -> str:
        """The id after the highest one we know of, in no time: `is_fresh` must say that nobody else has it.

        The caller holds the list; the question can be asked when it no longer does.
        """
        mark = self.writer.mark.read()
        if mark > LAST_WITH_ROOM:
            mark = 0  # nobody counted that far: what is really spent, the files tell
        last = max(mark, self._last_id)
        if not self._is_counted:
            last = max(last, self.writer.ledger.highest(), self.tasks.highest_consolidated())
        if not mark or self._was_taken:
            # Another program gives out ids without raising the mark: only the files tell which are spent.
            on_disk = (number for number in self.folder.ids_on_disk() if number <= LAST_WITH_ROOM)
            last = max(last, self.writer.ledger.highest(), *on_disk, 0)
        self._is_counted, self._was_taken = True, False
        if last >= LAST_WITH_ROOM:
            raise Damaged(self.folder.mark, f"it says {last}, but new ids end at {LAST_WITH_ROOM}")
        self._last_id = last + 1
        try:
            self.writer.mark.write(self._last_id)
        except StorageError as error:
            raise error.writing([str(self._last_id)], "Nothing was changed.") from error
        return str(self._last_id)

    def is_fresh(self, task_id: str) -> bool:
        """Whether nobody ever had this id, which `likely_id` gave out; if not, the next one is looked for."""
        if os.access(self.folder.task(task_id), os.F_OK) or self.writer.ledger.row(task_id).entry is not None:
            self._was_taken = True
            return False
        return True

    def keep_above(self, task_id: int) -> None:
        """See to it that no id up to this one is given out again. The caller holds the list."""
        if self.writer.mark.read() < task_id:
            self.writer.mark.write(task_id)

    def take_back(self, task_id: str) -> None:
        """Undo `next_id` for a task that could not even be drafted, if it was the last: nobody ever heard of it."""
        with self.hold(whole=True):
            if self.writer.ledger.highest() < int(task_id) == self.writer.mark.read():
                self._last_id, self._is_counted = 0, False
                self.writer.mark.write(int(task_id) - 1)
