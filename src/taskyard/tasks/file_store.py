"""The task store on files: one JSON file per task, in a folder that other programs may share.

`ListFiles` opens a list's folder and provides what all operations share: it takes locks, reads tasks under
them (after settling unfinished writes and logging external changes), and retries an operation when another
program interferes. It opens for writing at the first write, and again if the folder was removed meanwhile.

`FileStore` implements `TaskStore`: `reader` lists tasks, `file_changes` changes them, `writer` makes writes
crash-safe and recovers unfinished ones, `history` reads the log. Listing must be cheap: what only writers
need is imported where it is used.
"""

from __future__ import annotations

import os
from _thread import RLock

from taskyard.core.values import MAX_COUNTED_ID, NamedTuple
from taskyard.errors import Busy, Conflict, Damaged, StorageError, TaskNotFound
from taskyard.tasks.list_folder import ListFolder, read_index
from taskyard.tasks.model import (
    Act,
    Change,
    Draft,
    Facts,
    IdTaken,
    Lease,
    LinkChange,
    Listing,
    LockLost,
    Task,
    UnfinishedWrite,
)
from taskyard.tasks.reader import ListReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from taskyard.config import Settings
    from taskyard.storage.locks import RangeLock
    from taskyard.tasks.file_changes import FileStoreWriter
    from taskyard.tasks.graph import Edge
    from taskyard.tasks.list_folder import IndexRow
    from taskyard.tasks.reader import TaskFileState
    from taskyard.tasks.store import Rule
    from taskyard.tasks.writer import ListWriter, Recovery, TaskLocks


if TYPE_CHECKING:
    T = TypeVar("T")

#: Attempts of an operation when others interfere; they made progress each time.
_TRIES = 50


class OpenList(NamedTuple):
    """What only writers need; loaded at the first write."""

    place: tuple[int, int]  #: device and inode of the lock file, which identify the folder
    writer: ListWriter
    recovery: Recovery
    take: type[TaskLocks]
    lock: type[RangeLock]


class ListFiles:
    """One list's files, leases, log and index."""

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
        self._opened: OpenList | None = None
        self._spare: list[RangeLock] = []
        self._opening = RLock()
        self._last_id = 0
        self._is_counted = False  # whether index and older `tasks.json` are included in `_last_id`
        self._was_taken = False  # whether an id that looked free was taken

    @property
    def writer(self) -> ListWriter:
        """The writer; opening it creates the folder and settles what crashed writers left."""
        return (self._opened or self._open()).writer

    @property
    def recovery(self) -> Recovery:
        """The object that reconciles log and files."""
        return self._open().recovery

    def writer_if_allowed(self) -> ListWriter | None:
        """Return the writer, or None if the folder is read-only for us."""
        try:
            return self.writer
        except (StorageError, Busy):
            return None

    def known(self, ids: Iterable[str] | None = None) -> dict[str, IndexRow] | None:
        """Return the index rows of some tasks, or of all; None if the folder is read-only and has no index.

        Reading all rows opens only the index file: the log and its locks wait for the first write.
        """
        if self._opened is None and ids is None and (rows := read_index(self.folder.index)) is not None:
            return rows
        writer = self.writer_if_allowed()
        if writer is None:
            return None
        return dict(writer.index.rows()) if ids is None else {one: writer.index.row(one) for one in ids}

    def _was_removed(self, task_id: str) -> bool:
        """Return whether a task in the older `tasks.json` had its own file or log entries, and was removed."""
        from taskyard.tasks import history

        writer = self.writer_if_allowed()
        row = writer.index.row(task_id) if writer is not None else history.read_row(self.folder, task_id)
        return row.entry is not None and row.intent is None and not row.is_present

    def _open(self) -> OpenList:
        opened = self._opened
        if opened is None:
            with self._opening:
                opened = self._opened or self._open_writer()
        return opened

    def _open_writer(self) -> OpenList:
        from taskyard.storage.locks import RangeLock, is_network_fs
        from taskyard.tasks.writer import ListWriter, Recovery, TaskLocks

        self.folder.make()
        self._network = is_network_fs(self.folder.path)
        writer = ListWriter(self.folder, self.leases, sync=self.settings.durability == "power")
        recovery = Recovery(writer, self.tasks.reader, self.leases, self.hold)
        lock = RangeLock(self.folder.lock)
        self._spare.append(lock)
        self._opened = opened = OpenList(lock.place(), writer, recovery, TaskLocks, RangeLock)
        if not writer.index.highest() and writer.journal.end():
            recovery.rebuild_index()
        for task_id in recovery.unsettled():
            recovery.recover_if_free(task_id)
        return opened

    def close(self) -> None:
        """Close open files."""
        with self._opening:
            if self._opened is not None:
                self._opened.writer.close()
                self._opened = None
                self._last_id, self._is_counted = 0, False
            while (lock := self._pop_spare()) is not None:
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
    ) -> TaskLocks:
        """Acquire locks (see `TaskLocks`) in the folder as it is now.

        `making`: the files of these tasks do not exist yet, so there is nothing for npm to lock. `timeout`:
        seconds, instead of the setting.
        """
        kernel = self._borrow_lock()
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

    def _borrow_lock(self) -> RangeLock | None:
        """Return the list's open lock file; reopen everything if the folder is no longer the same."""
        for _ in range(3):
            opened = self._open()
            if self._network:
                return None
            if self._is_in_place(opened):
                lock = self._pop_spare() or opened.lock(self.folder.lock)
                if lock.place() == opened.place:
                    return lock
                lock.close()
            self.close()  # the folder was removed or moved: opening creates it, or raises
        raise StorageError(self.folder.path, "it is being removed again and again")

    def _is_in_place(self, opened: OpenList) -> bool:
        """Return whether the list's path still leads to the open folder."""
        try:
            found = os.lstat(self.folder.lock)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == opened.place

    def _pop_spare(self) -> RangeLock | None:
        """Return a lock file left open by an earlier operation; a forked child cannot use those of its parent."""
        while True:
            try:
                lock = self._spare.pop()
            except IndexError:
                return None
            if lock.is_usable:
                return lock

    def seen(self, task_id: str, hold: TaskLocks) -> tuple[Task, TaskFileState | None]:
        """Return a task under its lock, after logging or undoing what another program did to it.

        The second value is its file state; None if only the older `tasks.json` has it.

        Raises:
            TaskNotFound: there is none.
            Damaged: its file cannot be read.
        """
        opened = self._open()
        row = opened.writer.index.row(task_id)
        if row.intent is not None:
            raise UnfinishedWrite(task_id)
        found = opened.recovery.log_external(task_id, self.tasks.reader.read(task_id), hold, row)
        if found is not None and found.damage is not None:
            raise Damaged(self.folder.task(task_id), found.damage)
        if found is not None and found.task is not None:
            return found.task, found
        if found is None and (older := self.tasks.older(task_id)) is not None:
            return older, None
        raise self.missing(task_id)

    def missing(self, task_id: str) -> TaskNotFound:
        """Return the error for a missing task: with similar ids, or that it can be restored."""
        if not self.folder.exists():
            return TaskNotFound(task_id, list_name=self.folder.name)
        from taskyard.tasks import history

        gone = history.is_restorable(self, task_id)
        return TaskNotFound(task_id, list_name=self.folder.name, nearest=self.tasks.nearest(task_id), restorable=gone)

    def with_retries(self, attempt: Callable[[], T]) -> T:
        """Run `attempt`, and again from the start when another program interferes."""
        for _ in range(_TRIES):
            try:
                return attempt()
            except UnfinishedWrite as found:
                self.recovery.settle(found.task_id)
            except (LockLost, IdTaken):
                pass  # everything is read anew
        raise Busy(f"list {self.folder.name!r}", "another program that keeps writing", self.settings.lock_timeout)

    def next_id(self) -> str:
        """Return the id after the highest one ever given out, by all sources. The caller holds the list lock."""
        while not self.is_fresh(found := self.candidate_id()):
            pass  # the next candidate is computed from the files
        return found

    def candidate_id(self) -> str:
        """Return the id after the highest known one, without reading files; `is_fresh` must confirm it.

        The caller holds the list lock; `is_fresh` may be called after releasing it.
        """
        mark = self.writer.mark.read()
        if mark > MAX_COUNTED_ID:
            mark = 0  # no list has that many tasks: the files show which ids are spent
        last = max(mark, self._last_id)
        if not self._is_counted:
            last = max(last, self.writer.index.highest(), self.tasks.highest_consolidated())
        if not mark or self._was_taken:
            # Another program gives out ids without raising the mark: only the files show which are spent.
            on_disk = (number for number in self.folder.ids_on_disk() if number <= MAX_COUNTED_ID)
            last = max(last, self.writer.index.highest(), *on_disk, 0)
        self._is_counted, self._was_taken = True, False
        if last >= MAX_COUNTED_ID:
            raise Damaged(self.folder.mark, f"it says {last}, but new ids end at {MAX_COUNTED_ID}")
        self._last_id = last + 1
        try:
            self.writer.mark.write(self._last_id)
        except StorageError as error:
            raise error.writing([str(self._last_id)], "Nothing was changed.") from error
        return str(self._last_id)

    def is_fresh(self, task_id: str) -> bool:
        """Return whether an id from `candidate_id` was never used; if it was, the next one is read from the files."""
        if os.access(self.folder.task(task_id), os.F_OK) or self.writer.index.row(task_id).entry is not None:
            self._was_taken = True
            return False
        return True

    def raise_mark(self, task_id: int) -> None:
        """Ensure that no id up to this one is given out again. The caller holds the list lock."""
        if self.writer.mark.read() < task_id:
            self.writer.mark.write(task_id)

    def return_id(self, task_id: str) -> None:
        """Undo `next_id` for a task that could not be drafted, if it was the last id: it was never visible."""
        with self.hold(whole=True):
            if self.writer.index.highest() < int(task_id) == self.writer.mark.read():
                self._last_id, self._is_counted = 0, False
                self.writer.mark.write(int(task_id) - 1)


class FileStore:
    """One list in one folder."""

    def __init__(self, list_files: ListFiles) -> None:
        self._files = list_files
        self._leases = list_files.leases
        self._changing: FileStoreWriter | None = None
        self._on_quarantine: Callable[[Task], None] | None = None

    @property
    def name(self) -> str:
        """The list's name."""
        return self._files.folder.name

    @property
    def _changes(self) -> FileStoreWriter:
        """The writer of single tasks, created at the first change."""
        if self._changing is None:
            from taskyard.tasks.file_changes import FileStoreWriter

            self._changing = FileStoreWriter(self._files, self._notify_quarantine)
        return self._changing

    # -- reading -----------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """Return a task with its lease; release it first if its holder is dead."""
        task = self._files.tasks.get(task_id) if self._files.folder.exists() else None
        if task is None:
            raise self._files.missing(task_id)
        if task_id in self._files.tasks.undone and self._files.writer_if_allowed() is not None:
            self._files.recovery.look_around([task_id])
        if task.lease is not None and self._leases.is_dead(task.lease):
            self._changes.release_dead([task_id])
            return self._files.tasks.get(task_id) or task
        return task

    def list(self) -> Listing:
        """Return all tasks, after logging external changes and releasing tasks of dead holders."""
        if not self._files.folder.exists():
            return Listing()
        tasks = self._files.tasks
        listing, changed = tasks.listing(self._files.known)
        if changed and self._files.writer_if_allowed() is not None:
            self._files.recovery.look_around(changed)
            if tasks.undone:
                listing, _ = tasks.listing(self._files.known)
        dead = self._leases.dead_ids()
        if dead and self._changes.release_dead(dead):
            listing, _ = tasks.listing(self._files.known)
        return listing

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Return the ids of tasks whose `blockedBy` names the task."""
        return self._files.tasks.waiting_for(task_id)

    def is_finished(self) -> bool:
        """Return whether no visible task is open."""
        return not self._files.tasks.any_open()

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """Yield the event log from an entry id on, or one task's part of it, oldest first."""
        if not self._files.folder.exists():
            return iter(())
        from taskyard.tasks import history

        return history.list_changes(self._files, since, task_id=task_id)

    def position(self) -> int:
        """Return the id of the next change, or a smaller one."""
        if not self._files.folder.exists():
            return 0
        from taskyard.tasks import history

        return history.next_position(self._files)

    def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a change; return whether something may have changed."""
        return self._files.tasks.wait(timeout, debounce=self._files.settings.debounce)

    # -- writing -----------------------------------------------------------------------------

    def reserve(self) -> str:
        """Reserve a fresh id; the mark is raised, so it is never reused."""
        with self._files.hold(whole=True):
            return self._files.next_id()

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Create a task."""
        if "taskyard" in draft.metadata:
            from taskyard.tasks.model import metadata_parent

            if metadata_parent(draft.metadata) is not None:
                from taskyard.tasks.file_changes import create_linked

                return self._files.with_retries(lambda: create_linked(self._files, draft, act, task_id, lease))
        return self._changes.create(draft, act, task_id, lease)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: LinkChange | None = None,
    ) -> Task:
        """Let `rule` decide about a task under its lock, and save its decision."""
        return self._changes.update(task_id, rule, act, with_blockers=with_blockers, whole_list=whole_list, links=links)

    def listen(self, on_quarantine: Callable[[Task], None]) -> None:
        """Call `on_quarantine` for quarantined tasks, with no lock held."""
        self._on_quarantine = on_quarantine

    def _notify_quarantine(self, task: Task) -> None:
        if self._on_quarantine is not None:
            self._on_quarantine(task)

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """Claim the first task, in the given order, that `rule` accepts."""
        for task_id in order(self.list()):
            try:
                return self.update(task_id, rule, act, with_blockers=True)
            except (Conflict, TaskNotFound, Damaged):
                continue  # another agent was faster, or it cannot be claimed
        return None

    # -- several tasks -----------------------------------------------------------------------

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Add dependencies (blocker, blocked): all or none."""
        from taskyard.tasks.file_changes import link

        self._files.with_retries(lambda: link(self._files, edges, act))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Remove dependencies; return those that existed."""
        from taskyard.tasks.file_changes import unlink

        return self._files.with_retries(lambda: unlink(self._files, edges, act))

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Remove tasks from the list and from all dependencies."""
        from taskyard.tasks.file_changes import remove

        return self._files.with_retries(lambda: remove(self._files, task_ids, act, only_done=only_done, check=check))

    def restore(self, task_id: str, act: Act) -> Task:
        """Restore a removed task under its id."""
        from taskyard.tasks.file_changes import restore

        return self._files.with_retries(lambda: restore(self._files, task_id, act))

    def last_id(self) -> int:
        """Return the highest id ever given out."""
        from taskyard.tasks.file_changes import last_id

        return last_id(self._files)

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Fill an empty list with `tasks` as they are."""
        from taskyard.tasks.file_changes import adopt

        self._files.with_retries(lambda: adopt(self._files, tasks, act, last))

    def signal(self) -> None:
        """Wake all waiters in this process at once."""
        self._files.tasks.signal()

    def close(self) -> None:
        """Close open files."""
        self._files.close()
