"""Read a list's log: changes in order, the changes of one task, the last state of a removed task.

If the folder is writable, the writer's log and index are used, and unfinished changes of crashed writers
are settled on the way. If it is read-only, both are only opened for reading.
"""

from __future__ import annotations

import os

from taskyard.core.files import check_folder, storage_error
from taskyard.core.values import as_object, is_id
from taskyard.errors import StorageError
from taskyard.storage.journal import Journal
from taskyard.tasks.list_folder import IndexRow, TaskIndex
from taskyard.tasks.model import Act, Change, Task
from taskyard.tasks.reader import DeletedMarker, UnreadableTask, decode_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Protocol

    from taskyard.tasks.file_store import ListFiles
    from taskyard.tasks.list_folder import ListFolder


if TYPE_CHECKING:

    class RowSource(Protocol):
        """The part of an index that history needs."""

        def row(self, task_id: str) -> IndexRow: ...


def read_changes(journal: Journal, index: RowSource, since: int, settle: Callable[[str], bool]) -> Iterator[Change]:
    """Yield every change from an entry id on, oldest first; those that never took effect are marked aborted.

    An unfinished change is settled first, by `settle(task id)`. If that is impossible (its writer is alive),
    the changes end before it: whether it counts is not decided yet.
    """
    end = journal.end()
    while True:
        entries = list(journal.since(since))
        aborted = {entry.get("of") for _, entry in entries if entry.get("cause") == "aborted"}
        unfinished = None
        for entry_id, entry in entries:
            if entry.get("cause") == "aborted" or entry_id >= end:
                continue
            change = parse_change(entry_id, entry, aborted=entry_id in aborted)
            if not change.aborted and (unfinished := _unfinished(index, change)) is not None:
                break
            yield change
            since = entry_id + 1
        if unfinished is None or not settle(unfinished):
            return


def _unfinished(index: RowSource, change: Change) -> str | None:
    """Return a task of `change` that its writer has not written yet."""
    return next((task_id for task_id in change.tasks if _is_open(index.row(task_id), change.id)), None)


def _is_open(row: IndexRow, entry_id: int) -> bool:
    return row.intent is not None and row.intent <= entry_id and (row.entry is None or row.entry < entry_id)


class _BrokenChain(Exception):
    """A damaged row or entry: earlier entries cannot be found from there."""


def task_changes(journal: Journal, index: RowSource, task_id: str) -> list[Change]:
    """Return every change of one task, oldest first, by following its entries back."""
    try:
        return [*_backwards(journal, index, task_id)][::-1]
    except _BrokenChain:
        return _scan_task_changes(journal, index, task_id)


def _backwards(journal: Journal, index: RowSource, task_id: str) -> Iterator[Change]:
    """Yield the changes of one task, newest first."""
    position = index.row(task_id).entry
    while position is not None:
        entry = journal.read(position)
        prev = as_object(entry.get("prev")) if entry is not None else None
        if entry is None or prev is None or task_id not in prev:
            raise _BrokenChain
        yield parse_change(position, entry)
        before = prev[task_id]
        position = before if isinstance(before, int) and before < position else None


def newest_first(journal: Journal, index: RowSource, task_id: str) -> Iterator[Change]:
    """Yield the changes of one task, newest first, reading only as far as the caller goes.

    After a damaged entry they start over with the newest, found by reading the whole log.
    """
    try:
        yield from _backwards(journal, index, task_id)
    except _BrokenChain:
        yield from reversed(_scan_task_changes(journal, index, task_id))


def _scan_task_changes(journal: Journal, index: RowSource, task_id: str) -> list[Change]:
    return [
        change
        for change in read_changes(journal, index, 0, lambda _: False)
        if task_id in change.tasks and not change.aborted
    ]


def last_seen(journal: Journal, index: RowSource, task_id: str) -> tuple[Task, Change] | None:
    """Return the last state of a task and the change that removed it; no more is read than that."""
    try:
        return _last_in(_backwards(journal, index, task_id), task_id)
    except _BrokenChain:
        return _last_in(reversed(_scan_task_changes(journal, index, task_id)), task_id)


def _last_in(newest_first: Iterable[Change], task_id: str) -> tuple[Task, Change] | None:
    later: Change | None = None
    for change in newest_first:
        task = change.tasks.get(task_id)
        if task is not None:
            return task, later or change
        later = change
    return None


def rebuild_rows(journal: Journal) -> dict[str, IndexRow]:
    """Rebuild the rows of a lost index: the last log entry of each task."""
    entries = [*journal.since()]
    aborted = {entry.get("of") for _, entry in entries if entry.get("cause") == "aborted"}
    return {
        task_id: IndexRow(entry_id)
        for entry_id, entry in entries
        if entry_id not in aborted
        for task_id in filter(is_id, as_object(entry.get("tasks")) or {})
    }


def parse_change(entry_id: int, entry: dict[str, object], *, aborted: bool = False) -> Change:
    """Parse a log entry; unreadable parts are left out."""
    tasks = as_object(entry.get("tasks")) or {}
    states = {task_id: _parse_state(task_id, raw) for task_id, raw in tasks.items()}
    at, by = entry.get("at"), entry.get("by")
    act = Act(
        by if isinstance(by, str) else None,
        str(entry.get("cause", "unknown")),
        str(entry.get("via", "")),
        _note(entry),
    )
    return Change(entry_id, at if isinstance(at, int) else 0, act, states, aborted)


def _note(entry: dict[str, object]) -> str:
    if damaged := as_object(entry.get("damaged")):
        return "; ".join(f"{task_id}.json: {why}" for task_id, why in damaged.items())
    return str(entry.get("note", ""))


def _parse_state(task_id: str, raw: object) -> Task | None:
    found = as_object(raw)
    if found is None:
        return None
    try:
        return decode_task(task_id, found)
    except (UnreadableTask, DeletedMarker):
        return None


def list_changes(files: ListFiles, since: int, *, task_id: str | None) -> Iterator[Change]:
    """Yield the event log from an entry id on, or one task's part of it, oldest first.

    Raises:
        StorageError: the log is not readable.
    """
    writer = files.writer_if_allowed()
    if writer is not None:
        return _select_changes(writer.journal, writer.index, since, task_id, files.recovery.recover_if_free)
    return _read_only_changes(files.folder, since, task_id)


def next_position(files: ListFiles) -> int:
    """Return the id of the next change, or a smaller one; 0 if the log is not readable."""
    writer = files.writer_if_allowed()
    try:
        return writer.journal.end() if writer is not None else _open_journal(files.folder).end()
    except StorageError:
        return 0


def is_restorable(files: ListFiles, task_id: str) -> bool:
    """Return whether the log has a state of the task."""
    writer = files.writer_if_allowed()
    if writer is not None:
        return last_seen(writer.journal, writer.index, task_id) is not None
    try:
        journal = _open_journal(files.folder)
        index = _open_index(files.folder, journal)
        try:
            return last_seen(journal, index, task_id) is not None
        finally:
            index.close()
    except StorageError:
        return False


def read_row(folder: ListFolder, task_id: str) -> IndexRow:
    """Return a task's row of an index that is read-only for us."""
    try:
        index = TaskIndex(folder.index, writable=False)
    except StorageError:
        return IndexRow()
    try:
        return index.row(task_id)
    finally:
        index.close()


class _LogRows:
    """Index rows rebuilt from the log, where the index is missing and may not be written."""

    def __init__(self, rows: Mapping[str, IndexRow]) -> None:
        self._rows = rows

    def row(self, task_id: str) -> IndexRow:
        return self._rows.get(task_id, IndexRow())

    def close(self) -> None:
        pass


def _read_only_changes(folder: ListFolder, since: int, task_id: str | None) -> Iterator[Change]:
    journal = _open_journal(folder)
    index = _open_index(folder, journal)
    try:
        # Unfinished changes cannot be settled here: we may not write.
        yield from _select_changes(journal, index, since, task_id, lambda _: False)
    finally:
        index.close()


def _select_changes(
    journal: Journal, index: RowSource, since: int, task_id: str | None, settle: Callable[[str], bool]
) -> Iterator[Change]:
    if task_id is not None:
        return (change for change in task_changes(journal, index, task_id) if change.id >= since)
    return read_changes(journal, index, since, settle)


def _open_journal(folder: ListFolder) -> Journal:
    """Return the log, unless it is behind a planted link."""
    for path in (folder.ours, folder.log):
        try:
            check_folder(path, os.lstat(path))
        except FileNotFoundError:
            break  # not written yet: an empty log
        except OSError as error:
            raise storage_error(path, error) from error
    return Journal(folder.log)


def _open_index(folder: ListFolder, journal: Journal) -> TaskIndex | _LogRows:
    try:
        return TaskIndex(folder.index, writable=False)
    except StorageError:
        return _LogRows(rebuild_rows(journal))
