"""Crash-safe changes of task files: locks of a change, the write-ahead log protocol, and recovery.

Lock order: kernel locks by ascending id (the list is byte 0), then npm's folder locks in the same order,
where other programs may write. Blockers that a decision only reads are locked shared, so that the decision
is still true when it is written.

A crash at any point leaves the old state or the new one, and a trace. Steps of a change, under the locks of
every task in it:
    1. drafts      the new contents, in `.taskyard/tmp/`
    2. intent      each task's index row records the end of the log when the writer began
    3. log         one entry with every task as it will be: the decision
    4. leases      a new holder's record; before the task, so that no owner is ever without one
    5. each task   its draft is renamed into place, tasks whose `blockedBy` changed first; then a former
                   holder's record is removed; then the index row records the new file and clears the intent

`Recovery` reconciles log and files in two cases. A writer crashed or collided with another program: an
intent is left in the index, and the log from there states the wanted change; if its first file is in place
the rest is completed, otherwise the change is closed as aborted. Or another program changed a file, so that
it differs from its index row: an entry with cause `external` is logged, so that every state a Taskyard
process ever saw can be shown and restored.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from json.encoder import encode_basestring

from taskyard.core import files
from taskyard.core.files import open_plain, rename_noreplace, swap
from taskyard.core.system import now_ms
from taskyard.core.values import LARGEST_ID, NamedTuple, as_object
from taskyard.errors import Busy, StorageError
from taskyard.storage.journal import Journal
from taskyard.storage.locks import FolderLock
from taskyard.tasks.history import rebuild_rows
from taskyard.tasks.list_folder import (
    HighWaterMark,
    IndexRow,
    TaskIndex,
    differing_fields,
    make_row,
    with_recorded_fields,
)
from taskyard.tasks.model import Act, Lease, LockLost, RetryOperation, Task, WriteConflict
from taskyard.tasks.reader import TaskFileState, encode_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol

    from taskyard.storage.locks import RangeLock
    from taskyard.tasks.list_folder import LeaseFiles, ListFolder
    from taskyard.tasks.reader import TaskReader


class TaskLocks:
    """Locks on some tasks and optionally the whole list; leaving the `with` block releases them all."""

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
        """Acquire the locks, each within `timeout` seconds.

        Args:
            folder: The list.
            ids: Tasks that will be written.
            reading: Tasks that must not change meanwhile.
            whole: Lock the list itself: ids are given out, dependencies change.
            everything: Lock the list and all its tasks for reading; not for writing task files.
            kernel: The list's lock file; None where kernel locks are unreliable (a network file system) and npm's
                lock on the whole list must do.
            give_back: Called with the unlocked lock file for reuse.
            foreign: Other programs write here too: take npm's locks as well.
            timeout: Seconds, for each lock.

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
                    self._take_range_locks(kernel, writing, reading, whole, timeout, what)
            guarded = kernel is not None
            if not guarded or (foreign and whole):
                self._take_folder_lock(folder.npm_target, what, timeout, guarded=guarded)
            if foreign or not guarded:
                for number in writing:
                    target = folder.task(str(number))
                    self._take_folder_lock(target, f"task #{number} of {what}", timeout, guarded=guarded)
        except BaseException:
            self.release()
            raise

    def _take_range_locks(
        self, lock: RangeLock, writing: list[int], reading: Iterable[str], whole: bool, timeout: float, what: str
    ) -> None:
        if whole:
            lock.take(0, timeout=timeout, what=what)
        shared = {int(task_id) for task_id in reading}.difference(writing) if reading else ()
        for number in sorted({*writing, *shared}) if shared else writing:
            lock.take(number, timeout=timeout, what=f"task #{number} of {what}", shared=number in shared)

    def _take_folder_lock(self, target: str, what: str, timeout: float, *, guarded: bool) -> None:
        self._folders.append(FolderLock(target, timeout=timeout, what=what, guarded=guarded))

    def narrow(self, task_id: str) -> None:
        """Exchange the list lock for the lock of one new task, so that creates run in parallel.

        No other process has its id, and its file does not exist yet, so there is nothing for npm to lock. Without
        kernel locks the list stays locked.
        """
        if self._kernel is None:
            return
        self._release_folder_locks()
        self._kernel.release(0)
        self._kernel.take(int(task_id), timeout=self._timeout, what=f"task #{task_id}")

    def check(self) -> None:
        """Check, right before a write, that the folder locks are still ours.

        Raises:
            LockLost: one is not: this process slept for so long that it looked abandoned.
        """
        for lock in self._folders:
            if not lock.is_ours():
                raise LockLost

    def release(self) -> None:
        """Release all locks, in reverse order."""
        self._release_folder_locks()
        kernel, self._kernel = self._kernel, None
        if kernel is None:
            return
        if kernel.is_spoiled:
            kernel.close()  # if reused, a waiter that timed out could release what it holds
        else:
            kernel.release()
            self._give_back(kernel)

    def _release_folder_locks(self) -> None:
        while self._folders:
            self._folders.pop().release()

    def __enter__(self) -> TaskLocks:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_to_json = json.JSONEncoder().encode
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class TaskWrite(NamedTuple):
    """One task of a change: as it was read, and as it will be (None = removed)."""

    id: str
    before: TaskFileState | None
    after: Task | None
    lease: tuple[Lease | None, int] | None = None  #: its new lease record and losses; None = unchanged
    is_new: bool = False  #: its id was just given out: there is no index row


class ListWriter:
    """Writes changes to one list's folder."""

    def __init__(self, folder: ListFolder, leases: LeaseFiles, *, sync: bool):
        self.folder = folder
        self.index = TaskIndex(folder.index)
        self.mark = HighWaterMark(folder.mark)
        self.journal = Journal(folder.log, sync=sync)
        self._leases = leases
        self._sync = sync

    def commit(self, hold: TaskLocks, act: Act, writes: Sequence[TaskWrite]) -> None:
        """Write the change: all of it or nothing.

        Raises:
            WriteConflict: another program wrote meanwhile; the intents stay, for `Recovery.settle` to close.
            LockLost: a lock we relied on was lost; nothing was written.
            StorageError: the disk refused; states whether anything was changed.
        """
        rows = {write.id: IndexRow() if write.is_new else self.index.row(write.id) for write in writes}
        try:
            drafts = self._drafts(writes)
            hold.check()
            start = self.journal.known_end()
            for write in writes:
                self.index.intend(write.id, rows[write.id], start)
            entry = self._append(act, {write.id: drafts.get(write.id) for write in writes}, rows)
        except StorageError as error:
            self._withdraw(rows)
            raise error.writing(list(rows), "Nothing was changed.") from error
        except BaseException:
            self._withdraw(rows)
            raise
        try:
            for write in writes:
                if write.lease is not None and write.lease[0] is not None:
                    self._leases.write(write.id, *write.lease)
            for write in writes:
                self.apply(write, entry, drafts.get(write.id))
        except StorageError as error:
            raise error.writing(list(rows), "The next command completes the change or undoes it, whole.") from error

    def _withdraw(self, rows: Mapping[str, IndexRow]) -> None:
        """Undo the drafts and intents of a change that was not logged."""
        for task_id, row in rows.items():
            _discard(self.folder.draft(task_id))
            try:
                if self.index.row(task_id) != row:
                    self.index.put(task_id, row)
            except StorageError:
                pass  # a full disk; the next writer finds an intent without a log entry

    def log(self, act: Act, tasks: Mapping[str, bytes | None], *, about: Sequence[str] = (), **more: object) -> int:
        """Append a log entry; return its id. `about` names tasks it concerns without recording their state."""
        rows = {task_id: self.index.row(task_id) for task_id in (*tasks, *about)}
        return self._append(act, tasks, rows, **more)

    def _append(self, act: Act, tasks: Mapping[str, bytes | None], rows: Mapping[str, IndexRow], **more: object) -> int:
        prev = ", ".join([f'"{name}": {"null" if row.entry is None else row.entry}' for name, row in rows.items()])
        by = "null" if act.by is None else encode_basestring(act.by)
        rest = "".join([f', "{name}": {_to_json(value)}' for name, value in more.items()]) if more else ""
        if act.note:
            rest += f', "note": {encode_basestring(act.note)}'
        facts = (
            f'{{"at": {now_ms()}, "by": {by}, "cause": "{act.cause}", "via": {encode_basestring(act.via)}{rest}'
            f', "prev": {{{prev}}}, "tasks": {{'
        )
        # Every newline in a task's bytes is layout: those inside strings are escaped.
        states = b", ".join(
            [
                b'"%s": %s' % (task_id.encode(), b"null" if data is None else data.replace(b"\n", b" "))
                for task_id, data in tasks.items()
            ]
        )
        return self.journal.append(b"%s%s}}" % (facts.encode("utf-8", "backslashreplace"), states))

    def _drafts(self, writes: Sequence[TaskWrite]) -> dict[str, bytes]:
        drafts: dict[str, bytes] = {}
        for write in writes:
            if write.after is not None:
                data = drafts[write.id] = encode_task(write.after, write.before.raw if write.before else None)
                self.draft(write.id, data)
        return drafts

    def draft(self, task_id: str, data: bytes) -> None:
        """Write a task's next content to the drafts folder, where readers do not look."""
        path = self.folder.draft(task_id)
        try:
            fd = open_plain(path, _DRAFT, 0o644)
            try:
                files.write_all(fd, data)
                if self._sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            _discard(path)
            raise files.storage_error(path, error) from error

    def apply(self, write: TaskWrite, entry: int, draft: bytes | None) -> None:
        """Rename one task's draft into place, or remove the task; then clear the intent.

        A former holder's lease is removed in between: once the intent is cleared, recovery would not look for it.
        """
        if draft is None:
            self._remove(write)
        else:
            self._put(write)
        if write.lease is not None and write.lease[0] is None:
            self._leases.write(write.id, *write.lease)
        self.index.put(write.id, IndexRow(entry) if draft is None else make_row(entry, draft))

    def _put(self, write: TaskWrite) -> None:
        path, temporary = self.folder.task(write.id), self.folder.draft(write.id)
        try:
            if write.before is None:
                rename_noreplace(temporary, path)
            elif swap(temporary, path):
                self._verify_swapped(write, temporary)
        except (FileExistsError, FileNotFoundError):
            raise WriteConflict(write.id) from None
        except OSError as error:
            raise files.storage_error(path, error) from error
        if self._sync:
            files.sync_folder(self.folder.path)

    def close(self) -> None:
        """Close open files."""
        self.index.close()
        self.mark.close()
        self.journal.close()

    def _verify_swapped(self, write: TaskWrite, temporary: str) -> None:
        """Check that the replaced file is the one we had read; if not, restore it and raise WriteConflict."""
        if not _is_unchanged(write, temporary):
            swap(temporary, self.folder.task(write.id))
            raise WriteConflict(write.id)
        _discard(temporary)  # the change is made: a file that cannot be removed is a leftover, not a failure

    def _remove(self, write: TaskWrite) -> None:
        path, temporary = self.folder.task(write.id), self.folder.draft(write.id)
        try:
            os.rename(path, temporary)
        except FileNotFoundError:
            return  # another program removed it first, as intended
        except OSError as error:
            raise files.storage_error(path, error) from error
        try:
            if not _is_unchanged(write, temporary):
                rename_noreplace(temporary, path)
                raise WriteConflict(write.id)
        except OSError as error:
            raise files.storage_error(path, error) from error
        _discard(temporary)


def _is_unchanged(write: TaskWrite, path: str) -> bool:
    """Return whether the file now at `path` is the one on which the change was decided."""
    if write.before is None:
        return False
    was, found = write.before.stat, os.lstat(path)
    if (found.st_ino, found.st_size, found.st_mtime_ns) == (was.st_ino, was.st_size, was.st_mtime_ns):
        return True
    return files.read(path) == write.before.data


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


if TYPE_CHECKING:

    class LockTasks(Protocol):
        def __call__(
            self,
            ids: Iterable[str] = (),
            *,
            whole: bool = False,
            everything: bool = False,
            timeout: float | None = None,
        ) -> TaskLocks: ...


#: Above this number of changed files they are logged together, in entries of this many tasks.
_BATCH_SIZE = 100

#: Seconds a reader waits for a writer to finish, which takes about a millisecond.
_WRITER_TIMEOUT = 0.5

_EXTERNAL = Act(by=None, cause="external", via="watch")
_REPAIRED = Act(by=None, cause="repaired", via="watch")
_ABORTED = Act(by=None, cause="aborted", via="watch")


class Recovery:
    """Finds and closes unfinished and external changes of one list."""

    def __init__(self, writer: ListWriter, reader: TaskReader, leases: LeaseFiles, hold: LockTasks) -> None:
        self._writer = writer
        self._reader = reader
        self._leases = leases
        self._hold = hold

    # -- changes by other programs -----------------------------------------------------------

    def log_external(
        self, task_id: str, seen: TaskFileState | None, hold: TaskLocks, row: IndexRow | None = None
    ) -> TaskFileState | None:
        """Log another program's change to a task, if any, under its lock `hold`; return the file state after it.

        Fields of ours that the change undid are restored in the same step. `row` is the task's index row.

        Raises:
            RetryOperation: another program wrote meanwhile.
        """
        row = row or self._writer.index.row(task_id)
        if matches_row(row, seen):
            return seen
        if seen is not None and (kept := self._kept(seen, row)) is not None:
            return self._put_back(seen, kept, hold)
        if seen is not None and seen.damage is not None:
            # There is no state to log, but earlier entries must still be found.
            entry = self._writer.log(_EXTERNAL, {}, about=(task_id,), damaged={task_id: seen.damage})
        else:
            state = encode_task(seen.task, seen.raw) if seen is not None and seen.task is not None else None
            entry = self._writer.log(_EXTERNAL, {task_id: state})
            self._tidy_lease(task_id, seen.raw if seen is not None else None)
        self._writer.index.put(task_id, _make_row(entry, seen))
        return seen

    def _kept(self, seen: TaskFileState, row: IndexRow) -> Task | None:
        """Return the task of a changed file with our recorded fields; None if the change undid none of them."""
        if seen.task is None or row.entry is None:
            return None
        kept = with_recorded_fields(self._writer.journal, self._writer.index, seen.task)
        return kept if kept is not seen.task else None

    def _put_back(self, seen: TaskFileState, kept: Task, hold: TaskLocks) -> TaskFileState | None:
        """Log another program's change and rewrite the file with the fields that it undid."""
        note = f"it undid, and Taskyard put back: {differing_fields(seen.task or kept, kept)}"
        self._writer.commit(hold, _EXTERNAL._replace(note=note), (TaskWrite(kept.id, seen, kept),))
        self._tidy_lease(kept.id, seen.raw)
        return self._reader.read(kept.id)

    def log_consolidated(self, task: Task) -> None:
        """Log a task that exists only in the older consolidated file, as it is there."""
        if self._writer.index.row(task.id).entry is None:
            entry = self._writer.log(_EXTERNAL, {task.id: encode_task(task)})
            self._writer.index.put(task.id, IndexRow(entry))

    def look_around(self, ids: Sequence[str]) -> None:
        """Log external changes of tasks whose files seem to have changed, under their locks.

        Tasks that cannot be written, or stay locked, are left until the next call. Only the first of those is
        waited for.
        """
        if len(ids) > _BATCH_SIZE:
            with suppress(StorageError, Busy):
                self._sync_each(self._adopt(ids))
            return
        self._sync_each(ids)

    def _sync_each(self, ids: Sequence[str]) -> None:
        timeout: float | None = None
        for task_id in ids:
            try:
                if self._writer.index.row(task_id).intent is not None:
                    self.settle(task_id, timeout=timeout)
                with self._hold([task_id], timeout=timeout) as hold:
                    if self._writer.index.row(task_id).intent is None:
                        self.log_external(task_id, self._reader.read(task_id), hold)
            except (StorageError, Busy):
                timeout = 0.0
            except RetryOperation:
                self.recover_if_free(task_id)  # another program writes it right now: the next call sees the result

    def _adopt(self, ids: Sequence[str]) -> list[str]:
        """Log many changed tasks in a few large entries, as when another program's list is first opened.

        Returns the tasks whose files must be rewritten, which are left to be handled one by one.
        """
        left: list[str] = []
        with self._hold(everything=True) as hold:
            for start in range(0, len(ids), _BATCH_SIZE):
                found: dict[str, TaskFileState | None] = {}
                for task_id in ids[start : start + _BATCH_SIZE]:
                    row, seen = self._writer.index.row(task_id), self._reader.read(task_id)
                    if row.intent is not None or matches_row(row, seen):
                        continue
                    if seen is not None and seen.damage is not None:
                        self.log_external(task_id, seen, hold)
                    elif seen is not None and self._kept(seen, row) is not None:
                        left.append(task_id)
                    else:
                        found[task_id] = seen
                states = {
                    task_id: encode_task(seen.task, seen.raw) if seen is not None and seen.task is not None else None
                    for task_id, seen in found.items()
                }
                entry = self._writer.log(_EXTERNAL, states) if states else 0
                for task_id, seen in found.items():
                    self._tidy_lease(task_id, seen.raw if seen is not None else None)
                    self._writer.index.put(task_id, _make_row(entry, seen))
        return left

    # -- changes left by crashed writers -----------------------------------------------------

    def rebuild_index(self) -> None:
        """Rebuild a lost index from the log, so that every logged task can be restored."""
        with self._hold(everything=True):
            if self._writer.index.highest():
                return  # another process was faster
            for task_id, row in rebuild_rows(self._writer.journal).items():
                self._writer.index.put(task_id, row)

    def unsettled(self) -> list[str]:
        """Return the tasks that have an unfinished change."""
        return self._writer.index.intents()

    def settle(self, task_id: str, *, timeout: float | None = None) -> None:
        """Complete or undo the unfinished change of `task_id`.

        Raises:
            Busy: its writer is alive and did not finish within `timeout` seconds (default: the setting).
        """
        row = self._writer.index.row(task_id)
        if row.intent is None:
            return
        wanted = self._wanted(task_id, row)
        ids = [task_id] if wanted is None else list(wanted.tasks)
        with self._hold(ids, whole=True, timeout=timeout):
            if self._writer.index.row(task_id).intent != row.intent:
                return  # another process was faster, or its writer is alive and has finished
            wanted = self._wanted(task_id, row)
            if wanted is None:
                self._forget(task_id, row)
            elif list(wanted.tasks) == ids:
                self._close(wanted)

    def tidy_lease(self, task_id: str, *, timeout: float | None = None) -> None:
        """Remove a lease record that matches no owner any more, because another program changed the task."""
        with self._hold([task_id], timeout=timeout):
            seen = self._reader.read(task_id)
            if seen is None or seen.damage is None:
                self._tidy_lease(task_id, seen.raw if seen is not None else None)

    def recover_if_free(self, task_id: str) -> bool:
        """Settle unless a live writer holds the lock or we may not write; return whether it is settled now."""
        try:
            self.settle(task_id, timeout=_WRITER_TIMEOUT)
        except (StorageError, Busy):
            return False
        return self._writer.index.row(task_id).intent is None

    def _wanted(self, task_id: str, row: IndexRow) -> _UnfinishedChange | None:
        """Return the change that the unfinished writer logged; None if it had logged nothing.

        Earlier attempts at the same change may be logged, closed as aborted: they count only if there is no other,
        because then the process that closed the last one crashed while doing so.
        """
        assert row.intent is not None
        found: list[_UnfinishedChange] = []
        aborted: set[object] = set()
        for entry_id, entry in self._writer.journal.since(row.intent):
            tasks, prev = as_object(entry.get("tasks")) or {}, as_object(entry.get("prev")) or {}
            if entry.get("cause") == _ABORTED.cause:
                aborted.add(entry.get("of"))
            elif task_id in tasks and entry.get("of") is None and prev.get(task_id) == row.entry:
                states = {key: as_object(state) for key, state in tasks.items()}
                found.append(_UnfinishedChange(entry_id, states, lost=entry.get("cause") == "lease_lost"))
        still = [wanted for wanted in found if wanted.entry not in aborted]
        return still[-1] if still else found[-1]._replace(aborted=True) if found else None

    def _close(self, wanted: _UnfinishedChange) -> None:
        """Complete the change if its first task is in place; otherwise abort it."""
        rows = {task_id: self._writer.index.row(task_id) for task_id in wanted.tasks}
        unfinished = {task_id: row for task_id, row in rows.items() if self._is_unfinished(task_id, row, wanted)}
        first = next(iter(wanted.tasks))
        # The first task may have been changed again since: its cleared intent then proves that it was
        # written.
        if wanted.aborted or (first in unfinished and not self._is_done(first, wanted)):
            if not wanted.aborted:
                self._writer.log(_ABORTED, {}, of=wanted.entry)
            for task_id, row in unfinished.items():
                self._forget(task_id, row)
            return
        missing = [task_id for task_id, row in unfinished.items() if not self._finish(task_id, row, wanted)]
        self._writer.log(_REPAIRED, {}, of=wanted.entry, left=missing)

    def _is_unfinished(self, task_id: str, row: IndexRow, wanted: _UnfinishedChange) -> bool:
        """Return whether this task's part of the change is still open; its intent may belong to another change."""
        found = None if row.intent is None else self._wanted(task_id, row)
        return found is not None and found.entry == wanted.entry

    def _is_done(self, task_id: str, wanted: _UnfinishedChange) -> bool:
        seen, state = self._reader.read(task_id), wanted.tasks[task_id]
        return state is None if seen is None else seen.raw == state

    def _finish(self, task_id: str, row: IndexRow, wanted: _UnfinishedChange) -> bool:
        """Write one task as the log states it, unless another program has changed it since."""
        seen, state = self._reader.read(task_id), wanted.tasks[task_id]
        if self._is_done(task_id, wanted):
            self._tidy_lease(task_id, state, lost=wanted.lost)
            self._writer.index.put(task_id, _make_row(wanted.entry, seen))
            return True
        if not matches_row(row, seen):
            self._forget(task_id, row)
            return False
        self._tidy_lease(task_id, state, lost=wanted.lost)
        draft = None if state is None else _encode_state(state)
        if draft is not None:
            self._writer.draft(task_id, draft)
        try:
            self._writer.apply(TaskWrite(task_id, seen, None), wanted.entry, draft)
        except WriteConflict:
            self._forget(task_id, row)
            return False
        return True

    def _forget(self, task_id: str, row: IndexRow) -> None:
        """Clear the intent of a change that was not made."""
        seen = self._reader.read(task_id)
        self._tidy_lease(task_id, seen.raw if seen is not None else None)
        self._writer.index.put(task_id, row._replace(intent=None))

    def _tidy_lease(self, task_id: str, state: Mapping[str, object] | None, *, lost: bool = False) -> None:
        """Remove a lease record that does not match the task: its writer crashed before or after writing it."""
        self._leases.discard_draft(task_id)
        lease, losses = self._leases.read(task_id)
        if state is None:
            self._leases.write(task_id, None, 0)
        elif lease is not None and (state.get("owner") != lease.owner or state.get("status") == "completed"):
            self._leases.write(task_id, None, losses + lost)


class _UnfinishedChange(NamedTuple):
    """An unfinished change as logged."""

    entry: int
    tasks: dict[str, dict[str, object] | None]
    lost: bool  #: it releases the task of a dead holder, which counts as a loss
    aborted: bool = False  #: another process began to undo it


def matches_row(row: IndexRow, seen: TaskFileState | None) -> bool:
    """Return whether a file matches its index row."""
    if seen is None:
        return not row.is_present
    return row.size == len(seen.data) and row.crc == seen.crc


def _make_row(entry: int, seen: TaskFileState | None) -> IndexRow:
    return make_row(entry, seen.data) if seen is not None else IndexRow(entry)


def _encode_state(wanted: dict[str, object]) -> bytes:
    """Encode a logged task as its file's bytes: same layout, key order as logged."""
    return json.dumps(wanted, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
